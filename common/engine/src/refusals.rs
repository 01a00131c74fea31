//! Finds what the API server would refuse of a plan. Every write is sent as a dry run before the first change. Objects that cannot be
//! changed in place become recreations; writes that cannot be checked are counted and stop nothing; every other refusal ends the command
//! (semantics 12.14).
//!
//! Objects in a namespace that the command creates, or of a kind that it defines, are not checked, because the server cannot answer. If an
//! admission webhook prevents the check, the live object is compared by the table of built-in kinds.

mod held;
mod planned;

use std::collections::BTreeSet;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use addons_plan::changes::{FieldChange, mask_fields};
use addons_plan::conflicts::{Conflict, Policy};
use addons_plan::holder::ResourceHolder;
use addons_plan::immutable::{
    FixedField, Recreation, RecreationObstacle, UnjudgedWrite, loses_claims, table,
};
use addons_plan::refusal::{FailureCause, RefusedWrite};
use addons_plan::{Action, Deletion, InstallationPlan, Step, Verb, fit};
use common::api::installation::AddonInstallation;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::KeptKind;

use super::address::Collection;
use super::apply::{explain, fitting, is_silent_webhook, precise, strip_object};
use super::cluster::Cluster;
use super::diff;
use super::dry_run::PlanDryRun;
use super::error::{EngineError, FieldCause};
use super::{delete, live, record};
use held::HeldField;
pub(super) use planned::CommandPlans;

/// Maximum number of fields of one object that are named although they stay.
const MAX_NAMED_FIELDS: usize = 5;

/// Why the changes of an object are unknown that the server accepts.
const UNREADABLE: &str = "which may not be read";

/// The server's verdict on one write; none if it accepts the write as it is.
enum WriteVerdict {
    Recreate(Recreation),
    Unjudged(UnjudgedWrite),
    Refused(RefusedWrite),
    /// It needs something that these objects give up in the same command.
    Waits(Vec<ObjectKey>),
    /// These fields are changed in place.
    Changes(Vec<FieldChange>),
    /// It is changed in place, except for these fields.
    InPlace(Vec<String>),
    /// None of our fields differs: a restored object is only recorded as it is now.
    Unchanged,
}

/// A write of a plan.
#[derive(Clone, Copy)]
enum PlannedWrite<'a> {
    Apply(&'a Step),
    Delete(&'a Deletion),
}

/// Checks the writes of one plan of a command.
struct PlanCheck<'a> {
    plan: &'a InstallationPlan,
    run: PlanDryRun<'a>,
    planned: &'a CommandPlans<'a>,
}

/// Adds to the plans of a command what the server refuses, what cannot be changed in place, and what cannot be checked. Uninstallations are
/// checked on demand: [`find_removal_refusals`]. Returns the objects that are changed in place, each with the index of its plan.
///
/// # Errors
/// The server cannot be reached.
pub async fn find_refusals(
    cluster: &Cluster,
    plans: &mut [&mut InstallationPlan],
) -> Result<BTreeSet<(usize, ObjectKey)>, EngineError> {
    let verdicts = {
        let all: Vec<&InstallationPlan> = plans.iter().map(|plan| &**plan).collect();
        let planned = CommandPlans::new(&all);
        let judges = all.iter().map(|plan| PlanCheck {
            plan,
            run: PlanDryRun::new(cluster, plan),
            planned: &planned,
        });
        let judges: Vec<PlanCheck<'_>> = judges.collect();
        let writes = judges.iter().enumerate().flat_map(|(part, judge)| {
            let writes = list_writes(judge.plan).into_iter();
            writes.map(move |write| (part, judge, write))
        });
        let writes: Vec<(usize, &PlanCheck<'_>, PlannedWrite<'_>)> = writes.collect();
        let verdicts: Vec<(usize, ObjectKey, Vec<WriteVerdict>)> = stream::iter(writes)
            .map(async |(part, judge, write)| {
                let verdicts = judge.check_write(write).await?;
                Ok::<_, EngineError>((part, write.key().clone(), verdicts))
            })
            .buffered(cluster.concurrency())
            .try_collect()
            .await?;
        verdicts
    };
    let mut in_place = BTreeSet::new();
    for (part, key, verdicts) in verdicts {
        if let Some(plan) = plans.get_mut(part) {
            for verdict in verdicts {
                if matches!(verdict, WriteVerdict::InPlace(_)) {
                    in_place.insert((part, key.clone()));
                }
                add_verdict(plan, &key, verdict);
            }
        }
    }
    for plan in plans {
        refuse_swaps(plan);
    }
    Ok(in_place)
}

