//! Results of a dry run: what the server refuses, what cannot be changed in place, and what the server could not check.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use addons_plan::changes::ObjectDiff;
use addons_plan::immutable::{Recreation, UnjudgedWrite};
use addons_plan::refusal::describe_writes;
use addons_plan::{Action, InstallationPlan};
use common::manifest::key::ObjectKey;

use super::plan::count_objects;

/// Lists refused objects, objects that must be deleted (with the flag that accepts it), and objects that may need to be.
pub(super) fn list_verdicts(plan: &InstallationPlan) -> Vec<(&'static str, String)> {
    let refused = describe_writes(&plan.refused).into_iter();
    let refused = refused.map(|line| ("refused", line));
    let known = plan.recreations.iter();
    let known = known.flat_map(|object| list_recreation(plan, object));
    let unjudged = plan.unjudged.iter().filter(|object| {
        let step = plan.step(&object.key);
        step.is_some_and(|step| step.policy.recreate && step.action != Action::Create)
    });
    let unjudged = unjudged.map(|object| {
        let what = format!("{} where a field of it cannot change", object.key);
        ("recreate", what)
    });
    refused.chain(known).chain(unjudged).collect()
}

fn list_recreation(plan: &InstallationPlan, object: &Recreation) -> Vec<(&'static str, String)> {
    let key = &object.key;
    if object.obstacle.is_some() {
        return vec![("refused", object.to_string())];
    }
    let policy = plan.step(key).map(|step| &step.policy);
    let accept = |key: &ObjectKey, is_accepted: bool| match is_accepted {
        true => String::new(),
        false => format!(" (to accept: --recreate {}/{})", key.kind, key.name),
    };
    if object.holders.is_empty() {
        let accept = accept(key, policy.is_some_and(|policy| policy.recreate));
        return vec![("recreate", format!("{object}{accept}"))];
    }
    let reasons = object.reasons();
    let holders = object.holders.iter().map(|holder| {
        let is_accepted = policy.is_some_and(|policy| policy.deletes_first(holder));
        let holder = &holder.target.key;
        let accept = accept(holder, is_accepted);
        let what = format!("{holder} is deleted before {key} is applied: {reasons}{accept}");
        ("first", what)
    });
    holders.collect()
}

/// Lists the writes that the server could not check, except those that need a namespace or kind that the command creates.
pub fn describe_unjudged(plan: &InstallationPlan) -> String {
    let reasons = plan.unjudged.iter();
    let reasons = reasons.filter(|unjudged| !unjudged.is_created_by_command);
    count_unchecked(reasons.map(why))
}

/// Lists all writes of a plan that the server could not check.
pub fn describe_unchecked(plan: &InstallationPlan) -> String {
    count_unchecked(plan.unjudged.iter().map(why))
}

/// Lists the changes that the server could not check, with the reason. Empty if it checked all of them.
pub fn describe_unchecked_changes<'a>(changes: impl IntoIterator<Item = &'a ObjectDiff>) -> String {
    let changes = changes.into_iter();
    count_unchecked(changes.filter_map(|change| change.unjudged.as_deref()))
}

fn why(unjudged: &UnjudgedWrite) -> &str {
    &unjudged.why
}

fn count_unchecked<'a>(reasons: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    let mut text = String::new();
    for (reason, count) in counts {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  not checked by the server: {}, {reason}",
            count_objects(count)
        );
    }
    text
}
