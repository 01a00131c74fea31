//! The verbs of operations.

use std::fmt;

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
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_recorded())
    }
}

/// The verb of a stored operation. A verb of another release is kept as it was read, so that it is written back unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum RecordedVerb {
    /// A verb that this release knows.
    Known(Verb),
    /// A verb of another release.
    Other(String),
}

impl RecordedVerb {
    /// Returns the verb if this release knows it.
    #[must_use]
    pub const fn known(&self) -> Option<Verb> {
        match self {
            Self::Known(verb) => Some(*verb),
            Self::Other(_) => None,
        }
    }
}

impl Default for RecordedVerb {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl PartialEq<Verb> for RecordedVerb {
    fn eq(&self, verb: &Verb) -> bool {
        self.known() == Some(*verb)
    }
}

impl From<Verb> for RecordedVerb {
    fn from(verb: Verb) -> Self {
        Self::Known(verb)
    }
}

impl From<String> for RecordedVerb {
    fn from(text: String) -> Self {
        let mut all = Verb::ALL.into_iter();
        match all.find(|verb| verb.as_recorded() == text) {
            Some(verb) => Self::Known(verb),
            None => Self::Other(text),
        }
    }
}

impl From<&str> for RecordedVerb {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<RecordedVerb> for String {
    fn from(verb: RecordedVerb) -> Self {
        match verb {
            RecordedVerb::Known(verb) => verb.as_recorded().to_owned(),
            RecordedVerb::Other(text) => text,
        }
    }
}

impl fmt::Display for RecordedVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(verb) => verb.fmt(f),
            Self::Other(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_spells_a_verb_as_plan_files_do() {
        for verb in Verb::ALL {
            assert_eq!(json!(verb), verb.as_recorded());
            assert_eq!(RecordedVerb::from(verb.as_recorded()).known(), Some(verb));
        }
    }

    #[test]
    fn every_verb_of_a_record_is_written_back() {
        for text in ["upgrade", "move", "Upgrade", ""] {
            let read: RecordedVerb = serde_json::from_value(json!(text)).unwrap();
            assert_eq!(read.known().is_some(), text == "upgrade", "{text}");
            assert_eq!(json!(read), text);
            assert_eq!(read.to_string(), text);
        }
    }
}
