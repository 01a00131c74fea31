//! `sync --watch`: one of several processes leads. It reads the directory every interval, and watches the cluster. While neither changes,
//! it sends no requests but those for the Lease.

mod term;

use std::sync::Mutex;

use addons_engine::{EngineError, local};
use addons_loops::election::{self, Candidate, Revision};
use anyhow::Result;
use common::api::names::installation_name;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::absolute;
use super::tree::Tree;
use crate::cli::sync::Sync;
use crate::exit::Exit;
use crate::session::Session;
use crate::{change, output};
use term::{End, lead};

/// Leads, or waits for leadership, until the program ends. An error is printed, and the pass is tried again.
///
/// # Errors
/// A path or a kubeconfig is not valid.
pub async fn run(session: &Session, args: &Sync) -> Result<Exit> {
    let path = absolute(&args.directory)?;
    let cluster = session.cluster().await?;
    let settings = session.ctx().settings();
    let candidate = Candidate {
        namespace: settings.system_namespace.clone(),
        name: lease(&path),
        identity: settings.holder.clone(),
    };
    let (own, revision) = watch::channel(Revision::Missing);
    let (leads, leading) = watch::channel(None);
    let tries = Tries::default();
    let tried = |error| tries.told(error, !args.change.no_init);
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
    let mut process = Process {
        session,
        args,
        candidate: &candidate,
        tree: Tree::new(path),
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
fn lease(path: &str) -> String {
    format!("addons-sync-{}", installation_name(path.trim_matches('/')))
}

/// The result of attempts to get the Lease.
#[derive(Default)]
struct Tries {
    /// The last error, which is printed only once.
    error: Mutex<Option<String>>,
    /// Notifies when the namespace of the Lease does not exist.
    no_namespace: Notify,
}

impl Tries {
    fn told(&self, error: Option<EngineError>, may_create: bool) {
        let is_missing = error.as_ref().is_some_and(EngineError::is_not_found);
        if is_missing && may_create {
            return self.no_namespace.notify_one();
        }
        let text = error.map(|error| output::chain(&error));
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
struct Process<'a> {
    session: &'a Session,
    args: &'a Sync,
    candidate: &'a Candidate,
    tree: Tree,
    own: watch::Sender<Revision>,
    leading: watch::Receiver<Option<Revision>>,
    tries: &'a Tries,
    /// Ends the election.
    stop: &'a Notify,
}

impl Process<'_> {
    async fn run(&mut self) -> Result<Exit> {
        let cluster = self.session.cluster().await?;
        let mut has_led = false;
        loop {
            if self.tree.is_changed() {
                if let Err(error) = self.tree.read().await {
                    output::failure(&error.into());
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
                    End::Asked => return Ok(Exit::Interrupted),
                    End::Lost => continue,
                    End::Changed => {
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
                    self.tries.told(created.err(), false);
                }
            }
        }
    }

    /// Leads with the current content of the directory. Gives the Lease back before the program ends.
    async fn lead(&mut self) -> Result<End> {
        let (session, args) = (self.session, self.args);
        let cluster = session.cluster().await?;
        let (tree, leading) = (&mut self.tree, &mut self.leading);
        let end = change::interruptible(async |interruption| {
            let end = lead(session, args, tree, leading.clone(), interruption).await;
            if end == End::Asked {
                self.stop.notify_one();
                let _ = leading.wait_for(Option::is_none).await;
                let _ = election::resign(cluster, self.candidate).await;
            }
            end
        });
        Ok(end.await)
    }
}
