//! Verbs on core add-ons. Field docs are the help texts.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use clap::{Args, Subcommand};

use super::Listing;
use super::fleet::ClusterArgs;
use super::name::Candidates;
use super::operation::{NameArgs, RunArgs, SourceArgs};
use super::values::ValueEditArgs;

/// Verbs on core add-ons.
#[derive(Subcommand, Debug)]
pub enum CoreCommand {
    /// List the core add-ons of each cluster, why they are core, and whether they are installed
    #[command(alias = "ls")]
    List(CoreListArgs),
    /// Show how each rule and the list of core add-ons decide about one add-on
    Explain(CoreExplainArgs),
    /// Allow core add-ons to be uninstalled, or release everything of a cluster that is being deleted (only for the core group)
    Release(CoreReleaseArgs),
    /// Restore deleted records of core add-ons, together with their inventory (only for the core group)
    Restore(Box<CoreRestoreArgs>),
}

/// Flags of `core list`.
#[derive(Args, Debug)]
pub struct CoreListArgs {
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `core explain`.
#[derive(Args, Debug)]
pub struct CoreExplainArgs {
    /// The add-on
    #[arg(value_name = "NAME", value_parser = super::name::addon)]
    pub name: String,
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `core release`.
#[derive(Args, Debug)]
pub struct CoreReleaseArgs {
    /// Installations to release; nothing is uninstalled
    #[arg(value_name = "NAME", required_unless_present = "cluster_deleting", value_parser = super::name::addon, add = Candidates::Installations)]
    pub names: Vec<String>,
    /// Release every record in the namespace, because its cluster is being deleted; the cluster is not contacted
    #[arg(long, conflicts_with = "names")]
    pub cluster_deleting: bool,
    #[command(flatten)]
    pub clusters: ClusterArgs,
}

/// Flags of `core restore`.
#[derive(Args, Debug)]
pub struct CoreRestoreArgs {
    /// Add-ons whose objects exist; listed core add-ons are restored as listed, others as with install --core
    #[arg(value_name = "NAME[@VERSION]", required = true, value_parser = super::name::addon, add = Candidates::Addons)]
    pub addons: Vec<String>,
    #[command(flatten)]
    pub named: NameArgs,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub values: ValueEditArgs,
    /// Show what would be recorded, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub run: RunArgs,
}
