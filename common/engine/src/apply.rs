//! Server-side apply of one object: a single PATCH if no other manager owns a field of ours, answered with metadata only.
//!
//! The first PATCH never forces. If the server names fields that others own, the object is read, and the policy decides whether they are
//! taken (`settle`). An object that cannot be changed in place is recreated if that is allowed (`recreate`); objects that hold something it
//! needs are deleted first (`held`); managedFields entries of client-side managers and of versions that no longer exist are corrected
//! (`managed`). Nothing is taken from an object that another client created in place of the planned one.

mod adopt;
mod explain;
pub(super) mod fitting;
pub(super) mod giving;
mod held;
mod holder;
mod in_force;
pub(super) mod managed;
pub(super) mod precise;
mod recreate;
pub(super) mod settle;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep};

use addons_plan::inventory::{ApplyAnswer, Inventory};
use addons_plan::readiness::{Readiness, ReadinessStatus};
use addons_plan::{Action, Step, Target};
use common::api::names;
use common::entrance::or_default;
use common::values::mask::SecretMask;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::event::Event;
use super::report::Settled;
use super::request::{self, APPLY_PATCH, ApiCall, METADATA};
use super::silent;
use super::snapshot::read_one;
pub(super) use explain::{explain, strip_object};
use settle::ApplyAttempt;

/// Maximum number of tries for a creation whose outcome is unknown.
const TRIES: usize = 5;
/// Maximum number of times that an object is read again because others change it.
const ROUNDS: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// How long to wait for an admission webhook that does not answer yet: it may just have been installed, perhaps by us.
const PATIENCE_WITH_WEBHOOKS: Duration = Duration::from_secs(20);
/// How long the server may take to notice that something is free again, because admission works with cached objects.
const PATIENCE_WITH_HOLDERS: Duration = Duration::from_secs(20);
const WEBHOOK_PAUSE: Duration = Duration::from_millis(500);

type ApplyResponse = request::ServerAnswer<WrittenObject>;

/// Who applies, and until when.
#[derive(Clone, Debug)]
pub(super) struct Applier<'a> {
    /// The index of the installation in the command.
    pub(super) part: usize,
    /// Field manager.
    pub(super) manager: String,
    /// Value of the owner label.
    pub(super) owner: String,
    /// Deadline of the operation.
    pub(super) deadline: Instant,
    /// Masks values of Secrets in conflicts before these are shortened.
    pub(super) mask: Arc<SecretMask>,
    /// Creation time of the first Job of this operation, by the API server's clock.
    pub(super) first_job: Arc<OnceLock<Timestamp>>,
    /// The recorded inventory before the first write.
    pub(super) recorded: &'a Inventory,
    /// Receives events of steps that are still being tried.
    pub(super) events: UnboundedSender<PartEvent>,
}

/// An event with the index of its installation in the command.
pub(super) type PartEvent = (usize, Event);

/// The result of one step.
pub(super) struct StepOutcome<'a> {
    pub(super) step: &'a Step,
    pub(super) result: Result<ApplyAnswer, EngineError>,
    pub(super) terminating: bool,
    /// Whether the object was deleted and created again.
    pub(super) recreated: bool,
    /// Whether the object is unchanged.
    pub(super) is_unchanged: bool,
    /// Fields that other managers owned.
    pub(super) settled: Vec<Settled>,
    pub(super) warnings: Vec<String>,
}

/// The parts of a live object that matter after an apply; the fields of each manager stay raw text.
#[derive(Debug, Default, Deserialize)]
struct WrittenObject {
    #[serde(default)]
    metadata: WrittenMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WrittenMetadata {
    uid: String,
    generation: Option<i64>,
    resource_version: String,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "or_default")]
    managed_fields: Vec<managed::FieldManagerEntry>,
}

impl WrittenMetadata {
    /// Takes the version fields of a later write of ours. The generation of a Deployment counts changes of its annotations, too.
    fn take_version(&mut self, later: Self) {
        self.generation = later.generation;
        self.resource_version = later.resource_version;
        self.managed_fields = later.managed_fields;
    }
}

/// What is reported about a step in addition to its result.
#[derive(Default)]
struct StepNotes {
    recreated: bool,
    only_recorded: bool,
    is_unchanged: bool,
    settled: Vec<Settled>,
    warnings: Vec<String>,
}

