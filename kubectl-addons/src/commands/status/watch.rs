//! `status --watch`: shows changes when they happen. Watches of metadata only trigger a new read.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use addons_engine::Cluster;
use addons_engine::changes::{self, ObservedChange, WatchReport};
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

use super::{ObservedInstallation, document, exit_code, read_installations, render_tree, show};
use crate::cli::reading::StatusArgs;
use crate::cli::{Listing, OutputFormat, ValueFormat};
use crate::exit::Exit;
use crate::interrupt::WritingGuard;
use crate::output;
use crate::session::Session;

/// The pause between two reads, so that simultaneous changes are shown together.
const PAUSE: Duration = Duration::from_millis(300);

/// Shows changes until Ctrl-C, which ends the program as it ends `kubectl get --watch`. With `--exit-code`, the last state decides the exit
/// code.
///
/// # Errors
/// Those of a read: a named installation was deleted, or the server cannot be reached.
pub(super) async fn run(session: &Session, args: &StatusArgs, listing: Listing) -> Result<Exit> {
    let last = Cell::new(Exit::Failed);
    if !args.exit_code {
        return follow_changes(session, args, listing, &last).await;
    }
    // This program handles Ctrl-C itself.
    let (_writing, mut asked) = WritingGuard::begin();
    tokio::select! {
        ended = follow_changes(session, args, listing, &last) => ended,
        () = asked.next() => Ok(last.get()),
    }
}

/// Reads and shows the state whenever something changes. Only ends with an error.
async fn follow_changes(
    session: &Session,
    args: &StatusArgs,
    listing: Listing,
    last: &Cell<Exit>,
) -> Result<Exit> {
    // Objects of a cluster that cannot be used are not watched: their reconciler changes the records.
    let cluster = match session.ctx().why_out_of_reach().await? {
        Some(_) => session.ctx().home().await?,
        None => session.cluster().await?,
    };
    let namespace = session.global().namespace.as_deref();
    let (due, owners) = (Notify::new(), RefCell::new(BTreeSet::new()));
    let (found, kinds) = unbounded_channel();
    let looking = async {
        let mut shown = ShownStatus::default();
        loop {
            // Catalogues may change during the watch, too.
            let ctx = session.ctx().fresh();
            let all = read_installations(session, &ctx, args).await?;
            last.set(exit_code(&all));
            shown.show(args, listing, &all)?;
            owners.replace(
                all.iter()
                    .map(|one| health::owner_of(&one.record))
                    .collect(),
            );
            let seen = all.iter().filter(|one| one.unseen.is_none());
            for object in seen.flat_map(|one| &one.objects) {
                // The receiver lives as long as this future.
                let _ = found.send((object.key.group.clone(), object.key.kind.clone()));
            }
            due.notified().await;
            sleep(PAUSE).await;
        }
    };
    let see = |report: WatchReport| match report {
        Ok(ObservedChange::One(one)) if !owners.borrow().contains(&one.owner) => {}
        Ok(ObservedChange::One(_) | ObservedChange::All) => due.notify_one(),
        // It is tried again.
        Err(_) => {}
    };
    // Poll both together: requests of a watch that is not polled would keep those of a read waiting, because they share one limit.
    tokio::select! {
        ended = looking => ended,
        never = watch_objects(cluster, namespace, kinds, &due, &see) => match never {},
    }
}

/// Watches the installations of a namespace or of all, and the objects of every received kind.
async fn watch_objects(
    cluster: &Cluster,
    namespace: Option<&str>,
    mut kinds: UnboundedReceiver<(String, String)>,
    due: &Notify,
    see: &impl Fn(WatchReport),
) -> Infallible {
    let mut watched = BTreeSet::new();
    let mut watches = FuturesUnordered::new();
    watches.push(
        changes::watch_installations(cluster, namespace, |report| {
            if report.is_ok() {
                due.notify_one();
            }
        })
        .boxed_local(),
    );
    loop {
        tokio::select! {
            Some((group, kind)) = kinds.recv() => {
                if watched.insert((group.clone(), kind.clone())) {
                    let watch = async move { changes::watch_owned(cluster, &group, &kind, see).await };
                    watches.push(watch.boxed_local());
                }
            }
            // The watches never end.
            Some(()) = watches.next() => {}
        }
    }
}

