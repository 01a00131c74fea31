//! Admission webhooks that can stop an upgrade. With `failurePolicy: Fail`, the API server refuses a request if the webhook does not
//! answer. New nodes register themselves, their pods are created in kube-system, and leaders renew leases: a webhook that is called for
//! these and does not answer keeps the cluster from recovering.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::risk::{OwnerIndex, text};
use addons_engine::preflight::{Backend, Backends};
use common::api::names::InstallationName;
use common::api::policy::NamespaceSelector;

/// Seconds after which a leader gives up renewing its lease: the default of client-go's renewDeadline.
const RENEW_DEADLINE: u64 = 10;
/// Timeout in seconds of a webhook that does not set one.
const DEFAULT_TIMEOUT: u64 = 10;
/// Subresources that nodes, their pods and the scheduler need; requests for others may fail during an upgrade.
const NEEDED_SUBRESOURCES: [&str; 5] = ["", "*", "status", "binding", "eviction"];

/// A kind of object that an upgrade needs to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UpgradeWrite {
    /// Nodes.
    Nodes,
    /// Pods in kube-system.
    Pods,
    /// Leases in kube-system.
    Leases,
}

impl UpgradeWrite {
    const ALL: [Self; 3] = [Self::Nodes, Self::Pods, Self::Leases];

    fn group(self) -> &'static str {
        match self {
            Self::Nodes | Self::Pods => "",
            Self::Leases => "coordination.k8s.io",
        }
    }

    fn resource(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Pods => "pods",
            Self::Leases => "leases",
        }
    }

    fn is_namespaced(self) -> bool {
        self != Self::Nodes
    }
}

/// A webhook that can block an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookRisk {
    /// `ValidatingWebhookConfiguration` or `MutatingWebhookConfiguration`.
    pub kind: String,
    /// Name of the configuration.
    pub name: String,
    /// Name of the webhook in it.
    pub webhook: String,
    /// The installation that owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<InstallationName>,
    /// The writes of an upgrade for which it is called.
    pub covers: Vec<UpgradeWrite>,
    /// Why it is a risk.
    #[serde(flatten)]
    pub trouble: WebhookTrouble,
}

/// Why a webhook is a risk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "reason")]
pub enum WebhookTrouble {
    /// Its Service does not exist.
    NoService {
        /// `NAMESPACE/NAME`.
        service: String,
    },
    /// Its Service has no ready endpoint.
    NoEndpoint {
        /// `NAMESPACE/NAME`.
        service: String,
    },
    /// Its Service has a single endpoint, which does not answer while its node is drained.
    OneEndpoint {
        /// `NAMESPACE/NAME`.
        service: String,
    },
    /// Its timeout is longer than its callers wait.
    Slow {
        /// `timeoutSeconds`.
        seconds: u64,
    },
}

impl WebhookTrouble {
    /// Returns whether the webhook refuses requests now.
    pub(super) fn blocks(&self) -> bool {
        matches!(self, Self::NoService { .. } | Self::NoEndpoint { .. })
    }
}

/// Returns the Services (namespace and name) whose endpoints must be known to evaluate these configurations.
#[must_use]
pub fn called_services<'a>(
    configurations: impl IntoIterator<Item = &'a Value>,
    system: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let webhooks = configurations.into_iter().flat_map(webhooks);
    let fatal = webhooks.filter(|webhook| !blocked_writes(webhook, system).is_empty());
    let mut called: Vec<_> = fatal.filter_map(service).collect();
    called.sort();
    called.dedup();
    called
}

/// Returns the webhooks of a configuration that can block an upgrade. `system`: the labels of kube-system.
#[must_use]
pub fn find_webhook_risks(
    configuration: &Value,
    system: &BTreeMap<String, String>,
    backends: &Backends,
    owners: &OwnerIndex,
) -> Vec<WebhookRisk> {
    let mut risks = Vec::new();
    for webhook in webhooks(configuration) {
        let covers = blocked_writes(webhook, system);
        if covers.is_empty() {
            continue;
        }
        let troubles = find_troubles(webhook, backends).into_iter();
        risks.extend(troubles.map(|trouble| WebhookRisk {
            kind: text(&configuration["kind"]),
            name: text(&configuration["metadata"]["name"]),
            webhook: text(&webhook["name"]),
            owner: owners.owner(configuration),
            covers: covers.clone(),
            trouble,
        }));
    }
    risks
}

