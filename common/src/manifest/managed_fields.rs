//! Rewrites `metadata.managedFields`: entries of client-side managers become entries of our field manager, and entries of API versions that
//! no longer exist are moved to one that does.
//!
//! An entry is kept as the server wrote it, except for necessary changes. `fieldsV1` is a set of fields as nested maps: `{}` is a whole
//! field, and `.` is the field itself if fields below it are listed as well.

pub mod former;
pub mod path;

use serde_json::{Map, Value, json};

use crate::manifest::digest;
use path::ManagedPath;

/// The field manager of client-side `kubectl apply`.
pub const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The field managers of client-side apply. The fields that they own were applied as a whole object (kubernetes#99003).
pub const CLIENT_SIDE: &[&str] = &[CLIENT_SIDE_APPLY, BEFORE_FIRST_APPLY];
const LAST_APPLIED: &str = "f:kubectl.kubernetes.io/last-applied-configuration";

/// Number of hex digits of a digest of fields. The inventory contains one for each object.
const DIGEST: usize = 12;

/// Returns a digest of the fields of an object that a manager owns, by any operation, without its status; empty if it owns none.
///
/// A field leaves this set as soon as another client gives it another value or removes it, and no other write changes the set. So as long
/// as the digest is that of our last apply, no field of ours was edited (semantics 12.5). Changes that admission made to our own write
/// count as ours, because the server records them as an update of the manager that applied.
#[must_use]
pub fn digest_of_owned(entries: &[Value], manager: &str) -> String {
    let owned = owned_fields(entries, manager);
    if owned.is_empty() {
        return String::new();
    }
    let mut text = digest::digest(&Value::Object(owned));
    text.truncate(DIGEST);
    text
}

/// Returns the fields of an object that a manager owns, without its status.
#[must_use]
pub fn owned_fields(entries: &[Value], manager: &str) -> Map<String, Value> {
    let ours = entries
        .iter()
        .filter(|entry| text(entry, "manager") == manager && text(entry, "subresource").is_empty());
    let mut owned = Map::new();
    for fields in ours.filter_map(|entry| entry.get("fieldsV1")?.as_object()) {
        merge_sets(&mut owned, fields);
    }
    owned.remove("f:status");
    owned
}

/// Returns the managers other than `ours` that own a field or any field below it: their names, and the time of their last write.
#[must_use]
pub fn other_owners(
    entries: &[Value],
    at: &ManagedPath,
    ours: &str,
) -> Vec<(String, Option<String>)> {
    let others = entries.iter().filter(|entry| {
        let fields = entry.get("fieldsV1").and_then(Value::as_object);
        text(entry, "manager") != ours && fields.is_some_and(|fields| at.is_in(fields))
    });
    let owners = others.map(|entry| {
        let time = Some(text(entry, "time").to_owned()).filter(|time| !time.is_empty());
        let manager = text(entry, "manager");
        match text(entry, "subresource") {
            "" => (manager.to_owned(), time),
            subresource => (format!("{manager}/{subresource}"), time),
        }
    });
    owners.collect()
}

/// Returns entries in which only the apply manager `to` owns the fields at `paths`, so that an apply without these fields removes them.
/// `None` if nothing changes.
#[must_use]
pub fn claim(
    live: &[Value],
    paths: &[ManagedPath],
    to: &str,
    api_version: &str,
) -> Option<Vec<Value>> {
    let is_ours =
        |entry: &Value| is_by(entry, to, "Apply") && text(entry, "subresource").is_empty();
    let mut entries = Vec::new();
    let mut ours = None;
    for entry in live {
        let mut entry = entry.clone();
        if is_ours(&entry) {
            ours = Some(entry);
            continue;
        }
        if let Some(fields) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut) {
            for path in paths {
                path.take_from(fields);
            }
        }
        entries.push(entry);
    }
    let mut ours = ours.unwrap_or_else(|| {
        json!({"manager": to, "operation": "Apply", "apiVersion": api_version,
            "fieldsType": "FieldsV1", "fieldsV1": {}})
    });
    if let Some(fields) = ours.get_mut("fieldsV1").and_then(Value::as_object_mut) {
        for path in paths {
            path.add_to(fields);
        }
    }
    // The server keeps no entries without fields.
    entries.retain(|entry| entry.get("fieldsV1") != Some(&Value::Object(Map::new())));
    entries.push(ours);
    let is_same = entries.len() == live.len() && entries.iter().all(|entry| live.contains(entry));
    (!is_same).then_some(entries)
}

