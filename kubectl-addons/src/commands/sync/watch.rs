//! `sync --watch`: the directory is read every interval, and the cluster is watched. Where neither changes, nothing is asked and nothing
//! is written.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use addons_engine::drift::{self, Drift};
use addons_operation::{DirectorySync, Records};
use addons_sources::directory::{self, Stamps};
use anyhow::Result;
use common::api::installation::AddonInstallation;
use tokio::time::{Instant, sleep};

use super::{Passed, absolute, found, pass};
use crate::cli::sync::Sync;
use crate::exit::Exit;
use crate::output;
use crate::session::Session;

/// Between repairs that follow each other closely: twice as long each time, up to the interval.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// What a pass has to know of those before it.
struct Watch {
    /// Absolute path of the directory.
    path: String,
    /// The directory as the last pass saw it.
    stamps: Stamps,
    /// When it was first seen like this.
    since: Instant,
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

/// Makes passes until the program is ended. An error is printed, and the next pass tries again.
///
/// # Errors
/// A path that is not valid; a signal that ended a pass.
pub async fn run(session: &Session, args: &Sync) -> Result<Exit> {
    let mut watch = Watch {
        path: absolute(&args.directory)?,
        stamps: Stamps::default(),
        since: Instant::now(),
        deleted: false,
        done: false,
        records: Vec::new(),
        known: BTreeSet::new(),
        repaired: None,
    };
    let mut drift = None;
    loop {
        if let Err(error) = watch.pass(session, args, drift).await {
            if Exit::of(&error) == Exit::Interrupted {
                return Err(error);
            }
            output::failure(&error);
        }
        drift = watch.wait(session, args.interval).await;
        if drift.is_some() {
            sleep(watch.pause(args.interval)).await;
        }
    }
}

impl Watch {
    /// Reads the directory, unless it is as before, and makes one pass. `drift`: the difference that is to be repaired.
    async fn pass(&mut self, session: &Session, args: &Sync, drift: Option<Drift>) -> Result<()> {
        self.done = false;
        let root = Path::new(&self.path);
        let mut reading = directory::read(root, &self.stamps)?;
        if !reading.is_whole() || reading.stamps != self.stamps {
            reading = directory::settled(root).await?;
            self.since = Instant::now();
        }
        self.stamps = reading.stamps;
        let is_old = self.since.elapsed() >= args.interval;
        let mut sync = found(session, args, self.path.clone(), reading.files);
        sync.holds = (!is_old).then(|| {
            let interval = args.interval.as_secs();
            format!("the directory changed less than {interval}s ago")
        });
        let sync = Arc::new(sync);
        let Passed { exit, is_nothing } = pass(session, args, &sync).await?;
        self.deleted = is_old;
        self.done = exit == Exit::Done;
        if !is_nothing {
            self.known.clear();
        } else if let Some(drift) = drift {
            self.known.insert(drift);
        }
        self.records = installed(session, &sync).await?;
        Ok(())
    }

    /// Waits until a pass is due; with the difference that it is due for, where it is one.
    async fn wait(&self, session: &Session, interval: Duration) -> Option<Drift> {
        let mut drifted = std::pin::pin!(drifted(session, &self.records, &self.known));
        loop {
            tokio::select! {
                () = sleep(interval) => {
                    if !self.done || !self.deleted || self.is_changed() {
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

    /// Whether the directory is another one, or cannot be read: the pass says why.
    fn is_changed(&self) -> bool {
        !directory::stamps(Path::new(&self.path)).is_ok_and(|stamps| stamps == self.stamps)
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
            std::future::pending().await
        }
    }
}