/// Returns what an uninstallation would not be allowed to delete; nothing is deleted.
///
/// # Errors
/// The server cannot be reached.
pub async fn find_removal_refusals(
    cluster: &Cluster,
    plan: &InstallationPlan,
    record: &AddonInstallation,
) -> Result<Vec<RefusedWrite>, EngineError> {
    let planned = CommandPlans::new(&[plan]);
    let judge = PlanCheck {
        plan,
        run: PlanDryRun::new(cluster, plan),
        planned: &planned,
    };
    let deletions = plan.deletions();
    let verdicts: Vec<Option<WriteVerdict>> = stream::iter(deletions)
        .map(async |deletion| judge.check_deletion(deletion).await)
        .buffered(cluster.concurrency())
        .try_collect()
        .await?;
    let asked = record::delete(cluster, record, true).await;
    let of_record = judge.deletion_verdict(&record::key(&plan.installation), asked)?;
    let verdicts = verdicts.into_iter().chain([of_record]).flatten();
    let refused = verdicts.filter_map(|verdict| match verdict {
        WriteVerdict::Refused(refusal) => Some(refusal),
        _ => None,
    });
    Ok(refused.collect())
}

/// Returns the writes that are checked; none if only owners change.
fn list_writes(plan: &InstallationPlan) -> Vec<PlannedWrite<'_>> {
    if plan.verb == Verb::Adopt || plan.verb.ends_installation() {
        return Vec::new();
    }
    let steps = plan.steps.iter().map(PlannedWrite::Apply);
    let deletions = plan.deletions().map(PlannedWrite::Delete);
    steps.chain(deletions).collect()
}

/// Adds a verdict to the plan.
fn add_verdict(plan: &mut InstallationPlan, key: &ObjectKey, verdict: WriteVerdict) {
    let mask = plan.mask.clone();
    let found = plan.steps.binary_search_by(|step| step.target.key.cmp(key));
    let step = found.ok().and_then(|at| plan.steps.get_mut(at));
    match verdict {
        WriteVerdict::Recreate(mut recreation) => {
            for field in &mut recreation.fields {
                field.rule = mask.mask_text(&field.rule);
            }
            let mut deleted = recreation.deleted_keys();
            let is_named = deleted.all(|key| plan.may_go_first.contains(key));
            drop(deleted);
            if let Some(step) = step.filter(|_| is_named) {
                step.policy.delete_first(&recreation.holders);
            }
            plan.recreations.push(recreation);
        }
        WriteVerdict::Unjudged(unjudged) => plan.unjudged.push(unjudged),
        WriteVerdict::Refused(mut refusal) => {
            refusal.message = mask.mask_text(&refusal.message);
            plan.refused.push(refusal);
        }
        WriteVerdict::Waits(holders) => {
            let names: Vec<String> = holders.iter().map(ToString::to_string).collect();
            if let Some(step) = step {
                let holders = holders.into_iter().map(ResourceHolder::Applied);
                step.policy.holders.extend(holders);
            }
            plan.unjudged.push(UnjudgedWrite {
                key: key.clone(),
                why: format!("{} gives up what it needs", names.join(", ")),
                is_created_by_command: true,
            });
        }
        WriteVerdict::Changes(mut fields) => {
            mask_fields(&mut fields, &mask);
            plan.changed_fields.insert(key.clone(), fields);
        }
        WriteVerdict::InPlace(lines) => {
            let lines = lines.iter().map(|line| mask.mask_text(line));
            plan.warnings.extend(lines);
        }
        WriteVerdict::Unchanged => {
            if let Some(step) = step {
                step.action = Action::Refresh;
            }
        }
    }
}

