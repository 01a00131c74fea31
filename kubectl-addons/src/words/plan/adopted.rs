//! Objects of other tools that become ours, with their former owners.

use std::collections::BTreeMap;

use common::manifest::key::ObjectKey;
use common::plan::{Action, Verb, summary};

use super::{LISTED, each, line, objects};
use addons_operation::Planned;

/// A line for each object, or one for each former owner where they are many; and what exists no more, where only owners change.
pub(super) fn lines(text: &mut String, item: &Planned) {
    let plan = &item.plan;
    if plan.verb == Verb::Adopt {
        let wanted = item.desired.objects.keys();
        let missing = wanted
            .filter(|key| plan.step(key).is_none() && plan.unchanged.binary_search(key).is_err())
            .collect();
        each(text, "missing", missing, |key| {
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
    if adopted.len() <= LISTED {
        for (key, from) in adopted {
            line(text, "adopt", &format!("{key} (from {from})"));
        }
        return;
    }
    let mut owners: BTreeMap<&str, Vec<&ObjectKey>> = BTreeMap::new();
    for (key, from) in adopted {
        owners.entry(from).or_default().push(key);
    }
    for (from, keys) in owners {
        let count = objects(keys.len());
        let kinds = summary::kinds(keys);
        line(text, "adopt", &format!("{count:<11} {kinds} (from {from})"));
    }
}
