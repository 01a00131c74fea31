//! Flags of the commands that change installations. Field docs are the help texts.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use addons_plan::prune::KeptKind;
use addons_plan::prune::limit::PruneLimit;
use clap::{Args, ValueEnum};
use common::catalogue::author::Typed;

use super::fleet::{ClusterArgs, WaveArgs};
use super::name::Candidates;
use super::set::SetArgs;
use super::values::{ValueChangeArgs, ValueEditArgs};
use super::{ComparisonOutput, OutputFormat};

/// Flags of `install`.
#[derive(Args, Debug)]
pub struct InstallArgs {
    /// Add-ons to install; or the path of a folder or .tgz with a chart or manifests, which begins with . or /; or a reference:
    /// oci://HOST/PATH/CHART:VERSION, the https:// URL of a manifest or a chart, or a chart with --repo
    #[arg(required = true, value_name = "NAME[@VERSION]", value_parser = super::name::addon, add = Candidates::Addons)]
    pub addons: Vec<String>,
    #[command(flatten)]
    pub new: NewInstallationArgs,
    /// Uninstall this installation afterwards (one add-on only); objects that both contain are taken over and not deleted
    #[arg(long, value_name = "NAME", add = Candidates::Installations)]
    pub replace: Option<String>,
    #[command(flatten)]
    pub reference: ReferenceArgs,
    /// Also install the add-ons that the named ones require and that are missing; on a terminal, the command asks
    #[arg(long)]
    pub with_required: bool,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub values: ValueEditArgs,
    #[command(flatten)]
    pub differences: DifferenceArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
    #[command(flatten)]
    pub clusters: ClusterArgs,
    #[command(flatten)]
    pub waves: WaveArgs,
}

/// How a new installation is named.
#[derive(Args, Clone, Debug)]
pub struct NameArgs {
    /// Name of the installation (one add-on only); default: the add-on's name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Namespace for objects that do not name one; default: that of the version, otherwise the name of the add-on
    #[arg(long, value_name = "NAMESPACE", add = Candidates::AllNamespaces)]
    pub target_namespace: Option<String>,
}

/// What is said about a new installation.
#[derive(Args, Clone, Debug)]
pub struct NewInstallationArgs {
    #[command(flatten)]
    pub named: NameArgs,
    /// Install as a core add-on, which cannot be deleted (only for members of the core group)
    #[arg(long)]
    pub core: bool,
}

/// A chart of a Helm repository, in place of an add-on of a catalogue.
#[derive(Args, Clone, Debug, Default)]
pub struct ReferenceArgs {
    /// Helm repository of the named chart, which no catalogue lists
    #[arg(long, value_name = "URL", value_parser = super::typed::location, value_hint = clap::ValueHint::Url)]
    pub repo: Option<Typed>,
    /// Version of a chart or manifest by reference; default: the newest chart, and what the manifest says
    #[arg(long, value_name = "VERSION", value_parser = super::name::version)]
    pub version: Option<String>,
}

/// Flags of `upgrade`.
#[derive(Args, Debug)]
pub struct UpgradeArgs {
    /// Installations to upgrade; default: all
    #[arg(value_name = "NAME[@VERSION]", value_parser = super::name::addon, add = Candidates::Installations)]
    pub addons: Vec<String>,
    /// Upgrade every installation of this cluster
    #[arg(long, conflicts_with = "addons")]
    pub all: bool,
    /// Follow new versions again: the installations no longer name a version, and are upgraded to the newest that fits
    #[arg(long, requires = "addons")]
    pub unpin: bool,
    /// Upgrade one installation to this chart or manifest, which no catalogue lists: a reference as for install
    #[arg(long, value_name = "REFERENCE", requires = "addons", conflicts_with_all = ["unpin", "channel", "catalogue"], value_parser = super::typed::location, value_hint = clap::ValueHint::Url)]
    pub to: Option<Typed>,
    #[command(flatten)]
    pub reference: ReferenceArgs,
    /// Roll back if the upgrade fails or is not ready in time
    #[arg(long)]
    pub atomic: bool,
    #[command(flatten)]
    pub due: RepairArgs,
    #[command(flatten)]
    pub delete: DeleteArgs,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub values: ValueChangeArgs,
    #[command(flatten)]
    pub differences: DifferenceArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
    #[command(flatten)]
    pub clusters: ClusterArgs,
    #[command(flatten)]
    pub waves: WaveArgs,
}

