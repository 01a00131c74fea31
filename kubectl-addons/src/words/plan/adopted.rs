//! Objects that change owner: adopted ones with their former owners, and those that are given back.

use std::collections::BTreeMap;

use addons_plan::closing::ClosingStep;
use addons_plan::{Action, InstallationPlan, Verb, summary};
use common::manifest::key::ObjectKey;

use super::{MAX_LISTED_OBJECTS, add_each, add_line, count_objects};
use addons_operation::PlannedInstallation;

/// Adds a line for each object that is given back, or one with counts if there are many.
pub(super) fn add_given_back(text: &mut String, plan: &InstallationPlan) {
    let objects = plan.closing.iter().filter_map(|step| match step {
        ClosingStep::GiveBack(object) => Some(&object.target.key),
        _ => None,
    });
    add_each(text, "release", objects.collect(), |key| {
        format!("{key} (it stays as it is)")
    });
}

/// Whether the plan restores a record that was deleted while its objects stayed.
pub fn is_deleted_record(plan: &InstallationPlan) -> bool {
    plan.rebuilt.is_some() && plan.record.is_none()
}

/// The headline of a plan that changes only the record.
pub(super) fn recording_headline(plan: &InstallationPlan) -> String {
    let verb = match is_deleted_record(plan) {
        true => "restoring",
        false => "adopting",
    };
    format!("{verb} {}: only its record changes", plan.installation.name)
}

/// Adds lines for the objects that a rebuilt inventory gains and loses.
pub(super) fn add_rebuilt(text: &mut String, plan: &InstallationPlan) {
    let Some(rebuilt) = &plan.rebuilt else {
        return;
    };
    add_each(text, "record", rebuilt.added.iter().collect(), |key| {
        format!("{key} (it carries the label of the installation)")
    });
    add_each(text, "forget", rebuilt.forgotten.iter().collect(), |key| {
        format!("{key} (it is gone, or of another owner)")
    });
}

/// Adds a line for the records that are set aside, restored or deleted, for each release or application of another tool.
pub(super) fn add_former_records(text: &mut String, plan: &InstallationPlan) {
    for step in &plan.closing {
        let (word, record) = match step {
            ClosingStep::SetAside(hidden) => ("set aside", &hidden.record),
            ClosingStep::Restore(record) => ("restore", record),
            ClosingStep::Discard(record) => ("delete", record),
            _ => continue,
        };
        if let Some(first) = record.objects.first() {
            let count = record.objects.len();
            let plural = if count == 1 { "" } else { "s" };
            let what = format!("{count} {}{plural}", first.kind);
            add_line(text, word, &format!("the records of {record} ({what})"));
        }
    }
}

/// Adds a line for each adopted object, or one for each former owner if there are many. For `adopt` also the wanted objects that do not
/// exist.
pub(super) fn add_adopted(text: &mut String, item: &PlannedInstallation) {
    let plan = &item.plan;
    if plan.verb == Verb::Adopt {
        let wanted = item.desired.objects.keys();
        let missing = wanted
            .filter(|key| plan.step(key).is_none() && plan.unchanged.binary_search(key).is_err())
            .collect();
        add_each(text, "missing", missing, |key| {
            format!("{key} (the next upgrade creates it)")
        });
    }
    let adopted = plan
        .steps
        .iter()
        .filter(|step| step.action == Action::Adopt);
    let adopted: Vec<(&ObjectKey, &str)> = adopted
        .filter_map(|step| {
            let from = &step.policy.adopted.as_ref()?.from;
            Some((&step.target.key, from.as_str()))
        })
        .collect();
    if adopted.len() <= MAX_LISTED_OBJECTS {
        for (key, from) in adopted {
            add_line(text, "adopt", &format!("{key} (from {from})"));
        }
        return;
    }
    let mut owners: BTreeMap<&str, Vec<&ObjectKey>> = BTreeMap::new();
    for (key, from) in adopted {
        owners.entry(from).or_default().push(key);
    }
    for (from, keys) in owners {
        let count = count_objects(keys.len());
        let kinds = summary::kinds(keys);
        add_line(text, "adopt", &format!("{count:<11} {kinds} (from {from})"));
    }
}