/// Returns the entries after the fields that the managers `from` updated were transferred to the apply manager `to`, or `None` if there are
/// none to transfer. Entries of subresources stay, and so do entries in another version than that of `to`, because their paths may mean
/// something else. An entry of `before-first-apply` is taken only if client-side apply left it behind (it has its annotation); otherwise it
/// stands for all writes before managers were tracked.
#[must_use]
pub fn migrate(live: &[Value], from: &[&str], to: &str) -> Option<Vec<Value>> {
    transfer(live, to, |entry| {
        from.iter().any(|manager| is_by(entry, manager, "Update"))
            && (text(entry, "manager") != BEFORE_FIRST_APPLY || has_last_applied(entry))
    })
}

/// Merges the entries of the object itself for which `is_theirs` is true into the entry of the apply manager `to`.
fn transfer(live: &[Value], to: &str, is_theirs: impl Fn(&Value) -> bool) -> Option<Vec<Value>> {
    let is_main = |entry: &Value| text(entry, "subresource").is_empty();
    let is_ours = |entry: &Value| is_by(entry, to, "Apply") && is_main(entry);
    let mut ours = live.iter().find(|entry| is_ours(entry)).cloned();
    let mut rest = Vec::new();
    let mut moved = false;
    for entry in live.iter().filter(|entry| !is_ours(entry)) {
        let fits = ours
            .as_ref()
            .is_none_or(|ours| text(ours, "apiVersion") == text(entry, "apiVersion"));
        if !(is_main(entry) && is_theirs(entry) && fits) {
            rest.push(entry.clone());
            continue;
        }
        moved = true;
        match &mut ours {
            Some(ours) => merge_entry(ours, entry),
            None => {
                let mut first = entry.clone();
                set_text(&mut first, "manager", to);
                set_text(&mut first, "operation", "Apply");
                ours = Some(first);
            }
        }
    }
    if !moved {
        return None;
    }
    rest.extend(ours);
    Some(rest)
}

/// Returns the entries after the fields of the apply manager `from` became fields of the apply manager `to`: the object changes its owner,
/// but no field. `None` if `from` owned nothing.
#[must_use]
pub fn inherit(live: &[Value], from: &str, to: &str) -> Option<Vec<Value>> {
    let is_from = |entry: &&Value| is_by(entry, from, "Apply");
    live.iter().find(is_from)?;
    let mut entries: Vec<Value> = live
        .iter()
        .filter(|entry| !is_from(entry))
        .cloned()
        .collect();
    for theirs in live.iter().filter(is_from) {
        let mut theirs = theirs.clone();
        set_text(&mut theirs, "manager", to);
        match entries
            .iter_mut()
            .find(|entry| is_same_manager(entry, &theirs))
        {
            Some(entry) => merge_entry(entry, &theirs),
            None => entries.push(theirs),
        }
    }
    Some(entries)
}

/// Returns the entries in which other managers than `ours` own again what they owned in `before`, so that fields taken from them by force
/// are theirs as well. `None` if nothing was taken.
#[must_use]
pub fn give_back(live: &[Value], before: &[Value], ours: &str) -> Option<Vec<Value>> {
    let mut entries = live.to_vec();
    for theirs in before.iter().filter(|entry| !is_by(entry, ours, "Apply")) {
        match entries
            .iter_mut()
            .find(|entry| is_same_manager(entry, theirs))
        {
            Some(entry) => merge_entry(entry, theirs),
            None => entries.push(theirs.clone()),
        }
    }
    (entries != live).then_some(entries)
}

/// Returns the entries with those of API versions that are gone moved to version `to`, or `None` if there are none. While an object has an
/// entry of a version that its definition no longer has, the server refuses every apply, and any other write makes it forget all managers
/// of the object (fluxcd/pkg#1131, kubernetes#111937).
#[must_use]
pub fn move_versions(
    live: &[Value],
    is_gone: impl Fn(&str) -> bool,
    to: &str,
) -> Option<Vec<Value>> {
    let is_gone = |entry: &Value| is_gone(text(entry, "apiVersion"));
    if !live.iter().any(is_gone) {
        return None;
    }
    let mut entries: Vec<Value> = Vec::new();
    for entry in live {
        let mut entry = entry.clone();
        if is_gone(&entry) {
            set_text(&mut entry, "apiVersion", to);
        }
        // The server would merge two entries of one manager, and lose the first one.
        match entries
            .iter_mut()
            .find(|other| is_same_manager(other, &entry))
        {
            Some(other) => merge_entry(other, &entry),
            None => entries.push(entry),
        }
    }
    Some(entries)
}

/// Iterates over the managers that own a field of an object, or a whole field that contains it.
pub fn managers_of<'a>(object: &'a Value, field: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    let entries = entries.into_iter().flatten();
    let owning = entries.filter(|entry| {
        text(entry, "subresource").is_empty()
            && entry
                .get("fieldsV1")
                .is_some_and(|set| has_field(set, field))
    });
    owning.map(|entry| text(entry, "manager"))
}

