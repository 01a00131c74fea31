//! `diff [NAME…]`: 0 = nothing differs, 1 = something does, more = error (semantics 17.5).

pub(super) mod text;

use std::collections::BTreeSet;

use addons_plan::changes::{Counts, ObjectChange, ObjectDiff};
use addons_plan::continuation::Continuation;
use addons_plan::crd_safety::Breakage;
use addons_plan::migration::Migration;
use addons_plan::prune::limit::PruneLimit;
use addons_plan::refusal::RefusedWrite;
use addons_plan::review::Review;
use addons_plan::{Deletion, InstallationPlan, Verb, Yielded};
use anyhow::Result;
use common::api::installation::{HelmRelease, Installed};
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::OutputFormat;
use crate::cli::format::PagedFormat;
use crate::cli::operation::DiffArgs;
use crate::exit::Exit;
use crate::session::Session;
use crate::set_place::SetPlace;
use crate::{choices, failure, output, partial};

use super::review::{ShownPlan, markdown, page};
use super::set::{self, TypedSet};
use crate::words::hint;
use crate::words::plan::{record, version_label};
use addons_operation::execute::continued;
use addons_operation::{Choices, Intent, NewInstallation, Plan, Resolver, VersionedName};
use text::DiffExtent;

/// What an upgrade would change in an installation, as it is printed in JSON and YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InstallationDiff<'a> {
    /// The name of the cluster, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    installation: &'a InstallationName,
    #[serde(skip)]
    plan: &'a InstallationPlan,
    addon: &'a str,
    verb: Verb,
    from: Option<&'a Installed>,
    to: Option<&'a Installed>,
    summary: Counts,
    /// The changes in the order in which to review them.
    review: Review,
    create_namespace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delete_namespace: Option<&'a str>,
    objects: Vec<DiffedObject<'a>>,
    pruned: Vec<&'a Deletion>,
    /// Writes that the server refuses, including deletions.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    refused: &'a [RefusedWrite],
    released: Vec<&'a ObjectKey>,
    retained: &'a [ObjectKey],
    /// The changes of the record: names of values, the pinned version, the origin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    record: Vec<String>,
    /// Fields that are left to other managers: drift that does not count as a change.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    yielded: &'a [Yielded],
    /// The release that is not compared: only helm knows what it would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    helm_release: Option<&'a HelmRelease>,
    unchanged: &'a [ObjectKey],
    breakages: &'a [Breakage],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    migrations: Vec<&'a Migration>,
    warnings: &'a [String],
}

/// An object that would be applied.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DiffedObject<'a> {
    change: ObjectChange,
    #[serde(flatten)]
    diff: &'a ObjectDiff,
}

/// What an upgrade would change on a cluster.
pub(crate) struct ClusterDiff {
    plan: Plan,
    /// The Kubernetes version of the cluster, for a page.
    kubernetes: String,
    /// The changes of each installation.
    changes: Vec<Vec<ObjectDiff>>,
    now: Timestamp,
    /// The exit code of installations that could not be compared.
    left_out: Exit,
    /// The set that was compared.
    set: Option<SetPlace>,
}

/// Shows what an upgrade would change, field by field, or an install of an add-on that is not installed.
///
/// # Errors
/// The comparison could not be made. Exit codes are 2 and above.
pub async fn run(session: &Session, args: &DiffArgs) -> Result<Exit> {
    let compared = async {
        let found = compare(session, args).await?;
        show(&[(None, &found)], args)?;
        Ok(found.exit())
    };
    Ok(match compared.await {
        Ok(exit) => exit,
        Err(error) => failure::report_failure(&error).max(Exit::Usage),
    })
}

