//! The maximum share of objects that an upgrade may prune unless the user allows more (semantics 13.7).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Sets with at least this many objects are protected against losing most or all of them.
const PROTECTED_FROM: usize = 10;

/// The maximum share of the installed objects to prune, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PruneLimit(u8);

impl PruneLimit {
    /// Everything may be pruned.
    pub const ALL: Self = Self(100);

    /// Creates a limit; `None` above 100 %.
    #[must_use]
    pub fn new(percent: u8) -> Option<Self> {
        (percent <= 100).then_some(Self(percent))
    }

    /// Whether `removed` elements of a set of any size may be removed, such as add-ons of an index.
    #[must_use]
    pub fn admits(self, removed: usize, of: usize) -> bool {
        removed.saturating_mul(100) <= of.saturating_mul(usize::from(self.0))
    }

    /// Returns the share that would allow pruning `pruned` of `there` objects, if this one does not. A set that becomes empty needs 100 %,
    /// even if some objects are kept: usually a template rendered to nothing by accident.
    pub(crate) fn needed(self, pruned: usize, there: usize, is_empty: bool) -> Option<Self> {
        if there < PROTECTED_FROM || pruned == 0 {
            return None;
        }
        let share = pruned.saturating_mul(100).div_ceil(there).min(100);
        let share = if is_empty { 100 } else { share };
        let needed = u8::try_from(share).map_or(Self::ALL, Self);
        (needed > self).then_some(needed)
    }
}

/// Half of the objects, because pruning most of a set is rarely intended.
impl Default for PruneLimit {
    fn default() -> Self {
        Self(50)
    }
}

impl fmt::Display for PruneLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needed_shares() {
        for (limit, pruned, there, is_empty, needed) in [
            (50, 9, 9, true, None),
            (50, 5, 10, false, None),
            (50, 6, 10, false, Some(60)),
            (60, 6, 10, false, None),
            (50, 6, 11, false, Some(55)),
            (50, 2, 3000, true, Some(100)),
            (99, 10, 10, true, Some(100)),
            (100, 10, 10, true, None),
            (0, 1, 3000, false, Some(1)),
            (50, 0, 3000, true, None),
        ] {
            let found = PruneLimit(limit).needed(pruned, there, is_empty);
            assert_eq!(found, needed.map(PruneLimit), "{limit} {pruned} {there}");
        }
    }
}
