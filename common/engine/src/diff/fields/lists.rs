//! How the API server merges a list: by keys of its items, or as a set. It says so itself, in the fields that it writes down for each
//! manager, for built-in kinds and for those of definitions alike.

use std::collections::BTreeMap;

use serde_json::Value;

use common::entrance;

use super::plain;

/// Keys that identify items of a list that is merged as a whole, or of which no manager is recorded: the first that are unique.
const GUESSES: [&[&str]; 7] = [
    &["name"],
    &["containerPort", "protocol"],
    &["port", "protocol"],
    &["mountPath"],
    &["devicePath"],
    &["type"],
    &["ip"],
];

/// How a list is merged.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Merge {
    /// Items are identified by these fields.
    Keys(Vec<String>),
    /// Items are values, each of them once.
    Set,
}

impl Merge {
    pub(super) fn keys(&self) -> Option<Vec<String>> {
        match self {
            Self::Keys(keys) => Some(keys.clone()),
            Self::Set => None,
        }
    }
}

/// How a list is merged, by what managers own of it: `k:{"name":"web"}`, `v:"a"`. `None` where it is merged as a whole.
pub(super) fn merge_of<'a>(fields: impl Iterator<Item = &'a Value>) -> Option<Merge> {
    let mut keys = fields.filter_map(Value::as_object).flat_map(|it| it.keys());
    keys.find_map(|key| match key.split_once(':')? {
        ("k", key) => {
            let key: Value = entrance::from_str(key).ok()?;
            Some(Merge::Keys(key.as_object()?.keys().cloned().collect()))
        }
        ("v", _) => Some(Merge::Set),
        _ => None,
    })
}

/// What probably identifies items.
pub(super) fn guesses() -> impl Iterator<Item = Vec<String>> {
    GUESSES
        .iter()
        .map(|keys| keys.iter().map(|key| (*key).to_owned()).collect())
}

/// Items by what identifies them; `None` where that is not unique.
pub(super) fn items<'a>(
    items: &'a [Value],
    identity: &[String],
) -> Option<BTreeMap<String, &'a Value>> {
    let mut found = BTreeMap::new();
    for item in items {
        let item_fields = item.as_object()?;
        let first = identity.first()?;
        item_fields.get(first).filter(|value| !value.is_object())?;
        let values = identity.iter().filter_map(|field| item_fields.get(field));
        let label: Vec<String> = values.map(plain).collect();
        if found.insert(label.join("/"), item).is_some() {
            return None;
        }
    }
    Some(found)
}