/// Compares a cluster.
///
/// # Errors
/// The comparison could not be made.
pub(crate) async fn compare(session: &Session, args: &DiffArgs) -> Result<ClusterDiff> {
    let set = set::read_typed(
        session,
        &args.set,
        (&args.values.values, &args.source),
        &args.addons,
    )?;
    let is_named = !args.addons.is_empty() || set.is_some();
    let place = set.as_ref().map(TypedSet::place);
    let intent = match set {
        Some(set) => Intent::Declared(set.into_declared(PruneLimit::ALL)),
        None => upgrade_intent(args)?,
    };
    let resolver = Resolver::new(session.ctx(), choices::parse_offer(&args.source)).await?;
    let resolution = resolver.resolve(&intent, &Default::default()).await?;
    // Show every edited object, and every object that would be pruned.
    let choices = Choices {
        repair: true,
        // A rollback may go to a lower version.
        allow_downgrade: args.allow_downgrade || args.revision.is_some(),
        allow_prune: PruneLimit::ALL,
        force: true,
        ..Choices::default()
    };
    let set = place.as_ref();
    let (mut plan, failed) =
        partial::plan_partially(&resolver, resolution, &choices, is_named, set).await?;
    plan.leave_rights_unchecked();
    let plans = plan.installations.iter();
    let changes = plans.map(|planned| planned.plan.changes()).collect();
    Ok(ClusterDiff {
        plan,
        kubernetes: match args.output.format {
            PagedFormat::Plain(_) => String::new(),
            PagedFormat::Html | PagedFormat::Markdown => {
                session.cluster().await?.kubernetes_version().await?
            }
        },
        changes,
        now: session.cluster().await?.now(),
        left_out: partial::report_failed(failed),
        set: place,
    })
}

/// Returns the intent to upgrade every installation, or to install or upgrade the named ones, or to roll one back to a revision.
fn upgrade_intent(args: &DiffArgs) -> Result<Intent> {
    if let Some(number) = args.revision {
        return choices::parse_rollback(&args.addons, number);
    }
    let edits = choices::parse_changes(&args.values, &args.addons)?;
    let named = args.addons.iter().map(|typed| {
        let addon = VersionedName::parse(typed);
        NewInstallation {
            edits: edits.for_name(&addon.name),
            addon,
            ..NewInstallation::default()
        }
    });
    let named = named.collect();
    Ok(Intent::InstallOrUpgrade { named, edits })
}

/// Prints the comparison, each of several clusters under its name.
///
/// # Errors
/// A value cannot be printed.
pub(crate) fn show(found: &[(Option<&str>, &ClusterDiff)], args: &DiffArgs) -> Result<()> {
    let shown = found.iter().map(|(cluster, found)| found.shown(*cluster));
    let format = match args.output.format {
        PagedFormat::Plain(format) => format,
        PagedFormat::Html => {
            let page = page::render_page(&shown.collect::<Vec<_>>());
            output::print_bytes(page.as_bytes());
            return Ok(());
        }
        PagedFormat::Markdown => {
            output::print_text(&markdown::render_markdown(&shown.collect::<Vec<_>>()));
            return Ok(());
        }
    };
    let extent = match args.full || format == OutputFormat::Wide {
        true => DiffExtent::Full,
        false => DiffExtent::Screen,
    };
    let items: Vec<(InstallationDiff<'_>, Timestamp)> = found
        .iter()
        .flat_map(|(cluster, found)| {
            let items = found.items(*cluster).into_iter();
            items.map(|item| (item, found.now))
        })
        .collect();
    match format {
        OutputFormat::Table | OutputFormat::Wide => {
            let (mut last, mut edited) = (None, BTreeSet::new());
            let set = found.iter().find_map(|(_, found)| found.set.as_ref());
            for (item, now) in &items {
                if item.cluster != last {
                    output::print_text(&format!("{}:\n", item.cluster.unwrap_or_default()));
                    last = item.cluster;
                }
                if item.is_edited_only() {
                    edited.insert(item.restore_command(set));
                }
                output::print_painted(&text::render_diff(item, items.len() > 1, extent, *now));
            }
            for command in edited {
                let what = "edited or deleted by other clients; an upgrade to the same version does not restore it";
                output::note(&format!("{what}\n  restore: {command}"));
            }
        }
        OutputFormat::Name => {
            let items = items.iter().map(|(item, _)| item);
            let differing = items.filter(|item| item.differs());
            let names = differing.map(|item| item.installation.name.as_str());
            output::print_names("addoninstallation.kubectl-addons.dev", names);
        }
        OutputFormat::Value(_) => {
            let items: Vec<InstallationDiff<'_>> =
                items.into_iter().map(|(item, _)| item).collect();
            output::print_value(&output::ItemList { items: &items }, format)?;
        }
    }
    Ok(())
}

impl ClusterDiff {
    fn shown<'a>(&'a self, cluster: Option<&'a str>) -> ShownPlan<'a> {
        ShownPlan {
            cluster,
            kubernetes: &self.kubernetes,
            plan: &self.plan,
        }
    }

    fn items<'a>(&'a self, cluster: Option<&'a str>) -> Vec<InstallationDiff<'a>> {
        let all = self.plan.installations.iter().zip(&self.changes);
        let all = all.map(|(planned, changes)| InstallationDiff {
            cluster,
            record: record::list_record_changes(planned),
            ..InstallationDiff::new(&planned.plan, changes)
        });
        all.collect()
    }

    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        if self.left_out != Exit::Done {
            return self.left_out.max(Exit::Usage);
        }
        let differs = self.items(None).iter().any(InstallationDiff::differs);
        if differs { Exit::Failed } else { Exit::Done }
    }
}

