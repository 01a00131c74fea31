//! Finds installations of a directory whose manifest was deleted.

use std::collections::BTreeSet;

use super::Directory;

/// Installations whose manifest was deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedInstallations {
    /// The names of these installations, sorted.
    pub names: Vec<String>,
    /// The number of all installations from the directory.
    pub total: usize,
}

impl RemovedInstallations {
    /// Whether more than half of the installations have lost their manifest, which is rarely intended.
    #[must_use]
    pub fn is_majority(&self) -> bool {
        self.names.len() * 2 > self.total
    }
}

/// Returns which of the installations from the directory are no longer in it.
#[must_use]
pub fn find_removed<'a>(
    directory: &Directory,
    installed: impl IntoIterator<Item = &'a str>,
) -> RemovedInstallations {
    let installed: BTreeSet<&str> = installed.into_iter().collect();
    let present = directory.installations();
    let names = installed.difference(&present);
    RemovedInstallations {
        names: names.map(|name| (*name).to_owned()).collect(),
        total: installed.len(),
    }
}