fn has_field(set: &Value, field: &[&str]) -> bool {
    let Some((first, rest)) = field.split_first() else {
        return true;
    };
    set.get(format!("f:{first}")).is_some_and(|below| {
        // A whole field.
        let is_whole = below.as_object().is_some_and(Map::is_empty);
        is_whole || has_field(below, rest)
    })
}

/// Returns whether two entries belong to the same manager; the server would keep only one of them.
fn is_same_manager(one: &Value, other: &Value) -> bool {
    ["manager", "operation", "subresource", "apiVersion"]
        .iter()
        .all(|name| text(one, name) == text(other, name))
}

fn is_by(entry: &Value, manager: &str, operation: &str) -> bool {
    text(entry, "manager") == manager && text(entry, "operation") == operation
}

fn text<'a>(entry: &'a Value, name: &str) -> &'a str {
    entry.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn set_text(entry: &mut Value, name: &str, value: &str) {
    if let Some(fields) = entry.as_object_mut() {
        fields.insert(name.to_owned(), value.into());
    }
}

fn has_last_applied(entry: &Value) -> bool {
    let annotations = || {
        let metadata = entry.get("fieldsV1")?.get("f:metadata")?;
        metadata.get("f:annotations")?.get(LAST_APPLIED)
    };
    annotations().is_some()
}

/// Adds the fields of `other` to those of `entry`.
fn merge_entry(entry: &mut Value, other: &Value) {
    let none = Map::new();
    let other = other
        .get("fieldsV1")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let Some(entry) = entry.as_object_mut() else {
        return;
    };
    let fields = entry
        .entry("fieldsV1")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(fields) = fields.as_object_mut() {
        merge_sets(fields, other);
    }
}

