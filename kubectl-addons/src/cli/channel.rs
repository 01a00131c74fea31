//! Verbs on kops indexes. Field docs are the help texts.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::time::Duration;

use clap::{Args, Subcommand};
use common::catalogue::author::Typed;

use super::Listing;
use super::operation::{ChangeArgs, DeleteArgs, DifferenceArgs, RepairArgs};

/// Verbs on a kops index.
#[derive(Subcommand, Debug)]
pub enum ChannelCommand {
    /// Install or upgrade every add-on of kops indexes
    Apply(ChannelApplyArgs),
    /// List the add-ons that kops has recorded in this cluster
    #[command(alias = "ls")]
    List(ChannelListArgs),
}

/// Flags of `channel apply`.
#[derive(Args, Debug)]
pub struct ChannelApplyArgs {
    /// kops indexes: files, file://, http(s)://, s3://, gs:// or azure URLs
    #[arg(value_name = "INDEX", required_unless_present = "files", value_parser = super::typed::location, value_hint = clap::ValueHint::FilePath)]
    pub indexes: Vec<Typed>,
    /// Another index, from a file
    #[arg(short = 'f', long = "filename", value_name = "FILE", value_parser = super::typed::location, value_hint = clap::ValueHint::FilePath)]
    pub files: Vec<Typed>,
    /// Uninstall add-ons that were installed from these indexes and are no longer in any of them
    #[arg(long)]
    pub prune_removed: bool,
    /// Apply repeatedly, with this pause between passes, until Ctrl-C
    #[arg(long, value_name = "DURATION", requires = "yes", value_parser = super::duration)]
    pub interval: Option<Duration>,
    #[command(flatten)]
    pub due: RepairArgs,
    #[command(flatten)]
    pub delete: DeleteArgs,
    #[command(flatten)]
    pub differences: DifferenceArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `channel list`.
#[derive(Args, Debug)]
pub struct ChannelListArgs {
    #[command(flatten)]
    pub output: Listing,
}
