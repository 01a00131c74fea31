//! The clusters of a command: several contexts of the kubeconfig, or the namespaces of one cluster that stand for others.
//!
//! Every cluster has its own session and runs the command, which works on one cluster and does not know the others. Changes happen in
//! waves ([`rollout`]), and results of reading are merged into one table ([`Fleet::read_each`]). A failure on one cluster does not stop
//! the others.

pub mod apply;
pub mod command;
mod reading;
pub mod rollout;
pub mod state;

use std::time::Duration;

use addons_distribution::fleet::{SelectedNamespaces, select_namespaces};
use addons_plan::file::FleetClusterSource;
use anyhow::Result;
use futures::{StreamExt as _, stream};

use crate::cli::fleet::WaveArgs;
use crate::cli::operation::RunArgs;
use crate::cli::{Cli, CliCommand, GlobalArgs};
use crate::exit::{Exit, UsageError};
use crate::output::{self, of_cluster};
use crate::session::Session;
use crate::words::fleet as words;
use crate::{failure, settings};

/// How many clusters are worked on at the same time.
const AT_ONCE: usize = 8;

/// The clusters of a command.
#[derive(Debug)]
pub struct Fleet {
    /// The clusters in the order of the changes: contexts as typed, namespaces by name.
    pub members: Vec<FleetClusterSource>,
    global: GlobalArgs,
}

