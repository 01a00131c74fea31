//! `config.kubernetes.io/depends-on`, as cli-utils v0.37 reads it (pkg/object/dependson/strings.go).

use common::manifest::key::ObjectKey;

pub(super) const ANNOTATION: &str = "config.kubernetes.io/depends-on";

/// Reads a list of `GROUP/KIND/NAME` or `GROUP/namespaces/NS/KIND/NAME`, separated by commas. The group of core objects is empty.
pub(super) fn read(value: &str, own: &ObjectKey) -> Result<Vec<ObjectKey>, String> {
    value
        .split(',')
        .map(|one| parse_reference(one.trim(), own))
        .collect()
}

fn parse_reference(one: &str, own: &ObjectKey) -> Result<ObjectKey, String> {
    let fields: Vec<&str> = one.split('/').collect();
    let (group, namespace, kind, name) = match fields[..] {
        [group, kind, name] => (group, None, kind, name),
        [group, "namespaces", namespace, kind, name] => (group, Some(namespace), kind, name),
        _ => ("", None, "", ""),
    };
    if kind.is_empty() || name.is_empty() || namespace == Some("") {
        return Err(format!(
            "names no object at {one:?}: write GROUP/KIND/NAME or GROUP/namespaces/NAMESPACE/KIND/NAME (the group of core objects is empty), several separated by commas"
        ));
    }
    let key = ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    };
    if key == *own {
        return Err("names the object itself: take it out".to_owned());
    }
    Ok(key)
}
