//! The clap types of the command line. `commands/` implements the commands.

pub mod airgap;
pub mod channel;
pub mod core;
pub mod create;
mod duration;
pub mod fleet;
pub mod format;
mod help;
pub mod history;
pub(crate) mod name;
mod named;
pub mod operation;
pub mod plan;
pub mod publish;
pub mod reading;
pub mod render;
pub mod schema;
pub mod set;
pub mod sync;
mod tip;
pub mod typed;
pub mod values;
pub mod verify;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::builder::Styles;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use common::catalogue::author::Typed;

use duration::bound;
pub use duration::duration;
pub use format::{
    ComparisonOutput, Listing, Output, OutputFormat, PagedOutput, ReportOutput, ValueFormat,
};
use name::Candidates;

/// Manages the add-ons of a cluster from versioned catalogues.
#[derive(Parser, Debug)]
#[command(name = "kubectl addons", bin_name = "kubectl addons", version, styles = Styles::plain(), max_term_width = 110)]
#[command(arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened group has no help text of its own")]
    pub global: GlobalArgs,
    #[command(subcommand)]
    #[expect(missing_docs, reason = "the subcommands have their own help texts")]
    pub command: CliCommand,
}

/// Parses the command line. Help calls the program `kubectl addons`, or by its own name if kubectl could not find it under that name.
///
/// Help and version, which are printed, and mistakes. [`clap::Error::exit_code`] tells them apart.
pub fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = set_program_name(command(), args);
    let matches = command.try_get_matches_from_mut(args);
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    let mut cli = cli.map_err(|error| tip::with_tips(error, args))?;
    cli.global.named = cli.command.registries();
    cli.global.sets = cli.command.sets();
    Ok(cli)
}

/// Sets the name under which the program was called.
fn set_program_name(command: clap::Command, args: &[OsString]) -> clap::Command {
    let name = args
        .first()
        .and_then(|program| Path::new(program).file_name()?.to_str());
    match name.filter(|name| !name.starts_with("kubectl-")) {
        Some(name) => command.bin_name(name.to_owned()),
        None => command,
    }
}

/// Returns the command line with the examples of each command, from which help, the reference and the manual pages are generated.
#[must_use]
pub fn command() -> clap::Command {
    help::with_examples(Cli::command())
}

/// One verb.
#[derive(Subcommand, Debug)]
pub enum CliCommand {
    /// Install or update the CustomResourceDefinitions of kubectl addons, and the webhook and policies that you ask for
    Init(reading::InitArgs),
    /// Manage catalogues: create, add, list, show, remove, sync, publish, push, view and validate them
    #[command(subcommand, alias = "catalog")]
    Catalogue(reading::CatalogueCommand),
    /// List the add-ons that can be installed, and whether they fit
    Search(reading::SearchArgs),
    /// Show one add-on: its source, objects, images and form, and why other versions were passed over
    Show(reading::ShowArgs),
    /// List the images of add-ons, without duplicates
    Images(reading::ImagesArgs),
    /// Write everything that add-ons need into one archive, for a site without internet
    Export(airgap::ExportArgs),
    /// Push the contents of an archive to the registry of a site
    Import(airgap::ImportArgs),
    /// Install add-ons
    Install(operation::InstallArgs),
    /// Upgrade installations to the newest version that fits, or to a named one
    Upgrade(operation::UpgradeArgs),
    /// List the revisions of an installation, and what each changed
    History(history::HistoryArgs),
    /// Roll back an installation to an earlier revision
    Rollback(history::RollbackArgs),
    /// Reconcile installations with their records, once or continuously: install, upgrade, repair, resume, finish deletions
    Reconcile(operation::ReconcileArgs),
    /// Take over what other tools installed, changing only the owner
    Adopt(operation::AdoptArgs),
    /// Uninstall add-ons
    #[command(alias = "delete")]
    Uninstall(operation::UninstallArgs),
    /// List what is installed
    ///
    /// STATUS is judged by the objects that tell whether an add-on works: workloads, Jobs, Services, PersistentVolumeClaims, CRDs and
    /// APIServices. `status` reads every object, and also says which others are gone.
    #[command(alias = "ls")]
    List(reading::ListArgs),
    /// Show the objects of an installation, and why it is not ready
    Status(reading::StatusArgs),
    /// Show the values of an installation, and the layer that each one comes from
    Values(reading::ValuesArgs),
    /// Show what an upgrade would change; exit code 0: nothing, 1: something, 2 and above: an error
    Diff(operation::DiffArgs),
    /// Show what install and upgrade would do, or write it to a file for review and for apply
    Plan(plan::PlanArgs),
    /// Carry out a plan file, unless something has changed since it was written
    Apply(plan::ApplyArgs),
    /// Print the rendered manifests of an add-on or a folder, with the values of Secrets masked
    Render(render::RenderArgs),
    /// Verify whether add-ons, images and charts are signed, and by whom
    Verify(verify::VerifyArgs),
    /// Apply kops indexes, and list what kops has recorded
    #[command(subcommand)]
    Channel(channel::ChannelCommand),
    /// List and explain the core add-ons of clusters, release them, and restore their records
    #[command(subcommand)]
    Core(core::CoreCommand),
    /// Keep the cluster in sync with a directory of manifests, as the addon-manager does
    Sync(sync::SyncArgs),
    /// Check whether installed add-ons fit a newer version of Kubernetes, and which APIs it removes
    Preflight(reading::PreflightArgs),
    /// Check the webhook, policies, CRDs, records and permissions, and show the command that fixes each problem
    Doctor(reading::DoctorArgs),
    /// Print the JSON schema of catalogues or sets, for editors
    Schema(schema::SchemaArgs),
    /// Print the versions of this client and of the server
    Version(reading::VersionArgs),
    /// Set up completion for kubectl addons, or print a shell completion script for kubectl-addons
    Completion(reading::CompletionArgs),
    /// List the global options, which every command takes
    Options,
}

