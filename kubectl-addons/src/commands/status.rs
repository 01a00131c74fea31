//! `status NAME…`: shows the objects of installations, and why they are not ready.

mod page;
mod watch;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use addons_plan::found::list_open_releases;
use addons_plan::standing::object::ObjectHealth;
use addons_plan::standing::{OfferedCatalogues, StandingState, UnseenCluster};
use anyhow::Result;
use common::api::installation::{AddonInstallation, HelmRelease};
use common::foreign::ForeignText;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::cli::reading::StatusArgs;
use crate::cli::{Listing, OutputFormat};
use crate::commands::labelled;
use crate::commands::list::{shorten_status, warn_of_misplaced};
use crate::exit::{Exit, UsageError};
use crate::failure;
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;
use crate::words::delegated;
use crate::words::hint;
use crate::words::plan::version_label;
use addons_helm;
use addons_helm::release as helm_release;
use addons_operation::health::{self, InstallationState};
use addons_operation::plan::release;
use addons_operation::{Context, Records, name_of};

/// An installation with its objects, as it is printed in JSON and YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InstallationView<'a> {
    /// The name of the cluster, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    name: &'a str,
    namespace: &'a str,
    target_namespace: &'a str,
    /// Phase and message in one text.
    status: String,
    /// The phase alone.
    phase: StandingState,
    /// The message, or empty.
    message: &'a str,
    /// The command that continues an operation that failed or was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    way_on: Option<&'a str>,
    installed: Option<&'a common::api::installation::Installed>,
    objects: &'a [ObjectHealth],
    /// What helm says about its release.
    #[serde(skip_serializing_if = "Option::is_none")]
    helm: Option<&'a str>,
}

/// An installation and its current state.
pub(crate) struct ObservedInstallation {
    record: AddonInstallation,
    state: InstallationState,
    objects: Vec<ObjectHealth>,
    /// Why its cluster was not read.
    unseen: Option<UnseenCluster>,
    helm: Option<String>,
    /// Whether nothing installs it, because its namespace does not stand for a cluster.
    is_misplaced: bool,
}

/// Shows installations: a single one as an object, several as a list.
///
/// # Errors
/// The installation does not exist, or the server cannot be reached or refuses the request.
pub async fn run(session: &Session, args: &StatusArgs) -> Result<Exit> {
    let listing = args.output.listing();
    if args.watch {
        let listing = listing
            .ok_or_else(|| UsageError("--watch cannot be combined with -o html".to_owned()))?;
        return apply_exit_code(args, watch::run(session, args, listing).await);
    }
    let exit = async {
        let all = read(session, args).await?;
        let is_recorded =
            |one: &ObservedInstallation| one.unseen == Some(UnseenCluster::NotAllowed);
        if all.iter().any(is_recorded) {
            let namespace = session.ctx().settings().records_namespace();
            output::note(&delegated::explain_recorded(namespace));
        }
        let misplaced = all.iter().filter(|one| one.is_misplaced);
        warn_of_misplaced(
            session,
            &misplaced
                .map(|one| name_of(&one.record))
                .collect::<Vec<_>>(),
        );
        match listing {
            Some(listing) => show(args, listing, &all)?,
            None => {
                let all: Vec<_> = all.iter().map(|looked| (None, looked)).collect();
                output::print_bytes(page::render_page(&all, Timestamp::now()).as_bytes());
            }
        }
        Ok(exit_code(&all))
    };
    apply_exit_code(args, exit.await)
}

fn show(args: &StatusArgs, listing: Listing, all: &[ObservedInstallation]) -> Result<()> {
    match (listing.format, all) {
        (OutputFormat::Value(_), all) => {
            output::print_value(&document(args, all)?, listing)?;
        }
        (OutputFormat::Table | OutputFormat::Wide, []) => output::note("nothing is installed"),
        (OutputFormat::Name, all) => all
            .iter()
            .for_each(|one| output::print_text(&object_keys(one))),
        (OutputFormat::Table | OutputFormat::Wide, all) => {
            all.iter()
                .for_each(|one| output::print_painted(&render_tree(one)));
        }
    }
    Ok(())
}

