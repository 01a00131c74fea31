//! `status NAME…`: shows the objects of installations, and why they are not ready.

mod page;
mod watch;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use addons_plan::found::open_releases;
use addons_plan::standing::object::ObjectHealth;
use addons_plan::standing::{Offered, Word};
use anyhow::Result;
use common::api::installation::{AddonInstallation, HelmRelease};
use common::foreign::Foreign;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::cli::reading::Status;
use crate::cli::{Format, Listing};
use crate::commands::labelled;
use crate::commands::list::brief;
use crate::exit::Exit;
use crate::fleet::Fleet;
use crate::output::table::Table;
use crate::output::{self, Items};
use crate::session::Session;
use crate::usage::Usage;
use crate::words::hint;
use crate::words::plan::label;
use addons_helm;
use addons_helm::release as helm_release;
use addons_operation::health::{self, State};
use addons_operation::release;
use addons_operation::{Context, Records, name_of};

/// An installation with its objects, as it is printed in JSON and YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    /// The name of the cluster, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    name: &'a str,
    namespace: &'a str,
    target_namespace: &'a str,
    /// Phase and message in one text.
    status: String,
    /// The phase alone.
    phase: String,
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
struct Looked {
    record: AddonInstallation,
    state: State,
    objects: Vec<ObjectHealth>,
    helm: Option<String>,
}

/// Shows installations: a single one as an object, several as a list.
///
/// # Errors
/// The installation does not exist, or the server cannot be reached or refuses the request.
pub async fn run(session: &Session, args: &Status) -> Result<Exit> {
    let listing = args.output.listing();
    if args.watch {
        let listing =
            listing.ok_or_else(|| Usage("--watch cannot be combined with -o html".to_owned()))?;
        return judged(args, watch::run(session, args, listing).await);
    }
    let exit = async {
        let all = look(session, session.ctx(), args).await?;
        match listing {
            Some(listing) => show(args, listing, &all)?,
            None => {
                let all: Vec<_> = all.iter().map(|looked| (None, looked)).collect();
                output::bytes(page::page(&all, Timestamp::now()).as_bytes());
            }
        }
        Ok(exit(&all))
    };
    judged(args, exit.await)
}

fn show(args: &Status, listing: Listing, all: &[Looked]) -> Result<()> {
    match (listing.format, all) {
        (Format::Json | Format::Yaml | Format::Template(_), all) => {
            output::value(&document(args, all)?, listing)?;
        }
        (Format::Table | Format::Wide, []) => output::note("nothing is installed"),
        (Format::Name, all) => all.iter().for_each(|one| output::data(&keys(one))),
        (Format::Table | Format::Wide, all) => {
            all.iter().for_each(|one| output::data(&tree(one)));
        }
    }
    Ok(())
}

/// Returns a single named installation as an object, and others as a list.
fn document(args: &Status, all: &[Looked]) -> Result<Value> {
    if let [one] = all
        && !args.is_list()
    {
        return Ok(serde_json::to_value(View::of(None, one))?);
    }
    let items: Vec<View<'_>> = all.iter().map(|one| View::of(None, one)).collect();
    Ok(serde_json::to_value(Items { items: &items })?)
}

/// Shows the installations of these names on every cluster of a fleet: a line each, and with `-o wide` their objects.
///
/// # Errors
/// A value cannot be printed. One cluster's failure does not stop the others.
pub async fn of_fleet(fleet: &Fleet, args: &Status) -> Result<Exit> {
    if args.watch {
        return Err(Usage("--watch can only be used with a single cluster".to_owned()).into());
    }
    let (found, failed) = fleet
        .each(async |session| look(session, session.ctx(), args).await)
        .await;
    let all = found.iter().flat_map(|(cluster, all)| {
        let all = all.iter();
        all.map(move |looked| (cluster.as_str(), looked))
    });
    let all: Vec<(&str, &Looked)> = all.collect();
    let listing = args.output.listing();
    match listing.map(|listing| listing.format) {
        None => {
            let all: Vec<_> = all
                .iter()
                .map(|(at, looked)| (Some(*at), *looked))
                .collect();
            output::bytes(page::page(&all, Timestamp::now()).as_bytes());
        }
        Some(Format::Json | Format::Yaml | Format::Template(_)) => {
            let items = all.iter();
            let items: Vec<View<'_>> = items
                .map(|(cluster, looked)| View::of(Some(cluster), looked))
                .collect();
            output::value(&Items { items: &items }, listing.unwrap_or_default())?;
        }
        Some(Format::Name) => all
            .iter()
            .for_each(|(_, looked)| output::data(&keys(looked))),
        Some(Format::Wide) => {
            for (cluster, looked) in &all {
                output::data(&format!("{cluster}: {}", tree(looked)));
            }
        }
        Some(Format::Table) => {
            let text = table(&all, args.is_list()).listed(listing.unwrap_or_default());
            output::data(&text);
        }
    }
    let exits = found.iter().map(|(_, all)| exit(all));
    let exit = exits.max().unwrap_or(Exit::Done);
    match failed {
        Exit::Done => judged(args, Ok(exit)),
        failed if args.exit_code => Ok(failed.max(Exit::Usage)),
        failed => Ok(failed),
    }
}

/// Returns exit code 1 if an installation is not ready.
fn exit(all: &[Looked]) -> Exit {
    match all.iter().all(|looked| looked.state.standing.is_good()) {
        true => Exit::Done,
        false => Exit::Failed,
    }
}

