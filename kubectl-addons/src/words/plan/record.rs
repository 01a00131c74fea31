//! Describes the changes of a record: names of changed values, the pinned version, and the origin of the entry.

use addons_operation::PlannedInstallation;
use addons_plan::gitops;
use addons_plan::{InstallationPlan, Verb};
use common::api::installation::{AddonInstallation, AddonInstallationSpec, AddonRef};
use common::api::names::LABEL_SET;
use common::text::list_first;

use super::{MAX_LISTED_OBJECTS, add_line, count_objects};

/// Adds a line for each change of the record. If nothing changes at all, says what is left to do.
pub(super) fn add_record_changes(text: &mut String, item: &PlannedInstallation) {
    let changes = list_record_changes(item);
    let is_empty = changes.is_empty() && text.lines().count() == 1;
    for change in changes {
        add_line(text, "record", &change);
    }
    let plan = &item.plan;
    if let Some(pin) = pin_of_new_record(item) {
        add_line(text, "record", &pin);
    }
    let is_same =
        plan.from.as_ref().map(super::version_label) == plan.to.as_ref().map(super::version_label);
    if is_empty && is_same && changes_record(plan) {
        match plan.wait_for.len() {
            0 => add_line(text, "record", "brought up to date; no object changes"),
            count => add_line(
                text,
                "wait",
                &format!("for {} to be ready", count_objects(count)),
            ),
        }
    }
}

/// Lists the changes in the record of an existing installation.
pub fn list_record_changes(item: &PlannedInstallation) -> Vec<String> {
    let before = item.fallback.as_ref();
    match before.filter(|before| before.metadata.resource_version.is_some()) {
        Some(before) if changes_record(&item.plan) => compare_records(before, &item.plan),
        _ => Vec::new(),
    }
}

/// Describes the pin of an installation that does not exist yet. Core add-ons stay at their version anyway.
fn pin_of_new_record(item: &PlannedInstallation) -> Option<String> {
    let is_new = item.record.metadata.resource_version.is_none();
    let is_kept = is_new && matches!(item.plan.verb, Verb::Install | Verb::Adopt);
    let spec = &item.plan.wanted.spec;
    let is_pinned = is_kept && !spec.core_addon;
    is_pinned.then(|| describe_pin(&AddonRef::default(), &spec.addon_ref))?
}

/// Whether the operation is about the objects of a version, and not about their owners or removal.
fn changes_record(plan: &InstallationPlan) -> bool {
    matches!(plan.verb, Verb::Install | Verb::Upgrade | Verb::Rollback)
}

fn compare_records(before: &AddonInstallation, plan: &InstallationPlan) -> Vec<String> {
    let wanted = &plan.wanted;
    let mut changes = compare_specs(&before.spec, &wanted.spec);
    let labels = before.metadata.labels.as_ref();
    let was = labels.and_then(|labels| labels.get(LABEL_SET));
    if let Some(set) = wanted.labels.get(LABEL_SET).filter(|set| was != Some(set)) {
        changes.push(format!("becomes a member of set {set}"));
    }
    changes
}

fn compare_specs(from: &AddonInstallationSpec, to: &AddonInstallationSpec) -> Vec<String> {
    let mut values = Vec::new();
    let mut others = Vec::new();
    for path in gitops::diff_specs_by_value(from, to) {
        match path.split_first() {
            Some((first, rest)) if first == "values" => values.push(rest.join(".")),
            Some((first, _)) if first == "addonRef" => {}
            _ => others.push(format!("spec.{}", path.join("."))),
        }
    }
    let mut changes = Vec::new();
    if !values.is_empty() {
        values.retain(|path| !path.is_empty());
        changes.push(format!("values changed: {}", join_names(&values)));
    }
    changes.extend(describe_pin(&from.addon_ref, &to.addon_ref));
    let (was, is) = (
        describe_origin(&from.addon_ref),
        describe_origin(&to.addon_ref),
    );
    if was != is {
        changes.push(format!("origin {was} → {is}"));
    }
    if !others.is_empty() {
        changes.push(format!("changed: {}", join_names(&others)));
    }
    changes
}

/// Joins the first of many names. `all` if there are none.
fn join_names(names: &[String]) -> String {
    match names {
        [] => "all".to_owned(),
        names => list_first(names, MAX_LISTED_OBJECTS),
    }
}

fn describe_pin(from: &AddonRef, to: &AddonRef) -> Option<String> {
    let label = |reference: &AddonRef| match (&reference.version, &reference.id) {
        (Some(version), Some(id)) if !id.is_empty() => Some(format!("{version} (id {id})")),
        (version, id) => version
            .clone()
            .or_else(|| Some(format!("id {}", id.as_ref()?))),
    };
    let (was, is) = (label(from), label(to));
    if was == is {
        return None;
    }
    Some(match is {
        Some(version) => format!(
            "pinned to version {version}: only an upgrade by name moves it; with --unpin, it follows newer ones"
        ),
        None => "no longer pinned to a version: it follows newer ones".to_owned(),
    })
}

fn describe_origin(reference: &AddonRef) -> String {
    let named = [
        ("catalogue", &reference.catalogue),
        ("index", &reference.index),
        ("directory", &reference.directory),
    ];
    let named = named.into_iter();
    let named = named.filter_map(|(word, name)| Some(format!("{word} {}", name.as_ref()?)));
    let named: Vec<String> = named.collect();
    match named.as_slice() {
        [] => match &reference.from {
            Some(from) => format!("{} ({})", from.location(), from.digest()),
            None => "any catalogue".to_owned(),
        },
        named => named.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_values_and_never_what_they_are() {
        let spec = |values, version: Option<&str>, catalogue: &str| AddonInstallationSpec {
            addon_ref: AddonRef {
                name: "web".to_owned(),
                version: version.map(str::to_owned),
                catalogue: Some(catalogue.to_owned()),
                ..AddonRef::default()
            },
            values: Some(values),
            ..AddonInstallationSpec::default()
        };
        let before = spec(json!({"ingress": {"host": "a"}, "b": 1}), None, "one");
        let after = spec(
            json!({"ingress": {"host": "hunter2"}, "b": 1}),
            Some("1.0.0"),
            "two",
        );
        assert_eq!(
            compare_specs(&before, &after),
            [
                "values changed: ingress.host",
                "pinned to version 1.0.0: only an upgrade by name moves it; with --unpin, it follows newer ones",
                "origin catalogue one → catalogue two",
            ]
        );
        assert_eq!(compare_specs(&before, &before), Vec::<String>::new());
        let free = compare_specs(&after, &spec(json!({}), None, "two"));
        assert_eq!(
            free,
            [
                "values changed: b, ingress.host",
                "no longer pinned to a version: it follows newer ones",
            ]
        );
    }
}
