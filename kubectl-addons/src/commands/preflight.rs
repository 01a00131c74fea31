//! `preflight --to VERSION`: shows what a future release of Kubernetes would mean for the installations.

mod page;
pub(crate) mod report;
mod text;

use addons_advice::preflight::check::{self, PreflightResult};
use addons_advice::preflight::lifecycle::{KubernetesRelease, Lifecycle};
use addons_operation::{Records, name_of};
use addons_versions::tolerant;
use anyhow::Result;
use common::api::installation::AddonInstallation;
use common::catalogue::select::ClusterVersions;
use report::{PreflightReport, PreflightRow};

use crate::cli::format::PagedFormat;
use crate::cli::{Listing, OutputFormat, reading};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::session::Session;
use crate::words::preflight as words;

/// Checks the installations of this cluster.
///
/// # Errors
/// The version is not valid, an installation does not exist, or the server cannot be reached or refuses the request.
pub async fn run(session: &Session, args: &reading::PreflightArgs) -> Result<Exit> {
    let to = target_facts(args)?;
    let report = make_report(session, args, &to).await?;
    show(&report, &to, args)?;
    Ok(exit_code(&report))
}

/// Returns the facts of a cluster with that version.
///
/// # Errors
/// The version is not valid.
pub(crate) fn target_facts(args: &reading::PreflightArgs) -> Result<ClusterVersions> {
    let to = tolerant::parse_kubernetes(&args.to)
        .map_err(|error| UsageError(format!("--to: {error}")))?;
    Ok(ClusterVersions {
        kubernetes: Some(to),
        kkp: None,
        profile: None,
    })
}

/// Returns the exit code. An unknown verdict may not fit, so it is not 0: a pipeline must not continue.
pub(crate) fn exit_code(report: &PreflightReport) -> Exit {
    match report.fits() {
        true => Exit::Done,
        false => Exit::DoesNotFit,
    }
}

/// Checks the installations of a cluster.
///
/// # Errors
/// An installation does not exist, or the server cannot be reached or refuses the request.
pub(crate) async fn make_report(
    session: &Session,
    args: &reading::PreflightArgs,
    to: &ClusterVersions,
) -> Result<PreflightReport> {
    let known = Records::read(session.ctx()).await?;
    warn_of_downgrade(session, to).await?;
    let namespace = session.global().namespace.as_deref();
    if let Some(namespace) = namespace {
        known.check_local(namespace)?;
    }
    let mut records = match args.names.as_slice() {
        [] => known.in_namespace(namespace).collect(),
        names => known.find_all(names, namespace)?,
    };
    records.sort_by_key(|record| name_of(record).name);
    let are_named = !args.names.is_empty();
    let PreflightResult {
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
        .map(|(record, (name, finding))| PreflightRow {
            cluster: None,
            addon: record.spec.addon_ref.name.clone(),
            version: installed_version(record),
            verdict: finding.verdict,
            reasons: words::list_reasons(&finding),
            fix: words::fix_command(&name, &finding),
            remedy: finding.remedy,
            apis: finding.apis,
            writers: finding.writers,
            namespace: name.namespace,
            name: name.name,
        })
        .collect();
    Ok(PreflightReport::new(rows, risks, order, to))
}

/// Warns about a version older than the cluster's: Kubernetes is not downgraded, so it is probably a mistake.
async fn warn_of_downgrade(session: &Session, to: &ClusterVersions) -> Result<()> {
    let now = session.cluster().await?.kubernetes_version().await?;
    let running = tolerant::parse_kubernetes(&now).ok();
    if let (Some(to), Some(running)) = (
        to.kubernetes.as_ref().map(KubernetesRelease::from),
        running.as_ref().map(KubernetesRelease::from),
    ) && to < running
    {
        output::note(&format!(
            "warning: Kubernetes {to} is older than the cluster, which runs {running}"
        ));
    }
    Ok(())
}

fn installed_version(record: &AddonInstallation) -> String {
    let installed = record.installed().cloned().unwrap_or_default();
    match installed.version.as_str() {
        "" if !installed.id.is_empty() => format!("id {}", installed.id),
        version => version.to_owned(),
    }
}

/// Prints a report.
///
/// # Errors
/// A value cannot be printed.
pub(crate) fn show(
    report: &PreflightReport,
    to: &ClusterVersions,
    args: &reading::PreflightArgs,
) -> Result<()> {
    let no_headers = args.output.no_headers;
    match args.output.format {
        PagedFormat::Html => output::print_bytes(page::render_html(report, to).as_bytes()),
        PagedFormat::Markdown => output::print_text(&page::render_markdown(report, to)),
        PagedFormat::Plain(format) => print(report, Listing { format, no_headers })?,
    }
    let newest = Lifecycle::default().newest();
    let release = to.kubernetes.as_ref().map(KubernetesRelease::from);
    if let Some(release) = release.filter(|release| *release > newest) {
        output::note(&format!(
            "what Kubernetes {release} deprecates and removes is not known to this release, which knows {newest}"
        ));
    }
    Ok(())
}

fn print(report: &PreflightReport, listing: Listing) -> Result<()> {
    match listing.format {
        OutputFormat::Value(_) => output::print_value(report, listing)?,
        OutputFormat::Name => output::print_names(
            "addoninstallation.kubectl-addons.dev",
            report.items.iter().map(|row| row.name.as_str()),
        ),
        OutputFormat::Table | OutputFormat::Wide => text::print_report(report, listing),
    }
    Ok(())
}
