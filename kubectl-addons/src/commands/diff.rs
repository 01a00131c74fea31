//! `diff [NAME…]`: 0 = nothing differs, 1 = something does, more = error (semantics 17).

mod text;

use anyhow::Result;
use common::api::installation::{HelmRelease, Installed};
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::plan::changes::{Change, Counts, ObjectDiff};
use common::plan::crd_safety::Breakage;
use common::plan::migration::Migration;
use common::plan::prune::limit::PruneLimit;
use common::plan::{Deletion, InstallationPlan, Verb, Yielded};
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::Format;
use crate::cli::operation::Diff;
use crate::exit::Exit;
use crate::output;
use crate::session::Session;
use crate::{choices, partial};
use addons_operation::plan::compare as ask_server;
use addons_operation::{Choices, Intent, NewInstallation, Resolver, Target};

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
    /// Fields that other managers keep: drift, and not counted as changed.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    yielded: &'a [Yielded],
    /// What helm installs is not compared: helm alone knows what it would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    helm_release: Option<&'a HelmRelease>,
    unchanged: &'a [ObjectKey],
    breakages: &'a [Breakage],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    migrations: &'a [Migration],
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

async fn compare(session: &Session, args: &Diff) -> Result<Exit> {
    let edits = choices::edits(&args.values)?;
    let named = args.addons.iter().map(|typed| NewInstallation {
        addon: Target::parse(typed),
        edits: edits.clone(),
        ..NewInstallation::default()
    });
    let named = named.collect();
    let intent = Intent::InstallOrUpgrade { named, edits };
    let resolver = Resolver::new(session.ctx(), choices::offer(&args.source)).await?;
    let resolution = resolver.resolve(&intent, &Default::default()).await?;
    // Whatever was edited is shown, and whatever would be pruned.
    let choices = Choices {
        repair: true,
        allow_downgrade: true,
        allow_prune: PruneLimit::ALL,
        force: true,
        ..Choices::default()
    };
    let is_named = !args.addons.is_empty();
    let (plan, failed) = partial::plan(&resolver, resolution, &choices, is_named).await?;
    let cluster = session.cluster().await?;
    let mut found = Vec::new();
    for planned in &plan.installations {
        found.push((&planned.plan, ask_server(session.ctx(), planned).await?));
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
    let left_out = partial::report(failed);
    if left_out != Exit::Done {
        return Ok(left_out.max(Exit::Usage));
    }
    let differs = items.iter().any(|item| item.summary.differs());
    Ok(if differs { Exit::Failed } else { Exit::Done })
}

/// What a plan changes, for people.
pub fn text(
    plan: &InstallationPlan,
    changes: &[ObjectDiff],
    is_one_of_several: bool,
    now: Timestamp,
) -> String {
    text::render(&Compared::of(plan, changes), is_one_of_several, false, now)
}

impl<'a> Compared<'a> {
    fn of(plan: &'a InstallationPlan, changes: &'a [ObjectDiff]) -> Self {
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
            yielded: &plan.yielded,
            helm_release: plan.helm_release.as_ref(),
            unchanged: &plan.unchanged,
            breakages: &plan.breakages,
            migrations: &plan.migrations,
            warnings: &plan.warnings,
        }
    }
}
