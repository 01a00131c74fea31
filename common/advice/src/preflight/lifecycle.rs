//! Which release of Kubernetes serves which of its APIs, from Kubernetes' own sources (`lifecycle.tsv`, generated with `cargo run -p
//! addons-tests --bin generate lifecycle`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use semver::Version;
use serde::{Serialize, Serializer};

use common::manifest::key::Gvk;

/// The generated table.
const TABLE: &str = include_str!("lifecycle.tsv");
/// APIs that Kubernetes deprecates without a tag in the sources of the table; a server warns about them anyway
/// (`pkg/registry/core/endpoint/strategy.go` of Kubernetes). Columns: group, version, kind, since, replacement.
const ANNOUNCED: &[[&str; 5]] = &[[
    "",
    "v1",
    "Endpoints",
    "1.33",
    "discovery.k8s.io/v1/EndpointSlice",
]];
/// An empty column in the table.
const EMPTY_COLUMN: &str = "-";

/// A minor release of Kubernetes, `1.36`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesRelease {
    /// The major version, `1`.
    pub major: u64,
    /// The minor version, `36`.
    pub minor: u64,
}

impl From<&Version> for KubernetesRelease {
    fn from(version: &Version) -> Self {
        Self {
            major: version.major,
            minor: version.minor,
        }
    }
}

impl fmt::Display for KubernetesRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Serialize for KubernetesRelease {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for KubernetesRelease {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once('.').ok_or(())?;
        let number = |text: &str| text.parse().map_err(|_| ());
        Ok(Self {
            major: number(major)?,
            minor: number(minor)?,
        })
    }
}

/// The state of an API in a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum ApiFate {
    /// It is served.
    Served,
    /// It is served, but deprecated.
    #[serde(rename_all = "camelCase")]
    Deprecated {
        /// The release that deprecated it.
        since: KubernetesRelease,
        /// The release that removes it, if one is planned.
        removed: Option<KubernetesRelease>,
        /// The API that replaces it.
        replacement: Option<Gvk>,
    },
    /// It is not served any more.
    #[serde(rename_all = "camelCase")]
    Removed {
        /// The release that removed it.
        removed: KubernetesRelease,
        /// The API that replaces it.
        replacement: Option<Gvk>,
    },
    /// It is not served yet.
    #[serde(rename_all = "camelCase")]
    NotYet {
        /// The release that introduces it.
        introduced: KubernetesRelease,
    },
    /// The release is newer than the table, or the table does not contain the API.
    Unknown,
}

/// A row of the table.
#[derive(Clone, Debug)]
struct LifecycleRow {
    introduced: Option<KubernetesRelease>,
    deprecated: Option<KubernetesRelease>,
    removed: Option<KubernetesRelease>,
    replacement: Option<Gvk>,
}

/// The table of APIs.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    newest: KubernetesRelease,
    groups: BTreeSet<String>,
    rows: BTreeMap<Gvk, LifecycleRow>,
}

impl Default for Lifecycle {
    /// Parses the embedded table.
    fn default() -> Self {
        let mut table = Self {
            newest: KubernetesRelease { major: 0, minor: 0 },
            groups: BTreeSet::new(),
            rows: BTreeMap::new(),
        };
        for line in TABLE.lines() {
            table.parse_line(line);
        }
        table.add_announced();
        table
    }
}

impl Lifecycle {
    /// Returns the newest release in the table.
    #[must_use]
    pub fn newest(&self) -> KubernetesRelease {
        self.newest
    }

    /// Returns the state of an API in a release; `None` if the API belongs to a CRD or an aggregated server, which an upgrade of Kubernetes
    /// does not change.
    #[must_use]
    pub fn fate(&self, api: &Gvk, release: KubernetesRelease) -> Option<ApiFate> {
        let Some(row) = self.rows.get(api) else {
            return self.groups.contains(&api.group).then_some(ApiFate::Unknown);
        };
        let replacement = row.replacement.clone();
        Some(match row {
            LifecycleRow {
                removed: Some(removed),
                ..
            } if *removed <= release => ApiFate::Removed {
                removed: *removed,
                replacement,
            },
            // It is not known what a later release deprecates or removes.
            _ if release > self.newest => ApiFate::Unknown,
            LifecycleRow {
                introduced: Some(introduced),
                ..
            } if *introduced > release => ApiFate::NotYet {
                introduced: *introduced,
            },
            LifecycleRow {
                deprecated: Some(since),
                removed,
                ..
            } if *since <= release => ApiFate::Deprecated {
                since: *since,
                removed: *removed,
                replacement,
            },
            _ => ApiFate::Served,
        })
    }

    /// Returns the state of a group version: served if any of its kinds is. `None` as for [`Lifecycle::fate`].
    #[must_use]
    pub fn group_version_fate(
        &self,
        group: &str,
        version: &str,
        release: KubernetesRelease,
    ) -> Option<ApiFate> {
        if !self.groups.contains(group) {
            return None;
        }
        let apis = self.rows.keys();
        let apis = apis.filter(|api| api.group == group && api.version == version);
        let fates: Vec<ApiFate> = apis.filter_map(|api| self.fate(api, release)).collect();
        let is_served =
            |fate: &ApiFate| matches!(fate, ApiFate::Served | ApiFate::Deprecated { .. });
        if fates.iter().any(is_served) {
            return Some(ApiFate::Served);
        }
        Some(fates.into_iter().next().unwrap_or(ApiFate::Unknown))
    }

