//! `status --watch`: shows changes when they happen. Watches of metadata only trigger a new read.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use addons_engine::Cluster;
use addons_engine::changes::{self, Change};
use addons_operation::health;
use addons_operation::name_of;
use anyhow::Result;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep;

use super::{Looked, document, exit, look, show, tree};
use crate::cli::reading::Status;
use crate::cli::{Format, Listing};
use crate::exit::Exit;
use crate::interrupt::Writing;
use crate::output;
use crate::session::Session;

/// The pause between two reads, so that simultaneous changes are shown together.
const PAUSE: Duration = Duration::from_millis(300);

/// Shows changes until Ctrl-C, which ends the program as it ends `kubectl get --watch`. With `--exit-code`, the last state decides the exit
/// code.
///
/// # Errors
/// Those of a read: a named installation was deleted, or the server cannot be reached.
pub(super) async fn run(session: &Session, args: &Status, listing: Listing) -> Result<Exit> {
    let last = Cell::new(Exit::Failed);
    if !args.exit_code {
        return follow(session, args, listing, &last).await;
    }
    // This program handles Ctrl-C itself.
    let (_writing, mut asked) = Writing::begin();
    tokio::select! {
        ended = follow(session, args, listing, &last) => ended,
        () = asked.next() => Ok(last.get()),
    }
}

/// Reads and shows the state whenever something changes. Only ends with an error.
async fn follow(
    session: &Session,
    args: &Status,
    listing: Listing,
    last: &Cell<Exit>,
) -> Result<Exit> {
    let cluster = session.cluster().await?;
    let (due, owners) = (Notify::new(), RefCell::new(BTreeSet::new()));
    let (found, kinds) = unbounded_channel();
    let looking = async {
        let mut shown = Shown::default();
        loop {
            // Catalogues may change during the watch, too.
            let ctx = session.ctx().fresh();
            let all = look(session, &ctx, args).await?;
            last.set(exit(&all));
            shown.show(args, listing, &all)?;
            owners.replace(all.iter().map(|one| health::owner(&one.record)).collect());
            for object in all.iter().flat_map(|one| &one.objects) {
                // The receiver lives as long as this future.
                let _ = found.send((object.key.group.clone(), object.key.kind.clone()));
            }
            due.notified().await;
            sleep(PAUSE).await;
        }
    };
    let see = |change: Change| match change {
        Change::One(one) if !owners.borrow().contains(&one.owner) => {}
        Change::One(_) | Change::All => due.notify_one(),
    };
    // Poll both together: requests of a watch that is not polled would keep those of a read waiting, because they share one limit.
    tokio::select! {
        ended = looking => ended,
        never = watch(cluster, kinds, &due, &see) => match never {},
    }
}

/// Watches the installations, and the objects of every received kind.
async fn watch(
    cluster: &Cluster,
    mut kinds: UnboundedReceiver<(String, String)>,
    due: &Notify,
    see: &impl Fn(Change),
) -> Infallible {
    let mut watched = BTreeSet::new();
    let mut watches = FuturesUnordered::new();
    watches.push(changes::installations(cluster, |_| due.notify_one()).boxed_local());
    loop {
        tokio::select! {
            Some((group, kind)) = kinds.recv() => {
                if watched.insert((group.clone(), kind.clone())) {
                    let watch = async move { changes::owned(cluster, &group, &kind, see).await };
                    watches.push(watch.boxed_local());
                }
            }
            // The watches never end.
            Some(()) = watches.next() => {}
        }
    }
}

/// The status of each installation, and of its objects.
type State = BTreeMap<InstallationName, (String, BTreeMap<ObjectKey, String>)>;

/// What was shown last.
#[derive(Default)]
struct Shown {
    state: State,
    /// The trees that were shown on a terminal.
    trees: String,
    /// The document that was shown to a program.
    document: Option<Value>,
}

impl Shown {
    /// Shows what differs from the last output.
    fn show(&mut self, args: &Status, listing: Listing, all: &[Looked]) -> Result<()> {
        match listing.format {
            Format::Table | Format::Wide if output::is_read_live() => self.redraw(all),
            Format::Table | Format::Wide => {
                let now = state(all);
                let lines = lines(&self.state, &now);
                output::data(&lines);
                self.state = now;
            }
            Format::Name => {
                let now = state(all);
                output::data(&names(&self.state, &now));
                self.state = now;
            }
            Format::Json | Format::Yaml | Format::Template(_) => {
                let now = Some(document(args, all)?);
                if now != self.document {
                    if listing.format == Format::Yaml && self.document.is_some() {
                        output::data("---\n");
                    }
                    show(args, listing, all)?;
                    self.document = now;
                }
            }
        }
        Ok(())
    }

