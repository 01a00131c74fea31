//! Flags of `sync`.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use common::directory::allowed::AllowedKind;

use super::Output;
use super::operation::{ChangeArgs, DeleteArgs, DifferenceArgs};

/// The folder in which the addon-manager keeps its manifests.
const DIRECTORY: &str = "/etc/kubernetes/addons";

/// Flags of `sync`.
#[derive(Args, Debug)]
pub struct SyncArgs {
    /// Directory of manifests: each file and folder in it is one add-on
    #[arg(value_name = "DIR", default_value = DIRECTORY, value_hint = ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Read the directory repeatedly and watch the cluster, until interrupted; what is gone from it is deleted an interval later
    #[arg(long, requires = "yes", conflicts_with_all = ["dry_run", "format"])]
    pub watch: bool,
    /// How often the directory is read with --watch, e.g. 30s, 5m
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = crate::cli::duration)]
    pub interval: Duration,
    /// Also manage objects without a label of the addon-manager, instead of ignoring them
    #[arg(long)]
    pub all: bool,
    /// Read names as BASENAME-VERSION, as the addon-manager did in 2015: an older version that no installation owns is deleted when
    /// the new one is ready
    #[arg(long)]
    pub legacy_names: bool,
    /// Uninstall everything that came from the directory if it no longer contains a manifest
    #[arg(long)]
    pub allow_empty: bool,
    /// Uninstall add-ons that are gone from the directory even if they are more than half of all
    #[arg(long)]
    pub allow_removals: bool,
    /// Prune only these kinds, separated by spaces or commas, like the addon-manager's KUBECTL_PRUNE_WHITELIST_OVERRIDE; default:
    /// all
    #[arg(long, value_name = "GROUP/VERSION/KIND", value_parser = kinds)]
    pub prune_allowlist: Option<AllowedKinds>,
    /// Prune these kinds in addition to --prune-allowlist or the addon-manager's own list, like KUBECTL_EXTRA_PRUNE_WHITELIST
    #[arg(long, value_name = "GROUP/VERSION/KIND", value_parser = kinds)]
    pub extra_prune_allowlist: Option<AllowedKinds>,
    #[command(flatten)]
    pub delete: DeleteArgs,
    #[command(flatten)]
    pub differences: DifferenceArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
    #[command(flatten)]
    pub output: Output,
}

/// Kinds of a prune allow-list; none where the text is empty.
#[derive(Clone, Debug, Default)]
pub struct AllowedKinds(pub Vec<AllowedKind>);

fn kinds(text: &str) -> Result<AllowedKinds, String> {
    let rows = text.split([' ', ',', '\n', '\t']);
    let rows = rows.filter(|row| !row.is_empty());
    let kinds: Result<_, _> = rows.map(str::parse).collect();
    kinds
        .map(AllowedKinds)
        .map_err(|error: common::directory::allowed::NotAKind| error.to_string())
}
