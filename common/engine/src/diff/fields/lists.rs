//! How the API server merges a list: by keys of its items, or as a set. The fields that it records for each manager show this, for built-in
//! kinds and for custom resources alike.

use std::collections::BTreeMap;

use serde_json::Value;

use common::entrance;

use super::plain_text;

/// Keys that may identify items of a list that is merged as a whole, or that no manager owns: the first unique ones are used.
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
pub(super) enum MergeKind {
    /// Items are identified by these fields.
    Keys(Vec<String>),
    /// Items are values, each of which occurs once.
    Set,
}

impl MergeKind {
    pub(super) fn keys(&self) -> Option<Vec<String>> {
        match self {
            Self::Keys(keys) => Some(keys.clone()),
            Self::Set => None,
        }
    }
}

/// Returns how a list is merged, according to the fields of managers: `k:{"name":"web"}`, `v:"a"`. `None` if it is merged as a whole.
pub(super) fn detect_merge<'a>(fields: impl Iterator<Item = &'a Value>) -> Option<MergeKind> {
    let mut keys = fields.filter_map(Value::as_object).flat_map(|it| it.keys());
    keys.find_map(|key| match key.split_once(':')? {
        ("k", key) => {
            let key: Value = entrance::from_str(key).ok()?;
            Some(MergeKind::Keys(key.as_object()?.keys().cloned().collect()))
        }
        ("v", _) => Some(MergeKind::Set),
        _ => None,
    })
}

/// Returns the keys that probably identify items.
pub(super) fn guessed_keys() -> impl Iterator<Item = Vec<String>> {
    GUESSES
        .iter()
        .map(|keys| keys.iter().map(|key| (*key).to_owned()).collect())
}

/// Returns the items of both lists by the first keys that are unique in each; `None` if there are no such keys.
pub(in crate::diff) fn items_by_guessed_keys<'a>(
    live: &'a [Value],
    wanted: &'a [Value],
) -> Option<[BTreeMap<String, &'a Value>; 2]> {
    guessed_keys().find_map(|identity| {
        Some([
            items_by_key(live, &identity)?,
            items_by_key(wanted, &identity)?,
        ])
    })
}

/// Pairs the items of two lists that nothing identifies: each with the index that its change is shown at, equal ones left out. An inserted
/// item moves the others, but does not change them.
pub(super) fn align<'a>(
    live: &'a [Value],
    wanted: &'a [Value],
) -> Vec<(usize, Option<&'a Value>, Option<&'a Value>)> {
    let texts = |items: &[Value]| items.iter().map(Value::to_string).collect::<Vec<_>>();
    let (old, new) = (texts(live), texts(wanted));
    let mut pairs = Vec::new();
    for change in similar::capture_diff_slices(similar::Algorithm::Myers, &old, &new) {
        if change.tag() == similar::DiffTag::Equal {
            continue;
        }
        let (old, new) = (change.old_range(), change.new_range());
        for offset in 0..old.len().max(new.len()) {
            let at = |range: &std::ops::Range<usize>| {
                Some(range.start + offset).filter(|at| range.contains(at))
            };
            let (old, new) = (at(&old), at(&new));
            let index = new.or(old).unwrap_or_default();
            pairs.push((
                index,
                old.and_then(|at| live.get(at)),
                new.and_then(|at| wanted.get(at)),
            ));
        }
    }
    pairs
}

/// Returns the items by their keys; `None` if these are not unique.
pub(super) fn items_by_key<'a>(
    items: &'a [Value],
    identity: &[String],
) -> Option<BTreeMap<String, &'a Value>> {
    let mut found = BTreeMap::new();
    for item in items {
        let item_fields = item.as_object()?;
        let first = identity.first()?;
        item_fields.get(first).filter(|value| !value.is_object())?;
        let values = identity.iter().filter_map(|field| item_fields.get(field));
        let label: Vec<String> = values.map(plain_text).collect();
        if found.insert(label.join("/"), item).is_some() {
            return None;
        }
    }
    Some(found)
}
