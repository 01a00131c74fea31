//! The prune allow-list of the addon-manager: kinds as `GROUP/VERSION/KIND`, with `core` for the core group.

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::manifest::key::ObjectKey;

/// The default list of the addon-manager.
const DEFAULT: [&str; 16] = [
    "core/v1/ConfigMap",
    "core/v1/Endpoints",
    "core/v1/Namespace",
    "core/v1/PersistentVolumeClaim",
    "core/v1/PersistentVolume",
    "core/v1/Pod",
    "core/v1/ReplicationController",
    "core/v1/Secret",
    "core/v1/Service",
    "batch/v1/Job",
    "batch/v1/CronJob",
    "apps/v1/DaemonSet",
    "apps/v1/Deployment",
    "apps/v1/ReplicaSet",
    "apps/v1/StatefulSet",
    "networking.k8s.io/v1/Ingress",
];

/// Group and kind of one line of the list. The version is not compared, because an object is the same in all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AllowedKind {
    group: String,
    kind: String,
}

/// The text is not `GROUP/VERSION/KIND`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a kind of a prune allow-list; write it as apps/v1/Deployment or core/v1/Secret"
)]
pub struct NotAKind(String);

impl FromStr for AllowedKind {
    type Err = NotAKind;

    fn from_str(text: &str) -> Result<Self, NotAKind> {
        let parts: Vec<&str> = text.split('/').collect();
        let [group, version, kind] = parts.as_slice() else {
            return Err(NotAKind(text.to_owned()));
        };
        if group.is_empty() || version.is_empty() || kind.is_empty() {
            return Err(NotAKind(text.to_owned()));
        }
        let group = if *group == "core" { "" } else { *group };
        Ok(Self {
            group: group.to_owned(),
            kind: (*kind).to_owned(),
        })
    }
}

/// The kinds that may be pruned. Without a list, every kind may be pruned, within the limits of semantics 7.3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(Option<BTreeSet<AllowedKind>>);

impl AllowList {
    /// Creates the list as the addon-manager does: `replaced` takes the place of its default list, and `extra` is added to either. If
    /// neither is given, every kind may be pruned.
    #[must_use]
    pub fn new(replaced: &[AllowedKind], extra: &[AllowedKind]) -> Self {
        if replaced.is_empty() && extra.is_empty() {
            return Self(None);
        }
        let mut kinds: BTreeSet<AllowedKind> = replaced.iter().cloned().collect();
        if replaced.is_empty() {
            kinds.extend(DEFAULT.iter().filter_map(|kind| kind.parse().ok()));
        }
        kinds.extend(extra.iter().cloned());
        Self(Some(kinds))
    }

    /// Whether objects of this kind may be pruned.
    #[must_use]
    pub fn allows(&self, key: &ObjectKey) -> bool {
        let Some(kinds) = &self.0 else {
            return true;
        };
        kinds.contains(&AllowedKind {
            group: key.group.clone(),
            kind: key.kind.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(group: &str, kind: &str) -> ObjectKey {
        ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..ObjectKey::default()
        }
    }

    fn kinds(text: &str) -> Vec<AllowedKind> {
        text.split_whitespace()
            .map(|kind| kind.parse().unwrap())
            .collect()
    }

    #[test]
    fn lists() {
        let rbac = "rbac.authorization.k8s.io";
        // (override, extra, ConfigMap, Ingress, ClusterRole)
        for (replaced, extra, config_map, ingress, role) in [
            ("", "", true, true, true),
            (
                "",
                "rbac.authorization.k8s.io/v1/ClusterRole",
                true,
                true,
                true,
            ),
            ("", "policy/v1/PodDisruptionBudget", true, true, false),
            ("core/v1/ConfigMap", "", true, false, false),
            (
                "core/v1/ConfigMap",
                "rbac.authorization.k8s.io/v1beta1/ClusterRole",
                true,
                false,
                true,
            ),
        ] {
            let list = AllowList::new(&kinds(replaced), &kinds(extra));
            let found = [
                key("", "ConfigMap"),
                key("networking.k8s.io", "Ingress"),
                key(rbac, "ClusterRole"),
            ]
            .map(|key| list.allows(&key));
            assert_eq!(found, [config_map, ingress, role], "{replaced:?} {extra:?}");
        }
        for text in [
            "ConfigMap",
            "v1/ConfigMap",
            "/v1/ConfigMap",
            "core/v1/",
            "a/b/c/d",
        ] {
            assert!(text.parse::<AllowedKind>().is_err(), "{text}");
        }
    }
}
