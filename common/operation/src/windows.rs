//! Maintenance windows of administrators: which plans may begin now (semantics 19.7).

use addons_admission::policy::maintenance::{ChangeKind, ClosedWindow, find_closed};
use addons_admission::policy::selects;
use addons_plan::Verb;
use common::api::policy::{AddonPolicy, PolicyAction};
use common::catalogue::version_label;
use jiff::Timestamp;

use crate::context::Context;
use crate::error::{OperationError, OutsideWindow};
use crate::event::Finding;
use crate::plan::{Plan, PlannedInstallation};
use crate::resolve::policies::selector_labels;
use crate::unattended::unfinished::unended_operation;

/// Refuses a plan that would begin a change outside the maintenance windows of a policy. The windows of a policy with `Warn` are only
/// reported, and so are those that break-glass opens.
///
/// # Errors
/// [`OutsideWindow`]: the change that has to wait longest; policies cannot be read.
pub async fn check(ctx: &Context, plan: &Plan) -> Result<(), OperationError> {
    let changes = plan.installations.iter();
    let changes = changes.filter_map(|planned| Some((planned, change_kind(planned)?)));
    let changes: Vec<(&PlannedInstallation, ChangeKind)> = changes.collect();
    if changes.is_empty() {
        return Ok(());
    }
    let policies = match ctx.policies().await {
        // Without the right, edits are repaired as before there were windows.
        Err(error)
            if error.is_forbidden()
                && changes.iter().all(|(_, kind)| *kind == ChangeKind::Repair) =>
        {
            return Ok(());
        }
        policies => policies?,
    };
    if policies.iter().all(|one| one.spec.maintenance.is_none()) {
        return Ok(());
    }
    let now = ctx.home().await?.now();
    let (mut closed, mut warned) = (Vec::new(), Vec::new());
    for (planned, kind) in changes {
        for (action, found) in [
            (PolicyAction::Enforce, &mut closed),
            (PolicyAction::Warn, &mut warned),
        ] {
            let namespace = &planned.plan.installation.namespace;
            let window = closed_window(ctx, policies, namespace, action, (kind, now)).await?;
            found.extend(window.map(|window| outside(planned, kind, window, now)));
        }
    }
    if let Some(warning) = longest(warned) {
        ctx.report_finding(Finding::Verdict(warning.to_string()));
    }
    let Some(closed) = longest(closed) else {
        return Ok(());
    };
    if ctx.requester().await?.may_break_glass() {
        ctx.report_finding(Finding::Verdict(format!(
            "allowed by break-glass: {closed}"
        )));
        return Ok(());
    }
    Err(Box::new(closed).into())
}

/// Returns the windows of policies that enforce them in which changes of a namespace would have to begin, if they are closed now.
///
/// # Errors
/// Policies, or the labels of the namespace, cannot be read.
pub async fn find_closed_for(
    ctx: &Context,
    namespace: &str,
) -> Result<Option<ClosedWindow>, OperationError> {
    let (policies, now) = (ctx.policies().await?, ctx.home().await?.now());
    let at = (ChangeKind::Change, now);
    closed_window(ctx, policies, namespace, PolicyAction::Enforce, at).await
}

async fn closed_window(
    ctx: &Context,
    policies: &[AddonPolicy],
    namespace: &str,
    action: PolicyAction,
    (kind, now): (ChangeKind, Timestamp),
) -> Result<Option<ClosedWindow>, OperationError> {
    let has_windows =
        |one: &&AddonPolicy| one.spec.action == action && one.spec.maintenance.is_some();
    let policies: Vec<&AddonPolicy> = policies.iter().filter(has_windows).collect();
    if policies.is_empty() {
        return Ok(None);
    }
    let labels = selector_labels(ctx, policies.iter().copied(), namespace).await?;
    let policies = policies.into_iter().filter(|one| selects(one, &labels));
    Ok(find_closed(policies, kind, now))
}

/// Returns the change that has to wait longest.
fn longest(mut closed: Vec<OutsideWindow>) -> Option<OutsideWindow> {
    let more = closed.len().saturating_sub(1);
    closed.sort_by_key(|one| one.window.next.unwrap_or(Timestamp::MAX));
    let last = closed.pop()?;
    Some(OutsideWindow { more, ..last })
}

fn outside(
    planned: &PlannedInstallation,
    kind: ChangeKind,
    window: ClosedWindow,
    now: Timestamp,
) -> OutsideWindow {
    let plan = &planned.plan;
    let what = match (kind, &plan.to) {
        (ChangeKind::Repair, _) => "a repair".to_owned(),
        (ChangeKind::Change, Some(to)) if !(to.version.is_empty() && to.id.is_empty()) => {
            format!("{} to {}", plan.verb, version_label(&to.version, &to.id))
        }
        (ChangeKind::Change, _) => plan.verb.to_string(),
    };
    OutsideWindow {
        installation: plan.installation.clone(),
        what,
        wait: window.wait(now),
        window,
        more: 0,
    }
}

/// Returns what a plan does to an installation; `None` if it may do so at any time: it continues what has begun, installs a core add-on
/// that its cluster lacks, or only writes or deletes the record.
fn change_kind(planned: &PlannedInstallation) -> Option<ChangeKind> {
    let (plan, record) = (&planned.plan, &planned.record);
    let is_new = plan.from.is_none() && !plan.verb.ends_installation();
    let status = record.status.as_ref();
    let is_nothing_there = plan.from.is_none()
        && plan.verb.ends_installation()
        && status.is_none_or(|status| status.inventory.is_empty());
    let is_free = is_new && record.spec.core_addon || is_nothing_there || plan.rebuilt.is_some();
    if is_free || has_begun(planned) {
        return None;
    }
    let is_same = match (&plan.from, &plan.to) {
        (Some(from), Some(to)) => plan.verb == Verb::Upgrade && from.is_same_target(to),
        _ => false,
    };
    Some(match is_same {
        true => ChangeKind::Repair,
        false => ChangeKind::Change,
    })
}

/// Returns whether an operation with the same target was interrupted, or failed.
fn has_begun(planned: &PlannedInstallation) -> bool {
    let Some((verb, target)) = unended_operation(&planned.record) else {
        return false;
    };
    match (target, &planned.plan.to) {
        (Some(target), Some(to)) => target.is_same_target(to),
        (_, None) => verb.known().is_some_and(Verb::ends_installation),
        (None, Some(_)) => false,
    }
}
