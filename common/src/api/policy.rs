//! `AddonPolicy`: restricts what users of a cluster may install (semantics 19).

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::catalogue::Support;

/// What may be installed, from where and by whom.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kubectl-addons.dev",
    version = "v1alpha1",
    kind = "AddonPolicy",
    plural = "addonpolicies",
    shortname = "apol",
    category = "addons",
    doc = "What may be installed, from where and by whom. An installation has to comply with every policy that selects its namespace. Core add-ons are exempt.",
    derive = "PartialEq",
    printcolumn(name = "Action", type_ = "string", json_path = ".spec.action"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    validation = kube::core::Rule::new("has(self.spec)").message("spec is required")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new("has(self.allowed) || has(self.installers)")
    .message("a policy needs allowed or installers: without them it restricts nothing"))]
pub struct AddonPolicySpec {
    /// What happens to an installation that does not comply.
    pub action: PolicyAction,
    /// Selects the namespaces to which the policy applies, by their labels; all of them if absent. Every namespace has its name as
    /// the label kubernetes.io/metadata.name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// What may be installed. An absent field restricts nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<AllowedContent>,
    /// Who may create installations, and change the fields that policies judge; everyone with the RBAC permission if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installers: Option<Installers>,
}

/// What happens to an installation that does not comply.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum PolicyAction {
    /// It is refused.
    #[default]
    Enforce,
    /// It is let through with a warning.
    Warn,
}

/// Selects namespaces by their labels. All requirements have to be met.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Required labels and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub match_expressions: Vec<LabelRequirement>,
}

/// A requirement on a label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new("self.operator in ['In', 'NotIn'] ? has(self.values) : !has(self.values)")
    .message("In and NotIn need values, Exists and DoesNotExist take none"))]
pub struct LabelRequirement {
    /// The label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// How the label is compared.
    pub operator: LabelOperator,
    /// The values for the comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), inner(length(max = 63)))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Set)]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LabelOperator {
    /// The label has one of the values.
    #[default]
    In,
    /// The label is missing, or has another value.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is missing.
    DoesNotExist,
}

/// What may be installed. An absent field restricts nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct AllowedContent {
    /// Names of AddonCatalogues. If set, installations from an index or a directory are not allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 64),
        inner(
            length(max = 253),
            regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
        )
    )]
    #[x_kube(merge_strategy = kube::core::ListMerge::Set)]
    pub catalogues: Vec<String>,
    /// Hosts from which indexes, manifests, charts and images with manifests may be read: HOST, or *.DOMAIN for all names below a
    /// domain, each with an optional :PORT; or s3://BUCKET, gs://BUCKET, az://CONTAINER. Without a port, all ports are allowed.
    /// Inline content of a catalogue is read from no host; files and directories of a machine are not allowed if this field is set.
    /// Hosts inside an index are judged by kubectl addons and the reconciler only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 64),
        inner(
            length(max = 260),
            regex(
                pattern = r"^((s3|gs|az)://[A-Za-z0-9][-A-Za-z0-9._]*|((\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*|\[[0-9a-f:.]+\])(:[0-9]{1,5})?)$"
            )
        )
    )]
    #[x_kube(merge_strategy = kube::core::ListMerge::Set)]
    pub source_hosts: Vec<String>,
    /// Registries of the images of installed objects: HOST or *.DOMAIN, each with an optional :PORT and /PATH. docker.io is the
    /// registry of images that name none. Images are known only after rendering, so they are judged by kubectl addons and the
    /// reconciler only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 64),
        inner(
            length(max = 512),
            regex(
                pattern = r"^((\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+(:[0-9]{1,5})?|[a-z0-9]([-a-z0-9]*[a-z0-9])?:[0-9]{1,5}|localhost)(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$"
            )
        )
    )]
    #[x_kube(merge_strategy = kube::core::ListMerge::Set)]
    pub image_registries: Vec<String>,
    /// Support classes of add-ons. If set, an add-on without a class is not allowed. For add-ons of an index, the class is known only
    /// to kubectl addons and the reconciler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 3))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Set)]
    pub support_classes: Vec<Support>,
}

/// Who may install: everyone who is in one of the lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Installers {
    /// Names of users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Set)]
    pub users: Vec<String>,
    /// Names of groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Set)]
    pub groups: Vec<String>,
    /// ServiceAccounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["namespace".into(), "name".into()]))]
    pub service_accounts: Vec<ServiceAccountName>,
}

/// A ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceAccountName {
    /// Namespace of the account.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Name of the account.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl ServiceAccountName {
    /// Returns the user name that the API server uses for the account.
    #[must_use]
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

impl NamespaceSelector {
    /// Whether it selects a namespace with these labels.
    #[must_use]
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let has_all = self
            .match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value));
        has_all
            && self.match_expressions.iter().all(|requirement| {
                let value = labels.get(&requirement.key);
                let is_listed = value.is_some_and(|value| requirement.values.contains(value));
                match requirement.operator {
                    LabelOperator::In => is_listed,
                    LabelOperator::NotIn => !is_listed,
                    LabelOperator::Exists => value.is_some(),
                    LabelOperator::DoesNotExist => value.is_none(),
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn namespaces_are_selected_as_everywhere_in_kubernetes() {
        let labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
        let expression = |key: &str, operator: &str, values: Value| {
            let mut one = json!({"key": key, "operator": operator});
            if !values.is_null() {
                one["values"] = values;
            }
            json!({"matchExpressions": [one]})
        };
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"team": "a"}}), true),
            (json!({"matchLabels": {"team": "b"}}), false),
            (json!({"matchLabels": {"team": "a", "tier": "x"}}), false),
            (expression("team", "In", json!(["b", "a"])), true),
            (expression("tier", "In", json!(["a"])), false),
            (expression("team", "NotIn", json!(["a"])), false),
            (expression("tier", "NotIn", json!(["a"])), true),
            (expression("team", "Exists", Value::Null), true),
            (expression("tier", "Exists", Value::Null), false),
            (expression("team", "DoesNotExist", Value::Null), false),
            (expression("tier", "DoesNotExist", Value::Null), true),
        ] {
            let read: NamespaceSelector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(read.selects(&labels), expected, "{selector}");
        }
    }
}
