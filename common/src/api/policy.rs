//! `AddonPolicy`: restricts what users of a cluster may install, and when changes begin (semantics 19).

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::catalogue::Support;

/// What may be installed, from where, by whom and when.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kubectl-addons.dev",
    version = "v1alpha1",
    kind = "AddonPolicy",
    plural = "addonpolicies",
    shortname = "apol",
    category = "addons",
    doc = "What may be installed, from where, by whom and when. An installation has to comply with every policy that selects its namespace. Core add-ons are exempt.",
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
#[x_kube(validation = kube::core::Rule::new("has(self.allowed) || has(self.installers) || has(self.maintenance)")
    .message("a policy needs allowed, installers or maintenance: without them it restricts nothing"))]
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
    /// When changes of installations may begin; at any time if absent. Core add-ons are not exempt: only their first installation is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
}

/// When changes of installations may begin: a first installation, an upgrade, a rollback, an uninstallation. A change that has begun
/// runs to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    /// The windows. A change may begin while one of them is open.
    #[schemars(length(min = 1, max = 16))]
    pub windows: Vec<MaintenanceWindow>,
    /// When objects that were edited or deleted are restored.
    #[serde(default)]
    pub repairs: RepairTime,
}

/// When objects that were edited or deleted are restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RepairTime {
    /// At any time.
    #[default]
    Always,
    /// While a window is open.
    InWindow,
}

/// Times that recur, and how long each of them lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new(MINUTE).message("schedule: the minute must be 0-59, *, or lists, ranges or steps of these"))]
#[x_kube(validation = kube::core::Rule::new(HOUR).message("schedule: the hour must be 0-23, *, or lists, ranges or steps of these"))]
#[x_kube(validation = kube::core::Rule::new(DAY).message("schedule: the day of the month must be 1-31, *, or lists, ranges or steps of these"))]
#[x_kube(validation = kube::core::Rule::new(MONTH).message("schedule: the month must be 1-12, JAN-DEC, *, or lists, ranges or steps of these"))]
#[x_kube(validation = kube::core::Rule::new(WEEKDAY).message("schedule: the day of the week must be 0-6, SUN-SAT, *, or lists, ranges or steps of these"))]
#[x_kube(validation = kube::core::Rule::new(OPENS).message("schedule: it never opens: none of these months has such a day"))]
#[x_kube(validation = kube::core::Rule::new("duration(self.duration) >= duration('1m') && duration(self.duration) <= duration('168h')")
    .message("duration must be between 1m and 168h"))]
#[x_kube(validation = kube::core::Rule::new("!has(self.timeZone) || self.timeZone != 'Local' && timestamp('2026-01-01T00:00:00Z').getHours(self.timeZone) >= 0")
    .message("timeZone must be a name of the tz database, such as Europe/Berlin"))]
pub struct MaintenanceWindow {
    /// When it opens: minute, hour, day of the month, month and day of the week, as in a CronJob, with one space between them. Names are
    /// in capital letters, and a range may go on at the beginning: FRI-MON.
    #[schemars(
        length(max = 128),
        regex(pattern = r"^[*0-9A-Z,/-]+( [*0-9A-Z,/-]+){4}$")
    )]
    pub schedule: String,
    /// How long it stays open, from 1m to 168h, e.g. 90m, 4h or 1h30m. It lasts as long when the clock changes.
    #[schemars(
        length(max = 9),
        regex(pattern = r"^([0-9]{1,3}h([0-9]{1,4}m)?|[0-9]{1,5}m)$")
    )]
    pub duration: String,
    /// The time zone of the schedule, a name of the tz database; UTC if absent. Of a time that the clock repeats, the first one counts,
    /// and one that it skips is as much later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 64),
        regex(pattern = r"^[A-Z][A-Za-z0-9]*([/_+-][A-Za-z0-9]+)*$")
    )]
    pub time_zone: Option<String>,
}

/// Returns the rule that each part of a field of a schedule is a number or a range, or `*`, perhaps with a step.
macro_rules! each_part {
    ($field:literal, $number:literal) => {
        concat!(
            "self.schedule.split(' ')[",
            $field,
            "].split(',').all(it, it.matches('^([*]|",
            $number,
            "(-",
            $number,
            ")?)(/[1-9][0-9]?)?$'))"
        )
    };
}
const MINUTE: &str = each_part!("0", "[0-5]?[0-9]");
const HOUR: &str = each_part!("1", "([01]?[0-9]|2[0-3])");
const DAY: &str = each_part!("2", "(0?[1-9]|[12][0-9]|3[01])");
const MONTH: &str = each_part!(
    "3",
    "(0?[1-9]|1[0-2]|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)"
);
const WEEKDAY: &str = each_part!("4", "(0?[0-6]|SUN|MON|TUE|WED|THU|FRI|SAT)");
/// Refuses a schedule that never occurs, because none of its months has one of its days.
const OPENS: &str = concat!(
    "!self.schedule.matches('^[^ ]+ [^ ]+ (3[01](,3[01])*|30-31) (0?2|FEB)(,(0?2|FEB))* [*]')",
    " && !self.schedule.matches('^[^ ]+ [^ ]+ 31(,31)* ",
    "(0?[2469]|11|FEB|APR|JUN|SEP|NOV)(,(0?[2469]|11|FEB|APR|JUN|SEP|NOV))* [*]')",
);

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
    /// Names of AddonCatalogues. If set, installations from an index, a directory or a reference are not allowed.
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
