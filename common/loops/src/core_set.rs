//! The core set: core installations are created, restored, upgraded and released as the rules and the list say (semantics 14).
//!
//! Only records are written here. What they ask for is then done as for every other record. Each cluster is looked at by itself, so
//! that one that does not answer delays nothing but its own records; only what is released is looked at together.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use addons_engine::events::{self, Happened, Regarding};
use addons_engine::standing::{Standing, stand};
use addons_engine::{Cluster, EngineError, core_set, record};
use addons_operation::core_set::look::{Look, State, contexts, look};
use addons_operation::core_set::{ClusterCore, Texts};
use addons_operation::{Context, OperationError, Resolver, name_of};
use common::api::conditions;
use common::api::installation::AddonInstallation;
use common::api::names::{CUSTOM_CORE_ADDONS, InstallationName};
use common::core_set::change::{CoreChange, is_guarded, is_released, restored};
use common::core_set::{CoreAddon, Unknown};
use futures::{StreamExt as _, stream};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::installation::How;
use crate::reason::bounded;

/// Until it is tried again where that failed.
const AGAIN: Duration = Duration::from_secs(5);
/// The same where another client wrote the record meanwhile: the loop itself writes statuses at the same time.
const SOON: Duration = Duration::from_millis(300);

/// What was done with a core installation, or not.
#[derive(Debug)]
pub enum Step {
    /// Its record was created.
    Created,
    /// Its record was written as it is listed.
    Restored,
    /// It dropped out: it was marked and is uninstalled.
    Released,
    /// Its cluster is being deleted: nothing holds its record any more.
    Freed,
    /// It is listed, and there is an installation of its name that is not a core add-on.
    Taken,
    /// It dropped out, as others of other clusters: a person has to release it.
    Waits,
    /// The record cannot be made, or not be written.
    Failed(OperationError),
}

/// Clusters that are looked at, and followed, at the same time.
const WORKERS: usize = 16;

/// What became of core sets.
#[derive(Debug, Default)]
pub struct Followed {
    /// The installations of which something is to be said.
    pub steps: Vec<(InstallationName, Step)>,
    /// The clusters whose core set is not known, by their namespaces.
    pub unknown: Vec<(String, Unknown)>,
    /// The clusters that could not be looked at, by their namespaces.
    pub failed: Vec<(String, OperationError)>,
}

/// Follows whenever something of it may have changed, one time after the other. What is wrong is said by Events, once.
pub(crate) async fn keep(mut contexts: watch::Receiver<Arc<Context>>, how: How) {
    let mut said = BTreeSet::new();
    while contexts.changed().await.is_ok() {
        loop {
            let ctx = contexts.borrow_and_update().clone();
            let again = match follow(&ctx, &how).await {
                Ok(followed) => {
                    let again = followed.again();
                    tell(&ctx, followed, &mut said).await;
                    again
                }
                Err(error) => (!error.is_forbidden()).then_some(AGAIN),
            };
            match again {
                Some(pause) => sleep(pause).await,
                None => break,
            }
        }
    }
}

impl Followed {
    /// When it is worth another try.
    fn again(&self) -> Option<Duration> {
        let was_faster = |(_, step): &(InstallationName, Step)| match step {
            Step::Failed(error) => match error.root() {
                OperationError::Engine(error) => error.is_conflict(),
                _ => false,
            },
            _ => false,
        };
        if self.steps.iter().any(was_faster) {
            Some(SOON)
        } else {
            (!self.failed.is_empty()).then_some(AGAIN)
        }
    }
}

