//! `list`: shows the installations, their versions and health, and newer versions.

mod brief;
mod newer;

use std::collections::BTreeSet;
use std::sync::Arc;

use addons_operation::health::ClusterTroubles;
use addons_operation::{Offer, Records, health, name_of};
use addons_plan::standing::{StandingState, UnseenCluster};
use anyhow::Result;
use brief::one_line;
use common::age::age;
use common::api::catalogue::Deprecation;
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;
use common::catalogue::installed::find_deprecation;
use common::text::list_first;
use jiff::Timestamp;
use newer::NewerVersions;
use serde::Serialize;

use crate::cli::OutputFormat;
use crate::cli::reading::ListArgs;
use crate::commands::{chosen, labelled, search};
use crate::exit::{Exit, UsageError};
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;
use crate::words::{self, hint};

pub(super) use brief::shorten_status;

/// How many namespaces with records are named.
const MAX_NAMESPACES: usize = 3;
/// For how many pending installations the command that continues is printed.
const MAX_PENDING: usize = 5;

/// An installation.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InstallationRow {
    /// The name of the cluster, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    namespace: String,
    name: String,
    addon: String,
    target_namespace: String,
    version: String,
    id: String,
    /// Whether it stays at the version that its record names until a command names it.
    pinned: bool,
    core: bool,
    /// Set if its version is deprecated in its catalogue. Absent if the origin was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<Deprecation>,
    /// Phase and message in one text.
    status: String,
    /// The phase alone.
    phase: StandingState,
    /// The message, or empty.
    message: String,
    /// The command that continues an operation that failed or was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    way_on: Option<String>,
    /// The newest version that fits and is not installed. Absent if there is none, or if the origin was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    newer: Option<String>,
    origin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    installed_at: Option<String>,
    #[serde(skip)]
    age: String,
}

/// The listed installations of a cluster, and what was left out.
pub(crate) struct ListedInstallations {
    rows: Vec<InstallationRow>,
    has_others: bool,
    /// Why none are listed, if other namespaces have installations.
    elsewhere: Option<String>,
    /// `false` if an index that should have been compared could not be read.
    is_checked: bool,
}

impl ListedInstallations {
    /// Merges the installations of several clusters, each under the name of its cluster.
    pub(crate) fn merge(found: Vec<(String, Self)>) -> Self {
        let mut merged = Self {
            rows: Vec::new(),
            has_others: false,
            elsewhere: None,
            is_checked: true,
        };
        for (cluster, listed) in found {
            merged.has_others |= listed.has_others;
            merged.is_checked &= listed.is_checked;
            merged
                .rows
                .extend(listed.rows.into_iter().map(|row| InstallationRow {
                    cluster: Some(cluster.clone()),
                    ..row
                }));
        }
        merged
    }

    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self.is_checked {
            true => Exit::Done,
            false => Exit::Failed,
        }
    }
}

/// Lists the installations of this cluster.
///
/// # Errors
/// The server cannot be reached, or refuses the request.
pub async fn run(session: &Session, args: &ListArgs) -> Result<Exit> {
    if let Some(namespace) = &args.available.for_cluster {
        let there = session.for_namespace(namespace);
        there.ctx().check_cluster().await?;
        return search::run_available(&there, args).await;
    }
    if args.available.is_asked() {
        return search::run_available(session, args).await;
    }
    if args.all_namespaces && session.global().namespace.is_some() {
        return Err(
            UsageError("--all-namespaces cannot be combined with --namespace".to_owned()).into(),
        );
    }
    let listed = list_installations(session, args).await?;
    show(&listed, args)?;
    Ok(listed.exit())
}

