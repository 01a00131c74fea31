//! Plans a plan file again, and refuses it if anything has changed (semantics 17.1).

use std::sync::Arc;
use std::time::Duration;

use addons_engine::{EngineError, record};
use addons_plan::choices::Choices;
use addons_plan::facts::{EntryFacts, RecordFacts};
use addons_plan::file::{self, Difference, PlanFile, PlanOutdated};
use addons_plan::{InstallationPlan, Verb};
use common::api::installation::{AddonInstallation, Installed};
use common::api::names::InstallationName;
use common::catalogue::author::Author;
use common::catalogue::select::SelectionRules;
use common::catalogue::{Catalogue, CatalogueEntry, Origin};

use super::Plan;
use crate::context::{Context, IndexLocation, Offer};
use crate::error::OperationError;
use crate::resolve::choose::check_read;
use crate::resolve::resolved::Resolved;
use crate::resolve::{Resolution, Resolver, origin, policies, verdict};
use crate::tools;

/// Returns the plan of a file as it is made now. `wait_for_types`: see [`Choices::wait_for_types`].
///
/// # Errors
/// [`PlanOutdated`] with every difference; the errors of the server.
pub async fn replay(
    ctx: &Context,
    file: &PlanFile,
    wait_for_types: Option<Duration>,
) -> Result<Plan, OperationError> {
    let choices = Choices {
        wait_for_types,
        ..file.choices.clone()
    };
    check_same_cluster(ctx, file).await?;
    // The discovery cache may be older than the plan.
    ctx.cluster().await?.forget_kinds().await;
    let resolver = Resolver::new(ctx, choose_offer(ctx, file)).await?;
    let mut differences = Vec::new();
    let mut resolution = Resolution::default();
    for then in &file.installations {
        if then.verb == Verb::Uninstall {
            let namespace = &then.installation.namespace;
            resolver.records.check_local(namespace)?;
            match resolver.records.get(&then.installation) {
                Some(record) => resolution.to_uninstall.push(record.clone()),
                None => differences.extend(record_differences(&resolver, then)),
            }
            continue;
        }
        match resolve_again(&resolver, then).await {
            Ok(one) => resolution.installations.push(one),
            Err(error) => {
                differences.extend(record_differences(&resolver, then));
                differences.push(planning_difference(then, error)?);
            }
        }
    }
    let mut now = match resolver.plan(resolution, &choices).await {
        Ok(now) => now,
        Err(OperationError::Recreate(error)) => {
            differences.push(Difference::new("--recreate", error.to_string()));
            return Err(moved_error(file, differences));
        }
        Err(error) => return Err(error),
    };
    for then in &file.installations {
        let name = &then.installation;
        let mut planned = now.installations.iter();
        let failed = (now.failed.iter()).position(|one| one.name == name.to_string());
        if let Some(now) = planned.find(|now| now.plan.installation == *name) {
            differences.extend(file::moved(then, &now.plan));
        } else if let Some(failed) = failed {
            differences.extend(record_differences(&resolver, then));
            differences.push(planning_difference(then, now.failed.remove(failed).error)?);
        } else if now.up_to_date.iter().any(|now| now.name == *name) {
            let subject = format!("installation {name}");
            differences.extend(record_differences(&resolver, then));
            differences.push(Difference::new(subject, "there is nothing left to do"));
        }
    }
    let then = file.installations.iter().map(|then| &then.installation);
    let is_ordered = then.eq(now.installations.iter().map(|now| &now.plan.installation));
    if differences.is_empty() && !(is_ordered && now.graph == file.graph) {
        differences.push(Difference::new("the objects", "their order changed"));
    }
    let prepared = (file.defines, &file.namespaces);
    if differences.is_empty() && (now.defines, &now.namespaces) != prepared {
        let what = "others are missing that the records need";
        differences.push(Difference::new("definitions and namespaces", what));
    }
    if differences.is_empty() {
        let changes = now.changes();
        differences.extend(file::moved_changes(file, &changes));
    }
    if differences.is_empty() {
        Ok(now)
    } else {
        Err(moved_error(file, differences))
    }
}