impl Fleet {
    /// Returns the clusters that a command line selects. `None` for a single cluster.
    ///
    /// # Errors
    /// Flags exclude each other, a context does not exist, no cluster is selected, or the server of the namespaces cannot be reached.
    pub async fn from_cli(cli: &Cli) -> Result<Option<Self>> {
        let (global, selector) = (&cli.global, cli.command.clusters());
        let contexts = global.context.as_deref().unwrap_or_default();
        let has_contexts = contexts.contains(',');
        check_flags(global, has_contexts, selector.is_some())?;
        let members: Vec<FleetClusterSource> = match selector {
            Some(selector) => find_selected(global, selector).await?,
            None if has_contexts => {
                let names = parse_contexts(contexts)?;
                settings::check_contexts(global, &names)?;
                names.into_iter().map(FleetClusterSource::Context).collect()
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
    pub fn from_places(global: &GlobalArgs, members: Vec<FleetClusterSource>) -> Result<Self> {
        let contexts = members.iter().filter_map(|place| match place {
            FleetClusterSource::Context(name) => Some(name.clone()),
            FleetClusterSource::Namespace(_) => None,
        });
        let contexts: Vec<String> = contexts.collect();
        check_flags(global, !contexts.is_empty(), contexts.len() < members.len())?;
        if !contexts.is_empty() && global.context.is_some() {
            return Err(UsageError(words::CONTEXTS_OF_PLAN.to_owned()).into());
        }
        settings::check_contexts(global, &contexts)?;
        Ok(Self {
            members,
            global: global.clone(),
        })
    }

    /// Creates the session of a cluster.
    fn session(&self, member: &FleetClusterSource, timeout: Option<Duration>) -> Session {
        let mut global = self.global.clone();
        match member {
            FleetClusterSource::Context(name) => global.context = Some(name.clone()),
            FleetClusterSource::Namespace(name) => global.namespace = Some(name.clone()),
        }
        Session::with_timeout(global, timeout)
    }

    /// Runs work that only reads on every cluster, and returns the values sorted by cluster. Reports errors at once, and returns their
    /// highest exit code.
    pub async fn read_each<T>(
        &self,
        work: impl AsyncFn(&Session) -> Result<T>,
    ) -> (Vec<(String, T)>, Exit) {
        let all = stream::iter(&self.members).map(async |member| {
            let session = self.session(member, None);
            let work = async {
                work(&session)
                    .await
                    .map_err(|error| failure::report_failure(&error))
            };
            (member.name(), of_cluster::run_labelled(member, work).await)
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

/// Returns the waves in which the clusters are changed.
///
/// # Errors
/// The next wave has to wait until clusters are ready, and `--wait=false` is set.
pub fn parse_rollout(
    waves: &WaveArgs,
    run: &RunArgs,
) -> Result<addons_clusters::fleet::RolloutSettings, UsageError> {
    match waves.rollout() {
        Some(_) if !run.wait => Err(UsageError(words::NO_WAIT.to_owned())),
        rollout => Ok(rollout.unwrap_or_default()),
    }
}

/// Refuses flags for waves on a single cluster.
///
/// # Errors
/// Flags for waves were given.
pub fn check_single_cluster(command: &CliCommand) -> Result<(), UsageError> {
    let waves = match command {
        CliCommand::Install(args) => &args.waves,
        CliCommand::Upgrade(args) => &args.waves,
        CliCommand::Uninstall(args) => &args.waves,
        CliCommand::Apply(args) if args.set.is_some() => &args.waves,
        // Whether a plan file is for several clusters is known once it is read.
        _ => return Ok(()),
    };
    match waves.rollout() {
        Some(_) => Err(UsageError(words::NO_WAVES.to_owned())),
        None => Ok(()),
    }
}

/// Refuses flags that contradict each other about the clusters.
fn check_flags(
    global: &GlobalArgs,
    has_contexts: bool,
    has_selector: bool,
) -> Result<(), UsageError> {
    let several = match (has_contexts, has_selector) {
        (false, false) => return Ok(()),
        (true, true) => {
            return Err(UsageError(
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
        Some((_, flag)) => Err(UsageError(format!(
            "{several} cannot be combined with {flag}"
        ))),
        None => Ok(()),
    }
}

/// Parses the contexts of `--context`.
fn parse_contexts(contexts: &str) -> Result<Vec<String>, UsageError> {
    let mut names: Vec<String> = Vec::new();
    for name in contexts.split(',').map(str::trim) {
        if name.is_empty() {
            return Err(UsageError(format!("--context {contexts}: a name is empty")));
        }
        if names.iter().any(|other| other == name) {
            return Err(UsageError(format!(
                "--context {contexts}: {name} is named twice"
            )));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// Finds the clusters of `--clusters`.
async fn find_selected(global: &GlobalArgs, selector: &str) -> Result<Vec<FleetClusterSource>> {
    let home = Session::new(global.clone());
    let SelectedNamespaces { clusters, others } = select_namespaces(home.ctx(), selector).await?;
    if let Some(note) = words::describe_left_out(&others) {
        output::note(&note);
    }
    if clusters.is_empty() {
        return Err(UsageError(words::describe_nothing_selected(selector)).into());
    }
    Ok(clusters
        .into_iter()
        .map(FleetClusterSource::Namespace)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_named_once() {
        assert_eq!(parse_contexts("b, a").unwrap(), ["b", "a"]);
        for (typed, expected) in [
            ("a,", "--context a,: a name is empty"),
            ("a,b,a", "--context a,b,a: a is named twice"),
        ] {
            assert_eq!(parse_contexts(typed).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn waves_wait() {
        let typed = |flags: &str| {
            let line = format!("x upgrade --clusters tier=prod {flags}");
            let words: Vec<_> = line.split_whitespace().map(Into::into).collect();
            let CliCommand::Upgrade(args) = crate::cli::parse(&words).unwrap().command else {
                panic!("{line}");
            };
            parse_rollout(&args.waves, &args.change.run)
        };
        assert_eq!(typed("--wait=false").unwrap().waves(5).len(), 1);
        assert_eq!(typed("--max-unavailable 2").unwrap().waves(5).len(), 3);
        assert!(typed("--canary 1 --wait=false").is_err());
    }

    #[test]
    fn flags_that_say_different_things_are_refused() {
        let with = |change: fn(&mut GlobalArgs)| {
            let mut global = GlobalArgs::default();
            change(&mut global);
            global
        };
        let namespace = with(|global| global.namespace = Some("shop".into()));
        let token = with(|global| global.token = Some("secret".into()));
        let said = |global: &GlobalArgs, contexts, selector| {
            let refused = check_flags(global, contexts, selector).err();
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
