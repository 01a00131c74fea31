//! `preflight --to VERSION`: what would become of the installations with a future release of Kubernetes.

mod page;

use addons_operation::preflight::{self, Preflight};
use addons_operation::{Records, name_of};
use addons_versions::kubernetes;
use anyhow::{Context as _, Result};
use common::api::installation::AddonInstallation;
use common::catalogue::select::ClusterFacts;
use common::preflight::lifecycle::{Lifecycle, Release};
use common::preflight::{Remedy, Used, Verdict};
use serde::Serialize;

use crate::cli::format::PagedFormat;
use crate::cli::reading;
use crate::cli::{Format, Listing};
use crate::exit::Exit;
use crate::fleet::Fleet;
use crate::output::table::Table;
use crate::output::{self, Items};
use crate::session::Session;
use crate::words::preflight as words;

/// One installation.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    /// Where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    namespace: String,
    name: String,
    addon: String,
    version: String,
    /// `Fits`, `Unknown` or `DoesNotFit`.
    verdict: Verdict,
    reasons: Vec<String>,
    /// Which version would fit, and when to install it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<Remedy>,
    /// The APIs of its objects that are not simply served.
    apis: Vec<Used>,
    /// Those in which other managers last wrote its objects.
    writers: Vec<Used>,
    #[serde(skip)]
    fix: Option<String>,
}

/// Judges the installations of this cluster.
///
/// # Errors
/// A version that cannot be read; an installation that does not exist; the server cannot be reached, or refuses.
pub async fn run(session: &Session, args: &reading::Preflight) -> Result<Exit> {
    let to = target(args)?;
    let rows = rows(session, args, &to).await?;
    show(&rows, &to, args)?;
    Ok(exit(&rows))
}

/// The same for every cluster of a fleet, in one table; a cluster that cannot be read fails alone.
///
/// # Errors
/// A version that cannot be read.
pub async fn of_fleet(fleet: &Fleet, args: &reading::Preflight) -> Result<Exit> {
    let to = target(args)?;
    let (found, failed) = fleet
        .each(async |session| rows(session, args, &to).await)
        .await;
    let mut merged = Vec::new();
    for (cluster, rows) in found {
        merged.extend(rows.into_iter().map(|row| Row {
            cluster: Some(cluster.clone()),
            ..row
        }));
    }
    show(&merged, &to, args)?;
    Ok(failed.max(exit(&merged)))
}

/// The cluster with that version; the rest of it stays.
fn target(args: &reading::Preflight) -> Result<ClusterFacts> {
    let to = kubernetes::parse(&args.to).with_context(|| format!("--to {}", args.to))?;
    Ok(ClusterFacts {
        kubernetes: Some(to),
        kkp: None,
    })
}

/// What is unknown may not fit: a pipeline that goes on with 0 must not go on with that.
fn exit(rows: &[Row]) -> Exit {
    match rows.iter().all(|row| row.verdict == Verdict::Fits) {
        true => Exit::Done,
        false => Exit::DoesNotFit,
    }
}

async fn rows(session: &Session, args: &reading::Preflight, to: &ClusterFacts) -> Result<Vec<Row>> {
    let known = Records::read(session.ctx()).await?;
    let namespace = session.global().namespace.as_deref();
    let mut records = match args.names.as_slice() {
        [] => known.within(namespace).collect(),
        names => known.named(names, namespace)?,
    };
    records.sort_by_key(|record| name_of(record).name);
    let Preflight {
        installations,
        unread,
    } = preflight::check(session.ctx(), &records, to).await?;
    for (kind, why) in unread {
        output::note(&format!(
            "{kind} cannot be read, so who writes such objects is not known: {why}"
        ));
    }
    let rows = records.into_iter().zip(installations);
    Ok(rows
        .map(|(record, (name, finding))| Row {
            cluster: None,
            addon: record.spec.addon_ref.name.clone(),
            version: installed(record),
            verdict: finding.verdict,
            reasons: words::reasons(&finding),
            fix: words::fix(&name, &finding),
            remedy: finding.remedy,
            apis: finding.apis,
            writers: finding.writers,
            namespace: name.namespace,
            name: name.name,
        })
        .collect())
}

fn installed(record: &AddonInstallation) -> String {
    let installed = record.installed().cloned().unwrap_or_default();
    match installed.version.as_str() {
        "" if !installed.id.is_empty() => format!("id {}", installed.id),
        version => version.to_owned(),
    }
}

fn show(rows: &[Row], to: &ClusterFacts, args: &reading::Preflight) -> Result<()> {
    let no_headers = args.output.no_headers;
    match args.output.format {
        PagedFormat::Html => output::bytes(page::html(rows, to).as_bytes()),
        PagedFormat::Markdown => output::data(&page::markdown(rows, to)),
        PagedFormat::Plain(format) => print(rows, Listing { format, no_headers })?,
    }
    let newest = Lifecycle::default().newest();
    let release = to.kubernetes.as_ref().map(Release::from);
    if let Some(release) = release.filter(|release| *release > newest) {
        output::note(&format!(
            "what Kubernetes {release} deprecates and removes is not known to this release, which knows {newest}"
        ));
    }
    Ok(())
}

fn print(rows: &[Row], listing: Listing) -> Result<()> {
    match listing.format {
        Format::Json | Format::Yaml | Format::Template(_) => {
            output::value(&Items { items: rows }, listing)?
        }
        Format::Name => output::names(
            "addoninstallation.kubectl-addons.dev",
            rows.iter().map(|row| row.name.as_str()),
        ),
        Format::Table | Format::Wide if rows.is_empty() => output::note("nothing is installed"),
        Format::Table | Format::Wide => output::data(&table(rows).listed(listing)),
    }
    Ok(())
}

fn table(rows: &[Row]) -> Table {
    let of_fleet = rows.iter().any(|row| row.cluster.is_some());
    let mut header = vec!["NAME", "VERSION", "VERDICT", "WHY, AND WHAT TO DO"];
    if of_fleet {
        header.insert(0, "CLUSTER");
    }
    let mut table = Table::new(&header);
    for row in rows {
        let lines = row.reasons.iter().chain(&row.fix);
        let mut lines = lines.cloned().collect::<Vec<_>>().into_iter();
        let verdict = words::verdict(row.verdict);
        let first = [row.name.as_str(), &row.version, verdict];
        let mut cells: Vec<_> = first.map(str::to_owned).into();
        cells.push(lines.next().unwrap_or_default());
        if of_fleet {
            cells.insert(0, row.cluster.clone().unwrap_or_default());
        }
        table.row(cells);
        for line in lines {
            let mut cells = vec!["·".to_owned(); header.len() - 1];
            cells.push(line);
            table.row(cells);
        }
    }
    table
}