/// Returns how a webhook fails or may fail. One that does not answer is not reported as slow as well.
fn find_troubles(webhook: &Value, backends: &Backends) -> Vec<WebhookTrouble> {
    let mut found = Vec::new();
    if let Some((namespace, name)) = service(webhook) {
        let service = format!("{namespace}/{name}");
        match backends.get(&service) {
            Some(Backend::Missing) => return vec![WebhookTrouble::NoService { service }],
            Some(Backend::Ready(0)) => return vec![WebhookTrouble::NoEndpoint { service }],
            Some(Backend::Ready(1)) => found.push(WebhookTrouble::OneEndpoint { service }),
            Some(Backend::Ready(_) | Backend::Unknown) | None => {}
        }
    }
    let seconds = webhook["timeoutSeconds"]
        .as_u64()
        .unwrap_or(DEFAULT_TIMEOUT);
    if seconds > RENEW_DEADLINE {
        found.push(WebhookTrouble::Slow { seconds });
    }
    found
}

fn webhooks(configuration: &Value) -> impl Iterator<Item = &Value> {
    configuration["webhooks"].as_array().into_iter().flatten()
}

/// Returns the Service that a webhook calls; `None` if it is called by URL.
fn service(webhook: &Value) -> Option<(String, String)> {
    let service = webhook["clientConfig"]["service"].as_object()?;
    let part = |name: &str| service.get(name)?.as_str().map(str::to_owned);
    Some((part("namespace")?, part("name")?))
}

/// Returns the writes of an upgrade that are refused while a webhook does not answer. CEL match conditions are not evaluated, although they
/// may exclude a request.
fn blocked_writes(webhook: &Value, system: &BTreeMap<String, String>) -> Vec<UpgradeWrite> {
    // The API server fills in `Fail`.
    let is_fatal = webhook["failurePolicy"] != "Ignore";
    // Components of the cluster have labels of their own, which no add-on selects.
    if !is_fatal || !selector_matches(&webhook["objectSelector"], &BTreeMap::new()) {
        return Vec::new();
    }
    let is_of_system = selector_matches(&webhook["namespaceSelector"], system);
    let covered = UpgradeWrite::ALL.into_iter().filter(|needed| {
        let mut rules = webhook["rules"].as_array().into_iter().flatten();
        (!needed.is_namespaced() || is_of_system) && rules.any(|rule| rule_matches(rule, *needed))
    });
    covered.collect()
}

/// Returns whether a selector matches. One that cannot be read counts as matching.
fn selector_matches(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    if selector.is_null() {
        return true;
    }
    let selector = serde_json::from_value::<NamespaceSelector>(selector.clone());
    selector.map_or(true, |selector| selector.selects(labels))
}

/// Returns whether a rule matches writes of `needed`.
fn rule_matches(rule: &Value, needed: UpgradeWrite) -> bool {
    let any = |field: &str, is: &dyn Fn(&str) -> bool| {
        let mut values = rule[field].as_array().into_iter().flatten();
        values.any(|value| value.as_str().is_some_and(is))
    };
    let scope = rule["scope"].as_str().unwrap_or("*");
    let is_in_scope = match scope {
        "Namespaced" => needed.is_namespaced(),
        "Cluster" => !needed.is_namespaced(),
        _ => true,
    };
    is_in_scope
        && any("operations", &|operation| operation != "CONNECT")
        && any("apiGroups", &|group| {
            group == "*" || group == needed.group()
        })
        && any("resources", &|resource| {
            let (main, sub) = resource.split_once('/').unwrap_or((resource, ""));
            (main == "*" || main == needed.resource()) && NEEDED_SUBRESOURCES.contains(&sub)
        })
}

#[cfg(test)]
mod tests;
