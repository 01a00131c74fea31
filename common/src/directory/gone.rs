//! Installations of a directory whose manifest is gone.

use std::collections::BTreeSet;

use super::Directory;

/// Installations without a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// Their names, sorted.
    pub names: Vec<String>,
    /// How many installations the directory has.
    pub of: usize,
}

impl Gone {
    /// Whether more than half of the installations are gone: that is rarely intended.
    #[must_use]
    pub fn is_most(&self) -> bool {
        self.names.len() * 2 > self.of
    }
}

/// Which of the installations that came from the directory are not in it any more.
#[must_use]
pub fn gone<'a>(directory: &Directory, installed: impl IntoIterator<Item = &'a str>) -> Gone {
    let installed: BTreeSet<&str> = installed.into_iter().collect();
    let present = directory.installations();
    let names = installed.difference(&present);
    Gone {
        names: names.map(|name| (*name).to_owned()).collect(),
        of: installed.len(),
    }
}