/// Lists the installations of a cluster.
///
/// # Errors
/// The server cannot be reached, or refuses the request.
pub(crate) async fn list_installations(
    session: &Session,
    args: &ListArgs,
) -> Result<ListedInstallations> {
    let known = Records::read(session.ctx()).await?;
    let namespace = session.global().namespace.as_deref();
    let is_partial = known.is_partial;
    let misplaced = known.find_misplaced(session.ctx(), namespace).await?;
    warn_of_misplaced(session, &misplaced);
    let mut elsewhere = namespace.and_then(|namespace| explain_no_records(&known, namespace));
    let mut records = known.into_namespace(namespace);
    records.retain(|record| !args.core || record.spec.core_addon);
    if let Some(selector) = &args.selector {
        let any = !records.is_empty();
        labelled::retain_matching(session.ctx(), namespace, selector, &mut records).await?;
        if any && records.is_empty() {
            elsewhere = Some(format!("no installation matches -l {selector}"));
        }
    }
    let mut newer = NewerVersions::new(args.outdated);
    let mut rows = installation_rows(session, &records, is_partial, &mut newer).await?;
    for row in &mut rows {
        let is_it =
            |name: &InstallationName| name.name == row.name && name.namespace == row.namespace;
        if misplaced.iter().any(is_it) {
            row.way_on = None;
        }
    }
    rows.retain(|row| !args.outdated || row.newer.is_some());
    for why in &newer.unread {
        output::warn(&format!("not checked: {why}"));
    }
    Ok(ListedInstallations {
        has_others: rows.len() < records.len(),
        rows,
        elsewhere,
        is_checked: newer.unread.is_empty() && !newer.is_lost,
    })
}

/// Warns of installations that nothing installs because of their namespace.
pub(super) fn warn_of_misplaced(session: &Session, misplaced: &[InstallationName]) {
    if !misplaced.is_empty() {
        let system = &session.global().system_namespace;
        output::warn(&words::describe_misplaced(misplaced, system));
    }
}

/// Explains that a namespace has no records, because it may have been mistaken for the namespace of the objects.
fn explain_no_records(known: &Records, namespace: &str) -> Option<String> {
    let places: BTreeSet<String> = known.all.iter().map(|it| name_of(it).namespace).collect();
    if places.is_empty() || places.contains(namespace) {
        return None;
    }
    Some(format!(
        "namespace {namespace} has no installations; -n names the namespace of their records, and those are in {}",
        list_first(places, MAX_NAMESPACES)
    ))
}

/// Prints installations.
///
/// # Errors
/// A value cannot be printed.
pub(crate) fn show(listed: &ListedInstallations, args: &ListArgs) -> Result<()> {
    let ListedInstallations {
        rows,
        has_others,
        elsewhere,
        is_checked,
    } = listed;
    match args.output.format {
        OutputFormat::Value(_) => output::print_value(&ItemList { items: rows }, args.output)?,
        OutputFormat::Name => {
            for row in rows {
                output::print_text(&format!(
                    "addoninstallation.kubectl-addons.dev/{}\n",
                    row.name
                ));
            }
        }
        OutputFormat::Table | OutputFormat::Wide if rows.is_empty() => {
            if *has_others {
                if *is_checked {
                    output::note("everything is up to date");
                }
            } else if let Some(elsewhere) = elsewhere {
                let look = hint::indent_lines(&hint::look_line("kubectl addons list"));
                output::note(&format!("{elsewhere}{look}"));
            } else {
                let look = hint::indent_lines(&hint::look_line("kubectl addons search"));
                output::note(&format!("nothing is installed{look}"));
            }
        }
        format @ (OutputFormat::Table | OutputFormat::Wide) => {
            let table = table(rows, format == OutputFormat::Wide, args.all_namespaces);
            output::print_painted(&table.render_listing(args.output));
            tell_pending(rows);
        }
    }
    Ok(())
}

/// Names the commands that install or change what is pending.
fn tell_pending(rows: &[InstallationRow]) {
    let is_pending = |row: &&InstallationRow| row.phase == StandingState::Pending;
    let pending = rows.iter().filter(is_pending);
    let commands = pending.filter_map(|row| Some((&row.name, row.way_on.as_ref()?)));
    let commands: Vec<_> = commands.collect();
    for (name, command) in commands.iter().take(MAX_PENDING) {
        output::note(&format!("{name} is pending; to continue: {command}"));
    }
    if let Some(more @ 1..) = commands.len().checked_sub(MAX_PENDING) {
        output::note(&format!("and {more} more; look: kubectl addons status"));
    }
}