/// Adds the fields of `other` to `set`. Recursion ends with the depth of the object.
fn merge_sets(set: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (name, below) in other {
        let Some(known) = set.get_mut(name).and_then(Value::as_object_mut) else {
            set.insert(name.clone(), below.clone());
            continue;
        };
        let Some(below) = below.as_object() else {
            continue;
        };
        // One set has the whole field, the other only some fields below it.
        if known.is_empty() != below.is_empty() {
            known.insert(".".to_owned(), Value::Object(Map::new()));
        }
        merge_sets(known, below);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KUBECTL: &str = "kubectl-client-side-apply";

    fn entry(manager: &str, operation: &str, version: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": version,
            "time": "2026-11-21T12:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn status() -> Value {
        let mut entry = entry(
            "kube-controller-manager",
            "Update",
            "policy/v1",
            json!({"f:status": {"f:desiredHealthy": {}}}),
        );
        entry["subresource"] = json!("status");
        entry
    }

    /// As client-go migrates them, with entries of our own.
    #[test]
    fn client_side_managers_become_ours() {
        let applied = json!({"f:metadata": {"f:annotations": {".": {}, LAST_APPLIED: {}}}, "f:spec": {"f:minAvailable": {}}});
        let edited = json!({"f:metadata": {"f:annotations": {".": {}, LAST_APPLIED: {}}}, "f:spec": {"f:selector": {}}});
        let both = json!({"f:metadata": {"f:annotations": {".": {}, LAST_APPLIED: {}}},
            "f:spec": {"f:minAvailable": {}, "f:selector": {}}});
        let plain = json!({"f:spec": {"f:minAvailable": {}}});
        let csa = |fields: &Value| entry(KUBECTL, "Update", "policy/v1", fields.clone());
        let ours = |fields: &Value| entry("ours", "Apply", "policy/v1", fields.clone());
        let edit = |fields: &Value| entry("kubectl-edit", "Update", "policy/v1", fields.clone());
        let before =
            |fields: &Value| entry("before-first-apply", "Update", "policy/v1", fields.clone());
        let older = entry(KUBECTL, "Update", "policy/v1beta1", applied.clone());
        let scaled = {
            let mut entry = csa(&plain);
            entry["subresource"] = json!("scale");
            entry
        };
        let default = CLIENT_SIDE;
        let with_edit: &[&str] = &[KUBECTL, "kubectl-edit"];
        for (name, live, from, wanted) in [
            (
                "csa-migration",
                vec![status(), csa(&applied)],
                default,
                Some(vec![status(), ours(&applied)]),
            ),
            (
                "merge-owners",
                vec![status(), csa(&applied), edit(&edited)],
                with_edit,
                Some(vec![status(), ours(&both)]),
            ),
            (
                "merge with ours",
                vec![ours(&edited), csa(&applied)],
                default,
                Some(vec![ours(&both)]),
            ),
            (
                "ssa-unchanged",
                vec![status(), ours(&applied)],
                default,
                None,
            ),
            (
                "unknown-unchanged",
                vec![
                    status(),
                    entry("other", "Update", "policy/v1", applied.clone()),
                ],
                default,
                None,
            ),
            (
                "applied, not updated",
                vec![entry(KUBECTL, "Apply", "policy/v1", plain.clone())],
                default,
                None,
            ),
            ("through a subresource", vec![scaled], default, None),
            (
                "before managers were tracked",
                vec![before(&applied)],
                default,
                Some(vec![ours(&applied)]),
            ),
            (
                "before, but never applied",
                vec![before(&plain)],
                default,
                None,
            ),
            ("another version", vec![ours(&plain), older], default, None),
            ("nothing", vec![], default, None),
        ] {
            assert_eq!(migrate(&live, from, "ours"), wanted, "{name}");
            if let Some(done) = wanted {
                assert_eq!(migrate(&done, from, "ours"), None, "{name}, again");
            }
        }
    }

    /// Trust 12.
    #[test]
    fn what_was_taken_by_force_is_given_back() {
        let key = json!({"f:data": {"f:key": {}}});
        let own = json!({"f:data": {"f:own": {}}});
        let both = json!({"f:data": {"f:key": {}, "f:own": {}}});
        let theirs = |fields: &Value| entry("kubectl-create", "Update", "v1", fields.clone());
        let ours = entry("ours", "Apply", "v1", key.clone());
        for (name, live, before, wanted) in [
            (
                "a field",
                vec![theirs(&own), ours.clone()],
                vec![theirs(&both)],
                Some(vec![theirs(&both), ours.clone()]),
            ),
            (
                "all of them",
                vec![ours.clone()],
                vec![theirs(&key)],
                Some(vec![ours.clone(), theirs(&key)]),
            ),
            (
                "nothing",
                vec![theirs(&own), ours.clone()],
                vec![theirs(&own)],
                None,
            ),
            (
                "our own",
                vec![ours.clone()],
                vec![entry("ours", "Apply", "v1", both.clone())],
                None,
            ),
        ] {
            assert_eq!(give_back(&live, &before, "ours"), wanted, "{name}");
        }
    }

    /// Trust 11.
    #[test]
    fn fields_move_to_the_next_owner() {
        let (a, b) = (json!({"f:a": {}}), json!({"f:b": {}}));
        let of = |manager: &str, fields: &Value| entry(manager, "Apply", "v1", fields.clone());
        let edit = entry("one", "Update", "v1", b.clone());
        for (live, wanted) in [
            (
                vec![of("one", &a), edit.clone()],
                Some(vec![edit, of("two", &a)]),
            ),
            (
                vec![of("two", &b), of("one", &a)],
                Some(vec![of("two", &json!({"f:a": {}, "f:b": {}}))]),
            ),
            (vec![of("two", &b)], None),
        ] {
            assert_eq!(inherit(&live, "one", "two"), wanted);
        }
    }

    #[test]
    fn sets_are_united() {
        for (one, other, wanted) in [
            (json!({}), json!({"f:a": {}}), json!({"f:a": {}})),
            (json!({"f:a": {}}), json!({"f:a": {}}), json!({"f:a": {}})),
            (
                json!({"f:a": {}}),
                json!({"f:a": {"f:b": {}}}),
                json!({"f:a": {".": {}, "f:b": {}}}),
            ),
            (
                json!({"f:a": {"f:b": {}}}),
                json!({"f:a": {}}),
                json!({"f:a": {".": {}, "f:b": {}}}),
            ),
            (
                json!({"f:a": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}}}),
                json!({"f:a": {"k:{\"name\":\"x\"}": {"f:image": {}}, "v:1": {}}}),
                json!({"f:a": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:image": {}}, "v:1": {}}}),
            ),
        ] {
            let mut set = one.as_object().unwrap().clone();
            merge_sets(&mut set, other.as_object().unwrap());
            assert_eq!(Value::Object(set), wanted);
        }
    }

    #[test]
    fn entries_of_a_version_that_is_gone_move() {
        let a = json!({"f:spec": {"f:a": {}}});
        let b = json!({"f:spec": {"f:b": {}}});
        let (old, new) = ("z.example/v1alpha1", "z.example/v1");
        let live = [
            entry("ours", "Apply", old, a.clone()),
            entry("other", "Update", old, a.clone()),
            entry("other", "Update", new, b),
        ];
        let both = json!({"f:spec": {"f:a": {}, "f:b": {}}});
        let wanted = vec![
            entry("ours", "Apply", new, a),
            entry("other", "Update", new, both),
        ];
        let is_old = |version: &str| version == old;
        assert_eq!(move_versions(&live, is_old, new), Some(wanted.clone()));
        assert_eq!(move_versions(&wanted, is_old, new), None);
        assert_eq!(move_versions(&[json!(3)], is_old, new), None);
    }
}
