//! Checks whether a type that an add-on requires (`requiredResourceTypes`) is served.

use super::KindTable;
use crate::api::catalogue::ResourceType;

impl KindTable {
    /// Returns whether a type is served. Group and version must match exactly; like in kubectl, `kind` can be the kind, the plural or the
    /// singular, in any case (the proposal itself writes `prometheuses`).
    #[must_use]
    pub fn serves(&self, wanted: &ResourceType) -> bool {
        let name = wanted.kind.to_lowercase();
        let versions = self.groups.get(&wanted.group).into_iter().flatten();
        let mut kinds = versions
            .filter(|(version, _)| *version == wanted.version)
            .flat_map(|(_, kinds)| kinds);
        kinds.any(|(kind, info)| {
            kind.to_lowercase() == name
                || info.plural.to_lowercase() == name
                || info.singular.to_lowercase() == name
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_named_as_kubectl_takes_them() {
        let mut table = KindTable::default();
        table.insert_crd(&json!({"spec": {
            "group": "monitoring.coreos.com",
            "names": {"kind": "Prometheus", "plural": "prometheuses", "singular": "prom"},
            "versions": [{"name": "v1"}, {"name": "v1beta1", "served": false}, {"name": "v1alpha1"}],
        }}));
        table.insert_crd(&json!({"spec": {
            "group": "monitoring.coreos.com",
            "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
            "versions": [{"name": "v1"}],
        }}));
        let serves = |version: &str, kind: &str| {
            table.serves(&ResourceType {
                group: "monitoring.coreos.com".to_owned(),
                version: version.to_owned(),
                kind: kind.to_owned(),
            })
        };
        for kind in [
            "Prometheus",
            "prometheuses",
            "Prometheuses",
            "prom",
            "PROMETHEUS",
            "ServiceMonitor",
            "servicemonitor",
            "servicemonitors",
        ] {
            assert!(serves("v1", kind), "{kind}");
        }
        for (version, kind) in [
            ("v1", "proms"),
            ("v1", ""),
            ("v1", "prometheuses.monitoring.coreos.com"),
            ("v1beta1", "Prometheus"),
            ("v1alpha1", "ServiceMonitor"),
            ("V1", "Prometheus"),
        ] {
            assert!(!serves(version, kind), "{version} {kind}");
        }
        assert!(serves("v1alpha1", "Prometheus"));
        let elsewhere = ResourceType {
            group: "coreos.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Prometheus".to_owned(),
        };
        assert!(!table.serves(&elsewhere));
    }
}
