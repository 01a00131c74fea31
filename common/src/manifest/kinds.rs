//! The kinds that a cluster serves. The engine discovers them, and pure code reads them as a value.

pub mod traits;
mod types;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::key::Gvk;
use super::ownership::is_create_only;

/// How the API server serves a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindInfo {
    /// Plural name, as in URLs.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
    /// Whether it can be listed, patched and deleted. A review object cannot.
    pub writable: bool,
    /// Whether it has a subresource `status`, in which its controller reports.
    pub has_status: bool,
}

/// A version of a group, with its kinds.
type ServedVersion = (String, BTreeMap<String, KindInfo>);

/// All kinds that a cluster serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindTable {
    /// Versions by group, in the server's order of preference, each with its kinds.
    groups: BTreeMap<String, Vec<ServedVersion>>,
    /// Groups for which the server behind at least one version did not answer, so more kinds may be served.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    silent: BTreeSet<String>,
}

impl KindTable {
    /// Adds a kind. The first version that is added to a group is the preferred one.
    pub fn insert(&mut self, gvk: &Gvk, info: KindInfo) {
        let versions = self.groups.entry(gvk.group.clone()).or_default();
        match versions
            .iter_mut()
            .find(|(version, _)| *version == gvk.version)
        {
            Some((_, kinds)) => {
                kinds.insert(gvk.kind.clone(), info);
            }
            None => versions.push((
                gvk.version.clone(),
                BTreeMap::from([(gvk.kind.clone(), info)]),
            )),
        }
    }

    /// Adds every served version of a CustomResourceDefinition object. Other objects are ignored.
    pub fn insert_crd(&mut self, crd: &Value) {
        let Some(spec) = crd.get("spec") else { return };
        let text =
            |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let names = spec.get("names");
        let kind = text(names.and_then(|names| names.get("kind")));
        let singular = text(names.and_then(|names| names.get("singular")));
        let info = KindInfo {
            plural: text(names.and_then(|names| names.get("plural"))),
            singular: singular_or_default(singular, &kind),
            namespaced: text(spec.get("scope")) == "Namespaced",
            writable: true,
            has_status: false,
        };
        let group = text(spec.get("group"));
        for version in spec
            .get("versions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if version
                .get("served")
                .and_then(Value::as_bool)
                .unwrap_or(true)
            {
                let gvk = Gvk {
                    group: group.clone(),
                    version: text(version.get("name")),
                    kind: kind.clone(),
                };
                let has_status = version.pointer("/subresources/status").is_some();
                let info = KindInfo {
                    has_status,
                    ..info.clone()
                };
                self.insert(&gvk, info);
            }
        }
    }

    /// Updates the table as if a CustomResourceDefinition object was applied: its versions replace those of its kind. A definition that is
    /// only created if missing adds its versions.
    pub fn apply_definition(&mut self, crd: &Value) {
        if !is_create_only(crd) {
            let text = |pointer| crd.pointer(pointer).and_then(Value::as_str);
            let group = text("/spec/group").unwrap_or_default();
            let kind = text("/spec/names/kind").unwrap_or_default();
            for (_, kinds) in self.groups.get_mut(group).into_iter().flatten() {
                kinds.remove(kind);
            }
        }
        self.insert_crd(crd);
    }

    /// Returns this table, with kinds added that only `other` contains.
    #[must_use]
    pub fn merged_with(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.silent.extend(other.silent.iter().cloned());
        for (group, versions) in &other.groups {
            for (version, kinds) in versions {
                for (kind, info) in kinds {
                    let gvk = Gvk {
                        group: group.clone(),
                        version: version.clone(),
                        kind: kind.clone(),
                    };
                    if both.get(&gvk).is_none() {
                        both.insert(&gvk, info.clone());
                    }
                }
            }
        }
        both
    }

