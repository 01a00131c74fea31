//! The fix for a problem that `doctor` found.

use addons_advice::doctor::{Problem, Severity};
use addons_operation::continued;
use common::api::names::{
    InstallationName, LABEL_CLUSTER, LABEL_HOLDS_CORE, LABEL_KUBECONFIG_SECRET, LABEL_OWNER,
    SYSTEM_NAMESPACE, is_reserved,
};

use super::hint;

const WEBHOOK: &str = "kubectl addons init --webhook";
/// The Secret with a certificate that another tool issues.
const GIVEN: &str = "addons-webhook-tls";
const POLICIES: &str = "kubectl addons init --policies";

/// Describes a severity, for a column.
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// Returns the command that fixes the problem, or a sentence if no single command does.
pub fn fix(problem: &Problem) -> String {
    match problem {
        Problem::Unreachable { .. } => "kubectl cluster-info".to_owned(),
        Problem::Unchecked { unread, .. } if unread.is_forbidden => {
            "run it again with permission to read this".to_owned()
        }
        Problem::Unchecked { .. } => "run it again when the server responds".to_owned(),
        Problem::Right { .. } => "ask a cluster administrator for the permission".to_owned(),
        Problem::OldServer { .. } => "upgrade the cluster".to_owned(),
        Problem::DefinitionMissing { .. } | Problem::DefinitionDiffers { .. } => {
            "kubectl addons init".to_owned()
        }
        Problem::DefinitionNewer { .. } => "install that release of this plugin".to_owned(),
        Problem::Certificate { secret, .. } if secret == GIVEN => {
            format!("have Secret {secret} renewed by whatever issues it")
        }
        Problem::NoWebhook
        | Problem::PartMissing { .. }
        | Problem::PartDiffers { .. }
        | Problem::FailuresIgnored
        | Problem::StaleBundle { .. }
        | Problem::Certificate { .. }
        | Problem::NoEndpoints
        | Problem::Unanswered { .. }
        | Problem::RefusesAll { .. }
        | Problem::NotJudged => WEBHOOK.to_owned(),
        Problem::UnansweredOutside { url, .. } => format!("start the webhook at {url}"),
        Problem::NoPolicies | Problem::PolicyMissing { .. } | Problem::PolicyDiffers { .. } => {
            POLICIES.to_owned()
        }
        Problem::Unreadable {
            resource, object, ..
        } => format!(
            "kubectl edit {resource} {} -n {}",
            object.name, object.namespace
        ),
        Problem::Interrupted {
            installation, next, ..
        }
        | Problem::Edited {
            installation, next, ..
        }
        | Problem::Unwell {
            installation,
            next: Some(next),
            ..
        } => continued::command(next, installation),
        Problem::Unwell { installation, .. } => hint::command("status", installation),
        Problem::Held { installation } => hint::command("reconcile", installation),
        Problem::OtherCluster { installation } => {
            format!("{} --new-cluster", hint::command("adopt", installation))
        }
        Problem::NoCluster { installation } if is_reserved(&installation.namespace) => {
            let InstallationName { namespace, name } = installation;
            format!("kubectl delete addoninstallation {name} -n {namespace}")
        }
        Problem::NoCluster { installation } => {
            format!(
                "kubectl label namespace {} {LABEL_CLUSTER}=local",
                installation.namespace
            )
        }
        Problem::HeldByRelease { installation, .. } => {
            format!("{} --adopt", hint::command("upgrade", installation))
        }
        Problem::Orphans {
            installation,
            owner,
            ..
        } => of_orphans(installation.as_ref(), owner),
        Problem::Duplicate { .. } => "kubectl addons catalogue view".to_owned(),
        Problem::StaleLease { .. } => format!(
            "start the reconciler; if it is removed for good: kubectl addons reconcile --retire && \
             kubectl delete lease addons-reconciler -n {SYSTEM_NAMESPACE}"
        ),
        Problem::Unmarked { namespace, .. } => {
            format!("kubectl label namespace {namespace} {LABEL_HOLDS_CORE}=true")
        }
        Problem::AmbiguousCluster { namespace, .. } => {
            format!("kubectl label namespace {namespace} {LABEL_CLUSTER}-")
        }
        Problem::NoKubeconfig { namespace, .. } => {
            format!("kubectl label namespace {namespace} {LABEL_KUBECONFIG_SECRET}-")
        }
    }
}

/// Returns the command for orphaned objects. Only installations in the system namespace are found by name.
fn of_orphans(installation: Option<&InstallationName>, owner: &str) -> String {
    match installation {
        Some(installation) => hint::command("adopt", installation),
        None => format!(
            "kubectl get deployments,daemonsets,statefulsets,services,configmaps -A -l {LABEL_OWNER}={owner}"
        ),
    }
}
