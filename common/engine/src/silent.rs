//! Explains errors that are caused by a webhook of the installation itself that does not answer: it refuses the repair of its own backend,
//! so only the user can resolve this.

use serde_json::Value;

use addons_plan::inventory::Inventory;
use common::manifest::key::ObjectKey;

use super::address::Collection;
use super::addressed;
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{ApiCall, JSON};

const GROUP: &str = "admissionregistration.k8s.io";
const VERSION: &str = "admissionregistration.k8s.io/v1";
/// Kinds of webhook configurations, and their resources.
const KINDS: [(&str, &str); 2] = [
    (
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    ),
    (
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    ),
];

/// Returns the webhook configurations in an inventory.
fn recorded_configurations(inventory: &Inventory) -> Vec<ObjectKey> {
    let keys = inventory.objects.keys();
    let is_configuration =
        |key: &&ObjectKey| key.group == GROUP && KINDS.iter().any(|(kind, _)| *kind == key.kind);
    keys.filter(is_configuration).cloned().collect()
}

/// Explains the error of a write that failed because a webhook does not answer, if the installation has recorded the configuration of the
/// webhook. Returns any other error unchanged.
pub(super) async fn explain_own_webhook(
    cluster: &Cluster,
    recorded: &Inventory,
    error: EngineError,
) -> EngineError {
    let EngineError::Api {
        what,
        message,
        code: 500,
    } = &error
    else {
        return error;
    };
    let Some(webhook) = failed_webhook(message) else {
        return error;
    };
    for key in recorded_configurations(recorded) {
        if contains_webhook(cluster, &key, webhook).await {
            return EngineError::OwnWebhook {
                object: what.clone(),
                message: format!(
                    "webhook {webhook} of {key}, which is part of this installation, does not answer, and refuses what would \
                     repair it: {message}"
                ),
                configuration: Box::new(key),
            };
        }
    }
    error
}

/// Returns the webhook that did not answer.
fn failed_webhook(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("failed calling webhook \"")?;
    Some(rest.split_once('"')?.0)
}

/// Returns whether a live configuration contains a webhook; `false` if it cannot be read.
async fn contains_webhook(cluster: &Cluster, key: &ObjectKey, webhook: &str) -> bool {
    let kinds = KINDS.iter().find(|(kind, _)| *kind == key.kind);
    let Some((kind, plural)) = kinds else {
        return false;
    };
    let mut collection = Collection::from_names(VERSION, kind, plural, None);
    let call = |at: &Collection| ApiCall::get(at, &key.name, JSON);
    let read = addressed::send::<Value>(cluster, &mut collection, &key.name, call).await;
    read.is_ok_and(|live| {
        let webhooks = live.object.get("webhooks").and_then(Value::as_array);
        let mut webhooks = webhooks.into_iter().flatten();
        webhooks.any(|one| one.get("name").and_then(Value::as_str) == Some(webhook))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use addons_plan::changes::RefusalRemedy;

    use super::super::fake::{self, FakeReply};
    use super::*;

    fn key(kind: &str, name: &str) -> ObjectKey {
        ObjectKey {
            group: GROUP.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        }
    }

    fn refused(code: u16, message: &str) -> EngineError {
        EngineError::Api {
            what: "shop/ConfigMap a".to_owned(),
            message: message.to_owned(),
            code,
        }
    }

    /// (what the server says, the webhooks of the configuration, whether it is ours)
    #[tokio::test]
    async fn only_a_webhook_of_the_installation_is_named() {
        let silent = "Internal error occurred: failed calling webhook \"judge.shop.example\": failed to call webhook: Post \
                      \"https://judge.shop.svc:443/\": no endpoints available for service \"judge\"";
        for (code, message, webhooks, is_ours) in [
            (500, silent, json!([{"name": "judge.shop.example"}]), true),
            (500, silent, json!([{"name": "other.shop.example"}]), false),
            (403, silent, json!([{"name": "judge.shop.example"}]), false),
            (
                500,
                "etcdserver: request timed out",
                json!([{"name": "judge.shop.example"}]),
                false,
            ),
        ] {
            let live: FakeReply = Some((200, &[], json!({"webhooks": webhooks})));
            let (cluster, _) = fake::cluster(vec![live]);
            let ours = key("ValidatingWebhookConfiguration", "judges");
            let mut recorded = Inventory::default();
            recorded.objects.insert(ours.clone(), Default::default());
            let error = explain_own_webhook(&cluster, &recorded, refused(code, message)).await;
            let remedy = is_ours.then_some(RefusalRemedy::DeleteWebhooks(Box::new(ours)));
            assert_eq!(error.remedy(), remedy, "{message}");
            assert_eq!(
                error.to_string().contains("part of this installation"),
                is_ours,
                "{error}"
            );
        }
    }

    #[test]
    fn configurations_are_found_in_the_inventory() {
        let mut inventory = Inventory::default();
        for key in [
            key("ValidatingWebhookConfiguration", "a"),
            key("ValidatingAdmissionPolicy", "b"),
            key("MutatingWebhookConfiguration", "c"),
        ] {
            inventory.objects.insert(key, Default::default());
        }
        let found = recorded_configurations(&inventory);
        let names: Vec<&str> = found.iter().map(|key| key.name.as_str()).collect();
        assert_eq!(names, ["c", "a"]);
    }
}
