//! `adopt [NAME[@VERSION]…]`: makes this plugin the owner of what other tools installed, and changes nothing else. `adopt --release NAME…`
//! gives it back.

mod found;

use addons_operation::adopt::{ForeignVersion, PlannedAdoption, find_foreign_installs as find};
use addons_operation::plan::{UninstallRequest, plan_uninstall};
use addons_operation::{Intent, NewInstallation, Offer, Plan, PlannedInstallation, Resolver};
use addons_plan::changes::{ObjectChange, ObjectDiff};
use addons_plan::{Action, InstallationPlan};
use anyhow::Result;
use common::api::installation::AddonInstallation;

use super::diff;
use crate::cli::operation::AdoptArgs;
use crate::exit::Exit;
use crate::session::Session;
use crate::{change, choices, output, partial, prompt, words};

/// Shows the objects, their owners and what the next upgrade would change, asks, and adopts. Without a name it lists what can be adopted.
///
/// # Errors
/// Nothing was written.
pub async fn run(session: &Session, args: &AdoptArgs) -> Result<Exit> {
    if args.addons.is_empty() {
        return found::run(session, args).await;
    }
    if args.release {
        return give_back(session, args).await;
    }
    let resolver = Resolver::new(session.ctx(), choices::parse_offer(&args.source)).await?;
    let older = resolver.rebuild(&args.addons, args.new_cluster).await?;
    let is_older = |addon: &String| {
        let mut all = older.installations.iter();
        all.any(|planned| planned.plan.installation.name == *addon)
    };
    let rest: Vec<String> = args
        .addons
        .iter()
        .filter(|addon| !is_older(addon))
        .cloned()
        .collect();
    let recorded = match older.is_empty() {
        true => Exit::Done,
        false => execute_rebuild(session, older, args).await?,
    };
    if rest.is_empty() {
        return Ok(recorded);
    }
    Ok(recorded.max(adopt(session, &resolver, args, &rest).await?))
}

/// Rebuilds the records of installations whose record is older than the cluster.
async fn execute_rebuild(session: &Session, plan: Plan, args: &AdoptArgs) -> Result<Exit> {
    if args.dry_run {
        return change::preview(session, &plan).await;
    }
    change::execute(session, plan, &args.run, false).await
}

/// Adopts the existing objects of these add-ons.
async fn adopt(
    session: &Session,
    resolver: &Resolver<'_>,
    args: &AdoptArgs,
    addons: &[String],
) -> Result<Exit> {
    let edits = choices::parse_edits(&args.values, addons)?;
    let mut named = choices::parse_installations(addons, &args.new, &edits)?;
    take_from_former_tool(session, resolver, args, &mut named).await?;
    keep_adopted_versions(session, resolver, &mut named);
    let intent = Intent::InstallOrUpgrade { named, edits };
    let resolution = prompt::resolve_with_prompt(resolver, &intent, args.run.yes).await?;
    let resolution = partial::check_resolution(resolution, None)?;
    let adoption = resolver.adopt(resolution, args.force).await?;
    let PlannedAdoption { plan, changes } = adoption;
    change::announce(session, &plan);
    let now = session.cluster().await?.now();
    output::note("the next upgrade would change:");
    for (planned, mut changes) in plan.installations.iter().zip(changes) {
        changes.extend(missing_objects(planned));
        changes.sort_by(|one, other| one.key.cmp(&other.key));
        let is_one_of_several = plan.installations.len() > 1;
        // The warnings were announced before.
        let plan = InstallationPlan {
            warnings: Vec::new(),
            unchanged: Vec::new(),
            ..planned.plan.clone()
        };
        let text = diff::describe_changes(&plan, &changes, is_one_of_several, now);
        output::note(text.trim_end());
        let is_same = |change: &ObjectDiff| change.change() == ObjectChange::Unchanged;
        if !changes.iter().all(is_same) {
            output::note(&words::adoption::describe_next_upgrade(&planned.plan));
        }
    }
    change::check_defined(&plan, args.no_init)?;
    if args.dry_run {
        return change::conclude_preview(&plan);
    }
    change::execute_announced(session, plan, &args.run, !args.no_init).await
}

/// Lists the objects that do not exist, which the next upgrade creates.
fn missing_objects(planned: &PlannedInstallation) -> Vec<ObjectDiff> {
    let plan = &planned.plan;
    let wanted = planned.desired.objects.keys();
    let missing =
        wanted.filter(|key| plan.step(key).is_none() && plan.unchanged.binary_search(key).is_err());
    let missing = missing.map(|key| ObjectDiff {
        key: key.clone(),
        action: Action::Create,
        created: true,
        fields: Vec::new(),
        recreated: None,
        error: None,
        remedy: None,
        unjudged: None,
    });
    missing.collect()
}

/// Gives each add-on without a record what the former tool knows of it: the version and, if it is a Helm release, also the name, the
/// namespace and the values. What the user typed stays.
async fn take_from_former_tool(
    session: &Session,
    resolver: &Resolver<'_>,
    args: &AdoptArgs,
    named: &mut [NewInstallation],
) -> Result<()> {
    let namespace = session.global().namespace.as_deref();
    let is_new = |new: &NewInstallation| {
        let name = new.name.as_ref().unwrap_or(&new.addon.name);
        resolver.records.find(name, namespace).is_err()
    };
    if !named.iter().any(is_new) {
        return Ok(());
    }
    let found = find(session.ctx(), &choices::parse_offer(&args.source)).await?;
    for new in named.iter_mut().filter(|new| is_new(new)) {
        let typed = new.addon.name.clone();
        if let Some(release) = found.release_of(new) {
            let takes_values = !args.reset_values;
            let taken = found
                .take_release(session.ctx(), new, release, takes_values)
                .await?;
            output::note(&words::adoption::describe_taken(new, &taken));
        }
        if new.addon.version.is_some() {
            continue;
        }
        let name = new.name.as_ref().unwrap_or(&new.addon.name);
        let target = new.target_namespace.as_deref();
        let version = found.version_of(&new.addon.name, name, target);
        if let Some(warning) = words::adoption::version_warning(&version) {
            output::warn_of_addon(&typed, &warning);
        }
        if let ForeignVersion::Found(version) = version {
            new.addon.version = Some(version.to_owned());
        }
    }
    Ok(())
}

/// Gives each add-on that was adopted before, and not upgraded since, the version that its record has. What the user typed stays.
fn keep_adopted_versions(
    session: &Session,
    resolver: &Resolver<'_>,
    named: &mut [NewInstallation],
) {
    let namespace = session.global().namespace.as_deref();
    for new in named.iter_mut().filter(|new| new.addon.version.is_none()) {
        let name = new.name.as_ref().unwrap_or(&new.addon.name);
        let record = resolver.records.find(name, namespace).ok();
        let installed = record.and_then(AddonInstallation::installed);
        let adopted = installed.filter(|it| it.adopted && !it.version.is_empty());
        new.addon.version = adopted.map(|installed| installed.version.clone());
    }
}

/// Gives installations back to their former owners.
async fn give_back(session: &Session, args: &AdoptArgs) -> Result<Exit> {
    let resolver = Resolver::new(session.ctx(), Offer::Catalogues).await?;
    let removal = UninstallRequest {
        names: args.addons.clone(),
        give_back: true,
        force: args.force,
        ..UninstallRequest::default()
    };
    let plan = plan_uninstall(&resolver, &removal).await?;
    if args.dry_run {
        return change::preview(session, &plan).await;
    }
    change::execute(session, plan, &args.run, false).await
}