    /// Returns whether any version of this kind was ever deprecated. Writers of other kinds never have to change.
    #[must_use]
    pub fn has_changed(&self, group: &str, kind: &str) -> bool {
        let of_kind = self.rows.iter();
        let mut of_kind = of_kind.filter(|(api, _)| api.group == group && api.kind == kind);
        of_kind.any(|(_, row)| row.deprecated.is_some() || row.removed.is_some())
    }

    /// Adds [`ANNOUNCED`] to rows without a deprecation.
    fn add_announced(&mut self) {
        for [group, version, kind, since, replacement] in ANNOUNCED {
            let api = Gvk {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
                kind: (*kind).to_owned(),
            };
            if let Some(row) = self.rows.get_mut(&api)
                && row.deprecated.is_none()
            {
                row.deprecated = since.parse().ok();
                row.replacement = parse_gvk(replacement);
            }
        }
    }

    fn parse_line(&mut self, line: &str) {
        let columns: Vec<&str> = line.split('\t').collect();
        if let ["# known", newest] = columns.as_slice() {
            self.newest = newest.parse().unwrap_or(self.newest);
        }
        let [
            group,
            version,
            kind,
            introduced,
            deprecated,
            removed,
            replacement,
        ] = columns.as_slice()
        else {
            return;
        };
        if group.starts_with('#') {
            return;
        }
        let group = if *group == EMPTY_COLUMN { "" } else { group };
        self.groups.insert(group.to_owned());
        let api = Gvk {
            group: group.to_owned(),
            version: (*version).to_owned(),
            kind: (*kind).to_owned(),
        };
        let row = LifecycleRow {
            introduced: introduced.parse().ok(),
            deprecated: deprecated.parse().ok(),
            removed: removed.parse().ok(),
            replacement: parse_gvk(replacement),
        };
        self.rows.insert(api, row);
    }
}

/// Parses `policy/v1/PodDisruptionBudget`.
fn parse_gvk(text: &str) -> Option<Gvk> {
    let (api_version, kind) = text.rsplit_once('/')?;
    Some(Gvk::new(api_version.trim_start_matches('/'), kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(api_version: &str, kind: &str, release: &str) -> Option<ApiFate> {
        let release = release.parse().unwrap();
        Lifecycle::default().fate(&Gvk::new(api_version, kind), release)
    }

    #[test]
    fn every_row_of_the_table_is_read() {
        let table = Lifecycle::default();
        let written = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        assert!(written > 150, "{written}");
        assert_eq!(table.rows.len(), written);
        let of_nothing = table.rows.values().filter(|row| row.introduced.is_none());
        assert_eq!(of_nothing.count(), 0, "each has its first release");
        assert!(table.newest() > "1.30".parse().unwrap());
    }

    /// As https://kubernetes.io/docs/reference/using-api/deprecation-guide/ lists them.
    #[test]
    fn the_table_says_what_the_deprecation_guide_says() {
        for (api, kind, removed, replacement) in [
            ("policy/v1beta1", "PodDisruptionBudget", "1.25", "policy/v1"),
            ("batch/v1beta1", "CronJob", "1.25", "batch/v1"),
            (
                "autoscaling/v2beta2",
                "HorizontalPodAutoscaler",
                "1.26",
                "autoscaling/v2",
            ),
            (
                "extensions/v1beta1",
                "Ingress",
                "1.22",
                "networking.k8s.io/v1",
            ),
            (
                "apiextensions.k8s.io/v1beta1",
                "CustomResourceDefinition",
                "1.22",
                "apiextensions.k8s.io/v1",
            ),
            (
                "flowcontrol.apiserver.k8s.io/v1beta3",
                "FlowSchema",
                "1.32",
                "flowcontrol.apiserver.k8s.io/v1",
            ),
        ] {
            let gone = ApiFate::Removed {
                removed: removed.parse().unwrap(),
                replacement: Some(Gvk::new(replacement, kind)),
            };
            assert_eq!(fate(api, kind, "1.36"), Some(gone.clone()), "{api} {kind}");
            assert_eq!(fate(api, kind, "9.99"), Some(gone), "it stays removed");
        }
        let before = fate("policy/v1beta1", "PodDisruptionBudget", "1.24");
        let is_deprecated = matches!(
            &before,
            Some(ApiFate::Deprecated { removed: Some(removed), .. }) if removed.minor == 25
        );
        assert!(is_deprecated, "{before:?}");
        assert_eq!(fate("apps/v1", "Deployment", "1.36"), Some(ApiFate::Served));
        let early = fate("autoscaling/v2", "HorizontalPodAutoscaler", "1.22");
        assert!(matches!(early, Some(ApiFate::NotYet { .. })), "{early:?}");
    }

    #[test]
    fn what_is_announced_alone_is_deprecated_too() {
        let since = |release: &str| ApiFate::Deprecated {
            since: release.parse().unwrap(),
            removed: None,
            replacement: Some(Gvk::new("discovery.k8s.io/v1", "EndpointSlice")),
        };
        assert_eq!(fate("v1", "Endpoints", "1.32"), Some(ApiFate::Served));
        assert_eq!(fate("v1", "Endpoints", "1.36"), Some(since("1.33")));
    }

    #[test]
    fn what_is_not_known_is_never_served() {
        assert_eq!(
            fate("apps/v1", "Deployment", "1.99"),
            Some(ApiFate::Unknown)
        );
        assert_eq!(
            fate("apps/v7", "Deployment", "1.30"),
            Some(ApiFate::Unknown)
        );
        assert_eq!(fate("cert-manager.io/v1", "Issuer", "1.99"), None);
    }
}
