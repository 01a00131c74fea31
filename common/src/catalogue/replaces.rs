//! Decides whether an entry replaces another entry, or an installed one: both rule sets of kops.

use std::cmp::Ordering;

use addons_versions::tolerant;

/// The fields that the replacement rules compare, of an entry or of the record of an installed one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplacementKey<'a> {
    /// The version as written. An empty one is unreadable, not absent (`tests/golden/replaces.tsv`).
    pub version: Option<&'a str>,
    /// The kops id. Absent and empty are equal.
    pub id: Option<&'a str>,
    /// The hash as written, compared as text. Absent and empty are equal.
    pub manifest_hash: Option<&'a str>,
    /// kops' `systemGeneration`: 1, or 0 in records from before it pruned.
    pub generation: u32,
}

impl<'a> ReplacementKey<'a> {
    /// Creates the fields of one of our own objects, where an empty text means absent. The generation is the one that kops has
    /// written since it prunes.
    #[must_use]
    pub fn new(version: &'a str, id: &'a str, manifest_hash: &'a str) -> Self {
        let some = |text: &'a str| (!text.is_empty()).then_some(text);
        Self {
            version: some(version),
            id: some(id),
            manifest_hash: some(manifest_hash),
            generation: 1,
        }
    }
}

/// Whether `new` replaces `old` under the documented rules, those of kops 1.15 to 1.21. The version decides, and never goes down; if
/// the versions are equal, another id or hash replaces. An unreadable version replaces only an entry without a version, and is
/// replaced by any readable one.
#[must_use]
pub fn is_documented_replacement(old: ReplacementKey<'_>, new: ReplacementKey<'_>) -> bool {
    let (Some(old_version), Some(new_version)) = (old.version, new.version) else {
        return old.version.is_none() && new.version.is_some();
    };
    let Ok(new_version) = tolerant::parse(new_version) else {
        return false;
    };
    let Ok(old_version) = tolerant::parse(old_version) else {
        return true;
    };
    match new_version.cmp_precedence(&old_version) {
        Ordering::Less => false,
        Ordering::Equal => has_other_id_or_hash(old, new),
        Ordering::Greater => true,
    }
}

/// Whether `new` replaces `old` under the rules of kops 1.22 and later: another id or hash, else a higher generation. The version is
/// not read.
#[must_use]
pub fn is_channels_replacement(old: ReplacementKey<'_>, new: ReplacementKey<'_>) -> bool {
    has_other_id_or_hash(old, new) || new.generation > old.generation
}

fn has_other_id_or_hash(old: ReplacementKey<'_>, new: ReplacementKey<'_>) -> bool {
    old.id.unwrap_or_default() != new.id.unwrap_or_default()
        || old.manifest_hash.unwrap_or_default() != new.manifest_hash.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version, id and hash; an empty one is absent.
    type Columns = (&'static str, &'static str, &'static str);

    fn recorded((version, id, hash): Columns, generation: u32) -> ReplacementKey<'static> {
        ReplacementKey {
            generation,
            ..ReplacementKey::new(version, id, hash)
        }
    }

    #[test]
    fn table_t2() {
        let rows: [(Columns, Columns, bool); 20] = [
            (("1.0.0", "", ""), ("1.0.0", "", ""), false),
            (("1.0.0", "", ""), ("1.0.1", "", ""), true),
            (("1.0.1", "", ""), ("1.0.0", "", ""), false),
            (("1.1.0", "", ""), ("1.1.1", "", ""), true),
            (("1.1.1", "", ""), ("1.1.0", "", ""), false),
            (("1.0.0", "a", ""), ("1.0.0", "a", "h1"), true),
            (("1.0.0", "a", ""), ("1.0.0", "a", ""), false),
            (("1.0.0", "a", ""), ("1.0.0", "b", ""), true),
            (("1.0.0", "b", ""), ("1.0.0", "a", ""), true),
            (("1.0.0", "a", ""), ("1.0.1", "a", ""), true),
            (("1.0.0", "a", "h1"), ("1.0.0", "a", "h1"), false),
            (("1.0.0", "a", "h1"), ("1.0.0", "a", "h2"), true),
            (("1.0.1", "a", ""), ("1.0.0", "b", ""), false),
            (("1.0.1", "a", "h1"), ("1.0.0", "a", "h2"), false),
            (("", "", ""), ("1.0.0", "", ""), true),
            (("1.0.0", "", ""), ("", "", ""), false),
            (("", "", "h1"), ("", "", "h2"), false),
            (("v1.0.0", "", ""), ("1.0.0", "", ""), false),
            (("1.0.0+a", "", ""), ("1.0.0+b", "", ""), false),
            (("junk", "", ""), ("1.0.0", "", ""), true),
        ];
        for (old, new, expect) in rows {
            let verdict = is_documented_replacement(recorded(old, 0), recorded(new, 0));
            assert_eq!(verdict, expect, "{old:?} -> {new:?}");
        }
    }

    #[test]
    fn table_t3() {
        let rows = [
            ("h1", 0, "h1", 0, false),
            ("", 0, "h1", 0, true),
            ("h1", 0, "h2", 0, true),
            ("h1", 0, "h1", 1, true),
            ("h1", 1, "h1", 0, false),
            ("h1", 1, "h1", 1, false),
        ];
        for (old, old_generation, new, new_generation, expect) in rows {
            let old = recorded(("9.99.0", "a", old), old_generation);
            let new = recorded(("1.0.0", "a", new), new_generation);
            assert_eq!(
                is_channels_replacement(old, new),
                expect,
                "{old:?} -> {new:?}"
            );
        }
    }
}
