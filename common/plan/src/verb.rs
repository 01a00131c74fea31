//! The verb of an operation.

use serde::{Deserialize, Serialize};

/// The verb of an operation, as messages and records name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Installs an add-on for the first time.
    Install,
    /// Applies another version or other values, or reverts edits.
    Upgrade,
    /// Goes back to an earlier revision.
    Rollback,
    /// Takes over existing objects without changing anything else.
    Adopt,
    /// Deletes everything.
    #[default]
    Uninstall,
    /// Ends the installation but keeps all objects.
    Release,
}

impl Verb {
    const ALL: [Self; 6] = [
        Self::Install,
        Self::Upgrade,
        Self::Rollback,
        Self::Adopt,
        Self::Uninstall,
        Self::Release,
    ];

    /// Whether the record is deleted when the operation succeeds.
    #[must_use]
    pub fn ends_installation(self) -> bool {
        matches!(self, Self::Uninstall | Self::Release)
    }

    /// Returns the verb as records spell it.
    #[must_use]
    pub const fn as_recorded(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::Rollback => "rollback",
            Self::Adopt => "adopt",
            Self::Uninstall => "uninstall",
            Self::Release => "release",
        }
    }

    /// Parses the verb of a record. Returns `None` for an operation without a plan, such as a move.
    #[must_use]
    pub fn from_record(text: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|verb| verb.as_recorded() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::Verb;

    #[test]
    fn a_record_spells_a_verb_as_plan_files_do() {
        for verb in Verb::ALL {
            assert_eq!(serde_json::json!(verb), verb.as_recorded());
            assert_eq!(Verb::from_record(verb.as_recorded()), Some(verb));
        }
        assert_eq!(Verb::from_record("unheard-of"), None);
    }
}
