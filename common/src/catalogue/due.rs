//! Decides whether the chosen entry is due for an installation (semantics 11, 12).

use std::fmt;

use serde::{Serialize, Serializer};

use super::CatalogueEntry;
use super::replaces::{self, ReplacementKey};
use super::select::SelectionRules;
use crate::api::installation::{AddonInstallationSpec, Installed};
use addons_versions::tolerant;

/// Whether an installation is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "due")]
pub enum DueVerdict {
    /// The installation is up to date.
    No,
    /// The entry has to be rolled out.
    Yes {
        /// The reason.
        reason: DueReason,
    },
    /// The chosen version is lower. It is installed only if the user allows a downgrade.
    Downgrade {
        /// The installed version.
        from: String,
        /// The chosen version.
        to: String,
    },
}

/// Why an installation is rolled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DueReason {
    /// Nothing is installed.
    NotInstalled,
    /// The last operation did not end.
    Interrupted,
    /// The version differs.
    Version {
        /// The installed version.
        from: Option<String>,
        /// The chosen version.
        to: Option<String>,
    },
    /// The id differs.
    Id {
        /// The installed id.
        from: Option<String>,
        /// The chosen id.
        to: Option<String>,
    },
    /// Version and id are equal, but the manifest differs.
    ManifestChanged,
    /// The merged values differ.
    ValuesChanged,
    /// The last operation failed.
    Failed,
    /// The template data differs.
    TemplateDataChanged,
    /// The images come from another private registry, or no longer from one.
    RegistryChanged,
    /// The expressions that say when objects are ready differ.
    HealthChecksChanged,
    /// The spec of the installation changed.
    InstallationChanged,
    /// The add-on is installed, but kops' record of it is missing.
    NotRecorded,
    /// The certificate authority that the entry needs is missing.
    NoAuthority,
    /// The installation was adopted from another tool, and nothing was applied since.
    Adopted,
}

impl fmt::Display for DueReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        f.write_str(match self {
            Self::NotInstalled => "not installed",
            Self::Interrupted => "the last operation was interrupted",
            Self::Version { from, to } => {
                return write!(f, "{} → {}", or_none(from), or_none(to));
            }
            Self::Id { from, to } => {
                return write!(f, "id {} → {}", or_none(from), or_none(to));
            }
            Self::ManifestChanged => "manifest changed",
            Self::ValuesChanged => "values changed",
            Self::Failed => "the last operation failed",
            Self::TemplateDataChanged => "the data of its templates changed",
            Self::RegistryChanged => "the private registry changed",
            Self::HealthChecksChanged => "the health checks changed",
            Self::InstallationChanged => "the installation was changed",
            Self::NotRecorded => "kops' record of it is missing",
            Self::NoAuthority => "its certificate authority is missing",
            Self::Adopted => "taken over and not applied yet",
        })
    }
}

/// Serializes the text that is printed.
impl Serialize for DueReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Decides whether `entry` is due for what is installed. `rules` are those of [`super::select::Selection`], never `Auto`.
/// `manifest_hash` is computed from the fetched bytes of an entry without a verifiable hash; without either, the hash is not
/// compared. `values_hash` is the digest of the merged values. `spec` is the desired one.
#[must_use]
pub fn decide_due(
    installed: &Installed,
    entry: &CatalogueEntry,
    spec: &AddonInstallationSpec,
    rules: SelectionRules,
    manifest_hash: Option<&str>,
    values_hash: &str,
) -> DueVerdict {
    let old = ReplacementKey::new(&installed.version, &installed.id, &installed.manifest_hash);
    let mut new = entry.replacement_key();
    let verifiable = entry.verifiable_hash();
    new.manifest_hash = verifiable.or(manifest_hash).or(old.manifest_hash);
    match compare(old, new, rules) {
        DueVerdict::No => decide_inputs_due(installed, entry, spec, values_hash),
        verdict => verdict,
    }
}

/// Decides by the values, the private registry and the health checks alone, for an entry that is installed.
#[must_use]
pub fn decide_inputs_due(
    installed: &Installed,
    entry: &CatalogueEntry,
    spec: &AddonInstallationSpec,
    values_hash: &str,
) -> DueVerdict {
    let reason = if installed.values_hash != values_hash {
        DueReason::ValuesChanged
    } else if installed.registry.as_deref() != entry.registry_for(spec) {
        DueReason::RegistryChanged
    } else if installed.health_check_exprs != entry.version.health_check_exprs {
        DueReason::HealthChecksChanged
    } else {
        return DueVerdict::No;
    };
    DueVerdict::Yes { reason }
}