/// Refuses objects that need something from each other, because neither can be first.
fn refuse_swaps(plan: &mut InstallationPlan) {
    let waits = |step: &Step, other: &ObjectKey| {
        let mut holders = step.policy.holders.iter();
        holders.any(|holder| matches!(holder, ResourceHolder::Applied(key) if key == other))
    };
    let mut swaps = Vec::new();
    for step in &plan.steps {
        let key = &step.target.key;
        let others = step.policy.holders.iter().map(ResourceHolder::key);
        let mut others = others.filter_map(|other| plan.step(other));
        if let Some(other) = others.find(|other| waits(other, key)) {
            swaps.push((key.clone(), other.target.key.clone()));
        }
    }
    for (key, other) in swaps {
        plan.refused.push(RefusedWrite {
            message: format!(
                "it needs what {other} has, and the other way round: give one of them something else first"
            ),
            key,
            cause: FailureCause::Other,
            remedy: None,
        });
    }
}

impl<'a> PlannedWrite<'a> {
    fn key(&self) -> &'a ObjectKey {
        match self {
            Self::Apply(step) => &step.target.key,
            Self::Delete(deletion) => &deletion.target.key,
        }
    }
}

impl PlanCheck<'_> {
    async fn check_write(&self, write: PlannedWrite<'_>) -> Result<Vec<WriteVerdict>, EngineError> {
        match write {
            PlannedWrite::Apply(step) => self.check_step(step).await,
            PlannedWrite::Delete(deletion) => {
                Ok(self.check_deletion(deletion).await?.into_iter().collect())
            }
        }
    }

    async fn check_step(&self, step: &Step) -> Result<Vec<WriteVerdict>, EngineError> {
        let key = &step.target.key;
        let mut verdicts = Vec::new();
        if let Some(held) = held::find_address_holder(self.run.cluster, step).await? {
            verdicts.extend(self.holder_verdicts(step, vec![held]));
        }
        if let Some((other, single)) = self.planned.find_rival(step) {
            verdicts.push(WriteVerdict::Refused(RefusedWrite {
                key: key.clone(),
                message: format!("{other} asks for {single} as well, which only one can have"),
                cause: FailureCause::Other,
                remedy: None,
            }));
        }
        if let Some(why) = self.planned.reason_not_checkable(step) {
            verdicts.push(unjudged_verdict(key, why, true));
            return Ok(verdicts);
        }
        // An impossible CRD is refused as a breakage.
        let mut breakages = self.plan.breakages.iter();
        if breakages.any(|found| found.definition == *key && !found.impossible.is_empty()) {
            return Ok(verdicts);
        }
        let of_step = match step.action {
            Action::Create => match self.run.create(step).await {
                Ok(()) => Vec::new(),
                Err(error) => self.refusal_verdicts(step, None, error).await?,
            },
            _ => self.check_change(step).await?,
        };
        verdicts.extend(of_step);
        Ok(verdicts)
    }

    /// Checks the change of an existing object. A CRD that loses stored versions is checked in its transitional and in its final form.
    async fn check_change(&self, step: &Step) -> Result<Vec<WriteVerdict>, EngineError> {
        let key = &step.target.key;
        let live = match live::read_step_object(self.run.cluster, step).await {
            Ok(live) => live,
            Err(error) => {
                require_answer(error)?;
                let asked = self.run.apply(&without_autoscaler(step), None).await;
                return match asked {
                    Ok(_) => Ok(vec![unjudged_verdict(key, UNREADABLE.to_owned(), false)]),
                    Err(error) => self.refusal_verdicts(step, None, error).await,
                };
            }
        };
        let live = live.as_ref();
        let answer = match self.run.apply(&without_autoscaler(step), live).await {
            Ok(answer) => answer.object,
            Err(error) => {
                let is_forbidden = matches!(error, EngineError::Forbidden { .. });
                let mut verdicts = self.refusal_verdicts(step, live, error).await?;
                if let Some(live) = live.filter(|_| is_forbidden) {
                    // For commands that only show a plan: see `InstallationPlan::leave_rights_unchecked`.
                    let fields = diff::manifest_fields(step, live, &self.run.manager);
                    verdicts.push(WriteVerdict::Changes(fields));
                }
                return Ok(verdicts);
            }
        };
        let mut migrations = self.plan.migrations();
        let migration = migrations.find(|migration| migration.definition == *key);
        let Some(live) = live else {
            return Ok(Vec::new());
        };
        let fields = diff::changed_fields(&self.run, step, live, &answer, migration).await;
        if let Some(migration) = migration {
            let last = Step {
                object: migration.wanted.clone(),
                ..step.clone()
            };
            let changes = vec![WriteVerdict::Changes(fields)];
            return match self.run.apply(&last, Some(live)).await {
                Ok(_) => Ok(changes),
                Err(error) => match without_stored_versions(error) {
                    Some(error) => self.refusal_verdicts(&last, Some(live), error).await,
                    None => Ok(changes),
                },
            };
        }
        let manager = &self.run.manager;
        let unchanged = may_be_unchanged(self.plan, step)
            && is_marked_alike(live, &answer)
            && fields.is_empty();
        let unchanged = unchanged.then_some(WriteVerdict::Unchanged);
        let stays = describe_staying_fields(step, live, &answer, manager);
        Ok(unchanged
            .into_iter()
            .chain([WriteVerdict::Changes(fields), WriteVerdict::InPlace(stays)])
            .collect())
    }

    /// Returns the verdicts for a step that the server refuses.
    async fn refusal_verdicts(
        &self,
        step: &Step,
        live: Option<&Value>,
        error: EngineError,
    ) -> Result<Vec<WriteVerdict>, EngineError> {
        let error = require_answer(error)?;
        let key = &step.target.key;
        if let Some(why) = self.planned.reason_unjudged(step, &error) {
            return Ok(vec![unjudged_verdict(key, why, true)]);
        }
        let (plan, cluster) = (self.plan, self.run.cluster);
        if let Some(held) =
            held::find_held_fields(cluster, self.planned, plan, step, &error).await?
        {
            return Ok(self.holder_verdicts(step, held));
        }
        if let Some(why) = self.planned.reason_lifted(key, &error, false) {
            return Ok(vec![unjudged_verdict(key, why, true)]);
        }
        if matches!(error, EngineError::Invalid { .. }) && has_former_owner(step) {
            let why = "the fields of its former owner go first".to_owned();
            return Ok(vec![unjudged_verdict(key, why, true)]);
        }
        let fields: Vec<FixedField> = match error {
            EngineError::Immutable { object, causes } if step.action == Action::Create => {
                return Ok(vec![
                    self.refused_verdict(step, EngineError::Invalid { object, causes }),
                ]);
            }
            EngineError::Immutable { causes, .. } => precise::name_fields(cluster, step, causes)
                .await
                .into_iter()
                .map(to_fixed_field)
                .collect(),
            error => match reason_not_checked(&error) {
                Some(why) => match live
                    .and_then(|live| table::find_changed_fields(key, live, &step.object))
                {
                    Some(fields) => fields,
                    None => return Ok(vec![unjudged_verdict(key, why.to_owned(), false)]),
                },
                None => return Ok(vec![self.refused_verdict(step, error)]),
            },
        };
        if fields.is_empty() {
            return Ok(Vec::new());
        }
        let mut recreation = Recreation::new(plan, key, fields);
        if recreation.obstacle.is_none() && is_stateful(key) {
            let loses = live.is_some_and(|live| loses_claims(live, &step.object));
            recreation.obstacle = loses.then_some(RecreationObstacle::Claims);
        }
        Ok(vec![WriteVerdict::Recreate(recreation)])
    }

    fn refused_verdict(&self, step: &Step, error: EngineError) -> WriteVerdict {
        let error = explain(error, step);
        WriteVerdict::Refused(RefusedWrite {
            key: step.target.key.clone(),
            message: error.describe(),
            cause: error.cause(),
            remedy: error.remedy(),
        })
    }

    /// Returns the verdicts for a step that needs what other objects hold.
    fn holder_verdicts(&self, step: &Step, held: Vec<HeldField>) -> Vec<WriteVerdict> {
        let key = &step.target.key;
        let (mut deletions, mut applied) = (Vec::new(), Vec::new());
        for one in &held {
            let Some(holder) = &one.holder else {
                return vec![WriteVerdict::Refused(held::held_refusal(key, &held))];
            };
            let mut pruned = self.plan.deletions();
            let pruned = pruned.find(|deletion| deletion.target.key == *holder);
            match pruned.filter(|_| KeptKind::from_key(holder).is_none()) {
                Some(deletion) if !deletions.contains(deletion) => deletions.push(deletion.clone()),
                Some(_) => {}
                None if self.planned.applies(holder) => applied.push(holder.clone()),
                None => {
                    let mut refusal = held::held_refusal(key, &held);
                    if let Some(other) = self.planned.find_pruning(holder) {
                        let hint = format!("; {} prunes {holder}: upgrade it first", other.name);
                        refusal.message.push_str(&hint);
                    }
                    return vec![WriteVerdict::Refused(refusal)];
                }
            }
        }
        let mut verdicts = Vec::new();
        if !applied.is_empty() {
            applied.dedup();
            verdicts.push(WriteVerdict::Waits(applied));
        }
        if !deletions.is_empty() {
            let fields = held.into_iter().map(|one| one.field).collect();
            verdicts.push(WriteVerdict::Recreate(Recreation::with_holders(
                key, fields, deletions,
            )));
        }
        verdicts
    }

    async fn check_deletion(
        &self,
        deletion: &Deletion,
    ) -> Result<Option<WriteVerdict>, EngineError> {
        let (target, uid) = (&deletion.target, &deletion.uid);
        let collection = Collection::from_target(target);
        let name = &target.key.name;
        let asked = delete::dry_run(self.run.cluster, &collection, name, uid).await;
        self.deletion_verdict(&target.key, asked)
    }

    /// Returns the verdict for the dry run of a deletion.
    fn deletion_verdict(
        &self,
        key: &ObjectKey,
        asked: Result<(), EngineError>,
    ) -> Result<Option<WriteVerdict>, EngineError> {
        let Err(error) = asked else {
            return Ok(None);
        };
        let error = require_answer(error)?;
        if let Some(why) = self.planned.reason_lifted(key, &error, true) {
            return Ok(Some(unjudged_verdict(key, why, true)));
        }
        if let Some(why) = reason_not_checked(&error) {
            return Ok(Some(unjudged_verdict(key, why.to_owned(), false)));
        }
        Ok(Some(WriteVerdict::Refused(RefusedWrite {
            key: key.clone(),
            message: format!("cannot be deleted: {}", strip_object(&error.describe())),
            cause: error.cause(),
            remedy: None,
        })))
    }
}

