//! Rules for a chart or manifest that an installation itself names: those for an entry of a catalogue of class Custom, so that a
//! reference opens no way around them (semantics 4).

use crate::AdmissionFacts;
use crate::rules::catalogue::{self, source, template};
use crate::rules::duplicates;
use crate::verdict::AdmissionProblem;
use common::api::catalogue::{Addon, AddonCatalogue, AddonCatalogueSpec};
use common::api::installation::AddonInstallation;
use common::catalogue::CatalogueEntry;

/// The entry in the catalogue that the rules are applied to, and the field of the installation that holds it.
const PLACES: [(&str, &str); 3] = [
    ("spec.addons[0].versions[0].source", "spec.addonRef.from"),
    ("spec.addons[0].versions[0]", "spec.addonRef.from"),
    ("spec.addons[0].name", "spec.addonRef.name"),
];

/// Validates the chart or manifest that an installation names, if it changes. Once admitted, it stays when a catalogue lists it later.
#[must_use]
pub fn named_content(
    new: &AddonInstallation,
    old: Option<&AddonInstallation>,
    facts: &AdmissionFacts,
) -> Vec<AdmissionProblem> {
    let reference = &new.spec.addon_ref;
    let is_new = old.is_none_or(|old| old.spec.addon_ref.from != reference.from);
    let Some(entry) = CatalogueEntry::from_installation(reference).filter(|_| is_new) else {
        return Vec::new();
    };
    let addon = entry.addon.as_str();
    let catalogue = as_catalogue(&entry, facts);
    let rules = [
        catalogue::unreadable_versions,
        catalogue::unverifiable_hashes,
        catalogue::unreadable_constraints,
        source::unreadable_sources,
        template::mismatched_method,
    ];
    let mut problems: Vec<AdmissionProblem> =
        rules.iter().flat_map(|rule| rule(&catalogue)).collect();
    problems.extend(duplicates::find_across(&catalogue, None, facts));
    problems.extend(catalogue::core_names(&catalogue, facts));
    for problem in &mut problems {
        for (place, field) in PLACES {
            if let Some(below) = problem.field.strip_prefix(place) {
                problem.field = format!("{field}{below}");
                break;
            }
        }
    }
    if entry
        .version
        .source
        .url
        .as_ref()
        .is_some_and(source::is_on_no_server)
    {
        problems.push(AdmissionProblem::invalid(
            "source",
            "spec.addonRef.from.url.manifest",
            "an installation names content on a server: write an absolute URL",
        ));
    }
    if let Some(signed) = facts.sources().find(|it| it.requires_signature(addon)) {
        let message = format!(
            "catalogue {} requires signatures of {addon}: list this version there",
            signed.name()
        );
        problems.push(AdmissionProblem::invalid(
            "signature",
            "spec.addonRef.from",
            message,
        ));
    }
    problems
}

/// Returns a source catalogue of class Custom that lists only this entry.
fn as_catalogue(entry: &CatalogueEntry, facts: &AdmissionFacts) -> AddonCatalogue {
    let spec = AddonCatalogueSpec {
        addons: vec![Addon {
            name: entry.addon.clone(),
            versions: vec![entry.version.clone()],
            ..Addon::default()
        }],
        ..AddonCatalogueSpec::default()
    };
    let mut catalogue = AddonCatalogue::new("", spec);
    catalogue.metadata.namespace = Some(facts.settings.system_namespace.clone());
    catalogue
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures::catalogue;

    fn web(change: &Value) -> AddonInstallation {
        let mut from = json!({
            "version": "1.0.0", "method": "helm", "manifestHash": "a".repeat(64),
            "helm": {"url": "oci://h.example/charts", "chart": "web", "version": "1.0.0"},
        });
        json_patch::merge(&mut from, change);
        serde_json::from_value(json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "web", "namespace": "kubectl-addons"},
            "spec": {"addonRef": {"name": "web", "from": from}},
        }))
        .unwrap()
    }

    fn facts(spec: &Value) -> AdmissionFacts {
        let listed = json!([{"name": "web", "versions": [{"version": "v1", "source": {"inline": {"manifest": ""}}}]}]);
        let mut object = catalogue("team", listed);
        let mut merged = serde_json::to_value(&object.spec).unwrap();
        json_patch::merge(&mut merged, spec);
        object.spec = serde_json::from_value(merged).unwrap();
        AdmissionFacts {
            catalogues: vec![std::sync::Arc::new(object.into())],
            ..AdmissionFacts::default()
        }
    }

    #[test]
    fn a_reference_is_judged_as_an_entry_of_a_catalogue() {
        let url = |url: &str| json!({"helm": null, "url": {"manifest": url}});
        let other = json!({"version": "2.0.0"});
        for (change, spec, expected) in [
            (other.clone(), json!({}), vec![]),
            (
                json!({}),
                json!({}),
                vec![
                    "spec.addonRef.from: web 1.0.0 is already in catalogue team at spec.addons[0].versions[0] (v1)",
                ],
            ),
            (
                other.clone(),
                json!({"class": "Core"}),
                vec![
                    "spec.addonRef.name: web is held by catalogue team of class Core; choose another name",
                ],
            ),
            (
                other.clone(),
                json!({"signature": {"key": "k", "required": true}}),
                vec![
                    "spec.addonRef.from: catalogue team requires signatures of web: list this version there",
                ],
            ),
            (
                json!({"version": "2.0.0", "helm": {"url": "https://h.example", "digest": "sha256:0"}}),
                json!({}),
                vec![
                    "spec.addonRef.from.helm.digest: it names a manifest in a registry; a repository is verified with manifestHash",
                ],
            ),
        ] {
            let problems = named_content(&web(&change), None, &facts(&spec));
            let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{change} {spec}");
        }
        let mut local = web(&url("file:///m.yaml"));
        if let Some(from) = &mut local.spec.addon_ref.from {
            "2.0.0".clone_into(&mut from.version);
        }
        let found = named_content(&local, None, &facts(&json!({})));
        assert_eq!(found.len(), 1, "{found:?}");
        // What was admitted stays.
        let old = web(&json!({}));
        assert_eq!(named_content(&old, Some(&old), &facts(&json!({}))), []);
    }
}
