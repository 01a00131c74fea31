//! Whether an installed add-on is due for the chosen entry (semantics 11, 12).

use std::cmp::Ordering;

use serde::Serialize;

use super::Entry;
use super::replaces::{Recorded, channels, documented};
use super::select::Rules;
use crate::api::installation::Installed;
use crate::version::tolerant;

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
/// `manifest_hash` is the entry's, or what was computed of its bytes where it has none and they are at hand;
/// `values_hash` is the digest of the merged values.
#[must_use]
pub fn due(installed: &Installed, entry: &Entry, rules: Rules, manifest_hash: Option<&str>, values_hash: &str) -> Due {
    // What nobody knows does not differ: an entry without a hash is judged by it only after it was fetched.
    let hash = entry.version.manifest_hash.as_deref().or(manifest_hash).unwrap_or(&installed.manifest_hash);
    let some = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
    let (old_version, new_version) = (some(&installed.version), some(&entry.version.version));
    let old = Recorded {
        version: old_version.as_deref(),
        id: Some(&installed.id),
        manifest_hash: Some(&installed.manifest_hash),
        generation: 0,
    };
    let new = Recorded {
        version: new_version.as_deref(),
        id: Some(&entry.version.id),
        manifest_hash: Some(hash),
        generation: 0,
    };
    if rules != Rules::Channels && is_lower(&installed.version, &entry.version.version) {
        return Due::Downgrade { from: installed.version.clone(), to: entry.version.version.clone() };
    }
    let replaces = if rules == Rules::Channels { channels(old, new) } else { documented(old, new) };
    if replaces {
        return Due::Yes { reason: reason(&old, &new) };
    }
    if installed.values_hash != values_hash {
        return Due::Yes { reason: "values changed".to_owned() };
    }
    Due::No
}

fn is_lower(old: &str, new: &str) -> bool {
    match (tolerant::parse(old), tolerant::parse(new)) {
        (Ok(old), Ok(new)) => new.cmp_precedence(&old) == Ordering::Less,
        _ => false,
    }
}

fn reason(old: &Recorded<'_>, new: &Recorded<'_>) -> String {
    let differ = |a: Option<&str>, b: Option<&str>| a.unwrap_or_default() != b.unwrap_or_default();
    if differ(old.version, new.version) {
        return format!("{} → {}", old.version.unwrap_or("no version"), new.version.unwrap_or("no version"));
    }
    if differ(old.id, new.id) {
        return format!("id {} → {}", old.id.unwrap_or_default(), new.id.unwrap_or_default());
    }
    "manifest changed".to_owned()
}