/// Makes the core records of this cluster, and of every cluster that a labelled namespace stands for, what its core set asks for.
///
/// # Errors
/// The ConfigMaps, or the namespaces, cannot be read.
pub async fn follow(ctx: &Context, how: &How) -> Result<Followed, OperationError> {
    let texts = Texts::read(ctx).await?;
    let mut followed = Followed::default();
    // Nearly every cluster has no core sets: then one look at the records is all.
    if texts.is_missing() {
        let namespace = ctx.settings().namespace.as_deref();
        let is_used = match record::list(ctx.home().await?, namespace).await {
            Err(EngineError::NotInitialised) => false,
            records => records?.iter().any(is_guarded),
        };
        if !is_used {
            return Ok(followed);
        }
    }
    let contexts = contexts(ctx).await?;
    let account = how.account.as_deref();
    let looking = contexts
        .iter()
        .map(async |ctx| (ctx, look(ctx, &texts, account).await));
    let mut looking = stream::iter(looking).buffered(WORKERS);
    let mut looks = Vec::new();
    while let Some((ctx, looked)) = looking.next().await {
        match looked {
            Ok(look) => looks.push((ctx, look)),
            Err(error) => followed
                .failed
                .push((ctx.settings().records_namespace().to_owned(), error)),
        }
    }
    let releasing = looks.iter().filter(|(_, look)| look.releases()).count();
    let acting = looks
        .iter()
        .map(async |(ctx, look)| (ctx, act(ctx, look, how, releasing > 1).await));
    let mut acting = stream::iter(acting).buffered(WORKERS);
    while let Some((ctx, acted)) = acting.next().await {
        match acted {
            Ok(acted) => {
                followed.steps.extend(acted.steps);
                followed.unknown.extend(acted.unknown);
            }
            Err(error) => followed
                .failed
                .push((ctx.settings().records_namespace().to_owned(), error)),
        }
    }
    Ok(followed)
}

async fn act(
    ctx: &Context,
    look: &Look,
    how: &How,
    waits: bool,
) -> Result<Followed, OperationError> {
    let home = ctx.home().await?;
    let mut followed = Followed::default();
    match &look.state {
        State::Unused => return Ok(followed),
        State::Deleting => {
            for record in &look.records {
                if core_set::free(home, record).await? {
                    followed.steps.push((name_of(record), Step::Freed));
                }
            }
            return Ok(followed);
        }
        State::Found(ClusterCore {
            set: Err(unknown), ..
        }) => {
            let message = bounded(unknown.to_string());
            let raised = Some(("Unknown", message.as_str()));
            for record in look.records.iter().filter(|record| is_guarded(record)) {
                core_set::flag(home, record, conditions::CORE_SET_UNKNOWN, raised).await?;
            }
            let namespace = ctx.settings().records_namespace().to_owned();
            followed.unknown.push((namespace, unknown.clone()));
            return Ok(followed);
        }
        State::Found(_) => {}
    }
    let changes = look.changes();
    if changes.is_empty() {
        return Ok(followed);
    }
    let resolver = Resolver::of_records(ctx).await?;
    for change in changes {
        let name = match &change {
            CoreChange::Create { name, .. } => InstallationName {
                namespace: ctx.settings().records_namespace().to_owned(),
                name: (*name).to_owned(),
            },
            CoreChange::Keep { record, .. }
            | CoreChange::Taken { record }
            | CoreChange::Release { record } => name_of(record),
        };
        let step = match change {
            CoreChange::Create { addon, .. } => create(home, &resolver, &name, addon).await,
            CoreChange::Keep { record, addon } => keep_listed(home, &resolver, record, addon).await,
            CoreChange::Taken { .. } => Ok(Some(Step::Taken)),
            CoreChange::Release { record } => {
                let waits = waits || waits_for_person(record);
                release(home, record, waits.then_some(how)).await
            }
        };
        let step = step.unwrap_or_else(|error| Some(Step::Failed(error)));
        followed.steps.extend(step.map(|step| (name, step)));
    }
    Ok(followed)
}

async fn create(
    home: &Cluster,
    resolver: &Resolver<'_>,
    name: &InstallationName,
    addon: &CoreAddon,
) -> Result<Option<Step>, OperationError> {
    let wanted = resolver.core_record(name, addon).await?;
    let is_new = core_set::create(home, &wanted).await?;
    Ok(is_new.then_some(Step::Created))
}

