//! Pods that restart, and their images.

use serde_json::Value;

use crate::changes::{FieldChange, ObjectChange, ObjectDiff};

/// The kinds whose controllers replace running pods if the template changes.
const ROLLING: &[&str] = &["DaemonSet", "Deployment", "StatefulSet"];
const TEMPLATE: &str = "spec.template.";
/// The lists of a pod whose items have an image.
const CONTAINERS: &[&str] = &["containers", "initContainers", "ephemeralContainers"];

/// Whether running pods are replaced.
pub(super) fn restarts_pods(change: &ObjectDiff, object: Option<&Value>) -> bool {
    let strategy = object.and_then(|object| object.pointer("/spec/updateStrategy/type"));
    change.key.group == "apps"
        && ROLLING.contains(&change.key.kind.as_str())
        && strategy.and_then(Value::as_str) != Some("OnDelete")
        && change.fields.iter().any(|it| it.path.starts_with(TEMPLATE))
}

/// Whether a path is that of a container's image: `spec.template.spec.containers[web].image`.
pub(super) fn is_image(path: &str) -> bool {
    path.strip_suffix("].image").is_some_and(|list| {
        let list = list.rsplit_once('[').map_or(list, |(list, _)| list);
        CONTAINERS.iter().any(|name| list.ends_with(name))
    })
}

/// Returns the images that a change replaces, adds (no old one) or removes (no new one). `object` is the wanted object.
pub(super) fn changed_images(
    change: &ObjectDiff,
    object: Option<&Value>,
) -> Vec<(Option<String>, Option<String>)> {
    let mut images = Vec::new();
    match change.change() {
        ObjectChange::Added => {
            let found = object.map(find_images).unwrap_or_default();
            images.extend(found.into_iter().map(|image| (None, Some(image))));
        }
        ObjectChange::Changed | ObjectChange::Recreated | ObjectChange::Refused => {
            for field in &change.fields {
                images.extend(field_images(field));
            }
        }
        ObjectChange::Unchanged => {}
    }
    images
}

fn field_images(field: &FieldChange) -> Vec<(Option<String>, Option<String>)> {
    let text = |value: &Option<Value>| value.as_ref()?.as_str().map(str::to_owned);
    if is_image(&field.path) {
        return vec![(text(&field.old), text(&field.new))];
    }
    // A container that is added or removed as a whole, or a list of them.
    let is_container = CONTAINERS.iter().any(|list| {
        let in_list = field.path.rsplit_once('[').map(|(path, _)| path);
        field.path.ends_with(list) || in_list.is_some_and(|path| path.ends_with(list))
    });
    if !is_container {
        return Vec::new();
    }
    let of = |value: &Option<Value>| {
        let items = match value {
            Some(Value::Array(items)) => items.iter().collect(),
            Some(item) => vec![item],
            None => Vec::new(),
        };
        let images = items
            .into_iter()
            .filter_map(|item| item.get("image")?.as_str());
        images.map(str::to_owned).collect::<Vec<_>>()
    };
    let (old, new) = (of(&field.old), of(&field.new));
    let gone = old.iter().filter(|image| !new.contains(image));
    let gone = gone.map(|image| (Some(image.clone()), None));
    let added = new.iter().filter(|image| !old.contains(image));
    gone.chain(added.map(|image| (None, Some(image.clone()))))
        .collect()
}

/// Returns the images of all containers in an object, at any depth.
fn find_images(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![object];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let (true, Value::Array(items)) =
                        (CONTAINERS.contains(&name.as_str()), value)
                    {
                        let images = items.iter().filter_map(|item| item.get("image")?.as_str());
                        found.extend(images.map(str::to_owned));
                    } else {
                        open.push(value);
                    }
                }
            }
            _ => {}
        }
    }
    found.sort();
    found.dedup();
    found
}
