//! Runs a command on many clusters: several contexts of the kubeconfig, or the namespaces of one cluster that stand for others.
//!
//! Every cluster has its own session and runs the command. Changes happen in waves ([`rollout`]), and results of reading are merged into
//! one table ([`Fleet::each`]). A failure on one cluster does not stop the others.

pub mod rollout;
pub mod turn;

use std::time::Duration;

use addons_operation::fleet::{Selected, select};
use addons_plan::file::Place;
use anyhow::Result;
use futures::{StreamExt as _, stream};

use crate::cli::fleet::Waves;
use crate::cli::operation::Run;
use crate::cli::{Cli, Command, Global};
use crate::commands::{self, diff, list, plan, preflight, status};
use crate::exit::Exit;
use crate::output::{self, of_cluster};
use crate::session::Session;
use crate::settings;
use crate::usage::Usage;
use crate::words::{fleet as words, typed};
use rollout::Rollout;

/// How many clusters are worked on at the same time.
const AT_ONCE: usize = 8;

/// The clusters of a command.
#[derive(Debug)]
pub struct Fleet {
    /// The clusters in the order of the changes: contexts as typed, namespaces by name.
    pub members: Vec<Place>,
    global: Global,
}

impl Fleet {
    /// Returns the clusters that a command line selects. `None` for a single cluster.
    ///
    /// # Errors
    /// Flags exclude each other, a context does not exist, no cluster is selected, or the server of the namespaces cannot be reached.
    pub async fn of(cli: &Cli) -> Result<Option<Self>> {
        let (global, selector) = (&cli.global, cli.command.clusters());
        let contexts = global.context.as_deref().unwrap_or_default();
        let has_contexts = contexts.contains(',');
        check(global, has_contexts, selector.is_some())?;
        let members: Vec<Place> = match selector {
            Some(selector) => selected(global, selector).await?,
            None if has_contexts => {
                let names = named(contexts)?;
                settings::check_contexts(global, &names)?;
                names.into_iter().map(Place::Context).collect()
            }
            None => return Ok(None),
        };
        Ok(Some(Self {
            members,
            global: global.clone(),
        }))
    }

    /// Returns the clusters of a plan file.
    ///
    /// # Errors
    /// Flags exclude each other, or a context does not exist.
    pub fn of_places(global: &Global, members: Vec<Place>) -> Result<Self> {
        let contexts = members.iter().filter_map(|place| match place {
            Place::Context(name) => Some(name.clone()),
            Place::Namespace(_) => None,
        });
        let contexts: Vec<String> = contexts.collect();
        check(global, !contexts.is_empty(), contexts.len() < members.len())?;
        if !contexts.is_empty() && global.context.is_some() {
            return Err(Usage(words::CONTEXTS_OF_PLAN.to_owned()).into());
        }
        settings::check_contexts(global, &contexts)?;
        Ok(Self {
            members,
            global: global.clone(),
        })
    }

    /// Creates the session of a cluster.
    fn session(&self, member: &Place, timeout: Option<Duration>) -> Session {
        let mut global = self.global.clone();
        match member {
            Place::Context(name) => global.context = Some(name.clone()),
            Place::Namespace(name) => global.namespace = Some(name.clone()),
        }
        Session::within(global, timeout)
    }

    /// Runs work that only reads on every cluster, and returns the values sorted by cluster. Reports errors at once, and returns their
    /// highest exit code.
    pub async fn each<T>(
        &self,
        work: impl AsyncFn(&Session) -> Result<T>,
    ) -> (Vec<(String, T)>, Exit) {
        let all = stream::iter(&self.members).map(async |member| {
            let session = self.session(member, None);
            let work = async {
                work(&session)
                    .await
                    .map_err(|error| output::failure(&error))
            };
            (member.name(), of_cluster::run(member, work).await)
        });
        let all: Vec<_> = all.buffer_unordered(AT_ONCE).collect().await;
        let (mut values, mut worst) = (Vec::new(), Exit::Done);
        for (name, result) in all {
            match result {
                Ok(value) => values.push((name.to_owned(), value)),
                Err(exit) => worst = worst.max(exit),
            }
        }
        values.sort_by(|a, b| a.0.cmp(&b.0));
        (values, worst)
    }
}

/// Runs a command on a fleet.
///
/// # Errors
/// Nothing was written: the command works on one cluster only, or the user declined.
pub async fn run(fleet: &Fleet, command: &Command) -> Result<Exit> {
    let (waves, how) = match command {
        Command::Install(args) => (&args.waves, &args.change.run),
        Command::Upgrade(args) => (&args.waves, &args.change.run),
        Command::Uninstall(args) => (&args.waves, &args.run),
        Command::Apply(args) if args.set.is_some() => (&args.waves, &args.change.run),
        Command::Apply(_) => return Err(Usage(words::CLUSTERS_OF_PLAN.to_owned()).into()),
        Command::List(args) => return list::of_fleet(fleet, args).await,
        Command::Status(args) => return status::of_fleet(fleet, args).await,
        Command::Diff(args) => return diff::of_fleet(fleet, args).await,
        Command::Preflight(args) => return preflight::of_fleet(fleet, args).await,
        Command::Plan(args) => return plan::of_fleet(fleet, args).await,
        _ => return Err(Usage(words::ONE_CLUSTER.to_owned()).into()),
    };
    let rollout = Rollout {
        waves: rollout_of(waves, how)?,
        yes: how.yes,
        timeout: how.timeout,
        again: &typed::for_clusters,
    };
    rollout::run(fleet, &rollout, async |_, session| {
        commands::run(session, command).await
    })
    .await
}