impl CliCommand {
    /// `--timeout`, if the command has it.
    pub fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Install(args) => Some(args.change.run.timeout),
            Self::Upgrade(args) => Some(args.change.run.timeout),
            Self::Rollback(args) => Some(args.change.run.timeout),
            Self::Adopt(args) => Some(args.run.timeout),
            Self::Uninstall(args) => Some(args.run.timeout),
            Self::Core(core::CoreCommand::Restore(args)) => Some(args.run.timeout),
            Self::Channel(channel::ChannelCommand::Apply(args)) => Some(args.change.run.timeout),
            Self::Apply(args) => Some(args.change.run.timeout),
            Self::Sync(args) => Some(args.change.run.timeout),
            _ => None,
        }
    }

    /// Whether `--events` is set.
    pub fn has_events(&self) -> bool {
        let events = match self {
            Self::Install(args) => args.change.events,
            Self::Upgrade(args) => args.change.events,
            Self::Rollback(args) => args.change.events,
            Self::Uninstall(args) => args.events,
            Self::Channel(channel::ChannelCommand::Apply(args)) => args.change.events,
            Self::Apply(args) => args.change.events,
            Self::Sync(args) => args.change.events,
            _ => return false,
        };
        events.events
    }

    /// `--clusters`, if the command has it.
    pub fn clusters(&self) -> Option<&str> {
        let clusters = match self {
            Self::Install(args) => &args.clusters,
            Self::Upgrade(args) => &args.clusters,
            Self::Uninstall(args) => &args.clusters,
            Self::List(args) => &args.clusters,
            Self::Status(args) => &args.clusters,
            Self::Diff(args) => &args.clusters,
            Self::Preflight(args) => &args.clusters,
            Self::Plan(args) => &args.clusters,
            Self::Apply(args) => &args.clusters,
            Self::Core(core::CoreCommand::Release(args)) => &args.clusters,
            _ => return None,
        };
        clusters.clusters.as_deref()
    }
}