/// Applies `--exit-code`: without it, only errors count; with it, an error is more than 1.
fn judged(args: &Status, exit: Result<Exit>) -> Result<Exit> {
    match exit {
        exit if args.exit_code => {
            Ok(exit.unwrap_or_else(|error| output::failure(&error).max(Exit::Usage)))
        }
        exit => exit.map(|_| Exit::Done),
    }
}

fn table(all: &[(&str, &Looked)], has_names: bool) -> Table {
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
            brief(&looked.state.to_string()),
        ];
        if has_names {
            cells.insert(1, name_of(&looked.record).name);
        }
        table.row(cells);
    }
    table
}

/// Reads installations and their state. `ctx` is that of the session, or a fresh one to see later changes.
async fn look(session: &Session, ctx: &Context, args: &Status) -> Result<Vec<Looked>> {
    let namespace = session.global().namespace.as_deref();
    if args.all_namespaces && namespace.is_some() {
        return Err(
            Usage("--all-namespaces cannot be combined with --namespace".to_owned()).into(),
        );
    }
    let known = Records::read(ctx).await?;
    let mut records = match args.names.as_slice() {
        [] => known.within(namespace).collect(),
        names => known.named(names, namespace)?,
    };
    if let Some(selector) = &args.selector {
        labelled::keep(ctx, namespace, selector, &mut records).await?;
    }
    // Installations from indexes and directories are not in the catalogues.
    let is_of_catalogue = |record: &&AddonInstallation| {
        let reference = &record.spec.addon_ref;
        reference.index.is_none() && reference.directory.is_none()
    };
    let offered = match records.iter().any(is_of_catalogue) {
        true => health::offered(ctx).await?,
        false => None,
    };
    let mut all = Vec::new();
    for record in records {
        all.push(one(ctx, record, offered.as_ref()).await?);
    }
    Ok(all)
}

async fn one(
    ctx: &Context,
    record: &AddonInstallation,
    offered: Option<&Offered<'_>>,
) -> Result<Looked> {
    let health = health::objects(ctx.cluster().await?, record).await?;
    let state = health::state(ctx, record, &health, offered).await?;
    let helm = match record.status.as_ref().and_then(release::recorded) {
        Some(named) => Some(helm(release::status(ctx, named).await?, named)),
        None => None,
    };
    Ok(Looked {
        record: record.clone(),
        state,
        objects: health.objects,
        helm,
    })
}

/// Describes the Helm releases that also hold objects of an installation, or still have records of them.
fn held(looked: &Looked) -> Vec<String> {
    let record = &looked.record;
    let open = open_releases(record).map(|release| (release, 0));
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

impl<'a> View<'a> {
    fn of(cluster: Option<&'a str>, looked: &'a Looked) -> Self {
        let (metadata, spec) = (&looked.record.metadata, &looked.record.spec);
        Self {
            cluster,
            name: metadata.name.as_deref().unwrap_or_default(),
            namespace: metadata.namespace.as_deref().unwrap_or_default(),
            target_namespace: spec.target_namespace.as_deref().unwrap_or_default(),
            status: looked.state.to_string(),
            phase: looked.state.standing.word.to_string(),
            message: &looked.state.standing.message,
            way_on: looked.state.way_on.as_deref(),
            installed: looked.record.installed(),
            objects: &looked.objects,
            helm: looked.helm.as_deref(),
        }
    }
}

/// Formats the keys of the objects, one per line.
fn keys(looked: &Looked) -> String {
    let keys = looked.objects.iter();
    keys.map(|object| format!("{}\n", object.key)).collect()
}

/// Formats the state of a release: `Release web/web   Deployed, revision 2: Upgrade complete`. Helm's text about a failure may repeat
/// values, so it is left out; the record has it without them.
fn helm(status: Option<helm_release::Status>, named: &HelmRelease) -> String {
    let HelmRelease { name, namespace } = named;
    match status {
        Some(helm_release::Status {
            phase: phase @ helm_release::Phase::Deployed,
            revision,
            description,
            ..
        }) => format!(
            "Release {namespace}/{name}   {phase:?}, revision {revision}: {}",
            Foreign::new(&description)
        ),
        Some(status) => format!(
            "Release {namespace}/{name}   {:?}, revision {}",
            status.phase, status.revision
        ),
        None => format!("Release {namespace}/{name}   is gone"),
    }
}

fn tree(looked: &Looked) -> String {
    let (record, state, objects) = (&looked.record, &looked.state, &looked.objects);
    let name = record.metadata.name.as_deref().unwrap_or_default();
    let target = record.spec.target_namespace.as_deref().unwrap_or_default();
    let version = record
        .installed()
        .map(|installed| format!(" {}", label(installed)))
        .unwrap_or_default();
    let mut text = format!("{name}{version} in {target}   {state}\n");
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
        let (name, state) = (output::padded(name, width), object.message());
        // Writing to a String cannot fail.
        let _ = match &object.blocker {
            Some(blocker) => {
                let state = output::padded(state, state_width);
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
    for line in held(looked) {
        let _ = writeln!(text, "{line}");
    }
    if let Some(way_on) = &state.way_on
        && state.standing.word != Word::Interrupted
    {
        let _ = writeln!(text, "to continue: {way_on}");
    }
    if objects.iter().any(ObjectHealth::is_restorable) {
        let _ = writeln!(text, "restore: {}", hint::restored_by(record));
    }
    if let Some(helm) = &looked.helm {
        let _ = writeln!(text, "└─ {helm}");
    }
    text
}
