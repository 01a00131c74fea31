//! Who named the place that entries were read from. It travels with them, because it decides what they may open on the machine of the
//! reader (semantics 16).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A location that the user typed on the command line of this run.
///
/// Only what reads the command line makes one: it opens the keys, accounts and files of the user. Nothing that comes from an API object,
/// an index, a revision or a plan file becomes one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Typed(Arc<str>);

impl Typed {
    /// The text of an argument. A test allows this call in the module that reads the command line, and nowhere else.
    #[must_use]
    pub fn on_command_line(text: &str) -> Self {
        Self(text.into())
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
    /// An object of the cluster that an administrator writes: a record in the system namespace, or a plan or set for it.
    Record,
    /// An installation outside the system namespace.
    Tenant,
    /// It is not known, or nothing was read: the place of the installation decides.
    #[default]
    Unknown,
}

impl Author {
    /// Whether the user named it on the command line.
    #[must_use]
    pub fn is_typed(&self) -> bool {
        matches!(self, Self::Typed(_))
    }
}
