//! Sentences of `preflight` about webhooks, aggregated APIs and stored versions.

use addons_advice::preflight::api_services::{ApiServiceRisk, ApiServiceTrouble};
use addons_advice::preflight::risk::Risk;
use addons_advice::preflight::stored::StoredRisk;
use addons_advice::preflight::webhooks::{UpgradeWrite, WebhookRisk, WebhookTrouble};
use common::api::names::InstallationName;

/// Names the object as kubectl does.
pub fn name_object(risk: &Risk) -> String {
    match risk {
        Risk::Webhook(risk) => format!("{} {}", risk.kind, risk.name),
        Risk::ApiService(risk) => format!("APIService {}", risk.name),
        Risk::StoredVersions(risk) => format!("CustomResourceDefinition {}", risk.name),
    }
}

/// Describes how severe the risk is.
pub fn severity_word(blocks: bool) -> &'static str {
    if blocks { "blocks" } else { "warning" }
}

/// Says in one sentence why it is a risk.
pub fn describe_risk(risk: &Risk) -> String {
    match risk {
        Risk::Webhook(risk) => describe_webhook(risk),
        Risk::ApiService(risk) => describe_api_service(risk),
        Risk::StoredVersions(risk) => describe_stored(risk),
    }
}

/// Returns the commands that fix the risk, or that show more about it.
pub fn list_commands(risk: &Risk) -> Vec<String> {
    if let Risk::StoredVersions(risk) = risk {
        return migration_commands(risk);
    }
    let InstallationName { namespace, name } = match risk.owner() {
        Some(owner) => owner,
        None => {
            let (resource, name) = match risk {
                Risk::Webhook(risk) => (risk.kind.to_lowercase(), &risk.name),
                Risk::ApiService(risk) => ("apiservice".to_owned(), &risk.name),
                Risk::StoredVersions(risk) => ("crd".to_owned(), &risk.name),
            };
            return vec![format!("kubectl get {resource} {name} -o yaml")];
        }
    };
    vec![format!("kubectl addons status {name} -n {namespace}")]
}

fn describe_webhook(risk: &WebhookRisk) -> String {
    let WebhookRisk {
        webhook,
        covers,
        trouble,
        ..
    } = risk;
    let covers = join_covered(covers);
    match trouble {
        WebhookTrouble::NoService { service } => format!(
            "{webhook}: its Service {service} does not exist, so every write of {covers} is refused (failurePolicy Fail)"
        ),
        WebhookTrouble::NoEndpoint { service } => format!(
            "{webhook}: its Service {service} has no ready endpoint, so every write of {covers} is refused (failurePolicy Fail)"
        ),
        WebhookTrouble::OneEndpoint { service } => format!(
            "{webhook}: its Service {service} has one ready endpoint: while that node is drained, every write of {covers} is \
             refused (failurePolicy Fail)"
        ),
        WebhookTrouble::Slow { seconds } => format!(
            "{webhook}: timeoutSeconds {seconds} with failurePolicy Fail: a write of {covers} may wait that long, and leader \
             election gives up after 10 s"
        ),
    }
}

/// `nodes, pods and leases`.
fn join_covered(covers: &[UpgradeWrite]) -> String {
    let word = |needed: &UpgradeWrite| match needed {
        UpgradeWrite::Nodes => "nodes",
        UpgradeWrite::Pods => "pods in kube-system",
        UpgradeWrite::Leases => "leases in kube-system",
    };
    let words: Vec<&str> = covers.iter().map(word).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

fn describe_api_service(risk: &ApiServiceRisk) -> String {
    match &risk.trouble {
        ApiServiceTrouble::Unavailable { message } => format!(
            "it is not available ({message}), so discovery is incomplete and deleted namespaces stay Terminating"
        ),
        ApiServiceTrouble::Served { release } => format!(
            "Kubernetes {release} serves this API itself, and requests would still go to the server of the APIService"
        ),
        ApiServiceTrouble::Removed { removed } => {
            format!("Kubernetes {removed} removed this API, and nothing else serves it")
        }
    }
}

fn describe_stored(risk: &StoredRisk) -> String {
    let StoredRisk {
        versions,
        storage,
        dropped_by,
        ..
    } = risk;
    let versions = versions.join(", ");
    match dropped_by {
        Some(version) => format!(
            "objects may be stored in {versions}, which version {version} of the add-on no longer has: the definition is \
             refused until they are stored in another"
        ),
        None => format!(
            "objects may be stored in {versions} instead of {storage}: a definition without {versions} would be refused"
        ),
    }
}

/// Returns the commands that move objects out of old versions: an upgrade of the add-on, or else each object is written again unchanged.
fn migration_commands(risk: &StoredRisk) -> Vec<String> {
    let StoredRisk {
        name,
        owner,
        storage,
        dropped_by,
        ..
    } = risk;
    if let (Some(owner), Some(version)) = (owner, dropped_by) {
        let upgrade = super::upgrade_command(owner, version);
        return vec![format!("{upgrade} --migrate-stored-versions")];
    }
    vec![
        format!("kubectl get {name} -A -o json | kubectl replace -f -"),
        format!(
            "kubectl patch crd {name} --subresource=status --type=merge -p \
             '{{\"status\":{{\"storedVersions\":[\"{storage}\"]}}}}'"
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(owner: Option<InstallationName>, dropped_by: Option<&str>) -> Risk {
        Risk::StoredVersions(StoredRisk {
            name: "policies.example.test".to_owned(),
            owner,
            versions: vec!["v1beta1".to_owned()],
            storage: "v1".to_owned(),
            dropped_by: dropped_by.map(str::to_owned),
        })
    }

    #[test]
    fn an_upgrade_migrates_what_it_drops_and_kubectl_the_rest() {
        let owner = InstallationName {
            namespace: "kubectl-addons".to_owned(),
            name: "guard".to_owned(),
        };
        let dropped = stored(Some(owner.clone()), Some("2.0.0"));
        let upgrade =
            "kubectl addons upgrade guard@2.0.0 -n kubectl-addons --migrate-stored-versions";
        assert_eq!(list_commands(&dropped), [upgrade]);
        let by_hand = [
            "kubectl get policies.example.test -A -o json | kubectl replace -f -",
            "kubectl patch crd policies.example.test --subresource=status --type=merge -p \
             '{\"status\":{\"storedVersions\":[\"v1\"]}}'",
        ];
        assert_eq!(list_commands(&stored(Some(owner), None)), by_hand);
        assert_eq!(list_commands(&stored(None, None)), by_hand);
    }

    #[test]
    fn what_is_refused_is_named() {
        use UpgradeWrite::{Leases, Nodes, Pods};
        for (covers, expected) in [
            (vec![Nodes], "nodes"),
            (vec![Nodes, Pods], "nodes and pods in kube-system"),
            (
                vec![Nodes, Pods, Leases],
                "nodes, pods in kube-system and leases in kube-system",
            ),
        ] {
            assert_eq!(join_covered(&covers), expected);
        }
    }
}