fn unjudged_verdict(key: &ObjectKey, why: String, is_coming: bool) -> WriteVerdict {
    WriteVerdict::Unjudged(UnjudgedWrite {
        key: key.clone(),
        why,
        is_created_by_command: is_coming,
    })
}

/// Returns an error that is an answer of the server; fails with one that is not.
fn require_answer(error: EngineError) -> Result<EngineError, EngineError> {
    match error {
        EngineError::Unreachable { .. } | EngineError::Unauthorized { .. } => Err(error),
        error => Ok(error),
    }
}

fn to_fixed_field(cause: FieldCause) -> FixedField {
    FixedField {
        field: cause.field,
        rule: cause.message,
    }
}

/// Returns the step without a policy for an autoscaler. Replicas can always change, and leaving them out would cost another request if
/// everything else is taken.
fn without_autoscaler(step: &Step) -> Step {
    let policy = Policy {
        autoscaler: None,
        ..step.policy.clone()
    };
    let policy = if policy.takes_all() {
        policy
    } else {
        step.policy.clone()
    };
    Step {
        policy,
        ..step.clone()
    }
}

/// Returns the refusal of a CRD without causes that a migration resolves: it removes the stored versions that the CRD lacks.
fn without_stored_versions(error: EngineError) -> Option<EngineError> {
    match error {
        EngineError::Invalid { object, mut causes } => {
            causes.retain(|cause| !cause.field.starts_with("status.storedVersions"));
            (!causes.is_empty()).then_some(EngineError::Invalid { object, causes })
        }
        error => Some(error),
    }
}

