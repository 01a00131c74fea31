//! The webhook that this program brings along: whether it denies what it must, and the values that it is installed with.

use std::time::Duration;

use addons_engine::EngineError;
use addons_engine::webhooks::{self, Answer};
use common::api::catalogue::{
    Addon, AddonCatalogue, AddonCatalogueSpec, AddonVersion, InlineSource, Source,
};
use common::api::names::{InstallationName, SYSTEM_NAMESPACE, field_manager};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{FAILURE_POLICY, IMAGE, WEBHOOK};
use crate::context::Context;
use crate::error::OperationError;
use crate::intent::{Edit, Edits};
use crate::resolve::Resolver;

/// Between two questions. There is nothing to watch: the pods are ready, and each API server learns of it by itself.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the API server may go on with policies that were deleted: it reads them every second.
const LIFTED: Duration = Duration::from_secs(15);

/// A webhook that has its certificate from elsewhere, and would lose it.
#[derive(Debug, thiserror::Error)]
#[error(
    "{SYSTEM_NAMESPACE}/Deployment {WEBHOOK}: its certificate comes from files (--tls-cert): apply the kustomization that installed it"
)]
pub struct OwnCertificate;

/// What requests that the webhook should judge meet while it does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// They pass.
    Pass,
    /// They fail.
    Fail,
}

/// Whether the webhook denies what it must. Without our definitions there is nothing that it could judge.
///
/// # Errors
/// Those of the request.
pub async fn ask(ctx: &Context) -> Result<Answer, OperationError> {
    match webhooks::ask(ctx.home().await?, &duplicate()).await {
        Err(EngineError::NotInitialised) => Ok(Answer::Accepted),
        // The namespace is created with the first installation.
        Err(error) if error.is_not_found() => Ok(Answer::Accepted),
        other => Ok(other?),
    }
}

/// Asks until the webhook denies, `timeout` at most; returns the last answer.
///
/// # Errors
/// Those of [`ask`].
pub async fn wait(ctx: &Context, timeout: Duration) -> Result<Answer, OperationError> {
    let begun = Instant::now();
    loop {
        let answer = ask(ctx).await?;
        if answer == Answer::Denied || begun.elapsed() >= timeout {
            return Ok(answer);
        }
        sleep(PAUSE).await;
    }
}

/// Lets requests pass that a webhook which does not answer should judge: what mends it is among them.
///
/// # Errors
/// Those of the requests.
pub async fn let_pass(ctx: &Context) -> Result<(), OperationError> {
    let manager = field_manager(SYSTEM_NAMESPACE, WEBHOOK);
    webhooks::ignore_failures(ctx.home().await?, &manager).await?;
    Ok(())
}

/// The values of the webhook. Without an `image`, that of the record stays, or that of a Deployment which was applied by other means.
///
/// # Errors
/// [`OwnCertificate`]; those of the request.
pub async fn values(
    resolver: &Resolver<'_>,
    image: Option<&str>,
    unanswered: Unanswered,
) -> Result<Edits, OperationError> {
    let policy = match unanswered {
        Unanswered::Pass => "Ignore",
        Unanswered::Fail => "Fail",
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

/// Whether requests fail without the webhook, by its record; so it is where there is none, and others installed it.
#[must_use]
pub fn is_required(resolver: &Resolver<'_>) -> bool {
    let record = resolver.records.get(&name());
    record.is_none_or(|record| {
        let values = record.spec.values.as_ref();
        values.is_some_and(|values| values[FAILURE_POLICY] == "Fail")
    })
}

/// Whether this Deployment of the webhook gets its certificate from files, which others write.
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

/// Takes out of an object of ours what the webhook needs only to manage its certificate itself, as `deploy/overlays/cert-manager` does.
/// Returns whether anything is left of the object.
pub fn without_managed_certificate(object: &mut Value) -> bool {
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

/// The installation.
#[must_use]
pub fn name() -> InstallationName {
    InstallationName {
        namespace: SYSTEM_NAMESPACE.to_owned(),
        name: WEBHOOK.to_owned(),
    }
}

/// Waits until the API server does not carry out policies any more that were deleted: what they guard may be deleted next.
pub(crate) async fn lifted(ctx: &Context) {
    let begun = Instant::now();
    let Ok(cluster) = ctx.home().await else {
        return;
    };
    // Who may not ask is told when something is refused.
    while begun.elapsed() < LIFTED && webhooks::is_guarded(cluster).await.unwrap_or(false) {
        sleep(PAUSE).await;
    }
}

/// A catalogue with one version twice: the schema accepts it, and the webhook never does.
fn duplicate() -> AddonCatalogue {
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
    use addons_admission::{Facts, Requester, validate};

    use super::*;

    #[test]
    fn what_is_asked_is_denied() {
        let verdict =
            validate::catalogue(&duplicate(), None, &Requester::default(), &Facts::default());
        let denial = verdict.denial().map(|denial| denial.message);
        assert!(
            denial
                .as_ref()
                .is_some_and(|it| it.contains("is already at")),
            "{denial:?}"
        );
    }
}
