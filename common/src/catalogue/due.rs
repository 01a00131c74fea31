//! Whether an installed add-on is due for the chosen entry (semantics 11, 12).

use serde::Serialize;

use super::Entry;
use super::replaces::{self, Recorded};
use super::select::Rules;
use crate::api::installation::Installed;
use addons_versions::tolerant;

/// The verdict, with its reason for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "due")]
pub enum Due {
    /// Nothing to do.
    No,
    /// To be rolled out: `1.20.0 → 1.21.1`, `id a → b`, `manifest changed`, `values changed`.
    Yes {
        /// Why.
        reason: String,
    },
    /// A lower version: needs `--allow-downgrade`.
    Downgrade {
        /// Installed.
        from: String,
        /// Chosen.
        to: String,
    },
}

/// Judges `entry` against what is installed. `rules` is what [`super::select::Selection`] says (never `Auto`);
/// `manifest_hash` is the entry's, or what was computed of its bytes where it has none and they are at hand (without
/// either, the hash is not compared); `values_hash` is the digest of the merged values.
#[must_use]
pub fn due(
    installed: &Installed,
    entry: &Entry,
    rules: Rules,
    manifest_hash: Option<&str>,
    values_hash: &str,
) -> Due {
    let old = Recorded::of(&installed.version, &installed.id, &installed.manifest_hash);
    let mut new = entry.recorded();
    new.manifest_hash = new.manifest_hash.or(manifest_hash).or(old.manifest_hash);
    let is_due = match rules {
        Rules::Channels => replaces::channels(old, new),
        Rules::Documented | Rules::Auto => {
            if is_lower(old, new) {
                return Due::Downgrade {
                    from: installed.version.clone(),
                    to: entry.version.version.clone(),
                };
            }
            replaces::documented(old, new)
        }
    };
    if is_due {
        return Due::Yes {
            reason: difference(old, new, rules),
        };
    }
    if installed.values_hash != values_hash {
        return Due::Yes {
            reason: "values changed".to_owned(),
        };
    }
    Due::No
}

/// Whether both versions can be read and the new one is lower, whatever the id (product.md 3).
fn is_lower(old: Recorded<'_>, new: Recorded<'_>) -> bool {
    let read = |recorded: Recorded<'_>| tolerant::parse(recorded.version?).ok();
    match (read(old), read(new)) {
        (Some(old), Some(new)) => new.cmp_precedence(&old).is_lt(),
        _ => false,
    }
}

/// The first difference that the rules look at, in the words of [`Due::Yes`].
fn difference(old: Recorded<'_>, new: Recorded<'_>, rules: Rules) -> String {
    let say = |text: Option<&str>| text.unwrap_or("none").to_owned();
    let (from, to) = (say(old.version), say(new.version));
    if rules != Rules::Channels && !tolerant::same(&from, &to) {
        format!("{from} → {to}")
    } else if old.id.unwrap_or_default() != new.id.unwrap_or_default() {
        format!("id {} → {}", say(old.id), say(new.id))
    } else {
        "manifest changed".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::catalogue::{Addon, AddonCatalogueSpec, AddonVersion};
    use crate::catalogue::{Catalogue, Origin};

    fn entry(version: &str, id: &str, hash: &str) -> Entry {
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
        Catalogue::of_spec(&spec, origin).entries.remove(0)
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

    type Columns = (&'static str, &'static str, &'static str);

    #[track_caller]
    fn check(rules: Rules, old: Columns, new: Columns, computed: Option<&str>, expect: &str) {
        let installed = installed(old.0, old.1, old.2);
        let entry = entry(new.0, new.1, new.2);
        let verdict = match due(&installed, &entry, rules, computed, "values") {
            Due::No => "no".to_owned(),
            Due::Yes { reason } => reason,
            Due::Downgrade { from, to } => format!("downgrade {from} → {to}"),
        };
        assert_eq!(verdict, expect, "{old:?} -> {new:?}");
    }

    #[test]
    fn documented_rules() {
        let check = |old, new, expect| check(Rules::Documented, old, new, None, expect);
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
        let check = |old, new, expect| check(Rules::Channels, old, new, None, expect);
        check(("9.99.0", "a", "h"), ("", "a", "h"), "no");
        check(("9.99.0", "a", "h"), ("1.0.0", "a", "h"), "no");
        check(("", "a", "h"), ("", "b", "h"), "id a → b");
        check(("9.99.0", "a", "h"), ("", "a", "i"), "manifest changed");
    }

    /// Semantics 11: an entry without a hash has that of its bytes.
    #[test]
    fn a_computed_hash_counts_where_the_entry_has_none() {
        let old = ("1.0.0", "a", "h");
        check(Rules::Documented, old, ("1.0.0", "a", ""), None, "no");
        check(Rules::Documented, old, ("1.0.0", "a", ""), Some("h"), "no");
        check(
            Rules::Documented,
            old,
            ("1.0.0", "a", ""),
            Some("i"),
            "manifest changed",
        );
        check(Rules::Documented, old, ("1.0.0", "a", "h"), Some("i"), "no");
    }

    #[test]
    fn other_values_are_due() {
        let verdict = due(
            &installed("1.0.0", "", "h"),
            &entry("1.0.0", "", "h"),
            Rules::Documented,
            None,
            "other",
        );
        let reason = "values changed".to_owned();
        assert_eq!(verdict, Due::Yes { reason });
    }
}