/// Returns a single named installation as an object, and others as a list.
fn document(args: &StatusArgs, all: &[ObservedInstallation]) -> Result<Value> {
    if let [one] = all
        && !args.is_list()
    {
        return Ok(serde_json::to_value(InstallationView::new(None, one))?);
    }
    let items: Vec<InstallationView<'_>> = all
        .iter()
        .map(|one| InstallationView::new(None, one))
        .collect();
    Ok(serde_json::to_value(ItemList { items: &items })?)
}

/// Reads installations and their state.
///
/// # Errors
/// The installation does not exist, or the server cannot be reached or refuses the request.
pub(crate) async fn read(
    session: &Session,
    args: &StatusArgs,
) -> Result<Vec<ObservedInstallation>> {
    read_installations(session, session.ctx(), args).await
}

/// Shows the installations of several clusters by name: a line each, and with `-o wide` their objects.
///
/// # Errors
/// A value cannot be printed.
pub(crate) fn show_clusters(
    args: &StatusArgs,
    found: &[(String, Vec<ObservedInstallation>)],
) -> Result<()> {
    let all = found.iter().flat_map(|(cluster, all)| {
        let all = all.iter();
        all.map(move |looked| (cluster.as_str(), looked))
    });
    let all: Vec<(&str, &ObservedInstallation)> = all.collect();
    let listing = args.output.listing();
    match listing.map(|listing| listing.format) {
        None => {
            let all: Vec<_> = all
                .iter()
                .map(|(at, looked)| (Some(*at), *looked))
                .collect();
            output::print_bytes(page::render_page(&all, Timestamp::now()).as_bytes());
        }
        Some(OutputFormat::Value(_)) => {
            let items = all.iter();
            let items: Vec<InstallationView<'_>> = items
                .map(|(cluster, looked)| InstallationView::new(Some(cluster), looked))
                .collect();
            output::print_value(&ItemList { items: &items }, listing.unwrap_or_default())?;
        }
        Some(OutputFormat::Name) => all
            .iter()
            .for_each(|(_, looked)| output::print_text(&object_keys(looked))),
        Some(OutputFormat::Wide) => {
            for (cluster, looked) in &all {
                output::print_painted(&format!("{cluster}: {}", render_tree(looked)));
            }
        }
        Some(OutputFormat::Table) => {
            let text = table(&all, args.is_list()).render_listing(listing.unwrap_or_default());
            output::print_painted(&text);
        }
    }
    Ok(())
}

/// Returns exit code 1 if an installation is not ready.
pub(crate) fn exit_code(all: &[ObservedInstallation]) -> Exit {
    match all.iter().all(|looked| looked.state.standing.is_good()) {
        true => Exit::Done,
        false => Exit::Failed,
    }
}

/// Applies `--exit-code`: without it, only errors count; with it, an error is more than 1.
pub(crate) fn apply_exit_code(args: &StatusArgs, exit: Result<Exit>) -> Result<Exit> {
    match exit {
        exit if args.exit_code => {
            Ok(exit.unwrap_or_else(|error| failure::report_failure(&error).max(Exit::Usage)))
        }
        exit => exit.map(|_| Exit::Done),
    }
}

fn table(all: &[(&str, &ObservedInstallation)], has_names: bool) -> Table {
    let mut header = vec!["CLUSTER", "VERSION", "READY", "STATUS"];
    if has_names {
        header.insert(1, "NAME");
    }
    let mut table = Table::new(&header);
    for (cluster, looked) in all {
        let version = looked.record.installed().map(|it| it.version.clone());
        let objects = &looked.objects;
        let ready = objects.iter().filter(|object| object.is_current()).count();
        let mut cells = vec![
            (*cluster).to_owned(),
            version.unwrap_or_default(),
            format!("{ready}/{}", objects.len()),
            shorten_status(&looked.state.to_string()),
        ];
        if has_names {
            cells.insert(1, name_of(&looked.record).name);
        }
        table.add_row(cells);
    }
    table
}

