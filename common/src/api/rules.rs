//! The rules that chose an entry, as a record stores them (semantics 11.1).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// The rules that chose an installed entry, spelt in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleSet {
    /// The highest semver, then id, then hash; never a downgrade.
    Documented,
    /// Rules of kops 1.22 and later: id, hash, generation. The version is not read.
    Channels,
}

impl fmt::Display for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Documented => "documented",
            Self::Channels => "channels",
        })
    }
}

/// Reads the rules of a record. An unknown text becomes `None`, so that a record of a newer client can be read.
///
/// # Errors
/// The value is neither a string nor null.
pub(super) fn lenient<'de, D: Deserializer<'de>>(input: D) -> Result<Option<RuleSet>, D::Error> {
    let text = Option::<String>::deserialize(input)?;
    Ok(match text.as_deref() {
        Some("documented") => Some(RuleSet::Documented),
        Some("channels") => Some(RuleSet::Channels),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::installation::Installed;

    #[test]
    fn the_record_spells_rules_as_before() {
        for (rules, text) in [
            (RuleSet::Documented, "documented"),
            (RuleSet::Channels, "channels"),
        ] {
            let read: Installed = serde_json::from_value(json!({"rules": text})).unwrap();
            assert_eq!(read.rules, Some(rules));
            assert_eq!(serde_json::to_value(&read).unwrap(), json!({"rules": text}));
            assert_eq!(rules.to_string(), text);
        }
    }

    #[test]
    fn a_record_with_unknown_rules_can_be_read() {
        for record in [json!({}), json!({"rules": ""}), json!({"rules": "lunar"})] {
            let read: Installed = serde_json::from_value(record).unwrap();
            assert_eq!(read.rules, None);
        }
    }
}
