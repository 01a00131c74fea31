//! Aggregated APIs. One that does not answer breaks discovery and with it the deletion of every namespace; one that registers a group of
//! Kubernetes itself hides the built-in API.

use serde::Serialize;
use serde_json::Value;

use super::lifecycle::{ApiFate, KubernetesRelease, Lifecycle};
use super::risk::{OwnerIndex, text};
use common::api::names::InstallationName;

/// Marks registrations of the API server: for groups that it serves itself (`onstart`), and for CRDs (`true`).
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// An APIService that can block an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiServiceRisk {
    /// Its name, `v1beta1.metrics.k8s.io`.
    pub name: String,
    /// The installation that owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<InstallationName>,
    /// Why it is a risk.
    #[serde(flatten)]
    pub trouble: ApiServiceTrouble,
}

/// Why an APIService is a risk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "reason")]
pub enum ApiServiceTrouble {
    /// It is not available.
    Unavailable {
        /// The message of the API server.
        message: String,
    },
    /// The release serves this group and version itself, but requests still go to the server of the APIService.
    Served {
        /// The release.
        release: KubernetesRelease,
    },
    /// The API server serves it now, but the release does not.
    Removed {
        /// The release that removed it.
        removed: KubernetesRelease,
    },
}

/// Returns the risk of an APIService, now or with this release.
#[must_use]
pub fn find_api_service_risk(
    service: &Value,
    release: KubernetesRelease,
    table: &Lifecycle,
    owners: &OwnerIndex,
) -> Option<ApiServiceRisk> {
    let metadata = &service["metadata"];
    if metadata["labels"][AUTOMANAGED].is_string() {
        return None;
    }
    let spec = &service["spec"];
    let is_remote = spec["service"].is_object();
    let fate = table.group_version_fate(&text(&spec["group"]), &text(&spec["version"]), release);
    let trouble = match fate {
        Some(ApiFate::Served) if is_remote => ApiServiceTrouble::Served { release },
        Some(ApiFate::Removed { removed, .. }) if !is_remote => {
            ApiServiceTrouble::Removed { removed }
        }
        _ => ApiServiceTrouble::Unavailable {
            message: unavailable_reason(service)?,
        },
    };
    Some(ApiServiceRisk {
        name: text(&metadata["name"]),
        owner: owners.owner(service),
        trouble,
    })
}

/// Returns why an APIService is not available; `None` if it is.
fn unavailable_reason(service: &Value) -> Option<String> {
    let conditions = service["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    match conditions.find(|condition| condition["type"] == "Available") {
        Some(available) if available["status"] == "True" => None,
        Some(condition) => Some(text(&condition["message"])),
        None => Some("the API server has not judged it yet".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(group: &str, version: &str, status: &str, is_remote: bool) -> Value {
        let service = is_remote.then(|| json!({"namespace": "shop", "name": "guard"}));
        json!({"metadata": {"name": format!("{version}.{group}")},
            "spec": {"group": group, "version": version, "service": service},
            "status": {"conditions": [{"type": "Available", "status": status, "message": "no endpoints"}]}})
    }

    fn trouble(service: &Value) -> Option<ApiServiceTrouble> {
        let release: KubernetesRelease = "1.37".parse().unwrap();
        let found = find_api_service_risk(
            service,
            release,
            &Lifecycle::default(),
            &OwnerIndex::default(),
        );
        found.map(|risk| risk.trouble)
    }

    #[test]
    fn what_does_not_answer_hides_or_loses_an_api_is_a_risk() {
        let metrics = |status: &str| service("metrics.k8s.io", "v1beta1", status, true);
        assert_eq!(trouble(&metrics("True")), None);
        let message = "no endpoints".to_owned();
        let dead = Some(ApiServiceTrouble::Unavailable { message });
        assert_eq!(trouble(&metrics("False")), dead);
        let release = "1.37".parse().unwrap();
        let hides = Some(ApiServiceTrouble::Served { release });
        assert_eq!(trouble(&service("policy", "v1", "True", true)), hides);
        let old = |is_remote| service("policy", "v1beta1", "True", is_remote);
        let removed = "1.25".parse().unwrap();
        assert_eq!(
            trouble(&old(false)),
            Some(ApiServiceTrouble::Removed { removed })
        );
        assert_eq!(trouble(&old(true)), None, "its server goes on");
        let mut local = old(false);
        local["metadata"]["labels"] = json!({AUTOMANAGED: "onstart"});
        assert_eq!(trouble(&local), None, "the API server removes it itself");
        let mut new = metrics("True");
        new["status"] = json!({});
        assert!(matches!(
            trouble(&new),
            Some(ApiServiceTrouble::Unavailable { .. })
        ));
    }
}
