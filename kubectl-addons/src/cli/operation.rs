//! Flags of the commands that change installations. Field docs are the help texts.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;

use super::Output;
use crate::completion;

/// Flags of `install`.
#[derive(Args, Debug)]
pub struct Install {
    /// Add-ons to install
    #[arg(required = true, value_name = "NAME[@VERSION]", add = ArgValueCandidates::new(completion::addons))]
    pub addons: Vec<String>,
    /// Name of the installation (one add-on only); default: the add-on's name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Namespace for objects that name none; default: the version's own, else the add-on's name
    #[arg(long, value_name = "NAMESPACE")]
    pub target_namespace: Option<String>,
    /// Install as a core add-on, which cannot be deleted; only members of the core group may
    #[arg(long)]
    pub core: bool,
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub values: Values,
    #[command(flatten)]
    pub change: Change,
}

/// Flags of `upgrade`.
#[derive(Args, Debug)]
pub struct Upgrade {
    /// Installations to upgrade; none = all
    #[arg(value_name = "NAME[@VERSION]", add = ArgValueCandidates::new(completion::installations))]
    pub addons: Vec<String>,
    /// Upgrade every installation of this cluster
    #[arg(long, conflicts_with = "addons")]
    pub all: bool,
    /// Restore what was edited or deleted, even where no other version is due
    #[arg(long)]
    pub repair: bool,
    /// Accept a lower version
    #[arg(long)]
    pub allow_downgrade: bool,
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub values: Values,
    #[command(flatten)]
    pub change: Change,
}

/// Flags of `diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// Installations or add-ons to compare with what is live; none = all installations
    #[arg(value_name = "NAME[@VERSION]", add = ArgValueCandidates::new(completion::installations))]
    pub addons: Vec<String>,
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub values: Values,
    #[command(flatten)]
    pub output: Output,
}

/// Flags of `uninstall`.
#[derive(Args, Debug)]
pub struct Uninstall {
    /// Installations to uninstall
    #[arg(required = true, value_name = "NAME", add = ArgValueCandidates::new(completion::installations))]
    pub names: Vec<String>,
    /// Keep the objects and forget the installation
    #[arg(long)]
    pub keep: bool,
    #[command(flatten)]
    pub run: Run,
}

/// Flags of `channel apply`.
#[derive(Args, Debug)]
pub struct ChannelApply {
    /// kops index: a file, file:// or http(s):// URL
    #[arg(value_name = "INDEX")]
    pub index: String,
    #[command(flatten)]
    pub change: Change,
}

/// Where entries come from, and which rules choose.
#[derive(Args, Debug, Default)]
pub struct Source {
    /// Take the add-ons from this kops index instead of the catalogues: a file, file:// or http(s):// URL
    #[arg(long, value_name = "INDEX")]
    pub channel: Option<String>,
    /// Take the add-ons from this AddonCatalogue only
    #[arg(long, value_name = "NAME", conflicts_with = "channel", add = ArgValueCandidates::new(completion::catalogues))]
    pub catalogue: Option<String>,
}

/// Values of the installation.
#[derive(Args, Debug, Default)]
pub struct Values {
    /// YAML file with values; later files win
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// One value at a dotted path; wins over files
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
}

/// How a change is made.
#[derive(Args, Clone, Debug)]
pub struct Change {
    /// Show what would happen and change nothing: client plans only, server asks the API server about every object
    #[arg(long, value_enum, value_name = "MODE", num_args = 0..=1, default_value_t, default_missing_value = "client", require_equals = true)]
    pub dry_run: DryRun,
    /// Accept a set that is empty, or that prunes most of what is installed
    #[arg(long)]
    pub allow_prune: bool,
    /// Never install the definitions; fail where they are missing
    #[arg(long)]
    pub no_init: bool,
    #[command(flatten)]
    pub run: Run,
}

/// How an operation runs.
#[derive(Args, Clone, Debug)]
pub struct Run {
    /// Do not ask
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Wait until everything is ready (default); --wait=false returns after the last write
    #[arg(long, num_args = 0..=1, default_value_t = true, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub wait: bool,
    /// Bound of the operation of one add-on, e.g. 90s, 5m
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = crate::cli::duration)]
    pub timeout: Duration,
    /// Fail at once where another client is changing the installation
    #[arg(long)]
    pub no_wait: bool,
    /// Take over from a client that is still changing the installation
    #[arg(long)]
    pub steal_lock: bool,
}

/// Modes of `--dry-run`, as kubectl names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// Change the cluster
    #[default]
    None,
    /// Plan only
    Client,
    /// Ask the API server about every object
    Server,
}
