//! Predicts what an apply removes from an object that is taken over: the fields that only its former owner set. They become ours before the
//! apply, which a dry run on the server cannot see.

use serde_json::{Map, Value};

use addons_plan::Step;
use addons_plan::found::{HELM_NAME, HELM_NAMESPACE};
use common::api::names;
use common::manifest::managed_fields;
use common::manifest::managed_fields::path::is_item;

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::request::{ApiCall, JSON};

/// Returns the result of a dry run without the fields that only the former owner set, with the defaults that the server fills in for them.
pub(super) async fn apply_takeover(
    cluster: &Cluster,
    step: &Step,
    live: &Value,
    wanted: Value,
    ours: &str,
) -> Value {
    let Some(rest) = remove_former_fields(step, live, &wanted, ours) else {
        return wanted;
    };
    let replace = ApiCall::replace(
        &Collection::from_target(&step.target),
        &step.target.key.name,
        JSON,
    )
    .query("dryRun", "All")
    .query("fieldManager", ours)
    .body(rest.to_string().into_bytes());
    // If the replacement is not allowed, or a removed field is required, the object is shown without these defaults.
    match cluster.send::<Value>(replace).await {
        Ok(answer) => answer.object,
        Err(_) => rest,
    }
}

/// Returns the managedFields of a live object after the fields of its former owner became ours; `None` if it has no former owner.
pub(in super::super) fn managed_fields_after_takeover(
    step: &Step,
    live: &Value,
    ours: &str,
) -> Option<Vec<Value>> {
    let policy = &step.policy;
    if policy.adopted.is_none() && policy.inherited.is_none() {
        return None;
    }
    let entries = entries(live);
    let inherited = policy.inherited.as_ref().and_then(|owner| {
        let from = names::manager_of_owner(owner);
        managed_fields::inherit(entries, &from, ours)
    });
    let entries = inherited.as_deref().unwrap_or(entries);
    let adopted = policy.adopted.as_ref();
    let adopted = adopted.and_then(|_| managed_fields::former::adopt(entries, ours));
    Some(adopted.unwrap_or_else(|| entries.to_vec()))
}

/// Returns the object without the fields that only the former owner set; `None` if there are none.
fn remove_former_fields(step: &Step, live: &Value, wanted: &Value, ours: &str) -> Option<Value> {
    let entries = &managed_fields_after_takeover(step, live, ours)?;
    let (taken, others): (Vec<&Value>, Vec<&Value>) =
        entries.iter().partition(|entry| is_applied(entry, ours));
    let applied = self::entries(wanted).iter();
    let applied = applied.filter(|entry| is_applied(entry, ours));
    let kept: Vec<&Map<String, Value>> = others
        .into_iter()
        .chain(applied)
        .filter_map(fields)
        .collect();
    let mut rest = wanted.clone();
    for taken in taken.into_iter().filter_map(fields) {
        remove_fields(&mut rest, taken, &kept);
    }
    (rest != *wanted).then_some(rest)
}

/// Removes the marks of a Helm release from a live object, as taking it over does.
pub(super) fn remove_helm_marks(live: &mut Value) {
    if let Some(Value::Object(annotations)) = live.pointer_mut("/metadata/annotations") {
        annotations.remove(HELM_NAME);
        annotations.remove(HELM_NAMESPACE);
    }
}

fn entries(object: &Value) -> &[Value] {
    let entries = object.pointer("/metadata/managedFields");
    entries.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_applied(entry: &Value, ours: &str) -> bool {
    entry["manager"] == ours && entry["operation"] == "Apply" && entry["subresource"].is_null()
}

fn fields(entry: &Value) -> Option<&Map<String, Value>> {
    entry.get("fieldsV1").and_then(Value::as_object)
}

/// Removes the fields in `taken` that are in none of `kept`. The depth of the object bounds the recursion.
fn remove_fields(value: &mut Value, taken: &Map<String, Value>, kept: &[&Map<String, Value>]) {
    for (name, below) in taken {
        let Some(below) = below.as_object() else {
            continue;
        };
        let others: Vec<&Map<String, Value>> = kept
            .iter()
            .filter_map(|kept| kept.get(name)?.as_object())
            .collect();
        let is_itself = below.is_empty() || below.contains_key(".");
        if others.is_empty() && is_itself {
            remove_field(value, name);
        } else if let Some(inner) = field_mut(value, name) {
            remove_fields(inner, below, &others);
        }
    }
}

/// Removes a field from an object, or an item from a list.
fn remove_field(value: &mut Value, name: &str) {
    match value {
        Value::Object(object) => {
            if let Some(field) = name.strip_prefix("f:") {
                object.remove(field);
            }
        }
        Value::Array(items) => items.retain(|item| !is_item(item, name)),
        _ => {}
    }
}

/// Returns the value of a field, or an item of a list.
fn field_mut<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(object) => object.get_mut(name.strip_prefix("f:")?),
        Value::Array(items) => items.iter_mut().find(|item| is_item(item, name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_only_the_former_owner_set_is_removed() {
        let mut object = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x", "y"]},
            "spec": {"containers": [
                {"name": "web", "image": "web", "env": [{"name": "A", "value": "b"}], "args": ["z"]},
                {"name": "old", "image": "old"}]},
        });
        let taken = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}, "f:b": {}}, "f:finalizers": {"v:\"x\"": {}}},
            "f:spec": {"f:containers": {
                "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                    "f:env": {".": {}, "k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}}},
                "k:{\"name\":\"old\"}": {".": {}, "f:name": {}, "f:image": {}}}},
        });
        let applied = json!({
            "f:metadata": {"f:labels": {"f:a": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}}}},
        });
        let other = json!({"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:args": {}}}}});
        let map = |value: &Value| value.as_object().unwrap().clone();
        let kept = [map(&applied), map(&other)];
        let kept: Vec<&Map<String, Value>> = kept.iter().collect();
        remove_fields(&mut object, &map(&taken), &kept);
        assert_eq!(
            object,
            json!({
                "metadata": {"labels": {"a": "1"}, "finalizers": ["y"]},
                "spec": {"containers": [{"name": "web", "image": "web", "args": ["z"]}]},
            })
        );
    }
}
