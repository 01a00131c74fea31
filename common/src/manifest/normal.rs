//! Brings a wanted object into the normal form in which the API server would return it (semantics 12.6): aliases and write-only fields as
//! it stores them, defaults that depend on other fields written out, and duplicate list items removed. Digest, comparison and apply all use
//! this form.
//!
//! Server-side apply removes only fields that a manager owns, under the names with which they were applied. A field that the server moves,
//! copies or derives would therefore stay when the manifest drops it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::contract;
use super::key::ObjectKey;
use super::kinds::traits::is_built_in;

/// Brings an object into its normal form. Returns messages for the user, as `FIELD: what was done`.
pub fn normalise(key: &ObjectKey, object: &mut Value) -> Vec<String> {
    if is_built_in(&key.group) {
        drop_nulls(object);
    }
    contract::remove_contract_fields(key, object);
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "Secret") => merge_string_data(object),
        ("networking.k8s.io", "NetworkPolicy") => default_policy_types(object),
        _ => {}
    }
    match pod_spec_path(key) {
        Some(pointer) => normalise_pods(object, pointer),
        None => Vec::new(),
    }
}

/// Returns the path of the pod spec in objects of a kind.
#[must_use]
pub fn pod_spec_path(key: &ObjectKey) -> Option<&'static [&'static str]> {
    Some(match (key.group.as_str(), key.kind.as_str()) {
        ("", "Pod") => &["spec"],
        ("", "PodTemplate") => &["template", "spec"],
        ("", "ReplicationController")
        | ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
        | ("batch", "Job") => &["spec", "template", "spec"],
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => return None,
    })
}

/// Fields of built-in kinds whose content their types do not describe. In these, null is a value.
const OPEN: [&str; 21] = [
    // Maps of texts with keys that the manifest chooses: null is the empty text.
    "annotations",
    "attributes",
    "binaryData",
    "data",
    "labels",
    "matchLabels",
    "nodeSelector",
    "options",
    "stringData",
    "volumeAttributes",
    // Maps of quantities by resource name.
    "capacity",
    "default",
    "defaultRequest",
    "hard",
    "limits",
    "max",
    "min",
    "overhead",
    "requests",
    // Arbitrary objects, described by a driver or a definition.
    "parameters",
    "schema",
];

/// Removes fields that are null. All other verbs treat them as missing, but server-side apply owns them, and keeps the server's former
/// value (`livenessProbe: null`, `rollingUpdate: null`). Recursion ends with the depth of the object.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            for (name, value) in fields {
                if !OPEN.contains(&name.as_str()) && !is_label_set(name, value) {
                    drop_nulls(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Returns whether this is the selector of a Service or ReplicationController, which contains only labels.
fn is_label_set(name: &str, value: &Value) -> bool {
    let has = |field| value.get(field).is_some();
    name == "selector" && !has("matchLabels") && !has("matchExpressions")
}

/// core/v1 Secret.StringData: "write-only convenience method. All keys and values are merged into the data field on write, overwriting
/// any existing values."
fn merge_string_data(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let texts = match fields.get("stringData") {
        Some(Value::Object(texts)) => texts.clone(),
        Some(Value::Null) => Map::new(),
        // The server reports what is wrong with it.
        _ => return,
    };
    // A value of another type: the server refuses it.
    if !texts
        .values()
        .all(|text| text.is_string() || text.is_null())
    {
        return;
    }
    let data = fields.entry("data").or_insert(Value::Null);
    if data.is_null() {
        *data = json!({});
    }
    let Some(data) = data.as_object_mut() else {
        return;
    };
    for (key, text) in texts {
        let text = text.as_str().unwrap_or_default();
        data.insert(key, STANDARD.encode(text).into());
    }
    let is_empty = data.is_empty();
    fields.remove("stringData");
    if is_empty {
        fields.remove("data");
    }
}

/// networking/v1 NetworkPolicySpec.PolicyTypes: "If this field is not specified, it will default based on the existence of ingress or
/// egress rules". The server computes it once (`SetDefaults_NetworkPolicy`).
fn default_policy_types(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let is_empty = |value: Option<&Value>| {
        value.is_none_or(|value| value.is_null() || value.as_array().is_some_and(Vec::is_empty))
    };
    if is_empty(spec.get("policyTypes")) {
        let types = if is_empty(spec.get("egress")) {
            json!(["Ingress"])
        } else {
            json!(["Ingress", "Egress"])
        };
        spec.insert("policyTypes".to_owned(), types);
    }
}

fn normalise_pods(object: &mut Value, pointer: &[&str]) -> Vec<String> {
    let spec = pointer
        .iter()
        .try_fold(object, |value, name| value.get_mut(name));
    let Some(spec) = spec.and_then(Value::as_object_mut) else {
        return Vec::new();
    };
    normalise_service_account(spec);
    let mut warnings = Vec::new();
    let at = pointer.join(".");
    drop_duplicates(spec, "imagePullSecrets", &["name"], &at, &mut warnings);
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        let containers = containers.into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let name = container.get("name").and_then(Value::as_str);
            let at = format!("{at}.{list}[{}]", name.unwrap_or_default());
            drop_duplicates(container, "env", &["name"], &at, &mut warnings);
            drop_duplicates(
                container,
                "ports",
                &["containerPort", "protocol"],
                &at,
                &mut warnings,
            );
        }
    }
    warnings
}

