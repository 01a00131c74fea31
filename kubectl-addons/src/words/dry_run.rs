//! What the server said to a dry run: what cannot be changed in place, and what it could not check.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use common::manifest::key::ObjectKey;
use common::plan::InstallationPlan;
use common::plan::changes::ObjectDiff;

use super::plan::objects;

/// Objects that cannot be changed in place, with the flag that accepts it, and those that perhaps cannot.
pub(super) fn recreations(plan: &InstallationPlan) -> Vec<(&'static str, String)> {
    let may = |key: &ObjectKey| plan.step(key).is_some_and(|step| step.policy.recreate);
    let known = plan.recreations.iter().map(|object| {
        let key = &object.key;
        if object.obstacle.is_some() {
            ("refused", object.to_string())
        } else if may(key) {
            ("recreate", object.to_string())
        } else {
            let flag = format!("--recreate {}/{}", key.kind, key.name);
            ("recreate", format!("{object} (to accept: {flag})"))
        }
    });
    let unjudged = plan.unjudged.iter().filter(|object| may(&object.key));
    let unjudged = unjudged.map(|object| {
        let what = format!("{} where a field of it cannot change", object.key);
        ("recreate", what)
    });
    known.chain(unjudged).collect()
}

/// The changes of a plan that the server could not check.
pub fn unjudged(plan: &InstallationPlan) -> String {
    let reasons = plan.unjudged.iter();
    not_checked(reasons.map(|object| object.why.as_str()))
}

/// What the server could not check in a dry run, and why: nothing where it checked everything.
pub fn unchecked<'a>(changes: impl IntoIterator<Item = &'a ObjectDiff>) -> String {
    let changes = changes.into_iter();
    not_checked(changes.filter_map(|change| change.unjudged.as_deref()))
}

fn not_checked<'a>(reasons: impl Iterator<Item = &'a str>) -> String {
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
            objects(count)
        );
    }
    text
}
