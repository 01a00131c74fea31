//! Whether an installed add-on is due for the chosen entry (semantics 11, 12).

use serde::Serialize;

use super::Entry;
use super::select::Rules;
use crate::api::installation::Installed;

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
pub fn due(
    installed: &Installed,
    entry: &Entry,
    rules: Rules,
    manifest_hash: Option<&str>,
    values_hash: &str,
) -> Due {
    let _ = (installed, entry, rules, manifest_hash, values_hash);
    todo!()
}