/// Reads installations and their state. `ctx` is that of the session, or a fresh one to see later changes.
async fn read_installations(
    session: &Session,
    ctx: &Context,
    args: &StatusArgs,
) -> Result<Vec<ObservedInstallation>> {
    let namespace = session.global().namespace.as_deref();
    if args.all_namespaces && namespace.is_some() {
        return Err(
            UsageError("--all-namespaces cannot be combined with --namespace".to_owned()).into(),
        );
    }
    let known = Records::read(ctx).await?;
    let mut records = match args.names.as_slice() {
        [] => known.in_namespace(namespace).collect(),
        names => known.find_all(names, namespace)?,
    };
    if let Some(selector) = &args.selector {
        labelled::retain_matching(ctx, namespace, selector, &mut records).await?;
    }
    // Installations from indexes and directories are not in the catalogues.
    let is_of_catalogue = |record: &&AddonInstallation| record.spec.addon_ref.is_of_catalogue();
    let offered = match records.iter().any(is_of_catalogue) {
        true => health::read_offered(ctx).await?,
        false => None,
    };
    let misplaced = known.find_misplaced(ctx, namespace).await?;
    let mut all = Vec::new();
    for record in records {
        let mut looked = read_installation(ctx, record, offered.as_ref()).await?;
        if misplaced.contains(&name_of(record)) {
            looked.is_misplaced = true;
            looked.state.continue_command = None;
        }
        all.push(looked);
    }
    Ok(all)
}

async fn read_installation(
    ctx: &Context,
    record: &AddonInstallation,
    offered: Option<&OfferedCatalogues<'_>>,
) -> Result<ObservedInstallation> {
    let health = health::read_health(ctx, record).await?;
    let state = health::installation_state(ctx, record, &health, offered).await?;
    let is_seen = health.unseen.is_none();
    let helm = match record.status.as_ref().and_then(release::recorded_release) {
        Some(named) if is_seen => Some(describe_helm(release::status(ctx, named).await?, named)),
        _ => None,
    };
    Ok(ObservedInstallation {
        record: record.clone(),
        state,
        objects: health.objects,
        unseen: health.unseen,
        helm,
        is_misplaced: false,
    })
}

/// Describes the Helm releases that also hold objects of an installation, or still have records of them.
fn describe_releases(looked: &ObservedInstallation) -> Vec<String> {
    let record = &looked.record;
    let open = list_open_releases(record).map(|release| (release, 0));
    let mut held: BTreeMap<String, usize> = open.collect();
    for release in looked
        .objects
        .iter()
        .filter_map(|object| object.release.as_ref())
    {
        *held.entry(release.clone()).or_default() += 1;
    }
    let name = record.metadata.name.as_deref().unwrap_or_default();
    let namespace = record.metadata.namespace.as_deref().unwrap_or_default();
    let mut lines: Vec<String> = held
        .iter()
        .map(|(release, objects)| match objects {
            0 => format!(
                "Helm release {release} still has records of it: helm can delete its objects"
            ),
            1 => format!("also held by Helm release {release}: 1 object"),
            objects => format!("also held by Helm release {release}: {objects} objects"),
        })
        .collect();
    if !lines.is_empty() {
        lines.push(format!(
            "take from it: kubectl addons upgrade {name} -n {namespace} --adopt"
        ));
    }
    lines
}

impl<'a> InstallationView<'a> {
    fn new(cluster: Option<&'a str>, looked: &'a ObservedInstallation) -> Self {
        let (metadata, spec) = (&looked.record.metadata, &looked.record.spec);
        Self {
            cluster,
            name: metadata.name.as_deref().unwrap_or_default(),
            namespace: metadata.namespace.as_deref().unwrap_or_default(),
            target_namespace: spec.target_namespace.as_deref().unwrap_or_default(),
            status: looked.state.to_string(),
            phase: looked.state.standing.state,
            message: &looked.state.standing.message,
            way_on: looked.state.continue_command.as_deref(),
            installed: looked.record.installed(),
            objects: &looked.objects,
            helm: looked.helm.as_deref(),
        }
    }
}