/// Returns why the server could not check a write that it may accept later.
fn reason_not_checked(error: &EngineError) -> Option<&'static str> {
    match error {
        error if is_silent_webhook(error) => Some("an admission webhook does not answer"),
        EngineError::Api { message, .. } if message.contains("does not support dry run") => {
            Some("an admission webhook takes no dry runs")
        }
        error if error.is_schema_mismatch() => None,
        EngineError::Api {
            code: 429 | 500..=599,
            ..
        } => Some("the server failed"),
        EngineError::Api { code: 409, .. } => Some("another client is changing it"),
        _ => None,
    }
}

/// Returns whether the record and the manifest agree, so that only another client's edit led to the step. Policies that may leave fields
/// are excluded, because only the apply finds and records such fields.
fn may_be_unchanged(plan: &InstallationPlan, step: &Step) -> bool {
    let policy = &step.policy;
    let recorded = plan.union.objects.get(&step.target.key);
    step.action == Action::Restore
        && policy.takes_all()
        && policy.inherited.is_none()
        && policy.adopted.is_none()
        && recorded.is_some_and(|item| {
            let object = &item.object;
            !step.digest.is_empty() && object.digest == step.digest && object.yielded.is_empty()
        })
}

/// Returns whether a dry run left the labels and annotations as they are, our own marks included, which the comparison of fields ignores and
/// pruning needs.
fn is_marked_alike(live: &Value, answer: &Value) -> bool {
    let marks = ["/metadata/labels", "/metadata/annotations", "/metadata/uid"];
    let mut marks = marks.iter();
    marks.all(|mark| live.pointer(mark) == answer.pointer(mark))
}

