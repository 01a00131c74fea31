//! Verbs on core add-ons. Field docs are the help texts.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;

use super::operation::{Named, Run, Source};
use super::values::Values;
use super::{Late, Listing};
use crate::completion;

/// Verbs on core add-ons.
#[derive(Subcommand, Debug)]
pub enum Core {
    /// List the core add-ons of each cluster, what lists them, and whether they are installed
    #[command(alias = "ls")]
    List(Late<List>),
    /// Show what each rule and the list of core add-ons say of one add-on
    Explain(Late<Explain>),
    /// Let core add-ons be uninstalled, or everything of a cluster that is being deleted; only members of the core group may
    Release(Late<Release>),
    /// Write the records of core add-ons that were deleted, with the objects that they had; only members of the core group may
    Restore(Late<Box<Restore>>),
}

/// Flags of `core list`.
#[derive(Args, Debug)]
pub struct List {
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `core explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// The add-on
    #[arg(value_name = "NAME", value_parser = super::name::addon)]
    pub name: String,
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `core release`.
#[derive(Args, Debug)]
pub struct Release {
    /// Installations to release; nothing is uninstalled
    #[arg(value_name = "NAME", required_unless_present = "cluster_deleting", value_parser = super::name::addon, add = ArgValueCandidates::new(completion::installations))]
    pub names: Vec<String>,
    /// The cluster of the namespace is being deleted: mark the namespace, and let go of every record in it; the cluster is not asked
    #[arg(long, conflicts_with = "names")]
    pub cluster_deleting: bool,
}

/// Flags of `core restore`.
#[derive(Args, Debug)]
pub struct Restore {
    /// Add-ons whose objects exist; what is listed as a core add-on is restored as it is listed, anything else as install --core has it
    #[arg(value_name = "NAME[@VERSION]", required = true, value_parser = super::name::addon, add = ArgValueCandidates::new(completion::addons))]
    pub addons: Vec<String>,
    #[command(flatten)]
    pub named: Named,
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub values: Values,
    /// Show what would be recorded, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub run: Run,
}
