//! `diff [NAME…]`: 0 = nothing differs, 1 = something does, more = error (semantics 17).

mod text;

use addons_engine::diff;
use anyhow::Result;
use common::api::installation::{HelmRelease, Installed};
use common::manifest::key::ObjectKey;
use common::plan::changes::{Change, Counts, ObjectDiff};
use common::plan::crd_safety::Breakage;
use common::plan::prune::limit::PruneLimit;
use common::plan::{Deletion, InstallationName, Plan, Verb};
use serde::Serialize;

use crate::cli::Format;
use crate::cli::operation::{Diff, Values};
use crate::exit::Exit;
use crate::operation::candidate::Candidate;
use crate::operation::choose::Wish;
use crate::operation::known::name_of;
use crate::operation::pipeline::{Pipeline, Wanted};
use crate::operation::together::Flags;
use crate::output;
use crate::session::Session;

use super::upgrade::targets;

/// What an upgrade would change in one installation, as JSON and YAML show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Compared<'a> {
    installation: &'a InstallationName,
    addon: &'a str,
    verb: Verb,
    from: Option<&'a Installed>,
    to: Option<&'a Installed>,
    summary: Counts,
    create_namespace: Option<&'a str>,
    objects: Vec<Object<'a>>,
    pruned: Vec<&'a Deletion>,
    released: Vec<&'a ObjectKey>,
    retained: &'a [ObjectKey],
    /// What helm installs is not compared: helm alone knows what it would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    helm_release: Option<&'a HelmRelease>,
    unchanged: &'a [ObjectKey],
    breakages: &'a [Breakage],
    warnings: &'a [String],
}

/// One object that would be applied.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Object<'a> {
    change: Change,
    #[serde(flatten)]
    diff: &'a ObjectDiff,
}

/// Shows what an upgrade would change, field by field; with an add-on that is not installed, what an installation would.
///
/// # Errors
/// The comparison could not be made: exit codes are 2 and above.
pub async fn run(session: &Session, args: &Diff) -> Result<Exit> {
    match compare(session, args).await {
        Ok(exit) => Ok(exit),
        Err(error) => Ok(output::failure(&error).max(Exit::Usage)),
    }
}

/// The candidates behind names: an upgrade of what is installed, an installation of what is not; without names, upgrades
/// of everything.
///
/// # Errors
/// No such add-on, nothing fits, or the verdict is a denial.
pub async fn candidates(
    pipeline: &Pipeline<'_>,
    session: &Session,
    typed: &[String],
    wanted: Wanted<'_>,
    values: &Values,
) -> Result<Vec<Candidate>> {
    let namespace = session.global().namespace.as_ref();
    let is_new = |typed: &String| {
        let name = Wish::parse(typed).name;
        let mut records = pipeline.known.records.iter().map(name_of);
        let is_meant = |found: InstallationName| {
            found.name == name && namespace.is_none_or(|namespace| found.namespace == *namespace)
        };
        wanted.name.is_some() || !records.any(is_meant)
    };
    let (new, installed): (Vec<_>, Vec<_>) = typed.iter().cloned().partition(is_new);
    let mut candidates = Vec::new();
    for typed in &new {
        let wish = Wish::parse(typed);
        candidates.push(pipeline.install(&wish, wanted, values).await?);
    }
    if !installed.is_empty() || new.is_empty() {
        for (record, version) in targets(pipeline, &installed, session)? {
            let version = version.as_deref();
            candidates.push(pipeline.upgrade(record, version, values).await?);
        }
    }
    Ok(candidates)
}

async fn compare(session: &Session, args: &Diff) -> Result<Exit> {
    let pipeline = Pipeline::new(session, &args.source).await?;
    // Whatever was edited is shown, and whatever would be pruned.
    let flags = Flags {
        repair: true,
        allow_downgrade: true,
        allow_prune: PruneLimit::ALL,
        ..Flags::default()
    };
    let wanted = Wanted::default();
    let candidates = candidates(&pipeline, session, &args.addons, wanted, &args.values).await?;
    let cluster = session.cluster().await?;
    let mut found = Vec::new();
    for (_, outcome) in pipeline.plan(candidates, flags).await? {
        if let Some(prepared) = outcome? {
            let changes = diff::diff(cluster, &prepared.plan).await?;
            found.push((prepared.plan, changes));
        }
    }
    let items: Vec<Compared<'_>> = found
        .iter()
        .map(|(plan, changes)| Compared::of(plan, changes))
        .collect();
    match args.output.format {
        Format::Table => {
            for item in &items {
                output::data(&text::render(item, items.len() > 1, false, cluster.now()));
            }
        }
        Format::Wide => {
            for item in &items {
                output::data(&text::render(item, items.len() > 1, true, cluster.now()));
            }
        }
        Format::Name => {
            let differing = items.iter().filter(|item| item.summary.differs());
            let names = differing.map(|item| item.installation.name.as_str());
            output::names("addoninstallation", names);
        }
        format @ (Format::Json | Format::Yaml) => {
            output::value(&output::Items { items: &items }, format)?;
        }
    }
    let differs = items.iter().any(|item| item.summary.differs());
    Ok(if differs { Exit::Failed } else { Exit::Done })
}

impl<'a> Compared<'a> {
    fn of(plan: &'a Plan, changes: &'a [ObjectDiff]) -> Self {
        let object = |diff| Object {
            change: ObjectDiff::change(diff),
            diff,
        };
        Self {
            installation: &plan.installation,
            addon: &plan.addon,
            verb: plan.verb,
            from: plan.from.as_ref(),
            to: plan.to.as_ref(),
            summary: Counts::of(plan, changes),
            create_namespace: plan.create_namespace.as_deref(),
            objects: changes.iter().map(object).collect(),
            pruned: plan.prune.iter().flatten().collect(),
            released: plan.release.iter().map(|target| &target.key).collect(),
            retained: &plan.retained,
            helm_release: plan.helm_release.as_ref(),
            unchanged: &plan.unchanged,
            breakages: &plan.breakages,
            warnings: &plan.warnings,
        }
    }
}