async fn keep_listed(
    home: &Cluster,
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    addon: &CoreAddon,
) -> Result<Option<Step>, OperationError> {
    let wanted = resolver.core_record(&name_of(record), addon).await?;
    if let Some(restored) = restored(record, &wanted) {
        core_set::restore(home, &restored).await?;
        return Ok(Some(Step::Restored));
    }
    let is_going = record.metadata.deletion_timestamp.is_some();
    let (r#type, raised) = if waits_for_person(record) {
        (conditions::NEEDS_CONFIRMATION, None)
    } else if is_going {
        let message = "it is listed as a core add-on: it is deleted when it is not listed any more";
        (conditions::DELETION_BLOCKED, Some(("Listed", message)))
    } else {
        (conditions::CORE_SET_UNKNOWN, None)
    };
    core_set::flag(home, record, r#type, raised).await?;
    Ok(None)
}

/// Whether its release was refused before, because it concerned several clusters: it does not become the release of one by and by.
fn waits_for_person(record: &AddonInstallation) -> bool {
    let status = record.status.as_ref();
    let raised = status
        .and_then(|status| conditions::raised(&status.conditions, conditions::NEEDS_CONFIRMATION));
    raised.is_some_and(|raised| raised.reason == conditions::CORE_RELEASE)
}

/// `waits`: a person has to release it, and is told how.
async fn release(
    home: &Cluster,
    record: &AddonInstallation,
    waits: Option<&How>,
) -> Result<Option<Step>, OperationError> {
    let is_released = is_released(record);
    if let Some(how) = waits.filter(|_| !is_released) {
        let standing = Standing::NeedsConfirmation {
            reason: conditions::CORE_RELEASE,
            message: (how.words.release)(&name_of(record)),
        };
        stand(home, record, &standing).await?;
        return Ok(Some(Step::Waits));
    }
    let is_going = record.metadata.deletion_timestamp.is_some();
    core_set::release(home, record, true).await?;
    Ok((!is_released || !is_going).then_some(Step::Released))
}

/// Says by Events what is wrong, where that was not said before.
async fn tell(ctx: &Context, followed: Followed, said: &mut BTreeSet<(String, String)>) {
    let Ok(home) = ctx.home().await else {
        return;
    };
    let system = &ctx.settings().system_namespace;
    let mut new = BTreeSet::new();
    let unknown = followed.unknown.into_iter();
    let unknown = unknown.map(|(at, unknown)| {
        (
            unknown.config_map(),
            "CoreSetUnknown",
            at,
            unknown.to_string(),
        )
    });
    let failed = followed
        .steps
        .into_iter()
        .filter_map(|(name, step)| match step {
            Step::Failed(error) => Some((
                CUSTOM_CORE_ADDONS,
                "CoreAddonFailed",
                name.to_string(),
                error.root().to_string(),
            )),
            Step::Taken => Some((
                CUSTOM_CORE_ADDONS,
                "CoreAddonFailed",
                name.to_string(),
                "it is listed as a core add-on, and the installation of this name is not one"
                    .to_owned(),
            )),
            _ => None,
        });
    for (config_map, reason, what, note) in unknown.chain(failed) {
        let key = (what.clone(), note.clone());
        if !said.contains(&key) {
            let regarding = Regarding {
                api_version: "v1",
                kind: "ConfigMap",
                namespace: system,
                name: config_map,
                uid: None,
            };
            let happened = Happened {
                is_warning: true,
                reason: reason.to_owned(),
                note: format!("{what}: {note}"),
            };
            // They tell people of what `core list` shows as well.
            let reporter = &ctx.settings().holder;
            let _ = events::publish_about(home, &regarding, &happened, reporter).await;
        }
        new.insert(key);
    }
    *said = new;
}
