//! What an operation is called.

use serde::{Deserialize, Serialize};

/// What an operation is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Nothing was installed before.
    Install,
    /// Another version, other values, or edits taken back.
    Upgrade,
    /// An earlier revision.
    Rollback,
    /// What exists becomes ours, and nothing else of it changes.
    Adopt,
    /// Everything goes.
    Uninstall,
    /// Everything stays, and is ours no longer.
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

    /// Whether the installation is not recorded any more when it ended well.
    #[must_use]
    pub fn ends(self) -> bool {
        matches!(self, Self::Uninstall | Self::Release)
    }

    /// As records spell it.
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

    /// That of a record; `None` for what is not planned, such as a move.
    #[must_use]
    pub fn of_record(text: &str) -> Option<Self> {
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
            assert_eq!(Verb::of_record(verb.as_recorded()), Some(verb));
        }
        assert_eq!(Verb::of_record("unheard-of"), None);
    }
}
