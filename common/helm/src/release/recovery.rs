//! Decides how to recover a release that helm left unfinished (KKP's #12846, #13125, #14705). Helm itself refuses to touch it: "another
//! operation is in progress".

use std::fmt;

use super::record::{ReleasePhase, ReleaseRevision};

/// How a pending release is recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseRecovery {
    /// Uninstall it, because no revision has ever run; it is then installed again.
    Uninstalled {
        /// The pending revision.
        revision: u32,
    },
    /// Roll it back to the last revision that ran.
    RolledBack {
        /// The pending revision.
        revision: u32,
        /// The revision that ran.
        to: u32,
    },
}

impl fmt::Display for ReleaseRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uninstalled { revision } => write!(
                f,
                "revision {revision} of the release was never finished, and nothing ran before it: it was uninstalled"
            ),
            Self::RolledBack { revision, to } => write!(
                f,
                "revision {revision} of the release was never finished: it was rolled back to revision {to}"
            ),
        }
    }
}

/// Returns how to recover a release, or `None` if it is not pending. `history` is sorted from the oldest to the newest revision.
pub(super) fn find_recovery(history: &[ReleaseRevision]) -> Option<ReleaseRecovery> {
    let pending = history.last().filter(|last| {
        matches!(
            last.phase,
            ReleasePhase::PendingInstall
                | ReleasePhase::PendingUpgrade
                | ReleasePhase::PendingRollback
        )
    })?;
    let revision = pending.revision;
    let ran = |phase: ReleasePhase| {
        let mut newest_first = history.iter().rev().skip(1);
        newest_first.find(|revision| revision.phase == phase)
    };
    let good = ran(ReleasePhase::Deployed).or_else(|| ran(ReleasePhase::Superseded));
    // A failed revision may contain objects that others depend on, so it is not uninstalled either.
    let good = good.or_else(|| ran(ReleasePhase::Failed));
    Some(match good {
        Some(good) if pending.phase != ReleasePhase::PendingInstall => {
            ReleaseRecovery::RolledBack {
                revision,
                to: good.revision,
            }
        }
        _ => ReleaseRecovery::Uninstalled { revision },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_release_needs() {
        use ReleasePhase::{
            Deployed, Failed, PendingInstall, PendingRollback, PendingUpgrade, Superseded,
            Uninstalled,
        };
        let back = |revision, to| Some(ReleaseRecovery::RolledBack { revision, to });
        let gone = |revision| Some(ReleaseRecovery::Uninstalled { revision });
        for (phases, expected) in [
            (&[][..], None),
            (&[Deployed], None),
            (&[Superseded, Failed], None),
            (&[PendingInstall], gone(1)),
            (&[Uninstalled, PendingInstall], gone(2)),
            (&[Deployed, PendingUpgrade], back(2, 1)),
            (&[Superseded, Deployed, Failed, PendingUpgrade], back(4, 2)),
            (&[Superseded, Superseded, PendingRollback], back(3, 2)),
            (&[Failed, PendingUpgrade], back(2, 1)),
            (&[PendingUpgrade], gone(1)),
        ] {
            let history: Vec<ReleaseRevision> = phases
                .iter()
                .zip(1..)
                .map(|(phase, revision)| ReleaseRevision {
                    revision,
                    phase: *phase,
                    chart: String::new(),
                    updated: String::new(),
                    description: String::new(),
                })
                .collect();
            assert_eq!(find_recovery(&history), expected, "{phases:?}");
        }
    }
}