    /// Returns how this exact version of a kind is served.
    #[must_use]
    pub fn get(&self, gvk: &Gvk) -> Option<&KindInfo> {
        let versions = self.groups.get(&gvk.group)?;
        versions
            .iter()
            .find(|(version, _)| *version == gvk.version)?
            .1
            .get(&gvk.kind)
    }

    /// Returns a kind in its preferred served version.
    #[must_use]
    pub fn preferred(&self, group: &str, kind: &str) -> Option<(Gvk, &KindInfo)> {
        self.groups.get(group)?.iter().find_map(|(version, kinds)| {
            let info = kinds.get(kind)?;
            Some((
                Gvk {
                    group: group.to_owned(),
                    version: version.clone(),
                    kind: kind.to_owned(),
                },
                info,
            ))
        })
    }

    /// Returns whether a group is served completely. If so, a kind that is missing in the table does not exist, and is not just unavailable
    /// because an API server behind the group does not answer.
    #[must_use]
    pub fn serves_group(&self, group: &str) -> bool {
        self.groups.contains_key(group) && !self.silent.contains(group)
    }

    /// Returns whether at least one version of a group did not say what it serves.
    #[must_use]
    pub fn is_silent(&self, group: &str) -> bool {
        self.silent.contains(group)
    }

    /// Iterates over the groups of which at least one version did not say what it serves.
    pub fn silent_groups(&self) -> impl Iterator<Item = &str> {
        self.silent.iter().map(String::as_str)
    }

    /// Records that a version of a group did not say what it serves.
    pub fn mark_silent(&mut self, group: &str) {
        self.silent.insert(group.to_owned());
    }

    /// Adds the kinds of `before` for groups that do not answer now.
    pub fn keep_silent_kinds(&mut self, before: &Self) {
        let known = before.groups.iter();
        let groups = known.filter(|(group, _)| self.silent.contains(*group));
        let before = Self {
            groups: groups
                .map(|(group, versions)| (group.clone(), versions.clone()))
                .collect(),
            silent: BTreeSet::new(),
        };
        *self = self.merged_with(&before);
    }

    /// Iterates over the groups that serve a kind with this name.
    pub fn groups_with_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        let groups = self.groups.iter();
        groups
            .filter(move |(_, versions)| versions.iter().any(|(_, kinds)| kinds.contains_key(kind)))
            .map(|(group, _)| group.as_str())
    }

    /// Iterates over the served versions of a kind, the preferred one first.
    pub fn versions<'a>(&'a self, group: &str, kind: &'a str) -> impl Iterator<Item = &'a str> {
        let versions = self.groups.get(group).into_iter().flatten();
        versions
            .filter(move |(_, kinds)| kinds.contains_key(kind))
            .map(|(version, _)| version.as_str())
    }

    /// Iterates over all kinds in their preferred served version.
    pub fn iter(&self) -> impl Iterator<Item = (Gvk, &KindInfo)> {
        self.groups.iter().flat_map(|(group, versions)| {
            let kinds: BTreeSet<&String> = versions
                .iter()
                .flat_map(|(_, kinds)| kinds.keys())
                .collect();
            kinds
                .into_iter()
                .filter_map(|kind| self.preferred(group, kind))
        })
    }

    /// Returns everything that is served, as helm's `.Capabilities.APIVersions` spells it: `apps/v1`, `apps/v1/Deployment`.
    #[must_use]
    pub fn api_versions(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (group, versions) in &self.groups {
            for (version, kinds) in versions {
                let api_version = if group.is_empty() {
                    version.clone()
                } else {
                    format!("{group}/{version}")
                };
                all.extend(kinds.keys().map(|kind| format!("{api_version}/{kind}")));
                all.push(api_version);
            }
        }
        all
    }

    /// Returns whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

/// Returns the singular name of a kind. If a definition or server gives none, it is the API server's default.
#[must_use]
pub fn singular_or_default(singular: String, kind: &str) -> String {
    if singular.is_empty() {
        kind.to_lowercase()
    } else {
        singular
    }
}