/// core/v1 PodSpec.DeprecatedServiceAccount: "a deprecated alias for ServiceAccountName". The server copies each into the other, and
/// ServiceAccountName wins.
fn normalise_service_account(spec: &mut Map<String, Value>) {
    let is_named = |value: Option<&Value>| {
        value
            .and_then(Value::as_str)
            .is_some_and(|name| !name.is_empty())
    };
    let alias = spec.remove("serviceAccount");
    if !is_named(spec.get("serviceAccountName")) {
        spec.remove("serviceAccountName");
        if let Some(alias) = alias.filter(|alias| is_named(Some(alias))) {
            spec.insert("serviceAccountName".to_owned(), alias);
        }
    }
}

/// Keeps only the last of several items with the same keys. Create and update accept duplicates with a warning, and the kubelet takes the
/// last one; server-side apply refuses the whole object.
fn drop_duplicates(
    object: &mut Map<String, Value>,
    field: &str,
    keys: &[&str],
    at: &str,
    warnings: &mut Vec<String>,
) {
    let Some(items) = object.get_mut(field).and_then(Value::as_array_mut) else {
        return;
    };
    let identity = |item: &Value| -> Option<Vec<Value>> {
        let first = keys.first().and_then(|key| item.get(key))?;
        if first.is_null() {
            return None;
        }
        let value = |key: &&str| match item.get(key) {
            // ContainerPort.Protocol is the only key of these lists with a default.
            None if *key == "protocol" => json!("TCP"),
            value => value.cloned().unwrap_or_default(),
        };
        Some(keys.iter().map(value).collect())
    };
    let all: Vec<Option<Vec<Value>>> = items.iter().map(identity).collect();
    let mut index = 0;
    items.retain(|_| {
        let own = all.get(index).and_then(Option::as_ref);
        let later = own.and_then(|own| {
            let rest = all.iter().enumerate().skip(index + 1);
            let mut same = rest.filter(|(_, other)| other.as_ref() == Some(own));
            same.next().map(|(later, _)| later)
        });
        if let (Some(own), Some(later)) = (own, later) {
            let own: Vec<String> = own
                .iter()
                .map(|value| {
                    value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned)
                })
                .collect();
            warnings.push(format!(
                "{at}.{field}: {} is there twice, at {index} and {later}; the last one counts",
                own.join("/")
            ));
        }
        index += 1;
        later.is_none()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(group: &str, kind: &str, object: Value) -> (Value, Vec<String>) {
        let key = ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..ObjectKey::default()
        };
        let mut object = object;
        let warnings = normalise(&key, &mut object);
        let again = normalise(&key, &mut object.clone());
        assert_eq!(again, Vec::<String>::new(), "{kind}, again");
        (object, warnings)
    }

    #[test]
    fn a_secret_is_sent_as_it_is_stored() {
        for (object, wanted) in [
            (
                json!({"stringData": {"a": "x", "c": "é"}, "data": {"a": "b2xk", "b": "Yg=="}}),
                json!({"data": {"a": "eA==", "b": "Yg==", "c": "w6k="}}),
            ),
            (json!({"stringData": {}}), json!({})),
            (json!({"stringData": null, "data": null}), json!({})),
            (json!({"data": {}}), json!({"data": {}})),
            (
                json!({"stringData": {"a": 1}}),
                json!({"stringData": {"a": 1}}),
            ),
        ] {
            assert_eq!(normal("", "Secret", object).0, wanted);
        }
    }

    #[test]
    fn a_null_is_not_there() {
        let probe = json!({"exec": null, "httpGet": {"port": 80}});
        let container = json!({"name": "a", "livenessProbe": null, "readinessProbe": probe});
        let pod = json!({"containers": [container], "nodeSelector": {"a": null}, "affinity": null});
        let object = json!({"metadata": {"labels": null}, "spec": {"template": {"spec": pod}}});
        let (object, _) = normal("apps", "Deployment", object);
        let container = json!({"name": "a", "readinessProbe": {"httpGet": {"port": 80}}});
        let pod = json!({"containers": [container], "nodeSelector": {"a": null}});
        let wanted = json!({"metadata": {}, "spec": {"template": {"spec": pod}}});
        assert_eq!(object, wanted);
        for (group, kind, object) in [
            ("", "ConfigMap", json!({"data": {"a": null}})),
            ("", "Service", json!({"spec": {"selector": {"a": null}}})),
            ("example.com", "Deployment", json!({"spec": null})),
        ] {
            assert_eq!(normal(group, kind, object.clone()).0, object, "{kind}");
        }
    }

    #[test]
    fn the_types_of_a_network_policy_follow_its_rules() {
        let group = "networking.k8s.io";
        for (spec, types) in [
            (json!({"ingress": [{}]}), json!(["Ingress"])),
            (json!({"egress": []}), json!(["Ingress"])),
            (
                json!({"egress": [{}], "policyTypes": []}),
                json!(["Ingress", "Egress"]),
            ),
            (
                json!({"egress": [{}], "policyTypes": ["Egress"]}),
                json!(["Egress"]),
            ),
        ] {
            let (object, _) = normal(group, "NetworkPolicy", json!({"spec": spec}));
            assert_eq!(object["spec"]["policyTypes"], types, "{spec}");
        }
    }

    #[test]
    fn pods_have_one_name_for_their_account() {
        for (spec, wanted) in [
            (
                json!({"serviceAccount": "a"}),
                json!({"serviceAccountName": "a"}),
            ),
            (
                json!({"serviceAccount": "a", "serviceAccountName": "b"}),
                json!({"serviceAccountName": "b"}),
            ),
            (
                json!({"serviceAccountName": "", "serviceAccount": ""}),
                json!({}),
            ),
        ] {
            let template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
            let (object, _) = normal("apps", "Deployment", template(spec));
            assert_eq!(object, template(wanted));
        }
    }

    #[test]
    fn of_items_that_stand_there_twice_the_last_one_counts() {
        let template =
            |container: Value| json!({"spec": {"template": {"spec": {"containers": [container]}}}});
        let env = |name: &str, value: &str| json!({"name": name, "value": value});
        let (object, warnings) = normal(
            "apps",
            "Deployment",
            template(json!({"name": "duty",
                "env": [env("LEVEL", "debug"), env("OTHER", "x"), env("LEVEL", "info")],
                "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}, {"containerPort": 80, "protocol": "TCP", "name": "web"}]})),
        );
        assert_eq!(
            object,
            template(
                json!({"name": "duty", "env": [env("OTHER", "x"), env("LEVEL", "info")],
                "ports": [{"containerPort": 80, "protocol": "UDP"}, {"containerPort": 80, "protocol": "TCP", "name": "web"}]})
            )
        );
        assert_eq!(
            warnings,
            [
                "spec.template.spec.containers[duty].env: LEVEL is there twice, at 0 and 2; the last one counts",
                "spec.template.spec.containers[duty].ports: 80/TCP is there twice, at 0 and 2; the last one counts",
            ]
        );
    }
}
