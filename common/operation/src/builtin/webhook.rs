//! The webhook that this program contains: the check that it denies invalid objects, and the values for its installation.

use std::time::Duration;

use addons_engine::EngineError;
use addons_engine::webhooks::{self, WebhookAnswer};
use common::api::catalogue::{
    Addon, AddonCatalogue, AddonCatalogueSpec, AddonVersion, InlineSource, Source,
};
use common::api::names::{InstallationName, SYSTEM_NAMESPACE, field_manager};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{FAILURE_POLICY, IMAGE, WEBHOOK};
use crate::context::Context;
use crate::error::{OperationError, OwnCertificate};
use crate::intent::{Edit, Edits};
use crate::resolve::Resolver;

/// The pause between two probes. There is nothing to watch: after the pods are ready, each API server still has to reach the webhook.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the API server may still enforce deleted policies: it reads them every second.
const LIFT_TIMEOUT: Duration = Duration::from_secs(15);

/// What happens to requests while the webhook does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnansweredRequests {
    /// They are allowed.
    Pass,
    /// They fail.
    Fail,
}

/// Checks that the webhook denies an invalid object. Without our definitions, there is nothing that it could check.
///
/// # Errors
/// The errors of the request.
pub async fn probe(ctx: &Context) -> Result<WebhookAnswer, OperationError> {
    match webhooks::probe(ctx.home().await?, &duplicate_catalogue()).await {
        Err(EngineError::NotInitialised) => Ok(WebhookAnswer::Accepted),
        // The namespace is created with the first installation.
        Err(error) if error.is_not_found() => Ok(WebhookAnswer::Accepted),
        other => Ok(other?),
    }
}

/// Probes until the webhook denies or `timeout` has passed, and returns the last answer.
///
/// # Errors
/// As [`probe`].
pub async fn wait_until_denying(
    ctx: &Context,
    timeout: Duration,
) -> Result<WebhookAnswer, OperationError> {
    let begun = Instant::now();
    loop {
        let answer = probe(ctx).await?;
        if answer == WebhookAnswer::Denied || begun.elapsed() >= timeout {
            return Ok(answer);
        }
        sleep(PAUSE).await;
    }
}

/// Lets requests pass that a webhook which does not answer should validate: the repair of the webhook is among them.
///
/// # Errors
/// The errors of the requests.
pub async fn ignore_failures(ctx: &Context) -> Result<(), OperationError> {
    let manager = field_manager(SYSTEM_NAMESPACE, WEBHOOK);
    webhooks::ignore_failures(ctx.home().await?, &manager).await?;
    Ok(())
}

/// Returns the values of the webhook. Without `image`, the image of the record stays, or that of a Deployment that was applied by other
/// means.
///
/// # Errors
/// [`OwnCertificate`]; the errors of the request.
pub async fn values(
    resolver: &Resolver<'_>,
    image: Option<&str>,
    unanswered: UnansweredRequests,
) -> Result<Edits, OperationError> {
    let policy = match unanswered {
        UnansweredRequests::Pass => "Ignore",
        UnansweredRequests::Fail => "Fail",
    };
    let mut values = json!({FAILURE_POLICY: policy});
    let mut image = image.map(str::to_owned);
    let cluster = resolver.ctx.home().await?;
    if resolver.records.get(&name()).is_none()
        && let Some(live) = webhooks::deployment(cluster, SYSTEM_NAMESPACE).await?
    {
        if has_own_certificate(&live) {
            return Err(OwnCertificate.into());
        }
        image = image.or_else(|| container(&live)["image"].as_str().map(str::to_owned));
    }
    if let Some(image) = image {
        values[IMAGE] = image.into();
    }
    Ok(Edits {
        values: vec![Edit::Merge(values)],
        ..Edits::default()
    })
}

/// Whether requests fail without the webhook, according to its record. Without a record, another client installed it, and they do.
#[must_use]
pub fn is_required(resolver: &Resolver<'_>) -> bool {
    let record = resolver.records.get(&name());
    record.is_none_or(|record| {
        let values = record.spec.values.as_ref();
        values.is_some_and(|values| values[FAILURE_POLICY] == "Fail")
    })
}

/// Whether this Deployment of the webhook gets its certificate from files that another client writes.
pub fn has_own_certificate(deployment: &Value) -> bool {
    let mut flags = container(deployment)["args"]
        .as_array()
        .into_iter()
        .flatten();
    flags.any(|flag| {
        flag.as_str()
            .is_some_and(|flag| flag.starts_with("--tls-cert"))
    })
}

/// Removes from an object what the webhook needs only to manage its certificate itself, as `deploy/overlays/cert-manager` does. Returns
/// whether the object is still needed.
pub fn strip_managed_certificate(object: &mut Value) -> bool {
    let name = object["metadata"]["name"].as_str();
    match object["kind"].as_str() {
        Some("Secret") => false,
        Some("ClusterRole" | "ClusterRoleBinding") => {
            name != Some("kubectl-addons:webhook-configurations")
        }
        Some("Role") => {
            if let Some(rules) = object["rules"].as_array_mut() {
                rules.retain(|rule| rule["resources"] != json!(["secrets"]));
            }
            true
        }
        _ => true,
    }
}

fn container(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]
}

/// Returns the name of the installation.
#[must_use]
pub fn name() -> InstallationName {
    InstallationName {
        namespace: SYSTEM_NAMESPACE.to_owned(),
        name: WEBHOOK.to_owned(),
    }
}

/// Waits until the API server no longer enforces deleted policies: the objects that they guard may be deleted next.
pub(crate) async fn wait_until_lifted(ctx: &Context) {
    let begun = Instant::now();
    let Ok(cluster) = ctx.home().await else {
        return;
    };
    // If the caller may not ask, a later refusal says so.
    while begun.elapsed() < LIFT_TIMEOUT && webhooks::is_guarded(cluster).await.unwrap_or(false) {
        sleep(PAUSE).await;
    }
}

/// Returns a catalogue with the same version twice: the schema accepts it, and the webhook denies it.
fn duplicate_catalogue() -> AddonCatalogue {
    let version = |version: &str| AddonVersion {
        version: version.to_owned(),
        source: Source {
            inline: Some(InlineSource {
                manifest: String::new(),
            }),
            ..Source::default()
        },
        ..AddonVersion::default()
    };
    let mut catalogue = AddonCatalogue::new(
        "addons-webhook-probe",
        AddonCatalogueSpec {
            addons: vec![Addon {
                name: "addons-webhook-probe".to_owned(),
                versions: vec![version("1.0.0"), version("v1.0.0")],
                ..Addon::default()
            }],
            ..AddonCatalogueSpec::default()
        },
    );
    catalogue.metadata.namespace = Some(SYSTEM_NAMESPACE.to_owned());
    catalogue
}

#[cfg(test)]
mod tests {
    use addons_admission::{AdmissionFacts, Requester, validate};

    use super::*;

    #[test]
    fn what_is_asked_is_denied() {
        let verdict = validate::validate_catalogue(
            &duplicate_catalogue(),
            None,
            &Requester::default(),
            &AdmissionFacts::default(),
        );
        let denial = verdict.denial().map(|denial| denial.message);
        assert!(
            denial
                .as_ref()
                .is_some_and(|it| it.contains("is already at")),
            "{denial:?}"
        );
    }
}