impl Applier<'_> {
    /// Applies one step.
    pub(super) async fn apply_step<'a>(
        &self,
        cluster: &Cluster,
        step: &'a Step,
    ) -> StepOutcome<'a> {
        let mut notes = StepNotes::default();
        let applied = self.apply(cluster, step, &mut notes).await;
        let (terminating, result) = match applied {
            Ok(applied) => {
                notes.warnings.extend(applied.warnings);
                let metadata = applied.object.metadata;
                if applied.created {
                    self.note_job(step, &metadata);
                }
                let answer = ApplyAnswer {
                    only_recorded: notes.only_recorded,
                    fields: managed::fields_of(&metadata.managed_fields, &self.manager),
                    created: applied.created,
                    uid: metadata.uid,
                    generation: metadata.generation,
                    resource_version: metadata.resource_version,
                };
                (metadata.deletion_timestamp.is_some(), Ok(answer))
            }
            Err(error) => {
                notes.settled.clear();
                (false, Err(explain(error, step)))
            }
        };
        StepOutcome {
            step,
            result,
            terminating,
            recreated: notes.recreated,
            is_unchanged: notes.is_unchanged || notes.only_recorded,
            settled: notes.settled,
            warnings: notes.warnings,
        }
    }

    /// Deletes the holders of what the step needs, then applies until it succeeds or only the user can resolve the error.
    async fn apply(
        &self,
        cluster: &Cluster,
        step: &Step,
        notes: &mut StepNotes,
    ) -> Result<ApplyResponse, EngineError> {
        if step.policy.holders.is_empty() {
            return self.apply_without_holders(cluster, step, notes).await;
        }
        held::delete_holders(self, cluster, step).await?;
        let patience = (Instant::now() + PATIENCE_WITH_HOLDERS).min(self.deadline);
        loop {
            match self.apply_without_holders(cluster, step, notes).await {
                Err(error) if held::may_be_freed(&error) && Instant::now() < patience => {
                    sleep(WEBHOOK_PAUSE).await;
                }
                applied => return applied.map_err(|error| held::explain_lost(step, error)),
            }
        }
    }

    /// Applies a step without waiting for holders.
    async fn apply_without_holders(
        &self,
        cluster: &Cluster,
        step: &Step,
        notes: &mut StepNotes,
    ) -> Result<ApplyResponse, EngineError> {
        if step.action == Action::Create {
            return self.create(cluster, step, notes).await;
        }
        if let Some(owner) = &step.policy.inherited {
            managed::inherit(cluster, &step.target, owner, &self.manager).await?;
        }
        if let Some(adoption) = &step.policy.adopted {
            let adopted = adopt::adopt(self, cluster, step, adoption).await?;
            if adoption.only_owner {
                return Ok(adopted);
            }
        }
        let mut settled = Vec::new();
        let fitted = match self.fit_step(cluster, step, &mut settled).await {
            Err(EngineError::Immutable { .. }) if step.policy.recreate => {
                let applied = recreate::recreate(self, cluster, step).await?;
                notes.recreated = true;
                return Ok(applied);
            }
            fitted => fitted?,
        };
        let planned = step;
        let step = fitted.as_ref().unwrap_or(step);
        let mut attempt = ApplyAttempt::from_step(step);
        let mut pause = FIRST_PAUSE;
        let mut created = false;
        for _ in 0..ROUNDS {
            match self.send(cluster, step, &attempt).await {
                Ok(mut applied) => {
                    created |= applied.created;
                    applied.created = created;
                    let is_planned = is_planned(step, &applied.object.metadata.uid);
                    if step.policy.shared {
                        applied =
                            managed::give_back(self, cluster, step, &attempt, applied).await?;
                    } else if is_planned
                        && managed::take_over(self, cluster, step, &attempt, &applied).await?
                    {
                        notes
                            .warnings
                            .push("what client-side apply owned in it is ours now".to_owned());
                        attempt = attempt.unpinned();
                        continue;
                    }
                    notes.settled = attempt.settled;
                    notes.settled.extend(settled);
                    let now = applied.object.metadata.resource_version.as_str();
                    notes.is_unchanged = !created && step.seen.as_deref() == Some(now);
                    return Ok(applied);
                }
                Err(EngineError::FieldConflict { causes, .. }) => {
                    attempt =
                        settle::resolve_conflicts(self, cluster, step, attempt, &causes).await?;
                }
                // The object was changed after it was read, perhaps by this very apply, whose answer was lost.
                Err(error) if error.is_conflict() && attempt.is_pinned() => {
                    attempt = attempt.unpinned();
                    sleep(pause).await;
                    pause *= 2;
                }
                Err(EngineError::Immutable { .. }) if step.policy.recreate => {
                    let applied = recreate::recreate(self, cluster, planned).await?;
                    notes.recreated = true;
                    return Ok(applied);
                }
                Err(EngineError::Immutable { object, causes }) => {
                    let causes = precise::name_fields(cluster, step, causes).await;
                    return Err(EngineError::Immutable { object, causes });
                }
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::conflict(
            step.target.key.clone(),
            "other clients keep changing it; run the command again",
        ))
    }

    /// Records the creation time of the first Job, if this object is one.
    fn note_job(&self, step: &Step, metadata: &WrittenMetadata) {
        let key = &step.target.key;
        if (key.group.as_str(), key.kind.as_str()) == ("batch", "Job")
            && let Some(created) = metadata.creation_timestamp
        {
            // If another Job was first, setting the value fails, as it should.
            let _ = self.first_job.set(created);
        }
    }

    /// Returns whether a Job of this operation created a CRD that did not exist when the plan was made: some charts have Jobs that apply
    /// their CRDs first.
    fn is_created_by_job(&self, step: &Step, metadata: &WrittenMetadata) -> bool {
        let since = self.first_job.get();
        let is_later = since.is_some_and(|since| metadata.creation_timestamp >= Some(*since));
        step.target.key.is_definition() && is_later
    }

    /// Creates an object, and finds out whether it is ours. 201 says so. 200 means that another client was faster, unless no other client
    /// wrote the object: then a killed operation of ours created it late. If the response is lost, the label of the live object decides
    /// before the next try.
    ///
    /// An object that is only to be recorded is not changed if another client created it first.
    async fn create(
        &self,
        cluster: &Cluster,
        step: &Step,
        notes: &mut StepNotes,
    ) -> Result<ApplyResponse, EngineError> {
        let plain = ApplyAttempt::from_step(step);
        let mut tries = 1;
        loop {
            let call = self.call(step, &plain)?.once();
            let lost = match self.send_patiently(cluster, step, call).await {
                Err(lost) if is_outcome_unknown(&lost) => lost,
                Err(error @ EngineError::FieldConflict { .. }) if step.policy.only_recorded => {
                    let found = self.read_live_metadata(cluster, step).await?;
                    notes.only_recorded = found.is_some();
                    return found.ok_or(error);
                }
                Err(error) => return Err(error),
                Ok(mut answer) => {
                    let metadata = &answer.object.metadata;
                    let is_ours = managed::is_only(&metadata.managed_fields, &self.manager);
                    answer.created |= is_ours || self.is_created_by_job(step, metadata);
                    return Ok(answer);
                }
            };
            let collection = Collection::from_target(&step.target);
            if let Some(live) = read_one(cluster, &collection, &step.target.key.name).await? {
                let ours = live.labels.get(names::LABEL_OWNER) == Some(&self.owner);
                let mut answer = self.send(cluster, step, &plain).await?;
                answer.created = ours;
                return Ok(answer);
            }
            if tries == TRIES {
                return Err(lost);
            }
            tries += 1;
        }
    }

    /// Returns the metadata of the live object of a step, as an answer that changed nothing.
    async fn read_live_metadata(
        &self,
        cluster: &Cluster,
        step: &Step,
    ) -> Result<Option<ApplyResponse>, EngineError> {
        let collection = Collection::from_target(&step.target);
        let call = ApiCall::get(&collection, &step.target.key.name, METADATA);
        match cluster.send::<WrittenObject>(call).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn send(
        &self,
        cluster: &Cluster,
        step: &Step,
        attempt: &ApplyAttempt,
    ) -> Result<ApplyResponse, EngineError> {
        let call = self.call(step, attempt)?;
        self.send_patiently(cluster, step, call).await
    }

    /// Repeats a call for a while if an admission webhook does not answer, or if the server still validates with the former CRD. If the
    /// cause is a webhook of the installation itself or a CRD, an event is sent at once.
    async fn send_patiently(
        &self,
        cluster: &Cluster,
        step: &Step,
        call: ApiCall,
    ) -> Result<ApplyResponse, EngineError> {
        let patience = (Instant::now() + PATIENCE_WITH_WEBHOOKS).min(self.deadline);
        let send = || cluster.send(call.clone());
        let mut is_told = false;
        loop {
            let error =
                match managed::with_healing(cluster, &step.target, &self.manager, send).await {
                    Ok(applied) => return Ok(applied),
                    Err(error) => error,
                };
            if is_silent_webhook(&error) {
                let is_over = Instant::now() >= patience;
                if is_over || !is_told {
                    let explained =
                        silent::explain_own_webhook(cluster, self.recorded, error).await;
                    if is_over {
                        return Err(explained);
                    }
                    is_told = true;
                    self.notify_webhook_wait(step, &explained);
                }
                sleep(WEBHOOK_PAUSE).await;
                continue;
            }
            let can_wait = Instant::now() + in_force::RETRY_PAUSE < self.deadline;
            let is_former = in_force::may_be_of_definition(&error, &step.target.key);
            if !can_wait
                || !is_former
                || !in_force::is_recently_changed(cluster, &step.target).await
            {
                return Err(error);
            }
            if !is_told {
                is_told = true;
                let readiness = Readiness {
                    status: ReadinessStatus::InProgress,
                    message: in_force::WAIT_REASON.to_owned(),
                };
                let key = step.target.key.clone();
                self.notify(Event::Waiting { key, readiness });
            }
            sleep(in_force::RETRY_PAUSE).await;
        }
    }

    /// Notifies that an apply waits for a webhook of the installation.
    fn notify_webhook_wait(&self, step: &Step, error: &EngineError) {
        if let (EngineError::OwnWebhook { .. }, Some(remedy)) = (error, error.remedy()) {
            self.notify(Event::Refused {
                key: step.target.key.clone(),
                message: error.describe(),
                remedy,
            });
        }
    }

    fn notify(&self, event: Event) {
        // The scheduler may have ended already.
        let _ = self.events.send((self.part, event));
    }

    fn call(&self, step: &Step, attempt: &ApplyAttempt) -> Result<ApiCall, EngineError> {
        let call = apply_object(step, &attempt.object, &self.manager, METADATA)?;
        Ok(if attempt.is_pinned() {
            call.query("force", "true")
        } else {
            call
        })
    }
}

/// Returns whether an object is the one that the step was planned for, and not one that another client created in its place.
fn is_planned(step: &Step, uid: &str) -> bool {
    step.uid.as_deref().is_none_or(|planned| planned == uid)
}

/// The error for an object that another client deleted and created again. Its fields are not taken.
fn replaced_error(step: &Step) -> EngineError {
    EngineError::conflict(
        step.target.key.clone(),
        "it was deleted and created again since the plan was made; run the command again",
    )
}

/// Returns the PATCH of a step, with its object or a modified one. The object is serialised here, once, right before it is sent.
pub(super) fn apply_object(
    step: &Step,
    object: &Arc<Value>,
    manager: &str,
    accept: &'static str,
) -> Result<ApiCall, EngineError> {
    let body = body(&step.target, object.as_ref())?;
    let collection = Collection::from_target(&step.target);
    Ok(
        ApiCall::patch(&collection, &step.target.key.name, APPLY_PATCH, accept)
            .query("fieldManager", manager)
            .query("fieldValidation", "Warn")
            .body(body),
    )
}

fn body(target: &Target, value: &Value) -> Result<Vec<u8>, EngineError> {
    serde_json::to_vec(value).map_err(|error| EngineError::Api {
        what: target.key.to_string(),
        message: error.to_string(),
        code: 0,
    })
}

/// Returns whether the outcome of a creation is unknown.
fn is_outcome_unknown(error: &EngineError) -> bool {
    error.is_uncertain() && !is_silent_webhook(error) && !error.is_schema_mismatch()
}

/// Returns whether the backend of a webhook cannot be reached: the API server answers 500. A CRD that no longer needs a conversion also
/// causes this for a moment.
pub(super) fn is_silent_webhook(error: &EngineError) -> bool {
    matches!(error, EngineError::Api { code: 500, message, .. } if message.contains("failed calling webhook"))
        || error.is_conversion_failure()
}

/// Returns the digest of the fields that a manager owns after a write with this answer.
#[cfg(test)]
pub(super) fn written_fields(answer: &Value, manager: &str) -> String {
    let written: WrittenObject =
        common::entrance::from_str(&answer.to_string()).unwrap_or_default();
    managed::fields_of(&written.metadata.managed_fields, manager)
}

#[cfg(test)]
mod tests;
