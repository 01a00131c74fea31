//! `sync --watch`: one of several processes leads. It reads the directory every interval, and watches the cluster. While neither changes,
//! it sends no requests but those for the Lease.

mod term;

use std::sync::Mutex;

use addons_engine::{EngineError, local};
use addons_loops::election::{self, ElectionCandidate, LeaderRevision};
use anyhow::Result;
use common::api::names::installation_name;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::absolute_path;
use super::tree::WatchedTree;
use crate::cli::sync::SyncArgs;
use crate::exit::Exit;
use crate::session::Session;
use crate::{change, failure, output};
use term::{LeadEnd, lead};

/// Leads, or waits for leadership, until the program ends. An error is printed, and the pass is tried again.
///
/// # Errors
/// A path or a kubeconfig is not valid.
pub async fn run(session: &Session, args: &SyncArgs) -> Result<Exit> {
    let path = absolute_path(&args.directory)?;
    let cluster = session.cluster().await?;
    let settings = session.ctx().settings();
    let candidate = ElectionCandidate {
        namespace: settings.system_namespace.clone(),
        name: lease_name(&path),
        identity: settings.holder.clone(),
    };
    let (own, revision) = watch::channel(LeaderRevision::Missing);
    let (leads, leading) = watch::channel(None);
    let tries = LeaseTries::default();
    let tried = |error| tries.record_result(error, !args.change.no_init);
    let stop = Notify::new();
    let electing = async {
        election::run(
            cluster,
            &candidate,
            revision,
            &leads,
            stop.notified(),
            &tried,
        )
        .await;
        std::future::pending().await
    };
    let mut process = WatchProcess {
        session,
        args,
        candidate: &candidate,
        tree: WatchedTree::new(path),
        own,
        leading,
        tries: &tries,
        stop: &stop,
    };
    tokio::select! {
        exit = electing => exit,
        exit = process.run() => exit,
    }
}

/// Returns the name of the Lease for a directory with this path.
fn lease_name(path: &str) -> String {
    format!("addons-sync-{}", installation_name(path.trim_matches('/')))
}

/// The result of attempts to get the Lease.
#[derive(Default)]
struct LeaseTries {
    /// The last error, which is printed only once.
    error: Mutex<Option<String>>,
    /// Notifies when the namespace of the Lease does not exist.
    no_namespace: Notify,
}

impl LeaseTries {
    fn record_result(&self, error: Option<EngineError>, may_create: bool) {
        let is_missing = error.as_ref().is_some_and(EngineError::is_not_found);
        if is_missing && may_create {
            return self.no_namespace.notify_one();
        }
        let text = error.map(|error| output::describe_chain(&error));
        let Ok(mut last) = self.error.lock() else {
            return;
        };
        if *last != text
            && let Some(text) = &text
        {
            output::warn(text);
        }
        *last = text;
    }
}

/// A process that watches a directory, whether it leads or not.
struct WatchProcess<'a> {
    session: &'a Session,
    args: &'a SyncArgs,
    candidate: &'a ElectionCandidate,
    tree: WatchedTree,
    own: watch::Sender<LeaderRevision>,
    leading: watch::Receiver<Option<LeaderRevision>>,
    tries: &'a LeaseTries,
    /// Ends the election.
    stop: &'a Notify,
}

impl WatchProcess<'_> {
    async fn run(&mut self) -> Result<Exit> {
        let cluster = self.session.cluster().await?;
        let mut has_led = false;
        loop {
            if self.tree.is_changed() {
                if let Err(error) = self.tree.read().await {
                    failure::report_failure(&error.into());
                }
                self.own.send_replace(self.tree.revision.clone());
            }
            let leads = self.leading.borrow_and_update().clone();
            if leads.as_ref() == Some(&self.tree.revision) {
                if !has_led {
                    output::note(&format!("leads: {} is in sync from now on", self.tree.path));
                }
                has_led = true;
                match self.lead().await? {
                    LeadEnd::Interrupted => return Ok(Exit::Interrupted),
                    LeadEnd::Lost => continue,
                    LeadEnd::Changed => {
                        self.own.send_replace(self.tree.revision.clone());
                    }
                }
            } else if leads.is_none() && has_led {
                has_led = false;
                output::note("is no longer the leader");
                // If this fails, the Lease expires.
                let _ = election::resign(cluster, self.candidate).await;
            }
            tokio::select! {
                _ = self.leading.changed() => {}
                () = sleep(self.args.interval) => {}
                () = self.tries.no_namespace.notified() => {
                    let created = local::ensure(cluster, &self.candidate.namespace).await;
                    self.tries.record_result(created.err(), false);
                }
            }
        }
    }

    /// Leads with the current content of the directory. Gives the Lease back before the program ends.
    async fn lead(&mut self) -> Result<LeadEnd> {
        let (session, args) = (self.session, self.args);
        let cluster = session.cluster().await?;
        let (tree, leading) = (&mut self.tree, &mut self.leading);
        let end = change::run_interruptible(async |interruption| {
            let end = lead(session, args, tree, leading.clone(), interruption).await;
            if end == LeadEnd::Interrupted {
                self.stop.notify_one();
                let _ = leading.wait_for(Option::is_none).await;
                let _ = election::resign(cluster, self.candidate).await;
            }
            end
        });
        Ok(end.await)
    }
}