/// The status of each installation, and of its objects.
type StatusMap = BTreeMap<InstallationName, (String, BTreeMap<ObjectKey, String>)>;

/// What was shown last.
#[derive(Default)]
struct ShownStatus {
    state: StatusMap,
    /// The trees that were shown on a terminal.
    trees: String,
    /// The document that was shown to a program.
    document: Option<Value>,
}

impl ShownStatus {
    /// Shows what differs from the last output.
    fn show(
        &mut self,
        args: &StatusArgs,
        listing: Listing,
        all: &[ObservedInstallation],
    ) -> Result<()> {
        match listing.format {
            OutputFormat::Table | OutputFormat::Wide if output::is_read_live() => self.redraw(all),
            OutputFormat::Table | OutputFormat::Wide => {
                let now = status_map(all);
                let lines = format_differences(&self.state, &now);
                output::print_painted(&lines);
                self.state = now;
            }
            OutputFormat::Name => {
                let now = status_map(all);
                output::print_text(&format_changed_keys(&self.state, &now));
                self.state = now;
            }
            OutputFormat::Value(_) => {
                let now = Some(document(args, all)?);
                if now != self.document {
                    let is_yaml = listing.format == OutputFormat::Value(ValueFormat::Yaml);
                    if is_yaml && self.document.is_some() {
                        output::print_text("---\n");
                    }
                    show(args, listing, all)?;
                    self.document = now;
                }
            }
        }
        Ok(())
    }

    fn redraw(&mut self, all: &[ObservedInstallation]) {
        let trees: String = all.iter().map(render_tree).collect();
        if trees != self.trees {
            let gap = if self.trees.is_empty() { "" } else { "\n" };
            output::print_painted(&format!("{gap}{trees}"));
            self.trees = trees;
        }
    }
}

fn status_map(all: &[ObservedInstallation]) -> StatusMap {
    let of = |one: &ObservedInstallation| {
        let objects = one.objects.iter();
        let objects = objects.map(|object| (object.key.clone(), object.message().to_owned()));
        (one.state.to_string(), objects.collect())
    };
    all.iter()
        .map(|one| (name_of(&one.record), of(one)))
        .collect()
}

/// Lists the differences: the installation, the object if it concerns one, and the new status.
fn list_differences<'a>(
    before: &'a StatusMap,
    now: &'a StatusMap,
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
fn format_differences(before: &StatusMap, now: &StatusMap) -> String {
    let line = |(name, key, word): (&str, Option<&ObjectKey>, &str)| match key {
        Some(key) => format!("{name}  {key}  {word}\n"),
        None => format!("{name}  {word}\n"),
    };
    list_differences(before, now)
        .into_iter()
        .map(line)
        .collect()
}

/// Formats the keys of the changed objects.
fn format_changed_keys(before: &StatusMap, now: &StatusMap) -> String {
    let changed = list_differences(before, now).into_iter();
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
        let before = StatusMap::from([
            installation("db", "Ready", &[]),
            installation(
                "web",
                "Progressing",
                &[("a", "1/2"), ("b", "ready"), ("c", "ready")],
            ),
        ]);
        let now = StatusMap::from([installation(
            "web",
            "Ready",
            &[("a", "2/2"), ("b", "ready"), ("d", "ready")],
        )]);
        assert_eq!(
            format_differences(&before, &now),
            "web  ConfigMap a  2/2\nweb  ConfigMap d  ready\nweb  ConfigMap c  was removed from the installation\nweb  Ready\ndb  is uninstalled\n"
        );
        assert_eq!(
            format_changed_keys(&before, &now),
            "ConfigMap a\nConfigMap d\nConfigMap c\n"
        );
        assert_eq!(format_differences(&now, &now), "");
        assert_eq!(
            format_differences(&StatusMap::new(), &now).lines().count(),
            4
        );
    }
}
