//! `kapp.k14s.io/change-group` and `kapp.k14s.io/change-rule`, as kapp v0.60 reads them (pkg/kapp/diffgraph).

use serde_json::Value;

use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::defined_kind;

pub(super) const GROUP: &str = "kapp.k14s.io/change-group";
pub(super) const RULE: &str = "kapp.k14s.io/change-rule";

/// A rule `upsert before|after upserting GROUP`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::graph) struct ChangeRule {
    /// Whether the object comes before the group rather than after it.
    pub before: bool,
    /// The group.
    pub group: String,
}

/// Reads the name of a change group.
pub(super) fn parse_group(value: &str, key: &ObjectKey, object: &Value) -> Result<String, String> {
    let group = fill_placeholders(value, key, object)?;
    if is_qualified_name(&group) {
        Ok(group)
    } else {
        Err(
            "is not a valid name of a change group: write one like apps.example.com/database"
                .to_owned(),
        )
    }
}

/// Reads a rule. Returns `None` for a rule about deletion, which does not affect the order of applies.
pub(super) fn parse_rule(
    value: &str,
    key: &ObjectKey,
    object: &Value,
) -> Result<Option<ChangeRule>, String> {
    let filled = fill_placeholders(value, key, object)?;
    let pieces: Vec<&str> = filled.split(' ').collect();
    let [
        action @ ("upsert" | "delete"),
        order @ ("before" | "after"),
        target @ ("upserting" | "deleting"),
        group,
    ] = pieces[..]
    else {
        return Err(
            "is not a valid change rule: write (upsert|delete) (before|after) (upserting|deleting) GROUP"
                .to_owned(),
        );
    };
    if !is_qualified_name(group) {
        return Err(format!(
            "has {group:?}, which is not a valid name of a change group: write one like apps.example.com/database"
        ));
    }
    Ok(
        (action == "upsert" && target == "upserting").then(|| ChangeRule {
            before: order == "before",
            group: group.to_owned(),
        }),
    )
}

/// Replaces placeholders in a value: `{namespace}` etc.
fn fill_placeholders(value: &str, key: &ObjectKey, object: &Value) -> Result<String, String> {
    let defined = defined_kind(object).unwrap_or_default();
    let mut filled = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}').filter(|(name, _)| !name.is_empty()) else {
            break;
        };
        let with = match name {
            "api-group" => &key.group,
            "kind" => &key.kind,
            "name" => &key.name,
            "namespace" => key.namespace.as_deref().unwrap_or_default(),
            "crd-group" => &defined.0,
            "crd-kind" => &defined.1,
            _ => {
                return Err(format!(
                    "has the unknown placeholder {{{name}}}: kapp knows {{api-group}}, {{kind}}, {{name}}, {{namespace}}, {{crd-group}} and {{crd-kind}}"
                ));
            }
        };
        if with.is_empty() {
            return Err(format!(
                "has the placeholder {{{name}}}, which the object does not have: write the name out"
            ));
        }
        filled.push_str(before);
        filled.push_str(with);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Whether `name` is a qualified name as in apimachinery, but of any length: `[DNS subdomain/]name`.
fn is_qualified_name(name: &str) -> bool {
    let (prefix, name) = match name.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, name),
    };
    let edges = |part: &str, edge: fn(&u8) -> bool, all: fn(&u8) -> bool| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(edge) && bytes.last().is_some_and(edge) && bytes.iter().all(all)
    };
    let is_lower = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |part: &str| {
        edges(part, is_lower, |byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-'
        })
    };
    prefix.is_none_or(|prefix| prefix.split('.').all(label))
        && edges(name, u8::is_ascii_alphanumeric, |byte| {
            byte.is_ascii_alphanumeric() || b"-_.".contains(byte)
        })
}