/// Flags of `reconcile`.
#[derive(Args, Debug)]
pub struct ReconcileArgs {
    /// Installations to reconcile, restoring everything that was edited or deleted; default: all, as their records say
    #[arg(value_name = "NAME", value_parser = super::name::addon, add = Candidates::Installations)]
    pub names: Vec<String>,
    /// How long each installation may take, e.g. 90s, 5m
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = crate::cli::duration)]
    pub timeout: Duration,
    /// Also begin changes outside the maintenance windows of AddonPolicies
    #[arg(long, conflicts_with = "watch")]
    pub outside_window: bool,
    /// Keep running until interrupted; of several such processes, only one leads
    #[arg(long, conflicts_with = "names")]
    pub watch: bool,
    /// How often all installations and their sources are checked, even if nothing changed
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = crate::cli::duration, requires = "watch")]
    pub interval: Duration,
    /// ServiceAccount of the system namespace that reconciles installations there which do not name one; default: the user of the
    /// command
    #[arg(long, value_name = "NAME")]
    pub service_account: Option<String>,
    /// Push the merged catalogues to the clusters of the namespaces with these labels, as `catalogue push` does
    #[arg(long, value_name = "SELECTOR", requires = "watch")]
    pub push_catalogues: Option<String>,
    /// Store what fits each cluster in its namespace, in the AddonCatalogue compatible-addons
    #[arg(long, requires = "watch")]
    pub store_compatible: bool,
    /// Remove the finalizers from all records, before the reconciler is removed for good
    #[arg(long, conflicts_with_all = ["names", "watch"])]
    pub retire: bool,
    /// Address on which to serve /readyz and /metrics, e.g. 0.0.0.0:8080
    #[arg(long, value_name = "ADDRESS", requires = "watch")]
    pub health_bind: Option<SocketAddr>,
}

/// Flags of `adopt`.
#[derive(Args, Debug)]
pub struct AdoptArgs {
    /// Add-ons whose objects exist; without names, list what other tools installed
    #[arg(value_name = "NAME[@VERSION]", value_parser = super::name::addon, add = Candidates::Addons)]
    pub addons: Vec<String>,
    /// Output format of the list
    #[arg(short = 'o', long, value_parser = super::format::FormatParser, default_value = "table", conflicts_with = "addons")]
    pub output: OutputFormat,
    /// Print the list without its header line
    #[arg(long, conflicts_with = "addons")]
    pub no_headers: bool,
    /// Also take over objects that Argo CD or Flux applies, and edit an installation that is applied from Git
    #[arg(long)]
    pub force: bool,
    /// Give these installations back: every object stays, and the records of the former tool are restored
    #[arg(long, requires = "addons", conflicts_with_all = ["name", "target_namespace", "core", "channel", "catalogue", "given", "reset_values"])]
    pub release: bool,
    /// Record installations of this cluster again whose records came from another cluster
    #[arg(long, requires = "addons", conflicts_with_all = ["force", "release", "name", "target_namespace", "core", "channel", "catalogue", "given", "reset_values"])]
    pub new_cluster: bool,
    #[command(flatten)]
    pub new: NewInstallationArgs,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub values: ValueEditArgs,
    /// Leave the values that a Helm release was given, and record only those of the other flags
    #[arg(long, requires = "addons")]
    pub reset_values: bool,
    /// Show what would be taken over and what differs, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not install the CustomResourceDefinitions of kubectl addons; fail if they are missing
    #[arg(long)]
    pub no_init: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Flags of `diff`.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// Installations or add-ons to compare with the live objects; default: all installations
    #[arg(value_name = "NAME[@VERSION]", value_parser = super::name::addon, add = Candidates::Installations)]
    pub addons: Vec<String>,
    /// Show what rolling the installation back to this revision would change
    #[arg(
        long,
        value_name = "REVISION",
        requires = "addons",
        conflicts_with_all = ["filename", "given", "unset", "reset_values", "channel", "catalogue", "allow_downgrade"],
        value_parser = super::history::revision,
        add = Candidates::Revisions
    )]
    pub revision: Option<i64>,
    #[command(flatten)]
    pub set: SetArgs,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub values: ValueChangeArgs,
    /// Compare with a lower version, if it is named or a set names it
    #[arg(long)]
    pub allow_downgrade: bool,
    /// Show every field of every object, and nothing shortened
    #[arg(long)]
    pub full: bool,
    #[command(flatten)]
    pub output: ComparisonOutput,
    #[command(flatten)]
    pub clusters: ClusterArgs,
}

