//! Limits the size and the nesting of objects (semantics 4), and how much of them the webhook keeps: objects that many users may write must leave memory for the facts
//! that decide about core add-ons (semantics 18.1).
//!
//! | bound | applies to |
//! |---|---|
//! | [`MAX_VALUES`] | the values of an installation |
//! | [`MAX_LISTED`] | the entries of a catalogue |
//! | [`CATALOGUES`] | all catalogues of class Custom of the system namespace, as they are kept |
//! | [`RECORDS`] | installations that are not core and refer to catalogues, as they are kept |
//!
//! Core add-ons, catalogues of class Core, policies and marks of namespaces are always kept: only trusted users write them.

use super::duplicates;
use crate::AdmissionFacts;
use crate::catalogue_facts::CatalogueFacts;
use crate::verdict::AdmissionProblem;
use common::api::catalogue::{Addon, AddonCatalogue, CatalogueClass};
use common::api::installation::AddonInstallation;
use common::entrance::{self, MAX_STORED_DEPTH, UnreadableField};
pub use common::entrance::{MAX_LISTED, MAX_VALUES};

/// The bytes that all catalogues of class Custom together may count for.
pub const CATALOGUES: usize = 64 << 20;
/// The number of non-core installations that are kept: at most 2 KiB each, 32 MiB in total.
pub const RECORDS: usize = 16 << 10;
/// The bytes that a parsed add-on or version takes in addition to its text.
const ENTRY: usize = 1536;

/// The names of the rules, for metrics and logs.
const TOO_LARGE: &str = "too-large";
const NESTING: &str = "nesting";

/// Returns the bytes that an add-on counts for, given the length of its JSON text.
pub(crate) fn addon_weight(text: usize, versions: usize) -> usize {
    ENTRY
        .saturating_mul(versions.saturating_add(1))
        .saturating_add(text)
}

/// Removes the parts of an add-on that no rule reads when another catalogue is checked.
pub(crate) fn reduce(addon: &mut Addon) {
    addon.description = None;
    for version in &mut addon.versions {
        version.prune = None;
        version.selector = None;
        if let Some(inline) = &mut version.source.inline {
            inline.manifest = String::new();
        }
    }
}

/// Returns the problem of a catalogue that lists too many entries.
#[must_use]
pub fn check_entry_count(listed: usize) -> Option<AdmissionProblem> {
    let message = format!(
        "it lists {listed} entries, and {MAX_LISTED} are allowed: split it, or list it by reference (spec.from.digest)"
    );
    (listed > MAX_LISTED).then(|| AdmissionProblem::invalid(TOO_LARGE, "spec.addons", message))
}

/// Returns the problem of a catalogue for which the others leave no room. It concerns only the stored object: commands also validate the
/// content of a file that an object refers to, which is not kept.
#[must_use]
pub fn check_room(new: &AddonCatalogue, facts: &AdmissionFacts) -> Option<AdmissionProblem> {
    let of_system = facts.settings.system_namespace.as_str();
    let is_counted = new.spec.class == CatalogueClass::Custom
        && new.metadata.namespace.as_deref() == Some(of_system);
    if !is_counted {
        return None;
    }
    let known = facts.named_catalogues();
    let known = known.filter(|known| known.class == CatalogueClass::Custom);
    let (old, others): (Vec<&CatalogueFacts>, Vec<&CatalogueFacts>) =
        known.partition(|known| duplicates::is_same(&known.metadata, &new.metadata));
    let sum = |known: Vec<&CatalogueFacts>| known.iter().map(|known| known.weight()).sum::<usize>();
    let weight = CatalogueFacts::from(new.clone()).weight();
    let all = sum(others).saturating_add(weight);
    // Making a catalogue smaller makes room, so it is allowed.
    (all > CATALOGUES && weight > sum(old)).then(|| {
        let message = format!(
            "catalogues of class Custom take at most {} MiB of memory, and with this one they take {} MiB: remove one, or list it by \
             reference (spec.from.digest)",
            CATALOGUES >> 20,
            all >> 20
        );
        AdmissionProblem::invalid(TOO_LARGE, "spec.addons", message)
    })
}

/// Returns the problem of an installation with an unreadable field, or with values that are too large, nest too deep or have a reserved
/// key.
#[must_use]
pub fn check_readable(new: &AddonInstallation) -> Option<AdmissionProblem> {
    if let Some(UnreadableField { field, why }) = &new.spec.unreadable {
        let message = format!("it cannot be read: {why}");
        return Some(AdmissionProblem::invalid("unreadable", *field, message));
    }
    let values = new.spec.values.as_ref()?.to_string();
    if let Err(refused) = entrance::check_values(&values) {
        return Some(AdmissionProblem::invalid(
            TOO_LARGE,
            "spec.values",
            refused.to_string(),
        ));
    }
    check_text("spec.values", &values)
}

/// Returns the problem of a field that nests too deep or has a reserved key.
#[must_use]
pub fn check_text(field: &str, text: &str) -> Option<AdmissionProblem> {
    let refused = entrance::check(text.as_bytes(), MAX_STORED_DEPTH).err()?;
    Some(AdmissionProblem::invalid(
        NESTING,
        field,
        refused.to_string(),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures::{catalogue as object, core_catalogue, facts};

    fn addons(count: usize, note: &str) -> Value {
        let versions = |addon: usize| -> Vec<Value> {
            let numbers = 0..count.saturating_sub(addon * 1000).min(1000);
            let versions = numbers.map(|number| {
                json!({"version": format!("1.0.{number}"), "id": note, "source": {"inline": {"manifest": "x"}}})
            });
            versions.collect()
        };
        let addons = (0..count.div_ceil(1000))
            .map(|addon| json!({"name": format!("a{addon}"), "versions": versions(addon)}));
        addons.collect()
    }

    #[test]
    fn a_catalogue_lists_ten_thousand_entries() {
        assert_eq!(check_entry_count(10_000), None);
        let problem = check_entry_count(10_001).unwrap().to_string();
        let expected = "spec.addons: it lists 10001 entries, and 10000 are allowed";
        assert!(problem.starts_with(expected), "{problem}");
    }

    #[test]
    fn custom_catalogues_share_their_room_and_core_ones_have_theirs() {
        let large = |name: &str| object(name, addons(9_000, &"x".repeat(100)));
        let known: Vec<AddonCatalogue> = ["a", "b", "c", "d"].map(large).into();
        let facts = facts(known);
        let problem = check_room(&large("e"), &facts).unwrap();
        assert!(problem.message.contains("at most 64 MiB"), "{problem}");
        // As it is, smaller, of class Core, or where no installation can refer to it.
        assert_eq!(check_room(&large("a"), &facts), None);
        assert_eq!(check_room(&object("a", addons(10, "")), &facts), None);
        let core = core_catalogue("e", addons(9_000, ""));
        assert_eq!(check_room(&core, &facts), None);
        let mut elsewhere = large("e");
        elsewhere.metadata.namespace = Some("team".to_owned());
        assert_eq!(check_room(&elsewhere, &facts), None);
    }
}
