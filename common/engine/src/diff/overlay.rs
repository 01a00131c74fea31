//! What a live object becomes if a manifest is laid over it: an approximation of an apply for users who may not ask the server for a dry run.

use serde_json::Value;

use super::fields::items_by_guessed_keys;

/// Lays the fields of a manifest over a live object. Fields and items of the live object that the manifest does not name stay.
pub(super) fn apply(live: &Value, manifest: &Value) -> Value {
    match (live, manifest) {
        (Value::Object(live), Value::Object(manifest)) => {
            let mut merged = live.clone();
            for (name, wanted) in manifest {
                let value = match live.get(name) {
                    Some(live) => apply(live, wanted),
                    None => wanted.clone(),
                };
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Value::Array(live), Value::Array(manifest)) => Value::Array(apply_list(live, manifest)),
        _ => manifest.clone(),
    }
}

/// Lays items over those with the same keys. A list whose items nothing identifies is replaced.
fn apply_list(live: &[Value], manifest: &[Value]) -> Vec<Value> {
    let Some([live_items, wanted_items]) = items_by_guessed_keys(live, manifest) else {
        return manifest.to_vec();
    };
    let wanted = wanted_items
        .iter()
        .map(|(key, wanted)| match live_items.get(key) {
            Some(live) => apply(live, wanted),
            None => (*wanted).clone(),
        });
    let others = live_items
        .iter()
        .filter(|(key, _)| !wanted_items.contains_key(*key));
    let others = others.map(|(_, live)| (*live).clone());
    wanted.chain(others).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_others_and_defaults_stay() {
        for (what, live, manifest, expected) in [
            (
                "a scalar",
                json!({"spec": {"replicas": 1, "revisionHistoryLimit": 10}}),
                json!({"spec": {"replicas": 2}}),
                json!({"spec": {"replicas": 2, "revisionHistoryLimit": 10}}),
            ),
            (
                "a container with a default, and one of another client",
                json!([{"name": "web", "image": "web:1", "imagePullPolicy": "Always"}, {"name": "proxy"}]),
                json!([{"name": "web", "image": "web:2"}]),
                json!([{"name": "web", "image": "web:2", "imagePullPolicy": "Always"}, {"name": "proxy"}]),
            ),
            (
                "a list of texts",
                json!({"args": ["a", "b"]}),
                json!({"args": ["a"]}),
                json!({"args": ["a"]}),
            ),
            (
                "a new list",
                json!({}),
                json!({"args": ["a"]}),
                json!({"args": ["a"]}),
            ),
        ] {
            assert_eq!(apply(&live, &manifest), expected, "{what}");
        }
    }
}