/// Decides by version, id and hash alone. `rules` is never `Auto`.
#[must_use]
pub fn compare(
    old: ReplacementKey<'_>,
    new: ReplacementKey<'_>,
    rules: SelectionRules,
) -> DueVerdict {
    let owned = |version: Option<&str>| version.unwrap_or_default().to_owned();
    let is_due = match rules {
        SelectionRules::Channels => replaces::is_channels_replacement(old, new),
        SelectionRules::Documented | SelectionRules::Auto if is_lower(old, new) => {
            return DueVerdict::Downgrade {
                from: owned(old.version),
                to: owned(new.version),
            };
        }
        SelectionRules::Documented | SelectionRules::Auto => {
            replaces::is_documented_replacement(old, new)
        }
    };
    if is_due {
        DueVerdict::Yes {
            reason: find_difference(old, new, rules),
        }
    } else {
        DueVerdict::No
    }
}

/// Whether both versions can be read and the new one is lower.
fn is_lower(old: ReplacementKey<'_>, new: ReplacementKey<'_>) -> bool {
    let read = |recorded: ReplacementKey<'_>| tolerant::parse(recorded.version?).ok();
    match (read(old), read(new)) {
        (Some(old), Some(new)) => new.cmp_precedence(&old).is_lt(),
        _ => false,
    }
}

