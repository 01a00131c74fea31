//! Types that the add-ons of a command define themselves. The command does not wait for them before it begins (semantics 17.7).

use std::collections::BTreeSet;

use serde_json::Value;

use common::api::catalogue::ResourceType;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;
use common::manifest::kinds::traits::defined_kind;

/// The types that the objects of a command define.
#[derive(Clone, Debug, Default)]
pub struct DefinedTypes {
    /// Kinds that CustomResourceDefinitions define.
    kinds: KindTable,
    /// Group and version of each APIService. Its kinds are not known before the service answers.
    served: BTreeSet<(String, String)>,
}

impl DefinedTypes {
    /// Collects the types that CustomResourceDefinitions and APIServices among `objects` define.
    pub fn from_objects<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut brought = Self::default();
        for object in objects {
            if defined_kind(object).is_some() {
                brought.kinds.insert_crd(object);
            }
            let key = ObjectKey::from_object(object);
            if key.is_some_and(|key| {
                key.group == "apiregistration.k8s.io" && key.kind == "APIService"
            }) {
                let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
                if let (Some(group), Some(version)) = (text("/spec/group"), text("/spec/version")) {
                    brought
                        .served
                        .insert((group.to_owned(), version.to_owned()));
                }
            }
        }
        brought
    }

    /// Whether these objects define the type `wanted`.
    #[must_use]
    pub fn serves(&self, wanted: &ResourceType) -> bool {
        let group_version = (wanted.group.clone(), wanted.version.clone());
        self.served.contains(&group_version) || self.kinds.serves(wanted)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_defines_types_by_definitions_and_api_services() {
        let objects = [
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "tills.example.test"}, "spec": {"group": "example.test",
                "names": {"kind": "Till", "plural": "tills"}, "versions": [{"name": "v1", "served": true}]}}),
            json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": "v1beta1.metrics.k8s.io"},
                "spec": {"group": "metrics.k8s.io", "version": "v1beta1"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
        ];
        let brought = DefinedTypes::from_objects(&objects);
        for (group, version, kind, expected) in [
            ("example.test", "v1", "tills", true),
            ("example.test", "v2", "tills", false),
            ("metrics.k8s.io", "v1beta1", "PodMetrics", true),
            ("metrics.k8s.io", "v1", "PodMetrics", false),
            ("", "v1", "ConfigMap", false),
        ] {
            let wanted = ResourceType {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: kind.to_owned(),
            };
            assert_eq!(brought.serves(&wanted), expected, "{wanted}");
        }
    }
}
