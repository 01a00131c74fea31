//! The discovery documents of the endpoint, in the form of an API server.

use std::collections::{BTreeMap, BTreeSet};

use common::manifest::key::Gvk;
use common::manifest::kinds::KindTable;
use serde_json::{Value, json};

use super::capabilities::Capabilities;

/// Served kinds by group and version, each with whether it is namespaced.
#[derive(Clone, Debug, Default)]
pub(super) struct Discovery {
    versions: BTreeMap<(String, String), BTreeMap<String, bool>>,
}

impl Discovery {
    /// Collects the kinds that a chart sees without a cluster, with the scope that they have in the cluster.
    pub(super) fn new(capabilities: &Capabilities, kinds: &KindTable) -> Self {
        let mut discovery = Self::default();
        for text in &capabilities.api_versions {
            let parts: Vec<&str> = text.split('/').collect();
            match parts.as_slice() {
                [version] => discovery.add_version("", version),
                // A kind begins with a capital letter, a version does not.
                [version, kind] if kind.starts_with(|c: char| c.is_ascii_uppercase()) => {
                    discovery.add_kind(&Gvk::new(version, kind), kinds);
                }
                [group, version] => discovery.add_version(group, version),
                [group, version, kind] => {
                    discovery.add_kind(&Gvk::new(&format!("{group}/{version}"), kind), kinds);
                }
                _ => {}
            }
        }
        discovery
    }

    fn add_version(&mut self, group: &str, version: &str) {
        let key = (group.to_owned(), version.to_owned());
        self.versions.entry(key).or_default();
    }

    /// Adds a kind. If the cluster does not serve it, it counts as namespaced.
    pub(super) fn add_kind(&mut self, gvk: &Gvk, kinds: &KindTable) {
        let namespaced = kinds.get(gvk).is_none_or(|info| info.namespaced);
        let key = (gvk.group.clone(), gvk.version.clone());
        let served = self.versions.entry(key).or_default();
        served.insert(gvk.kind.clone(), namespaced);
    }

    /// The document `/api`.
    pub(super) fn core_document(&self) -> Value {
        let versions = self.versions.keys().filter(|(group, _)| group.is_empty());
        let versions: Vec<&str> = versions.map(|(_, version)| version.as_str()).collect();
        json!({"kind": "APIVersions", "versions": versions})
    }

    /// The document `/apis`.
    pub(super) fn groups_document(&self) -> Value {
        let named: BTreeSet<&str> = self
            .versions
            .keys()
            .map(|(group, _)| group.as_str())
            .collect();
        let group = |name: &str| {
            let versions = self.versions.keys().filter(|(group, _)| group == name);
            let versions: Vec<Value> = versions
                .map(|(_, version)| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
                .collect();
            json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
        };
        let groups = named.into_iter().filter(|name| !name.is_empty());
        let groups: Vec<Value> = groups.map(group).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// The document `/apis/GROUP/VERSION`. A version that is not served has no kinds, so `lookup` finds nothing, as without a cluster.
    pub(super) fn resources_document(&self, group: &str, version: &str) -> Value {
        let served = self.versions.get(&(group.to_owned(), version.to_owned()));
        let resources: Vec<Value> = served
            .into_iter()
            .flatten()
            .map(|(kind, namespaced)| {
                let name = plural(kind);
                json!({"name": name, "singularName": name, "namespaced": namespaced, "kind": kind, "verbs": ["get", "list"]})
            })
            .collect();
        let group_version = match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
    }

    /// Finds the kind with this plural in URLs.
    pub(super) fn find_kind(&self, group: &str, version: &str, name: &str) -> Option<Gvk> {
        let served = self.versions.get(&(group.to_owned(), version.to_owned()))?;
        let kind = served.keys().find(|kind| plural(kind) == name)?;
        Some(Gvk {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.clone(),
        })
    }
}

/// The plural of a kind in URLs of the endpoint. It need not be the one that a server uses; without an `s`, no path of an object looks like
/// that of a namespace.
fn plural(kind: &str) -> String {
    kind.to_lowercase()
}

#[cfg(test)]
mod tests {
    use common::manifest::kinds::KindInfo;

    use super::super::capabilities::KubeVersion;
    use super::*;

    #[test]
    fn groups_versions_and_kinds() {
        let api_versions = [
            "v1",
            "v1/Node",
            "apps/v1",
            "apps/v1/Deployment",
            "apps/v1beta1",
            "own.io/v2/Own",
        ];
        let capabilities = Capabilities {
            kube_version: KubeVersion {
                version: String::new(),
                major: String::new(),
                minor: String::new(),
            },
            api_versions: api_versions.map(str::to_owned).into(),
        };
        let mut kinds = KindTable::default();
        let node = KindInfo {
            plural: "nodes".to_owned(),
            singular: "node".to_owned(),
            namespaced: false,
            writable: true,
            has_status: true,
        };
        kinds.insert(&Gvk::new("v1", "Node"), node);
        let discovery = Discovery::new(&capabilities, &kinds);
        assert_eq!(discovery.core_document()["versions"], json!(["v1"]));
        let groups = discovery.groups_document();
        assert_eq!(
            groups["groups"][0],
            json!({"name": "apps", "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"}, "versions": [
                {"groupVersion": "apps/v1", "version": "v1"}, {"groupVersion": "apps/v1beta1", "version": "v1beta1"}]})
        );
        assert_eq!(groups["groups"][1]["name"], "own.io");
        let nodes = discovery.resources_document("", "v1");
        assert_eq!(nodes["resources"][0]["namespaced"], false);
        assert_eq!(
            discovery.resources_document("apps", "v1beta1")["resources"],
            json!([])
        );
        assert_eq!(
            discovery.resources_document("x.io", "v1")["groupVersion"],
            "x.io/v1"
        );
        let own = Gvk::new("own.io/v2", "Own");
        assert_eq!(discovery.find_kind("own.io", "v2", "own"), Some(own));
        assert_eq!(discovery.find_kind("own.io", "v1", "own"), None);
    }
}