/// Describes the fields that stay although the manifest changes them.
fn describe_staying_fields(
    step: &Step,
    live: &Value,
    answer: &Value,
    manager: &str,
) -> Vec<String> {
    let key = &step.target.key;
    let fitted = fit::fit(key, &step.object, &step.policy, live, manager);
    let kept = fitted
        .kept
        .iter()
        .map(|kept| fitting::describe_kept(step, kept));
    let still = fit::find_co_owned_fields(key, live, answer, manager);
    let more = still.len().saturating_sub(MAX_NAMED_FIELDS);
    let still = still.iter().take(MAX_NAMED_FIELDS).map(|field| {
        let value = if key.is_secret() {
            String::new()
        } else {
            format!(" {}", Conflict::describe_value(Some(&field.value)))
        };
        let verb = if field.owners.len() == 1 {
            "sets"
        } else {
            "set"
        };
        let owners = field.owners.join(" and ");
        format!(
            "{key} {} stays{value}, although the manifest drops it: {owners} {verb} it, too",
            field.path
        )
    });
    let more = (more > 0)
        .then(|| format!("{key}: {more} more fields stay, which other managers set, too"));
    kept.chain(still).chain(more).collect()
}

/// Returns whether fields of a former owner become ours before the apply; a dry run still sees them beside ours.
fn has_former_owner(step: &Step) -> bool {
    step.policy.adopted.is_some() || step.policy.inherited.is_some()
}

fn is_stateful(key: &ObjectKey) -> bool {
    (key.group.as_str(), key.kind.as_str()) == ("apps", "StatefulSet")
}

#[cfg(test)]
mod tests;