/// Flags of `uninstall`.
#[derive(Args, Debug)]
pub struct UninstallArgs {
    /// Installations to uninstall
    #[arg(required_unless_present = "all", value_name = "NAME", value_parser = super::name::addon, add = Candidates::Installations)]
    pub names: Vec<String>,
    /// Uninstall every installation of this cluster, or of the namespace, except core add-ons
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Keep the objects and forget the installation
    #[arg(long, conflicts_with_all = ["delete_crds", "delete_namespaces", "delete_volumes"])]
    pub keep: bool,
    #[command(flatten)]
    pub delete: DeleteArgs,
    /// Also uninstall installations that Argo CD or Flux applies from Git
    #[arg(long)]
    pub force: bool,
    /// Show what would be deleted and change nothing: client only plans, server checks every object with the API server
    #[arg(long, value_enum, value_name = "MODE", num_args = 0..=1, default_value_t, default_missing_value = "client", require_equals = true)]
    pub dry_run: DryRunMode,
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub events: EventArgs,
    #[command(flatten)]
    pub clusters: ClusterArgs,
    #[command(flatten)]
    pub waves: WaveArgs,
}

/// What is changed beside newer versions.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct RepairArgs {
    /// Restore what was edited or deleted, even if no other version is due
    #[arg(long)]
    pub repair: bool,
    /// Accept a lower version
    #[arg(long)]
    pub allow_downgrade: bool,
}

/// Where entries come from, and which rules choose.
#[derive(Args, Clone, Debug, Default)]
pub struct SourceArgs {
    /// Use this kops index, catalogue or folder instead of the catalogues of the cluster: a path, or a file://, http(s):// or oci:// URL
    #[arg(long, value_name = "INDEX", value_parser = super::typed::location, value_hint = clap::ValueHint::FilePath)]
    pub channel: Option<Typed>,
    /// Use only this AddonCatalogue
    #[arg(long, value_name = "NAME", conflicts_with = "channel", value_parser = super::name::catalogue, add = Candidates::Catalogues)]
    pub catalogue: Option<String>,
}

/// The registry of a site.
#[derive(Args, Clone, Debug, Default)]
pub struct SiteArgs {
    /// Private registry to which all images, and sources in registries, are rewritten
    #[arg(long, value_name = "HOST[/PATH]")]
    pub registry: Option<String>,
}

/// What happens to fields that others changed, and to fields that never change.
#[derive(Args, Clone, Debug, Default)]
pub struct DifferenceArgs {
    /// What to do with fields that another manager changed; stored in the installation (default: take)
    #[arg(long, value_enum, value_name = "POLICY")]
    pub conflicts: Option<ConflictChoice>,
    /// Recreate this object if one of its fields cannot be changed; never volumes, CRDs or namespaces
    #[arg(long, value_name = "KIND/NAME", add = Candidates::Objects)]
    pub recreate: Vec<String>,
}

/// Policies of `--conflicts`, as `spec.conflicts` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConflictChoice {
    /// Take them back
    Take,
    /// Fail, and list them
    Fail,
    /// Leave them to the other manager
    Yield,
}

impl InstallArgs {
    /// Returns the path in place of an add-on's name. No add-on has such a name.
    pub fn path(&self) -> Option<Typed> {
        let is_path = |typed: &&String| {
            let is_archive = typed.ends_with(".tgz") || typed.ends_with(".tar.gz");
            typed.starts_with(['.', '/']) || is_archive && !typed.contains("://")
        };
        let path = self.addons.iter().find(is_path)?;
        super::typed::location(path).ok()
    }

    /// Returns the reference in place of an add-on's name: a URL or, with `--repo`, the name of a chart.
    pub fn reference(&self) -> Option<Typed> {
        let is_reference = |typed: &&String| self.reference.repo.is_some() || typed.contains("://");
        let reference = self.addons.iter().find(is_reference)?;
        super::typed::location(reference).ok()
    }
}

impl From<ConflictChoice> for common::api::installation::ConflictPolicy {
    fn from(conflicts: ConflictChoice) -> Self {
        match conflicts {
            ConflictChoice::Take => Self::Take,
            ConflictChoice::Fail => Self::Fail,
            ConflictChoice::Yield => Self::Yield,
        }
    }
}