/// Returns the waves in which the clusters are changed.
///
/// # Errors
/// The next wave has to wait until clusters are ready, and `--wait=false` is set.
pub fn rollout_of(waves: &Waves, run: &Run) -> Result<addons_clusters::fleet::Rollout, Usage> {
    match waves.rollout() {
        Some(_) if !run.wait => Err(Usage(words::NO_WAIT.to_owned())),
        rollout => Ok(rollout.unwrap_or_default()),
    }
}

/// Refuses flags for waves on a single cluster.
///
/// # Errors
/// Flags for waves were given.
pub fn check_one(command: &Command) -> Result<(), Usage> {
    let waves = match command {
        Command::Install(args) => &args.waves,
        Command::Upgrade(args) => &args.waves,
        Command::Uninstall(args) => &args.waves,
        Command::Apply(args) if args.set.is_some() => &args.waves,
        // Whether a plan file is for several clusters is known once it is read.
        _ => return Ok(()),
    };
    match waves.rollout() {
        Some(_) => Err(Usage(words::NO_WAVES.to_owned())),
        None => Ok(()),
    }
}

/// Refuses flags that contradict each other about the clusters.
fn check(global: &Global, has_contexts: bool, has_selector: bool) -> Result<(), Usage> {
    let several = match (has_contexts, has_selector) {
        (false, false) => return Ok(()),
        (true, true) => {
            return Err(Usage(
                "--clusters can only be used with a single context".to_owned(),
            ));
        }
        (true, false) => "several contexts",
        (false, true) => "--clusters",
    };
    let excluded = [
        (global.namespace.is_some(), "--namespace"),
        // These would lead every context to the same cluster, or send the credentials of one cluster to all.
        (has_contexts && global.server.is_some(), "--server"),
        (has_contexts && global.cluster.is_some(), "--cluster"),
        (has_contexts && global.user.is_some(), "--user"),
        (has_contexts && global.token.is_some(), "--token"),
    ];
    match excluded.iter().find(|(is_set, _)| *is_set) {
        Some((_, flag)) => Err(Usage(format!("{several} cannot be combined with {flag}"))),
        None => Ok(()),
    }
}

/// Parses the contexts of `--context`.
fn named(contexts: &str) -> Result<Vec<String>, Usage> {
    let mut names: Vec<String> = Vec::new();
    for name in contexts.split(',').map(str::trim) {
        if name.is_empty() {
            return Err(Usage(format!("--context {contexts}: a name is empty")));
        }
        if names.iter().any(|other| other == name) {
            return Err(Usage(format!(
                "--context {contexts}: {name} is named twice"
            )));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// Finds the clusters of `--clusters`.
async fn selected(global: &Global, selector: &str) -> Result<Vec<Place>> {
    let home = Session::new(global.clone());
    let Selected { clusters, others } = select(home.ctx(), selector).await?;
    if let Some(note) = words::left_out(&others) {
        output::note(&note);
    }
    if clusters.is_empty() {
        return Err(Usage(words::nothing_selected(selector)).into());
    }
    Ok(clusters.into_iter().map(Place::Namespace).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_named_once() {
        assert_eq!(named("b, a").unwrap(), ["b", "a"]);
        for (typed, expected) in [
            ("a,", "--context a,: a name is empty"),
            ("a,b,a", "--context a,b,a: a is named twice"),
        ] {
            assert_eq!(named(typed).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn waves_wait() {
        let typed = |flags: &str| {
            let line = format!("x upgrade --clusters tier=prod {flags}");
            let words: Vec<_> = line.split_whitespace().map(Into::into).collect();
            let Command::Upgrade(args) = crate::cli::parse(&words).unwrap().command else {
                panic!("{line}");
            };
            rollout_of(&args.waves, &args.change.run)
        };
        assert_eq!(typed("--wait=false").unwrap().waves(5).len(), 1);
        assert_eq!(typed("--max-unavailable 2").unwrap().waves(5).len(), 3);
        assert!(typed("--canary 1 --wait=false").is_err());
    }

    #[test]
    fn flags_that_say_different_things_are_refused() {
        let with = |change: fn(&mut Global)| {
            let mut global = Global::default();
            change(&mut global);
            global
        };
        let namespace = with(|global| global.namespace = Some("shop".into()));
        let token = with(|global| global.token = Some("secret".into()));
        let said = |global: &Global, contexts, selector| {
            let refused = check(global, contexts, selector).err();
            refused.map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(said(&namespace, false, false), "");
        assert_eq!(
            said(&namespace, true, false),
            "several contexts cannot be combined with --namespace"
        );
        assert_eq!(
            said(&namespace, false, true),
            "--clusters cannot be combined with --namespace"
        );
        assert_eq!(
            said(&token, true, false),
            "several contexts cannot be combined with --token"
        );
        assert_eq!(said(&token, false, true), "");
        assert_eq!(
            said(&token, true, true),
            "--clusters can only be used with a single context"
        );
    }
}