/// Returns the first difference that the rules consider.
fn find_difference(
    old: ReplacementKey<'_>,
    new: ReplacementKey<'_>,
    rules: SelectionRules,
) -> DueReason {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let version = |recorded: ReplacementKey<'_>| recorded.version.unwrap_or("none").to_owned();
    if rules != SelectionRules::Channels && !tolerant::is_same(&version(old), &version(new)) {
        DueReason::Version {
            from: owned(old.version),
            to: owned(new.version),
        }
    } else if old.id.unwrap_or_default() != new.id.unwrap_or_default() {
        DueReason::Id {
            from: owned(old.id),
            to: owned(new.id),
        }
    } else {
        DueReason::ManifestChanged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::catalogue::{Addon, AddonCatalogueSpec, AddonVersion, HealthCheckExpr};
    use crate::catalogue::{Catalogue, Origin};

    fn entry(version: &str, id: &str, hash: &str) -> CatalogueEntry {
        let spec = AddonCatalogueSpec {
            addons: vec![Addon {
                name: "a".to_owned(),
                versions: vec![AddonVersion {
                    version: version.to_owned(),
                    id: id.to_owned(),
                    manifest_hash: (!hash.is_empty()).then(|| hash.to_owned()),
                    ..AddonVersion::default()
                }],
                ..Addon::default()
            }],
            ..AddonCatalogueSpec::default()
        };
        let origin = Origin::Index {
            location: "index.yaml".to_owned(),
        };
        Catalogue::from_spec(&spec, origin).entries.remove(0)
    }

    fn installed(version: &str, id: &str, hash: &str) -> Installed {
        Installed {
            version: version.to_owned(),
            id: id.to_owned(),
            manifest_hash: hash.to_owned(),
            values_hash: "values".to_owned(),
            ..Installed::default()
        }
    }

    /// `h` and `i` stand for a sha256; other text is not a hash.
    fn hash(short: &str) -> String {
        match short {
            "h" => "a".repeat(64),
            "i" => "b".repeat(64),
            other => other.to_owned(),
        }
    }

    type Columns = (&'static str, &'static str, &'static str);

    #[track_caller]
    fn check(
        rules: SelectionRules,
        old: Columns,
        new: Columns,
        computed: Option<&str>,
        expect: &str,
    ) {
        let installed = installed(old.0, old.1, &hash(old.2));
        let entry = entry(new.0, new.1, &hash(new.2));
        let computed = computed.map(hash);
        let verdict = match decide_due(
            &installed,
            &entry,
            &AddonInstallationSpec::default(),
            rules,
            computed.as_deref(),
            "values",
        ) {
            DueVerdict::No => "no".to_owned(),
            DueVerdict::Yes { reason } => reason.to_string(),
            DueVerdict::Downgrade { from, to } => format!("downgrade {from} → {to}"),
        };
        assert_eq!(verdict, expect, "{old:?} -> {new:?}");
    }

    #[test]
    fn other_health_checks_are_rolled_out() {
        let installed = installed("1.0.0", "a", &hash("h"));
        let mut entry = entry("1.0.0", "a", &hash("h"));
        entry.version.health_check_exprs = vec![HealthCheckExpr {
            api_version: "x.y/v1".to_owned(),
            current: "true".to_owned(),
            ..HealthCheckExpr::default()
        }];
        let spec = AddonInstallationSpec::default();
        for (recorded, expected) in [
            (Vec::new(), Some(DueReason::HealthChecksChanged)),
            (entry.version.health_check_exprs.clone(), None),
        ] {
            let installed = Installed {
                health_check_exprs: recorded,
                ..installed.clone()
            };
            let due = decide_inputs_due(&installed, &entry, &spec, "values");
            let expected = expected.map_or(DueVerdict::No, |reason| DueVerdict::Yes { reason });
            assert_eq!(due, expected);
        }
    }

    #[test]
    fn documented_rules() {
        let check = |old, new, expect| check(SelectionRules::Documented, old, new, None, expect);
        check(("1.20.0", "", ""), ("1.21.1", "", ""), "1.20.0 → 1.21.1");
        check(("v1", "a", "h"), ("1.0.0", "a", "h"), "no");
        check(("1.0.0", "a", "h"), ("1.0.0", "b", "i"), "id a → b");
        check(("1.0.0", "", "h"), ("1.0.0", "b", "h"), "id none → b");
        check(("1.0.0", "a", "h"), ("1.0.0", "a", "i"), "manifest changed");
        check(
            ("1.0.1", "a", "h"),
            ("1.0.0", "b", "i"),
            "downgrade 1.0.1 → 1.0.0",
        );
        check(
            ("1.0.0", "", ""),
            ("1.0.0-rc.1", "", ""),
            "downgrade 1.0.0 → 1.0.0-rc.1",
        );
        check(("", "a", "h"), ("1.0.0", "a", "h"), "none → 1.0.0");
        check(("", "a", "h"), ("", "b", "i"), "no");
        check(("1.0.0", "a", "h"), ("", "b", "i"), "no");
        check(("junk", "", ""), ("0.1.0", "", ""), "junk → 0.1.0");
    }

    #[test]
    fn channels_rules() {
        let check = |old, new, expect| check(SelectionRules::Channels, old, new, None, expect);
        check(("9.99.0", "a", "h"), ("", "a", "h"), "no");
        check(("9.99.0", "a", "h"), ("1.0.0", "a", "h"), "no");
        check(("", "a", "h"), ("", "b", "h"), "id a → b");
        check(("9.99.0", "a", "h"), ("", "a", "i"), "manifest changed");
    }

    /// Semantics 11: for an entry without a hash, the hash of its bytes counts.
    #[test]
    fn a_computed_hash_counts_where_the_entry_has_none() {
        let old = ("1.0.0", "a", "h");
        check(
            SelectionRules::Documented,
            old,
            ("1.0.0", "a", ""),
            None,
            "no",
        );
        check(
            SelectionRules::Documented,
            old,
            ("1.0.0", "a", ""),
            Some("h"),
            "no",
        );
        check(
            SelectionRules::Documented,
            old,
            ("1.0.0", "a", ""),
            Some("i"),
            "manifest changed",
        );
        check(
            SelectionRules::Documented,
            old,
            ("1.0.0", "a", "h"),
            Some("i"),
            "no",
        );
    }

    /// Semantics 11: a text that is not a hash says nothing of the content, nor does an md5.
    #[test]
    fn a_hash_that_cannot_be_verified_does_not_count() {
        let md5 = "098f6bcd4621d373cade4e832627b4f6";
        let old = ("1.0.0", "a", "h");
        for text in ["latest", md5] {
            for rules in [SelectionRules::Documented, SelectionRules::Channels] {
                let new = ("1.0.0", "a", text);
                check(rules, old, new, None, "no");
                check(rules, old, new, Some("h"), "no");
                check(rules, old, new, Some("i"), "manifest changed");
            }
        }
    }

    #[test]
    fn other_values_are_due() {
        let verdict = decide_due(
            &installed("1.0.0", "", "h"),
            &entry("1.0.0", "", ""),
            &AddonInstallationSpec::default(),
            SelectionRules::Documented,
            None,
            "other",
        );
        let reason = DueReason::ValuesChanged;
        assert_eq!(verdict, DueVerdict::Yes { reason });
    }
}