/// Flags that every command takes, as kubectl names them.
#[derive(Args, Debug, Default, Clone)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Path to the kubeconfig file
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub kubeconfig: Option<String>,
    /// Context of the kubeconfig; several, separated by commas, for commands that work on many clusters
    #[arg(long, global = true, value_name = "NAME[,NAME...]", add = Candidates::Contexts)]
    pub context: Option<String>,
    /// Cluster of the kubeconfig
    #[arg(long, global = true)]
    pub cluster: Option<String>,
    /// User of the kubeconfig
    #[arg(long, global = true)]
    pub user: Option<String>,
    /// Namespace of the installations; default: the system namespace, and those labelled to stand for this cluster
    #[arg(short = 'n', long, global = true, add = Candidates::Namespaces)]
    pub namespace: Option<String>,
    /// User to impersonate
    #[arg(long = "as", global = true, value_name = "USER")]
    pub as_user: Option<String>,
    /// Group to impersonate; may be repeated
    #[arg(long = "as-group", global = true, value_name = "GROUP")]
    pub as_group: Vec<String>,
    /// UID to impersonate
    #[arg(long = "as-uid", global = true, value_name = "UID")]
    pub as_uid: Option<String>,
    /// Address of the API server
    #[arg(short = 's', long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// Bearer token
    #[arg(long, global = true)]
    pub token: Option<String>,
    /// File with the certificate authority of the API server
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub certificate_authority: Option<String>,
    /// File with the client certificate
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub client_certificate: Option<String>,
    /// File with the key of the client certificate
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub client_key: Option<String>,
    /// Do not verify the certificate of the API server (insecure)
    #[arg(long, global = true)]
    pub insecure_skip_tls_verify: bool,
    /// Name that the certificate of the API server must carry
    #[arg(long, global = true, value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// Timeout of a single request, e.g. 30s
    #[arg(long, global = true, value_name = "DURATION", value_parser = bound)]
    pub request_timeout: Option<Duration>,
    /// Cache folder
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "KUBECTL_ADDONS_CACHE_DIR"
    )]
    pub cache_dir: Option<std::path::PathBuf>,
    /// Read sources only from the cache; the API server is still contacted
    #[arg(long, global = true)]
    pub offline: bool,
    /// Use your files, ssh keys, docker login and cloud accounts for what indexes name at these places: a folder, ssh://HOST, oci://HOST,
    /// s3://BUCKET, gs://BUCKET, az://CONTAINER, or the location of an index that installations, plans or sets name
    #[arg(
        long,
        global = true,
        value_name = "PLACE[,PLACE...]",
        value_delimiter = ',',
        env = "KUBECTL_ADDONS_OWN_ACCESS",
        value_parser = typed::place
    )]
    pub own_access: Vec<Typed>,
    /// Registries that other arguments name
    #[arg(skip)]
    pub named: Vec<Typed>,
    /// Sets that other arguments name
    #[arg(skip)]
    pub sets: Vec<Typed>,
    /// When to print colours; auto: on terminals, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub color: ColorChoice,
    /// Maximum number of requests in flight
    #[arg(long, global = true, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,
    /// Namespace of catalogues and of this cluster's installations
    #[arg(long, global = true, value_name = "NAMESPACE", add = Candidates::AllNamespaces, default_value = common::api::names::SYSTEM_NAMESPACE)]
    pub system_namespace: String,
    /// Rules by which a version is chosen
    #[arg(long, global = true, value_enum, default_value_t)]
    pub rules: RuleChoice,
    /// The helm program that renders charts; default: helm on the PATH
    #[arg(long, global = true, value_name = "FILE", env = "KUBECTL_ADDONS_HELM")]
    pub helm_bin: Option<std::path::PathBuf>,
    /// Treat warnings about missing template values and duplicate YAML keys as errors
    #[arg(long, global = true)]
    pub strict: bool,
    /// Verbosity, as with kubectl; from 1: on a terminal, list every object even for several add-ons; from 6: log every request to
    /// stderr
    #[arg(
        short = 'v',
        long = "v",
        global = true,
        value_name = "LEVEL",
        default_value_t = 0
    )]
    pub verbosity: u8,
}

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    /// on terminals, as NO_COLOR, CLICOLOR and CLICOLOR_FORCE say
    #[default]
    Auto,
    /// always
    Always,
    /// never
    Never,
}

/// `--rules`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum RuleChoice {
    /// documented if the chosen entry has a version, otherwise channels
    #[default]
    Auto,
    /// highest semver, then id, then hash; never a downgrade
    Documented,
    /// as kops 1.22 and later: id, hash, generation; versions are ignored
    Channels,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The examples of the help are command lines that are accepted.
    #[test]
    fn examples_are_read() {
        for (_, line) in help::EXAMPLES {
            // Without what the shell does before and after it.
            let line = line.split_once("kubectl ").unwrap().1;
            let line = line.split([')', '>', '|']).next().unwrap();
            let args: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
            if let Err(error) = parse(&args) {
                panic!("{line}: {error}");
            }
        }
    }
}
