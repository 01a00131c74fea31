//! Checks our own admission as the API server applies it: whether the webhook answers, and what happens to requests if it does not.

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use common::api::catalogue::AddonCatalogue;
use common::api::names;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::live::read;
use super::request::{ApiCall, JSON_PATCH, METADATA};

/// Name of both configurations.
const CONFIGURATION: &str = "kubectl-addons";
/// Name of the add-on with the webhook, and of its Deployment and Service (`deploy/base`).
pub const WEBHOOK: &str = "addons-webhook";
/// The webhook that validates catalogues.
const VALIDATING_WEBHOOK: &str = "validate.kubectl-addons.dev";

/// The answer to a request that the webhook must deny.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookAnswer {
    /// The webhook denied it.
    Denied,
    /// It was accepted: no configuration calls the webhook, or it did not answer and its failures are ignored.
    Accepted,
    /// The webhook did not answer, so the API server refuses the request, with the reason.
    Unanswered(String),
    /// The webhook refuses every request because it does not know enough to decide, with the reason.
    Refused(String),
}

/// Sends the request as a dry run; nothing is stored.
///
/// # Errors
/// Those of the request; [`EngineError::Denied`] by another webhook or by a policy.
pub async fn probe(
    cluster: &Cluster,
    denied: &AddonCatalogue,
) -> Result<WebhookAnswer, EngineError> {
    let collection = Collection::from_names(
        names::API_VERSION,
        "AddonCatalogue",
        "addoncatalogues",
        denied.metadata.namespace.as_deref(),
    );
    let name = denied.metadata.name.as_deref().unwrap_or_default();
    let body = serde_json::to_vec(denied).map_err(|error| EngineError::Api {
        what: collection.describe_object(name),
        message: error.to_string(),
        code: 0,
    })?;
    let call = ApiCall::create(&collection, name, METADATA)
        .query("dryRun", "All")
        .first();
    match cluster.send::<IgnoredAny>(call.body(body)).await {
        Ok(_) => Ok(WebhookAnswer::Accepted),
        Err(EngineError::Denied { message, .. }) if message.contains(VALIDATING_WEBHOOK) => {
            Ok(WebhookAnswer::Denied)
        }
        Err(EngineError::Api {
            message, code: 429, ..
        }) if message.contains(VALIDATING_WEBHOOK) => Ok(WebhookAnswer::Refused(message)),
        // An object with this name exists, so the webhook was not called.
        Err(error) if error.is_conflict() => Ok(WebhookAnswer::Accepted),
        Err(EngineError::Api { message, .. }) if message.contains("failed calling webhook") => {
            Ok(WebhookAnswer::Unanswered(message))
        }
        Err(error) => Err(error),
    }
}

/// Sets `failurePolicy: Ignore` in the validating configuration, so that requests pass while the webhook does not answer. Returns whether
/// it was changed.
///
/// # Errors
/// Those of the requests; [`EngineError::Denied`] if a policy guards the configuration.
pub async fn ignore_failures(cluster: &Cluster, manager: &str) -> Result<bool, EngineError> {
    let collection = configurations();
    let Some(live) = read(cluster, &collection, CONFIGURATION).await? else {
        return Ok(false);
    };
    let webhooks = live["webhooks"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate();
    let failing = webhooks.filter(|(_, webhook)| webhook["failurePolicy"] != "Ignore");
    let mut patch: Vec<Value> = failing
        .map(|(index, _)| {
            let path = format!("/webhooks/{index}/failurePolicy");
            json!({"op": "replace", "path": path, "value": "Ignore"})
        })
        .collect();
    if patch.is_empty() {
        return Ok(false);
    }
    let version = &live["metadata"]["resourceVersion"];
    patch.insert(
        0,
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}),
    );
    let call = ApiCall::patch(&collection, CONFIGURATION, JSON_PATCH, METADATA)
        .query("fieldManager", manager)
        .body(Value::Array(patch).to_string().into_bytes());
    cluster.send::<IgnoredAny>(call).await?;
    Ok(true)
}

/// Reads the Deployment of the webhook; `None` if it does not exist.
///
/// # Errors
/// Those of the request.
pub async fn deployment(cluster: &Cluster, namespace: &str) -> Result<Option<Value>, EngineError> {
    let collection =
        Collection::from_names("apps/v1", "Deployment", "deployments", Some(namespace));
    read(cluster, &collection, WEBHOOK).await
}

/// Returns whether a policy denies the caller the deletion of the webhook configuration, by a dry run.
///
/// # Errors
/// Those of the request.
pub async fn is_guarded(cluster: &Cluster) -> Result<bool, EngineError> {
    // Set in the body, which cannot get lost on the way without the whole request.
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]});
    let call = ApiCall::delete(&configurations(), CONFIGURATION);
    let call = call.body(options.to_string().into_bytes());
    match cluster.send::<IgnoredAny>(call).await {
        Ok(_) => Ok(false),
        Err(EngineError::Denied { .. }) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

fn configurations() -> Collection {
    Collection::from_names(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        None,
    )
}
