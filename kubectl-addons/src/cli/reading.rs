//! Flags of the commands that read, and of those that manage definitions and catalogues.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::path::PathBuf;

use clap::{Args, Subcommand};
use common::catalogue::author::Typed;

use super::fleet::ClusterArgs;
use super::name::Candidates;
use super::operation::{RunArgs, SiteArgs, SourceArgs};
use super::{Listing, Output, PagedOutput, ReportOutput};

/// Flags of `init`.
#[derive(Args, Debug)]
pub struct InitArgs {
    /// Install the admission webhook as well, or upgrade it
    #[arg(long)]
    pub webhook: bool,
    /// Image of the webhook; default: the installed one
    #[arg(long, value_name = "IMAGE", requires = "webhook")]
    pub image: Option<String>,
    /// Install the admission policies as well, or upgrade them
    #[arg(long)]
    pub policies: bool,
    /// Show what --webhook and --policies would do, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Verbs on catalogues.
#[derive(Subcommand, Debug)]
pub enum CatalogueCommand {
    /// Generate a catalogue from charts, folders and manifests, without a cluster
    Create(super::create::CatalogueCreateArgs),
    /// Add or replace catalogues in the cluster
    Add(CatalogueAddArgs),
    /// List the catalogues of the cluster
    #[command(alias = "ls")]
    List(CatalogueListArgs),
    /// Show one catalogue
    Show(CatalogueShowArgs),
    /// Remove catalogues from the cluster; installations stay
    Remove(CatalogueRemoveArgs),
    /// Update catalogues from the location that they came from
    Sync(CatalogueSyncArgs),
    /// Push a catalogue and the packages of this machine that it lists to a registry
    Publish(super::publish::CataloguePublishArgs),
    /// Merge the catalogues, and push them to other clusters
    Push(CataloguePushArgs),
    /// Show the entries of all catalogues, and duplicates among them
    View(CatalogueViewArgs),
    /// Check catalogues and indexes without a cluster
    Validate(CatalogueValidateArgs),
}

/// Flags of `catalogue add`.
#[derive(Args, Debug)]
pub struct CatalogueAddArgs {
    /// AddonCatalogue manifests or kops indexes: files, file://, http(s):// or oci:// URLs
    #[arg(required = true, value_name = "LOCATION", value_parser = super::typed::location, value_hint = clap::ValueHint::FilePath)]
    pub locations: Vec<Typed>,
    /// Name of the catalogue (one location with one catalogue only); default: the one in the file
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Store only the digest of the file and the names of its add-ons; commands read the versions from the file
    #[arg(long)]
    pub by_reference: bool,
    /// Do not install the CustomResourceDefinitions of kubectl addons; fail if they are missing
    #[arg(long)]
    pub no_init: bool,
}

/// Flags of `catalogue list`.
#[derive(Args, Debug)]
pub struct CatalogueListArgs {
    /// Show catalogues of class Core as well
    #[arg(long)]
    pub core: bool,
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `catalogue show`.
#[derive(Args, Debug)]
pub struct CatalogueShowArgs {
    /// Name of the catalogue
    #[arg(value_parser = super::name::catalogue, add = Candidates::Catalogues)]
    pub name: String,
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `catalogue remove`.
#[derive(Args, Debug)]
pub struct CatalogueRemoveArgs {
    /// Names of the catalogues
    #[arg(required = true, value_name = "NAME", value_parser = super::name::catalogue, add = Candidates::Catalogues)]
    pub names: Vec<String>,
    /// Show what would be removed, and what is installed from it, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(short = 'y', long)]
    pub yes: bool,
}

/// Flags of `catalogue sync`.
#[derive(Args, Debug)]
pub struct CatalogueSyncArgs {
    /// Names of the catalogues; default: all that have spec.from
    #[arg(value_name = "NAME", value_parser = super::name::catalogue, add = Candidates::Catalogues)]
    pub names: Vec<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Flags of `catalogue push`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("targets").required(true).multiple(true))]
pub struct CataloguePushArgs {
    /// Contexts of the kubeconfig to whose clusters the catalogues are pushed
    #[arg(long, value_name = "CONTEXT", value_delimiter = ',', group = "targets", add = Candidates::Contexts)]
    pub to_context: Vec<String>,
    /// Label selector for the namespaces that stand for the clusters, as with kubectl -l
    #[arg(long, value_name = "SELECTOR", group = "targets")]
    pub clusters: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Flags of `catalogue view`.
#[derive(Args, Debug)]
pub struct CatalogueViewArgs {
    /// Show entries of catalogues of class Core as well
    #[arg(long)]
    pub core: bool,
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `catalogue validate`.
#[derive(Args, Debug)]
pub struct CatalogueValidateArgs {
    /// AddonCatalogue manifests or kops indexes: files, folders with a file catalogue.yaml, file://, http(s):// or oci:// URLs
    #[arg(default_value = ".", value_name = "LOCATION", value_parser = super::typed::location, value_hint = clap::ValueHint::FilePath)]
    pub locations: Vec<Typed>,
    /// Also read sources on servers, not only in the catalogue and on this machine
    #[arg(long)]
    pub fetch: bool,
    #[command(flatten)]
    pub output: Output,
}

/// The cluster that is asked about.
#[derive(Args, Debug, Default)]
pub struct FitArgs {
    /// Kubernetes version to fit; default: that of the cluster
    #[arg(long, value_name = "VERSION", value_parser = super::name::version)]
    pub k8s: Option<String>,
    /// KKP version to fit
    #[arg(long, value_name = "VERSION", value_parser = super::name::version)]
    pub kkp: Option<String>,
}

/// Flags of `search`.
#[derive(Args, Debug)]
pub struct SearchArgs {
    /// Words that the name or the description must contain
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// Show core add-ons as well
    #[arg(long)]
    pub core: bool,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub fit: FitArgs,
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The add-on
    #[arg(value_name = "NAME[@VERSION]", value_parser = super::name::addon, add = Candidates::Addons)]
    pub addon: String,
    /// Print only the default values of the chart or the templates, verbatim
    #[arg(long, conflicts_with = "readme")]
    pub values: bool,
    /// Print only the README of the chart or package
    #[arg(long, conflicts_with = "format")]
    pub readme: bool,
    /// Show which objects and fields the patches of the installation with this name change
    #[arg(long, conflicts_with_all = ["values", "readme", "channel", "catalogue", "registry", "k8s", "kkp"])]
    pub patches: bool,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub site: SiteArgs,
    #[command(flatten)]
    pub fit: FitArgs,
    #[command(flatten)]
    pub output: Output,
}

/// Flags of `images`.
#[derive(Args, Debug)]
pub struct ImagesArgs {
    /// The add-ons; default: all that fit
    #[arg(value_name = "NAME[@VERSION]", value_parser = super::name::addon, add = Candidates::Addons)]
    pub addons: Vec<String>,
    /// Without names: include core add-ons
    #[arg(long)]
    pub core: bool,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub site: SiteArgs,
    #[command(flatten)]
    pub fit: FitArgs,
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Show core add-ons only
    #[arg(long)]
    pub core: bool,
    /// Show only installations for which a newer version fits; what was installed from an index is compared with it
    #[arg(long)]
    pub outdated: bool,
    /// Show the installations of all namespaces of this cluster, which is the default without --namespace
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Show the installations that match this label selector, as with kubectl -l
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    #[command(flatten)]
    pub available: AvailableArgs,
    #[command(flatten)]
    pub output: Listing,
    #[command(flatten)]
    pub clusters: ClusterArgs,
}

/// What could be installed, in the place of what is.
#[derive(Args, Debug, Default)]
pub struct AvailableArgs {
    /// Show the add-ons that fit and can be installed instead, one version of each
    #[arg(long, conflicts_with_all = ["outdated", "all_namespaces", "selector"])]
    pub available: bool,
    /// Show the add-ons that fit the cluster that this namespace stands for
    #[arg(long, value_name = "NAMESPACE", conflicts_with_all = ["k8s", "namespace", "outdated", "all_namespaces", "selector"])]
    pub for_cluster: Option<String>,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub fit: FitArgs,
}

impl AvailableArgs {
    /// Whether this is asked for, and nothing of what is installed.
    pub fn is_asked(&self) -> bool {
        let fit = self.fit.k8s.is_some() || self.fit.kkp.is_some();
        let source = self.source.channel.is_some() || self.source.catalogue.is_some();
        self.available || self.for_cluster.is_some() || fit || source
    }
}

/// Flags of `status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Installations
    #[arg(value_name = "NAME", required_unless_present_any = ["all_namespaces", "selector"], value_parser = super::name::addon, add = Candidates::Installations)]
    pub names: Vec<String>,
    /// Show all installations of this cluster
    #[arg(short = 'A', long, conflicts_with = "names")]
    pub all_namespaces: bool,
    /// Show the installations that match this label selector, as with kubectl -l
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "names")]
    pub selector: Option<String>,
    /// Exit with 0 if everything is ready, with 1 if not, and with 2 or more after an error
    #[arg(long)]
    pub exit_code: bool,
    /// Show changes until Ctrl-C; if the output is not a terminal, print a line for each change
    #[arg(short = 'w', long)]
    pub watch: bool,
    #[command(flatten)]
    pub output: PagedOutput,
    #[command(flatten)]
    pub clusters: ClusterArgs,
}

impl StatusArgs {
    /// Whether several are shown, or could be.
    pub fn is_list(&self) -> bool {
        self.names.len() != 1
    }
}

/// Flags of `values`.
#[derive(Args, Debug)]
pub struct ValuesArgs {
    /// The installation
    #[arg(value_parser = super::name::addon, add = Candidates::Installations)]
    pub name: String,
    /// Show the layer that each value comes from, and the layers that it overrides
    #[arg(long)]
    pub explain: bool,
    /// Show only what the user set: the values in the record, and which come from Secrets
    #[arg(long)]
    pub user_supplied: bool,
    /// Show the values that were recorded with this revision
    #[arg(long, value_name = "REVISION", value_parser = super::history::revision, add = Candidates::Revisions)]
    pub revision: Option<i64>,
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `preflight`.
#[derive(Args, Debug)]
pub struct PreflightArgs {
    /// The installations; default: all of this cluster
    #[arg(value_name = "NAME", value_parser = super::name::addon, add = Candidates::Installations)]
    pub names: Vec<String>,
    /// Kubernetes version to upgrade to, e.g. 1.37
    #[arg(long, value_name = "VERSION")]
    pub to: String,
    #[command(flatten)]
    pub output: ReportOutput,
    #[command(flatten)]
    pub clusters: ClusterArgs,
}

/// Flags of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `version`.
#[derive(Args, Debug)]
pub struct VersionArgs {
    /// Print only the client version, without contacting the server
    #[arg(long)]
    pub client: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Flags of `completion`.
#[derive(Args, Debug)]
pub struct CompletionArgs {
    /// The shell
    #[arg(value_enum, required_unless_present = "install")]
    pub shell: Option<Shell>,
    /// Install kubectl_complete-addons, with which kubectl completes `kubectl addons`, beside the plugin
    #[arg(long, conflicts_with = "shell")]
    pub install: bool,
    /// Folder on the PATH for --install; default: the folder on the PATH that contains kubectl-addons
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, requires = "install")]
    pub to: Option<PathBuf>,
}

/// Shells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
    /// PowerShell
    Powershell,
}