/// Checks that a plan file was made for this cluster and version; otherwise nothing else could be the same.
///
/// # Errors
/// [`OperationError::Moved`]; those of the requests.
pub async fn check_same_cluster(ctx: &Context, file: &PlanFile) -> Result<(), OperationError> {
    let then = &file.cluster;
    let now = ctx.identity_by_namespace(&then.namespace).await?;
    let what = if now.uid != then.uid {
        format!(
            "another cluster ({} has uid {}, the plan was made for {})",
            now.namespace, now.uid, then.uid
        )
    } else if now.version != then.version {
        format!(
            "Kubernetes {}, the plan was made for {}",
            now.version, then.version
        )
    } else {
        return Ok(());
    };
    Err(moved_error(
        file,
        vec![Difference::new("this cluster", what)],
    ))
}

/// Whether the changes of a plan file were already made, and its installations are recorded accordingly.
///
/// # Errors
/// Those of the requests.
pub async fn is_done(ctx: &Context, file: &PlanFile) -> Result<bool, OperationError> {
    match check_same_cluster(ctx, file).await {
        Err(OperationError::Moved(_)) => return Ok(false),
        other => other?,
    }
    for then in &file.installations {
        let InstallationName { namespace, name } = &then.installation;
        let record = record::get(ctx.home().await?, namespace, name).await?;
        if then.verb.ends_installation() {
            if record.is_some() {
                return Ok(false);
            }
            continue;
        }
        let is_as_planned = record.is_some_and(|record| {
            let status = record.status.as_ref();
            let is_idle = status.is_some_and(|status| status.operation.is_none());
            let both = record.installed().zip(then.to.as_ref());
            is_idle
                && record.spec == then.wanted.spec
                && both.is_some_and(|(installed, to)| installed.is_same_target(to))
        });
        if !is_as_planned {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the offer for a plan file. If every entry comes from an index, no catalogue is read.
fn choose_offer(ctx: &Context, file: &PlanFile) -> Offer {
    let installations = file.installations.iter();
    let indexes = installations
        .filter(|plan| !plan.verb.ends_installation())
        .map(|plan| match &plan.entry.as_ref()?.origin {
            Origin::Index { location } => {
                let index = ctx.index_for(location, &plan.installation.namespace);
                (index.author != Author::Tenant).then_some(index)
            }
            Origin::Catalogue { .. } | Origin::Installation { .. } | Origin::Directory { .. } => {
                None
            }
        });
    let indexes: Option<Vec<IndexLocation>> = indexes.collect();
    let first = indexes.and_then(|indexes| indexes.into_iter().next());
    first.map_or(Offer::Catalogues, |first| Offer::Indexes(vec![first]))
}

/// Resolves the installation of a plan file with the current entry.
async fn resolve_again(
    resolver: &Resolver<'_>,
    then: &InstallationPlan,
) -> Result<Resolved, OperationError> {
    let ctx = resolver.ctx;
    let (Some(facts), Some(to)) = (&then.entry, &then.to) else {
        return Err(OperationError::NoEntry(then.addon.clone()));
    };
    let catalogue = match &facts.origin {
        Origin::Index { location } => {
            check_index(resolver, then).await?;
            let index = ctx.index_for(location, &then.installation.namespace);
            ctx.fetch_index(&index).await?
        }
        Origin::Catalogue { .. } => ctx.catalogue(&Offer::Catalogues).await?,
        Origin::Installation { .. } => {
            let own = CatalogueEntry::from_installation(&then.wanted.spec.addon_ref);
            let own = own.ok_or_else(|| OperationError::NoEntry(then.addon.clone()))?;
            Arc::new(Catalogue::from_entry(own))
        }
        Origin::Directory { path } => {
            return Err(OperationError::OfDirectory {
                installation: then.installation.clone(),
                directory: path.clone(),
            });
        }
    };
    if let Origin::Catalogue { name, .. } = &facts.origin {
        check_read(&catalogue, &facts.addon, Some(name))?;
    }
    let entry =
        find_same_entry(&catalogue, facts, to).ok_or_else(|| OperationError::EntryGone {
            addon: facts.addon.clone(),
            origin: facts.origin.to_string(),
        })?;
    let rules = to
        .rules
        .map_or(SelectionRules::Channels, SelectionRules::from);
    let name = then.installation.clone();
    let existing = resolver.records.get(&name).cloned();
    let mut resolved = Resolved::new(name, existing, entry.clone(), rules);
    resolved.is_asked_for = true;
    let (wanted, recorded) = (&mut resolved.wanted, &then.wanted);
    wanted.spec = recorded.spec.clone();
    let labels = &recorded.labels;
    wanted.metadata.labels = (!labels.is_empty()).then(|| labels.clone());
    let annotations = &recorded.annotations;
    wanted.metadata.annotations = (!annotations.is_empty()).then(|| annotations.clone());
    let finalizers = &recorded.finalizers;
    wanted.metadata.finalizers = (!finalizers.is_empty()).then(|| finalizers.clone());
    tools::complete(ctx, &mut resolved).await?;
    verdict::complete_and_check(ctx, &mut resolved, &resolver.facts).await?;
    Ok(resolved)
}

/// Checks the index of a plan before it is read, as when the plan was made (semantics 19.2).
async fn check_index(
    resolver: &Resolver<'_>,
    then: &InstallationPlan,
) -> Result<(), OperationError> {
    let spec = &then.wanted.spec;
    let existing = resolver.records.get(&then.installation);
    let existing = existing.filter(|record| record.spec.addon_ref.index == spec.addon_ref.index);
    if spec.addon_ref.index.is_none() || existing.is_some_and(origin::is_admitted) {
        return Ok(());
    }
    let mut wanted = AddonInstallation::new(&then.installation.name, spec.clone());
    wanted.metadata.namespace = Some(then.installation.namespace.clone());
    policies::check_source(resolver.ctx, &wanted).await
}

/// Returns the entry with the same name, version and id. Entries of a kops index may differ only in their hash or range.
fn find_same_entry<'a>(
    catalogue: &'a Catalogue,
    facts: &EntryFacts,
    to: &Installed,
) -> Option<&'a CatalogueEntry> {
    let entries = catalogue.entries.iter().filter(|entry| {
        let version = &entry.version;
        *entry.origin == facts.origin
            && (&entry.addon, &version.version, &version.id) == (&facts.addon, &to.version, &to.id)
    });
    entries.max_by_key(|entry| {
        (
            EntryFacts::from_entry(entry).digest == facts.digest,
            entry.place == facts.place,
        )
    })
}

fn record_differences(resolver: &Resolver<'_>, then: &InstallationPlan) -> Vec<Difference> {
    let record = resolver.records.get(&then.installation);
    file::moved_record(then, record.map(RecordFacts::from_record).as_ref())
}

/// Returns the difference for an installation that can no longer be planned. Errors of the server are returned as they are.
fn planning_difference(
    then: &InstallationPlan,
    error: OperationError,
) -> Result<Difference, OperationError> {
    if matches!(
        error.root(),
        OperationError::Engine(_) | OperationError::Refused(_) | OperationError::NotServed(_)
    ) || is_of_server(&error)
    {
        return Err(error);
    }
    let subject = format!("installation {}", then.installation);
    let what = format!("the plan can no longer be made: {}", error.chain());
    Ok(Difference::new(subject, what))
}

fn is_of_server(error: &OperationError) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if inner.is::<EngineError>() {
            return true;
        }
        cause = inner.source();
    }
    false
}

fn moved_error(file: &PlanFile, differences: Vec<Difference>) -> OperationError {
    let (gone, applied): (Vec<_>, Vec<_>) = file
        .installations
        .iter()
        .partition(|planned| planned.verb.ends_installation());
    let addons = applied.into_iter().map(|planned| {
        let name = &planned.installation.name;
        match planned.to.as_ref().map(|to| to.version.as_str()) {
            None | Some("") => name.clone(),
            Some(version) => format!("{name}@{version}"),
        }
    });
    OperationError::Moved(PlanOutdated {
        differences,
        addons: addons.collect(),
        gone: gone
            .into_iter()
            .map(|planned| planned.installation.name.clone())
            .collect(),
    })
}
