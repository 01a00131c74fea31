//! Who named the location that entries were read from. The author travels with the entries, because it decides what they may open on
//! the machine of the reader (semantics 16.3).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A location that the user typed on the command line of this run.
///
/// Only the code that reads the command line creates one, because it opens keys, accounts and files of the user. Text from an API
/// object, an index, a revision or a plan file never becomes one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Typed(Arc<str>);

impl Typed {
    /// Marks the text of an argument as typed. A test allows this call only in the module that reads the command line.
    #[must_use]
    pub fn on_command_line(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the location `below` in the folder that the user typed, which is typed as well.
    #[must_use]
    pub fn join(&self, below: &str) -> Self {
        Self(format!("{}/{below}", self.0.trim_end_matches('/')).into())
    }
}

impl Deref for Typed {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// Who named a location.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Author {
    /// The user, on the command line.
    Typed(Typed),
    /// A writer with administrator rights: a record in the system namespace, or a plan or set for it.
    Record,
    /// An installation outside the system namespace.
    Tenant,
    /// Unknown, or nothing was read: the namespace of the installation decides.
    #[default]
    Unknown,
}

impl Author {
    /// Whether the user named the location on the command line.
    #[must_use]
    pub fn is_typed(&self) -> bool {
        matches!(self, Self::Typed(_))
    }
}