    fn redraw(&mut self, all: &[Looked]) {
        let trees: String = all.iter().map(tree).collect();
        if trees != self.trees {
            let gap = if self.trees.is_empty() { "" } else { "\n" };
            output::data(&format!("{gap}{trees}"));
            self.trees = trees;
        }
    }
}

fn state(all: &[Looked]) -> State {
    let of = |one: &Looked| {
        let objects = one.objects.iter();
        let objects = objects.map(|object| (object.key.clone(), object.message().to_owned()));
        (one.state.to_string(), objects.collect())
    };
    all.iter()
        .map(|one| (name_of(&one.record), of(one)))
        .collect()
}

/// Lists the differences: the installation, the object if it concerns one, and the new status.
fn changed<'a>(
    before: &'a State,
    now: &'a State,
) -> Vec<(&'a str, Option<&'a ObjectKey>, &'a str)> {
    let mut changed = Vec::new();
    for (installation, (word, objects)) in now {
        let name = installation.name.as_str();
        let old = before.get(installation);
        let old_object = |key| old.and_then(|(_, objects)| objects.get(key));
        for (key, message) in objects {
            if old_object(key) != Some(message) {
                changed.push((name, Some(key), message.as_str()));
            }
        }
        let gone = old.into_iter().flat_map(|(_, objects)| objects.keys());
        let gone = gone.filter(|key| !objects.contains_key(*key));
        changed.extend(gone.map(|key| (name, Some(key), "was removed from the installation")));
        if old.is_none_or(|(old, _)| old != word) {
            changed.push((name, None, word.as_str()));
        }
    }
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    changed.extend(gone.map(|it| (it.name.as_str(), None, "is uninstalled")));
    changed
}

/// Formats the differences: `web  shop/Deployment web  2/2 ready`, `web  Ready`.
fn lines(before: &State, now: &State) -> String {
    let line = |(name, key, word): (&str, Option<&ObjectKey>, &str)| match key {
        Some(key) => format!("{name}  {key}  {word}\n"),
        None => format!("{name}  {word}\n"),
    };
    changed(before, now).into_iter().map(line).collect()
}

/// Formats the keys of the changed objects.
fn names(before: &State, now: &State) -> String {
    let changed = changed(before, now).into_iter();
    changed
        .filter_map(|(_, key, _)| Some(format!("{}\n", key?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installation(
        name: &str,
        word: &str,
        objects: &[(&str, &str)],
    ) -> (InstallationName, (String, BTreeMap<ObjectKey, String>)) {
        let key = |name: &str| ObjectKey {
            kind: "ConfigMap".to_owned(),
            name: name.to_owned(),
            ..ObjectKey::default()
        };
        let objects = objects
            .iter()
            .map(|(name, message)| (key(name), (*message).to_owned()));
        let name = InstallationName {
            namespace: "a".to_owned(),
            name: name.to_owned(),
        };
        (name, (word.to_owned(), objects.collect()))
    }

    #[test]
    fn a_line_for_each_change_and_none_without() {
        let before = State::from([
            installation("db", "Ready", &[]),
            installation(
                "web",
                "Progressing",
                &[("a", "1/2"), ("b", "ready"), ("c", "ready")],
            ),
        ]);
        let now = State::from([installation(
            "web",
            "Ready",
            &[("a", "2/2"), ("b", "ready"), ("d", "ready")],
        )]);
        assert_eq!(
            lines(&before, &now),
            "web  ConfigMap a  2/2\nweb  ConfigMap d  ready\nweb  ConfigMap c  was removed from the installation\nweb  Ready\ndb  is uninstalled\n"
        );
        assert_eq!(
            names(&before, &now),
            "ConfigMap a\nConfigMap d\nConfigMap c\n"
        );
        assert_eq!(lines(&now, &now), "");
        assert_eq!(lines(&State::new(), &now).lines().count(), 4);
    }
}