/// Formats the changes of a plan for people.
pub fn describe_changes(
    plan: &InstallationPlan,
    changes: &[ObjectDiff],
    is_one_of_several: bool,
    now: Timestamp,
) -> String {
    text::render_diff(
        &InstallationDiff::new(plan, changes),
        is_one_of_several,
        DiffExtent::Screen,
        now,
    )
}

impl<'a> InstallationDiff<'a> {
    /// Whether an operation would change anything: an object, the record, or the recorded version.
    fn differs(&self) -> bool {
        self.summary.differs() || !self.record.is_empty() || self.version_change().is_some()
    }

    /// Returns the old and the new version, if they differ.
    fn version_change(&self) -> Option<(String, String)> {
        let (from, to) = (version_label(self.from?), version_label(self.to?));
        (from != to).then_some((from, to))
    }

    /// Returns the command that restores what other clients edited or deleted.
    fn restore_command(&self, set: Option<&SetPlace>) -> String {
        let Some(set) = set else {
            let pinned = self.plan.wanted.spec.addon_ref.version.clone();
            let next = Continuation::repair(pinned);
            return continued::command(&next, self.installation);
        };
        let namespace = self.installation.namespace.as_str();
        let namespace = self.cluster.is_none().then_some(namespace);
        hint::repair_command(set, namespace)
    }

    /// Whether only objects that other clients edited or deleted differ, which an upgrade without a new version leaves unchanged.
    fn is_edited_only(&self) -> bool {
        // The next upgrade applies adopted objects.
        let is_applied = self.from.is_some_and(|from| !from.adopted);
        let is_same = is_applied && self.from.map(upgrade_inputs) == self.to.map(upgrade_inputs);
        let others = self.summary.pruned + self.summary.released;
        let is_due = self.version_change().is_some() || !self.record.is_empty() || others > 0;
        let edited = self.summary.changed + self.summary.relabelled + self.summary.added;
        edited > 0 && is_same && !is_due
    }

    fn new(plan: &'a InstallationPlan, changes: &'a [ObjectDiff]) -> Self {
        let object = |diff| DiffedObject {
            change: ObjectDiff::change(diff),
            diff,
        };
        Self {
            cluster: None,
            installation: &plan.installation,
            plan,
            addon: &plan.addon,
            verb: plan.verb,
            from: plan.from.as_ref(),
            to: plan.to.as_ref(),
            summary: Counts::of(plan, changes),
            review: Review::new(plan, changes),
            create_namespace: plan.create_namespace.as_deref(),
            delete_namespace: plan.delete_namespace.as_deref(),
            objects: changes.iter().map(object).collect(),
            pruned: plan.deletions().collect(),
            refused: &plan.refused,
            released: plan.released().collect(),
            retained: &plan.retained,
            yielded: &plan.yielded,
            helm_release: plan.helm_release().map(|(release, _)| release),
            record: Vec::new(),
            unchanged: &plan.unchanged,
            breakages: &plan.breakages,
            migrations: plan.migrations().collect(),
            warnings: &plan.warnings,
        }
    }
}

/// Returns the inputs that an upgrade to the same version compares.
fn upgrade_inputs(of: &Installed) -> (&str, &str, &str, Option<&str>) {
    let registry = of.registry.as_deref();
    (
        &of.manifest_hash,
        &of.values_hash,
        &of.template_data_hash,
        registry,
    )
}