async fn installation_rows(
    session: &Session,
    records: &[AddonInstallation],
    by_namespace: bool,
    newer: &mut NewerVersions,
) -> Result<Vec<InstallationRow>> {
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let ctx = session.ctx();
    let all: Vec<&AddonInstallation> = records.iter().collect();
    let ClusterTroubles { troubles, unseen } =
        health::read_troubles(ctx, &all, by_namespace).await?;
    let offered = health::read_offered(ctx).await?;
    let catalogue = match ctx.readable_catalogues().await? {
        Some(_) => ctx.catalogue(&Offer::Catalogues).await?,
        None => Arc::default(),
    };
    report_unread(
        session,
        unseen.as_ref(),
        offered.is_none() && catalogue.entries.is_empty(),
    );
    chosen::warn_of_unread(&catalogue);
    // What fits a cluster that is lost is not known.
    newer.is_lost = matches!(unseen, Some(UnseenCluster::Lost(_)));
    let facts = match newer.is_lost {
        true => None,
        false => Some(session.fit_for(&catalogue, None, None).await?),
    };
    let now = ctx.home().await?.now();
    let mut rows = Vec::new();
    for record in records {
        let name = name_of(record);
        let reference = &record.spec.addon_ref;
        let installed = record.installed().cloned().unwrap_or_default();
        let newer = match &facts {
            Some(facts) => newer.find_newer(session, record, &catalogue, facts).await?,
            None => None,
        };
        let created = record
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0);
        let troubles = troubles.get(&health::owner_of(record));
        let troubles = troubles.cloned().unwrap_or_default();
        let state =
            health::installation_state(session.ctx(), record, &troubles, offered.as_ref()).await?;
        rows.push(InstallationRow {
            cluster: None,
            phase: state.standing.state,
            status: state.to_string(),
            message: state.standing.message,
            way_on: state.continue_command,
            addon: reference.name.clone(),
            target_namespace: record.spec.target_namespace.clone().unwrap_or_default(),
            version: installed.version.clone(),
            id: installed.id.clone(),
            pinned: reference.version.is_some(),
            core: record.spec.core_addon,
            deprecated: find_deprecation(record, &catalogue).cloned(),
            newer,
            origin: words::describe_origin(record),
            installed_at: installed.at.as_ref().map(|at| at.0.to_string()),
            age: created
                .map(|created: Timestamp| age(created, now))
                .unwrap_or_default(),
            namespace: name.namespace,
            name: name.name,
        });
    }
    rows.sort_by(|a, b| (&a.name, &a.namespace).cmp(&(&b.name, &b.namespace)));
    Ok(rows)
}

/// Says once what is not known because the cluster or the catalogues were not read.
fn report_unread(session: &Session, unseen: Option<&UnseenCluster>, has_no_catalogues: bool) {
    let namespace = session.ctx().settings().records_namespace();
    match unseen {
        Some(UnseenCluster::NotAllowed) => {
            output::note(&words::delegated::explain_recorded(namespace));
        }
        Some(UnseenCluster::Lost(why)) => {
            let why = format!("the cluster of {namespace} is not read: {why}");
            output::warn(&why);
        }
        None => {}
    }
    if has_no_catalogues {
        let system = &session.global().system_namespace;
        output::note(&words::delegated::explain_no_catalogues(system));
    }
}

/// Renders the table. With `namespaces`, the namespace is the first column, as kubectl prints it.
fn table(rows: &[InstallationRow], wide: bool, namespaces: bool) -> Table {
    let has_clusters = rows.iter().any(|row| row.cluster.is_some());
    let mut header = vec!["NAME", "TARGET", "VERSION", "STATUS", "NEWER", "AGE"];
    if has_clusters {
        header.insert(0, "CLUSTER");
    }
    if namespaces {
        header.insert(0, "NAMESPACE");
    } else if wide {
        header.push("NAMESPACE");
    }
    if wide {
        header.extend(["ADDON", "ID", "ORIGIN"]);
    }
    let mut table = Table::new(&header);
    for row in rows {
        let name = if row.core {
            format!("{} (core)", row.name)
        } else {
            row.name.clone()
        };
        let version = if row.version.is_empty() && !row.id.is_empty() {
            format!("id {}", row.id)
        } else {
            let pinned = (row.pinned && !row.core).then_some("pinned");
            let deprecated = row.deprecated.as_ref().map(|_| words::DEPRECATED);
            words::marked(&row.version, pinned.into_iter().chain(deprecated))
        };
        let mut cells = vec![
            name,
            row.target_namespace.clone(),
            version,
            if wide {
                one_line(&row.status)
            } else {
                shorten_status(&row.status)
            },
            row.newer.clone().unwrap_or_else(|| "–".to_owned()),
            row.age.clone(),
        ];
        if has_clusters {
            cells.insert(0, row.cluster.clone().unwrap_or_default());
        }
        if namespaces {
            cells.insert(0, row.namespace.clone());
        } else if wide {
            cells.push(row.namespace.clone());
        }
        if wide {
            cells.extend([row.addon.clone(), row.id.clone(), row.origin.clone()]);
        }
        table.add_row(cells);
    }
    table
}