/// How a change is made.
#[derive(Args, Clone, Debug)]
pub struct ChangeArgs {
    /// Show what would happen and change nothing: client only plans, server checks every object with the API server
    #[arg(long, value_enum, value_name = "MODE", num_args = 0..=1, default_value_t, default_missing_value = "client", require_equals = true)]
    pub dry_run: DryRunMode,
    #[command(flatten)]
    pub accept: AcceptArgs,
    /// Do not install the CustomResourceDefinitions of kubectl addons; fail if they are missing
    #[arg(long)]
    pub no_init: bool,
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub events: EventArgs,
}

impl ChangeArgs {
    /// Returns how long to wait for types that add-ons require. `None` if nothing will be changed.
    pub fn wait_for_types(&self) -> Option<Duration> {
        (self.dry_run == DryRunMode::None).then_some(self.run.timeout)
    }
}

/// What is accepted that is refused otherwise.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct AcceptArgs {
    /// Maximum share of installed objects to prune; default: 50% of a set of ten objects or more
    #[arg(long, value_name = "N%", value_parser = percent, default_value_t, hide_default_value = true)]
    pub allow_prune: PruneLimit,
    /// Accept CRDs that drop or tighten fields even if that breaks live objects
    #[arg(long)]
    pub allow_crd_breakage: bool,
    /// Accept CRDs that drop a stored version: rewrite every object in a version that remains
    #[arg(long)]
    pub migrate_stored_versions: bool,
    /// Take over existing objects that no installation owns, without restarting pods whose template is unchanged
    #[arg(long)]
    pub adopt: bool,
    /// With --adopt, also take over objects that Argo CD or Flux applies
    #[arg(long, requires = "adopt")]
    pub force_adopt: bool,
    /// Also edit installations that Argo CD or Flux applies from Git
    #[arg(long)]
    pub force: bool,
}

/// Kinds whose objects hold data of others: they are deleted only when named (semantics 7).
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct DeleteArgs {
    /// Also delete CustomResourceDefinitions, and with them every object of their kinds
    #[arg(long)]
    pub delete_crds: bool,
    /// Also delete namespaces of the manifest, and with them everything in them
    #[arg(long)]
    pub delete_namespaces: bool,
    /// Also delete PersistentVolumeClaims and PersistentVolumes
    #[arg(long)]
    pub delete_volumes: bool,
}

impl DeleteArgs {
    /// Returns the kinds that the flags name.
    pub fn kinds(self) -> BTreeSet<KeptKind> {
        let volumes = [KeptKind::PersistentVolumeClaim, KeptKind::PersistentVolume];
        let definitions = self
            .delete_crds
            .then_some(KeptKind::CustomResourceDefinition);
        let namespaces = self.delete_namespaces.then_some(KeptKind::Namespace);
        let volumes = volumes.into_iter().filter(|_| self.delete_volumes);
        definitions
            .into_iter()
            .chain(namespaces)
            .chain(volumes)
            .collect()
    }
}

/// Parses a share of the installed objects.
fn percent(text: &str) -> Result<PruneLimit, String> {
    let number = text.strip_suffix('%').ok_or_else(|| {
        format!("it is a share of what is installed: write {text}% if that is meant")
    })?;
    let share = number.parse().ok().and_then(PruneLimit::new);
    share.ok_or_else(|| "it must be between 0% and 100%".to_owned())
}

/// How an operation runs.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Do not ask
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Also begin outside the maintenance windows of AddonPolicies
    #[arg(long)]
    pub outside_window: bool,
    /// Wait until everything is ready (default); --wait=false returns after the last write
    #[arg(long, num_args = 0..=1, default_value_t = true, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub wait: bool,
    /// How long the command may take, e.g. 90s, 5m
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = crate::cli::duration)]
    pub timeout: Duration,
    /// Fail at once if another client is changing the installation
    #[arg(long)]
    pub no_wait_lock: bool,
    /// Take over from a client that is still changing the installation
    #[arg(long)]
    pub steal_lock: bool,
}

/// Whether programs are told what happens.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct EventArgs {
    /// Print events to stdout, one JSON object per line
    #[arg(long, requires = "yes")]
    pub events: bool,
}

/// Modes of `--dry-run`, as kubectl names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DryRunMode {
    /// Change the cluster
    #[default]
    None,
    /// Plan only
    Client,
    /// Ask the API server about every object
    Server,
}
