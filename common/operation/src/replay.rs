//! A plan file, planned again: executed only where nothing moved since (semantics 17).

use addons_engine::EngineError;
use common::catalogue::select::Rules;
use common::catalogue::{Catalogue, Entry, Origin};
use common::plan::changes::ObjectDiff;
use common::plan::file::{
    self, Built, Difference, EntryFacts, Moved, PlanFile, PlannedInstallation, RecordFacts,
};

use crate::context::{Context, Offer};
use crate::error::OperationError;
use crate::intent::Choices;
use crate::plan::{Plan, Planned};
use crate::resolve::{Resolution, Resolver};
use crate::resolved::Resolved;
use crate::verdict;

/// The plan of a file as it is made now.
///
/// # Errors
/// [`Moved`], with everything that is not as it was; what the server refuses.
pub async fn replay(
    ctx: &Context,
    file: &PlanFile,
    choices: &Choices,
) -> Result<Plan, OperationError> {
    same_cluster(ctx, file).await?;
    // What is kept of discovery between runs may be older than the plan.
    ctx.cluster().await?.forget_kinds().await;
    let resolver = Resolver::new(ctx, offer(file)).await?;
    let mut differences = Vec::new();
    let mut resolved = Vec::new();
    for then in &file.installations {
        match again(&resolver, then).await {
            Ok(one) => resolved.push(one),
            Err(error) => {
                differences.extend(moved_record(&resolver, then));
                differences.push(no_plan(then, error)?);
            }
        }
    }
    let resolution = Resolution {
        installations: resolved,
        failed: Vec::new(),
    };
    let mut now = match resolver.plan(resolution, choices).await {
        Ok(now) => now,
        Err(OperationError::Recreate(error)) => {
            differences.push(Difference::new("--recreate", error.to_string()));
            return Err(refusal(file, differences));
        }
        Err(error) => return Err(error),
    };
    for then in &file.installations {
        let name = &then.installation;
        let mut planned = now.installations.iter();
        let failed = (now.failed.iter()).position(|one| one.name == name.to_string());
        if let Some(now) = planned.find(|now| now.plan.installation == *name) {
            if let Some(now) = recorded(now, &[]) {
                differences.extend(file::moved(then, &now));
            }
        } else if let Some(failed) = failed {
            differences.extend(moved_record(&resolver, then));
            differences.push(no_plan(then, now.failed.remove(failed).error)?);
        } else if now.up_to_date.iter().any(|now| now.name == *name) {
            let subject = format!("installation {name}");
            differences.extend(moved_record(&resolver, then));
            differences.push(Difference::new(subject, "nothing is due any more"));
        }
    }
    let then = file.installations.iter().map(|then| &then.installation);
    let is_ordered = then.eq(now.installations.iter().map(|now| &now.plan.installation));
    if differences.is_empty() && !is_ordered {
        differences.push(Difference::new("the add-ons", "their order changed"));
    }
    if differences.is_empty() {
        Ok(now)
    } else {
        Err(refusal(file, differences))
    }
}

/// What a plan file holds of an installation; `None` for an uninstallation, which no file holds.
#[must_use]
pub fn recorded(planned: &Planned, changes: &[ObjectDiff]) -> Option<PlannedInstallation> {
    Some(file::installation(&Built {
        plan: &planned.plan,
        wanted: &planned.record,
        existing: planned.existing.as_ref(),
        entry: planned.entry.as_ref()?,
        snapshot: &planned.snapshot,
        kinds: &planned.kinds,
        changes,
    }))
}

/// Whether a plan file was made for this cluster and version: otherwise nothing else could be the same.
///
/// # Errors
/// [`OperationError::Moved`]; those of the requests.
pub async fn same_cluster(ctx: &Context, file: &PlanFile) -> Result<(), OperationError> {
    let now = ctx.identity().await?;
    let then = &file.cluster;
    let what = if now.kube_system_uid != then.kube_system_uid {
        format!(
            "another cluster (kube-system has uid {}, the plan was made for {})",
            now.kube_system_uid, then.kube_system_uid
        )
    } else if now.version != then.version {
        format!(
            "Kubernetes {}, the plan was made for {}",
            now.version, then.version
        )
    } else {
        return Ok(());
    };
    Err(refusal(file, vec![Difference::new("this cluster", what)]))
}

/// Where everything comes from one kind of place, the other is not asked.
fn offer(file: &PlanFile) -> Offer {
    let locations = file
        .installations
        .iter()
        .map(|planned| match &planned.entry.origin {
            Origin::Index { location } => Some(location.clone()),
            Origin::Catalogue { .. } => None,
        });
    let locations: Option<Vec<String>> = locations.collect();
    let first = locations.and_then(|locations| locations.into_iter().next());
    first.map_or(Offer::Catalogues, Offer::Index)
}

/// The installation that a plan file recorded, with the entry as it stands now.
async fn again(
    resolver: &Resolver<'_>,
    then: &PlannedInstallation,
) -> Result<Resolved, OperationError> {
    let ctx = resolver.ctx;
    let (facts, to) = (&then.entry, &then.to);
    let offer = match &facts.origin {
        Origin::Index { location } => Offer::Index(location.clone()),
        Origin::Catalogue { .. } => Offer::Catalogues,
    };
    let catalogue = ctx.catalogue(&offer).await?;
    let entry = same_entry(&catalogue, then).ok_or_else(|| OperationError::EntryGone {
        addon: facts.addon.clone(),
        origin: facts.origin.to_string(),
    })?;
    let rules = to.rules.map_or(Rules::Channels, Rules::from);
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
    verdict::judge(ctx, &mut resolved, &resolver.facts).await?;
    Ok(resolved)
}

/// The entry of the same name, version and id. Entries of a kops index may differ in their hash or range alone.
fn same_entry<'a>(catalogue: &'a Catalogue, then: &PlannedInstallation) -> Option<&'a Entry> {
    let (facts, to) = (&then.entry, &then.to);
    let entries = catalogue.entries.iter().filter(|entry| {
        let version = &entry.version;
        *entry.origin == facts.origin
            && (&entry.addon, &version.version, &version.id) == (&facts.addon, &to.version, &to.id)
    });
    entries.max_by_key(|entry| {
        (
            EntryFacts::of(entry).digest == facts.digest,
            entry.place == facts.place,
        )
    })
}

fn moved_record(resolver: &Resolver<'_>, then: &PlannedInstallation) -> Vec<Difference> {
    let record = resolver.records.get(&then.installation);
    file::moved_record(then, record.map(RecordFacts::of).as_ref())
}

/// What cannot be planned any more is a difference as well; what the server says to us is an error of its own.
fn no_plan(
    then: &PlannedInstallation,
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
    let what = format!("there is no such plan any more: {}", error.chain());
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

fn refusal(file: &PlanFile, differences: Vec<Difference>) -> OperationError {
    let addons = file.installations.iter().map(|planned| {
        let name = &planned.installation.name;
        match planned.to.version.as_str() {
            "" => name.clone(),
            version => format!("{name}@{version}"),
        }
    });
    OperationError::Moved(Moved {
        differences,
        addons: addons.collect(),
    })
}
