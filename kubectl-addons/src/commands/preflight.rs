//! `preflight --to VERSION`: shows what a future release of Kubernetes would mean for the installations.

mod page;
mod report;
mod text;

use addons_advice::preflight::check::{self, Preflight};
use addons_advice::preflight::lifecycle::{Lifecycle, Release};
use addons_operation::{Records, name_of};
use addons_versions::kubernetes;
use anyhow::Result;
use common::api::installation::AddonInstallation;
use common::catalogue::select::ClusterFacts;
use report::{Report, Row};

use crate::cli::format::PagedFormat;
use crate::cli::reading;
use crate::cli::{Format, Listing};
use crate::exit::Exit;
use crate::fleet::Fleet;
use crate::output;
use crate::session::Session;
use crate::usage::Usage;
use crate::words::preflight as words;

/// Checks the installations of this cluster.
///
/// # Errors
/// The version is not valid, an installation does not exist, or the server cannot be reached or refuses the request.
pub async fn run(session: &Session, args: &reading::Preflight) -> Result<Exit> {
    let to = target(args)?;
    let report = report(session, args, &to).await?;
    show(&report, &to, args)?;
    Ok(exit(&report))
}

/// Checks every cluster of a fleet in one table. One cluster's failure does not stop the others.
///
/// # Errors
/// The version is not valid.
pub async fn of_fleet(fleet: &Fleet, args: &reading::Preflight) -> Result<Exit> {
    let to = target(args)?;
    let (found, failed) = fleet
        .each(async |session| report(session, args, &to).await)
        .await;
    let mut merged = Report::default();
    for (cluster, of_cluster) in found {
        merged.add(&cluster, of_cluster);
    }
    show(&merged, &to, args)?;
    Ok(failed.max(exit(&merged)))
}

/// Returns the facts of a cluster with that version.
fn target(args: &reading::Preflight) -> Result<ClusterFacts> {
    let to = kubernetes::parse(&args.to).map_err(|error| Usage(format!("--to: {error}")))?;
    Ok(ClusterFacts {
        kubernetes: Some(to),
        kkp: None,
    })
}

/// Returns the exit code. An unknown verdict may not fit, so it is not 0: a pipeline must not continue.
fn exit(report: &Report) -> Exit {
    match report.fits() {
        true => Exit::Done,
        false => Exit::DoesNotFit,
    }
}

async fn report(session: &Session, args: &reading::Preflight, to: &ClusterFacts) -> Result<Report> {
    let known = Records::read(session.ctx()).await?;
    warn_of_older(session, to).await?;
    let namespace = session.global().namespace.as_deref();
    if let Some(namespace) = namespace {
        known.check_local(namespace)?;
    }
    let mut records = match args.names.as_slice() {
        [] => known.within(namespace).collect(),
        names => known.named(names, namespace)?,
    };
    records.sort_by_key(|record| name_of(record).name);
    let are_named = !args.names.is_empty();
    let Preflight {
        installations,
        risks,
        order,
        unread,
    } = check::check(session.ctx(), &known, &records, are_named, to).await?;
    for text in unread {
        output::note(&text);
    }
    let rows = records.into_iter().zip(installations);
    let rows = rows
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
        .collect();
    Ok(Report::of(rows, risks, order, to))
}

/// Warns about a version older than the cluster's: Kubernetes is not downgraded, so it is probably a mistake.
async fn warn_of_older(session: &Session, to: &ClusterFacts) -> Result<()> {
    let now = session.cluster().await?.kubernetes_version().await?;
    let running = kubernetes::parse(&now).ok();
    if let (Some(to), Some(running)) = (
        to.kubernetes.as_ref().map(Release::from),
        running.as_ref().map(Release::from),
    ) && to < running
    {
        output::note(&format!(
            "warning: Kubernetes {to} is older than the cluster, which runs {running}"
        ));
    }
    Ok(())
}

fn installed(record: &AddonInstallation) -> String {
    let installed = record.installed().cloned().unwrap_or_default();
    match installed.version.as_str() {
        "" if !installed.id.is_empty() => format!("id {}", installed.id),
        version => version.to_owned(),
    }
}

fn show(report: &Report, to: &ClusterFacts, args: &reading::Preflight) -> Result<()> {
    let no_headers = args.output.no_headers;
    match args.output.format {
        PagedFormat::Html => output::bytes(page::html(report, to).as_bytes()),
        PagedFormat::Markdown => output::data(&page::markdown(report, to)),
        PagedFormat::Plain(format) => print(report, Listing { format, no_headers })?,
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

fn print(report: &Report, listing: Listing) -> Result<()> {
    match listing.format {
        Format::Json | Format::Yaml | Format::Template(_) => output::value(report, listing)?,
        Format::Name => output::names(
            "addoninstallation.kubectl-addons.dev",
            report.items.iter().map(|row| row.name.as_str()),
        ),
        Format::Table | Format::Wide => text::print(report, listing),
    }
    Ok(())
}