/// Formats the keys of the objects, one per line.
fn object_keys(looked: &ObservedInstallation) -> String {
    let keys = looked.objects.iter();
    keys.map(|object| format!("{}\n", object.key)).collect()
}

/// Formats the state of a release: `Release web/web   Deployed, revision 2: Upgrade complete`. Helm's text about a failure may repeat
/// values, so it is left out; the record has it without them.
fn describe_helm(status: Option<helm_release::ReleaseStatus>, named: &HelmRelease) -> String {
    let HelmRelease { name, namespace } = named;
    match status {
        Some(helm_release::ReleaseStatus {
            phase: phase @ helm_release::ReleasePhase::Deployed,
            revision,
            description,
            ..
        }) => format!(
            "Release {namespace}/{name}   {phase:?}, revision {revision}: {}",
            ForeignText::new(&description)
        ),
        Some(status) => format!(
            "Release {namespace}/{name}   {:?}, revision {}",
            status.phase, status.revision
        ),
        None => format!("Release {namespace}/{name}   is gone"),
    }
}

fn render_tree(looked: &ObservedInstallation) -> String {
    let (record, state, objects) = (&looked.record, &looked.state, &looked.objects);
    let name = record.metadata.name.as_deref().unwrap_or_default();
    let target = record.spec.target_namespace.as_deref().unwrap_or_default();
    let version = record
        .installed()
        .map(|installed| format!(" {}", version_label(installed)))
        .unwrap_or_default();
    let place = match target {
        "" => String::new(),
        target => format!(" in {target}"),
    };
    let mut text = format!("{name}{version}{place}   {state}\n");
    let names: Vec<String> = objects
        .iter()
        .map(|object| match &object.key.namespace {
            Some(namespace) if namespace != target => object.key.to_string(),
            _ => format!("{} {}", object.key.kind, object.key.name),
        })
        .collect();
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or_default();
    let states = objects
        .iter()
        .map(|object| object.message().chars().count());
    let state_width = states.max().unwrap_or_default();
    for (i, (object, name)) in objects.iter().zip(&names).enumerate() {
        let branch = if i + 1 == objects.len() {
            "└─"
        } else {
            "├─"
        };
        let (name, state) = (output::pad_text(name, width), object.message());
        // Writing to a String cannot fail.
        let _ = match &object.blocker {
            Some(blocker) => {
                let state = output::pad_text(state, state_width);
                writeln!(text, "{branch} {name}   {state}   {}", blocker.message)
            }
            None => writeln!(text, "{branch} {name}   {state}"),
        };
    }
    let edited: Vec<_> = objects.iter().filter(|object| object.edited).collect();
    for object in &edited {
        let _ = writeln!(text, "edited since our last apply: {}", object.key);
    }
    for object in objects {
        for field in &object.yielded {
            let _ = writeln!(text, "left to another manager: {}  {field}", object.key);
        }
    }
    if objects.iter().any(|object| !object.yielded.is_empty()) {
        let _ = writeln!(
            text,
            "take back: kubectl addons upgrade {name} --conflicts take"
        );
    }
    for line in describe_releases(looked) {
        let _ = writeln!(text, "{line}");
    }
    if let Some(way_on) = &state.continue_command
        && state.standing.state != StandingState::Interrupted
    {
        let _ = writeln!(text, "to continue: {way_on}");
    }
    if objects.iter().any(ObjectHealth::is_restorable) {
        let _ = writeln!(text, "restore: {}", hint::restore_command(record));
    }
    if let Some(helm) = &looked.helm {
        let _ = writeln!(text, "└─ {helm}");
    }
    text
}
