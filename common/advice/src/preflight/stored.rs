//! Stored versions of CRDs that are to be removed: the API server refuses a CRD that lacks a version in which objects may be stored.

use serde::Serialize;
use serde_json::Value;

use super::risk::{OwnerIndex, text};
use addons_plan::migration::{find_dropped_versions, remaining_versions, storage_version};
use common::api::names::InstallationName;

/// A CRD with objects in versions that are to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredRisk {
    /// Name of the CRD, `policies.example.test`; kubectl also accepts it as a resource.
    pub name: String,
    /// The installation that owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<InstallationName>,
    /// The versions in which objects may be stored but should not be.
    pub versions: Vec<String>,
    /// The version in which objects are stored now.
    pub storage: String,
    /// The version of the owning add-on that lacks them; `None` if none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_by: Option<String>,
}

/// Returns the stored versions of a live CRD other than its storage version.
#[must_use]
pub fn find_stored_risk(definition: &Value, owners: &OwnerIndex) -> Option<StoredRisk> {
    let storage = storage_version(definition)?.to_owned();
    let versions = remaining_versions(definition, std::slice::from_ref(&storage));
    (!versions.is_empty()).then(|| StoredRisk {
        name: text(&definition["metadata"]["name"]),
        owner: owners.owner(definition),
        versions,
        storage,
        dropped_by: None,
    })
}

/// Returns the stored versions of live CRDs that a newer version of their add-on lacks. `entry`: that version.
pub fn find_upgrade_risks<'a>(
    live: &[&Value],
    wanted: impl IntoIterator<Item = &'a Value>,
    entry: &str,
    owners: &OwnerIndex,
) -> Vec<StoredRisk> {
    let wanted = wanted
        .into_iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition");
    let judged = wanted.filter_map(|wanted| {
        let name = &wanted["metadata"]["name"];
        let live = live.iter().find(|live| live["metadata"]["name"] == *name)?;
        let versions = find_dropped_versions(live, wanted);
        (!versions.is_empty()).then(|| StoredRisk {
            name: text(name),
            owner: owners.owner(live),
            versions,
            storage: storage_version(live).unwrap_or_default().to_owned(),
            dropped_by: Some(entry.to_owned()),
        })
    });
    judged.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A definition with these versions, the last one of which objects are stored in.
    fn definition(versions: &[&str], stored: &[&str]) -> Value {
        let last = versions.last();
        let versions = versions.iter().map(
            |version| json!({"name": version, "served": true, "storage": Some(version) == last}),
        );
        json!({"kind": "CustomResourceDefinition", "metadata": {"name": "policies.example.test"},
            "spec": {"versions": versions.collect::<Vec<_>>()}, "status": {"storedVersions": stored}})
    }

    #[test]
    fn what_is_stored_in_another_version_is_found() {
        let none = OwnerIndex::default();
        for (versions, stored, expected) in [
            (vec!["v1"], vec!["v1"], None),
            (vec!["v1beta1", "v1"], vec!["v1"], None),
            (
                vec!["v1beta1", "v1"],
                vec!["v1beta1", "v1"],
                Some("v1beta1"),
            ),
        ] {
            let found = find_stored_risk(&definition(&versions, &stored), &none);
            let found = found.map(|risk| risk.versions.join(","));
            assert_eq!(found.as_deref(), expected, "{versions:?} {stored:?}");
        }
    }

    #[test]
    fn what_a_newer_version_lacks_is_found() {
        let none = OwnerIndex::default();
        let live = definition(&["v1beta1", "v1"], &["v1beta1", "v1"]);
        let judged = |wanted: &Value| find_upgrade_risks(&[&live], [wanted], "2.0.0", &none);
        assert_eq!(judged(&definition(&["v1beta1", "v1"], &[])), []);
        let [risk] = judged(&definition(&["v1"], &[])).try_into().unwrap();
        assert_eq!(risk.versions, ["v1beta1"]);
        assert_eq!(risk.dropped_by.as_deref(), Some("2.0.0"));
        let mut other = definition(&["v2"], &[]);
        other["metadata"]["name"] = json!("others.example.test");
        assert_eq!(judged(&other), []);
    }
}
