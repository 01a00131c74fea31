//! What a leader does: passes over the directory, whenever it or the cluster changed.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use addons_engine::drift::{self, Drift};
use addons_loops::election::Revision;
use addons_operation::{DirectorySync, Interruption, Records};
use anyhow::Result;
use common::api::installation::AddonInstallation;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::super::tree::Tree;
use super::super::{Passed, found, pass};
use crate::cli::sync::Sync;
use crate::exit::Exit;
use crate::output;
use crate::session::Session;

/// Between repairs that follow each other closely: twice as long each time, up to the interval.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Why a leader stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The program is to end.
    Asked,
    /// It does not lead any more, or not with this directory.
    Lost,
    /// The directory is another one: whether it leads with that is not known yet.
    Changed,
}

/// What a pass has to know of those before it.
#[derive(Default)]
struct Term {
    /// Whether the last pass deleted what is gone: after a change it does so an interval later.
    deleted: bool,
    /// Whether the last pass did everything.
    done: bool,
    /// The installations of the directory, as the last pass left them.
    records: Vec<AddonInstallation>,
    /// Differences that a pass looked at and left as they are.
    known: BTreeSet<Drift>,
    /// When the last repair was, and the pause before it.
    repaired: Option<(Instant, Duration)>,
}

/// Makes passes as long as this process leads with the directory as it is. What is under way then is interrupted: it is recorded how
/// far it got, and the next leader does not wait for its locks.
pub async fn lead(
    session: &Session,
    args: &Sync,
    tree: &mut Tree,
    mut leading: watch::Receiver<Option<Revision>>,
    interruption: &Interruption,
) -> End {
    let (own, is_lost) = (Some(tree.revision.clone()), Cell::new(false));
    let losing = async {
        let _ = leading.wait_for(|leads| *leads != own).await;
        is_lost.set(true);
        interruption.interrupt();
        pending::<()>().await;
    };
    let working = async {
        let mut term = Term::default();
        let mut drift = None;
        loop {
            match term.pass(session, args, tree, drift, interruption).await {
                Ok(true) => {}
                Ok(false) => return End::Changed,
                Err(error) => {
                    if Exit::of(&error) != Exit::Interrupted {
                        output::failure(&error);
                    }
                }
            }
            if interruption.is_asked() {
                return End::Asked;
            }
            tokio::select! {
                biased;
                () = interruption.asked() => return End::Asked,
                due = term.wait(session, tree, args.interval) => drift = due,
            }
            let pause = drift.as_ref().map(|_| term.pause(args.interval));
            tokio::select! {
                biased;
                () = interruption.asked() => return End::Asked,
                () = sleep(pause.unwrap_or_default()) => {}
            }
        }
    };
    let end = tokio::select! {
        end = working => end,
        () = losing => End::Lost,
    };
    match end {
        End::Asked if is_lost.get() => End::Lost,
        end => end,
    }
}

impl Term {
    /// Reads the directory and makes one pass; not where that is another one than before. `drift`: the difference that is to be
    /// repaired.
    async fn pass(
        &mut self,
        session: &Session,
        args: &Sync,
        tree: &mut Tree,
        drift: Option<Drift>,
        interruption: &Interruption,
    ) -> Result<bool> {
        self.done = false;
        let before = tree.revision.clone();
        let read = tree.read().await;
        if tree.revision != before {
            if let Err(error) = read {
                output::failure(&error.into());
            }
            return Ok(false);
        }
        let is_old = tree.since.elapsed() >= args.interval;
        let mut sync = found(session, args, tree.path.clone(), read?);
        sync.holds = (!is_old).then(|| {
            let interval = args.interval.as_secs();
            format!("the directory changed less than {interval}s ago")
        });
        let sync = Arc::new(sync);
        let Passed { exit, is_nothing } = pass(session, args, &sync, Some(interruption)).await?;
        self.deleted = is_old;
        self.done = exit == Exit::Done;
        if !is_nothing {
            self.known.clear();
        } else if let Some(drift) = drift {
            self.known.insert(drift);
        }
        self.records = installed(session, &sync).await?;
        Ok(true)
    }

    /// Waits until a pass is due; with the difference that it is due for, where it is one.
    async fn wait(&self, session: &Session, tree: &Tree, interval: Duration) -> Option<Drift> {
        let mut drifted = std::pin::pin!(drifted(session, &self.records, &self.known));
        loop {
            tokio::select! {
                () = sleep(interval) => {
                    if !self.done || !self.deleted || tree.is_changed() {
                        return None;
                    }
                }
                drift = &mut drifted => return Some(drift),
            }
        }
    }

    /// How long a repair waits: not at all, unless repairs follow each other, because another client undoes them.
    fn pause(&mut self, interval: Duration) -> Duration {
        let pause = match self.repaired {
            Some((before, pause)) if before.elapsed() < interval.max(pause * 2) => {
                (pause * 2).max(FIRST_PAUSE).min(interval)
            }
            _ => Duration::ZERO,
        };
        self.repaired = Some((Instant::now(), pause));
        pause
    }
}

/// The installations of the directory, as they are recorded after a pass.
async fn installed(session: &Session, sync: &DirectorySync) -> Result<Vec<AddonInstallation>> {
    let records = Records::read(session.ctx()).await?;
    let of_directory = records.all.into_iter().filter(|record| {
        let directory = record.spec.addon_ref.directory.as_ref();
        directory == Some(&sync.path) && !record.spec.suspend
    });
    Ok(of_directory.collect())
}

/// The next difference. Where the cluster cannot be watched, that is said, and the next pass tries again.
async fn drifted(
    session: &Session,
    records: &[AddonInstallation],
    known: &BTreeSet<Drift>,
) -> Drift {
    let watched = async {
        let cluster = session.ctx().cluster().await?;
        Ok::<_, anyhow::Error>(drift::next(cluster, records, known).await?)
    };
    match watched.await {
        Ok(drift) => drift,
        Err(error) => {
            output::failure(&error.context("edits in the cluster are not seen"));
            pending().await
        }
    }
}
