//! Finds requirements that no catalogue satisfies. Only authors of catalogues see them: in a cluster, the other catalogue may be added
//! later, and the installed add-ons decide.

use std::collections::BTreeMap;

use super::versions;
use crate::verdict::AdmissionProblem;
use addons_versions::constraint::Constraint;
use addons_versions::tolerant;
use common::api::catalogue::AddonCatalogue;

/// The versions of each add-on that a set of catalogues lists.
#[derive(Clone, Debug, Default)]
pub struct ListedVersions<'a>(BTreeMap<&'a str, Vec<&'a str>>);

impl<'a> ListedVersions<'a> {
    /// Collects the versions that these catalogues list.
    #[must_use]
    pub fn from_catalogues(catalogues: impl Iterator<Item = &'a AddonCatalogue>) -> Self {
        let mut listed = Self::default();
        for addon in catalogues.flat_map(|catalogue| &catalogue.spec.addons) {
            let versions = addon.versions.iter().map(|it| it.version.as_str());
            listed.0.entry(&addon.name).or_default().extend(versions);
        }
        listed
    }
}

/// Returns the requirements that no listed version satisfies. Constraints that cannot be read are reported by another rule.
#[must_use]
pub fn find_unmet(
    catalogue: &AddonCatalogue,
    listed: &ListedVersions<'_>,
) -> Vec<AdmissionProblem> {
    let mut problems = Vec::new();
    for (place, _, version) in versions(catalogue) {
        for (i, requirement) in version.requires.iter().enumerate() {
            let name = requirement.name.as_str();
            let mut wrong = |field, message: String| {
                let field = format!("{place}.requires[{i}].{field}");
                problems.push(AdmissionProblem::invalid("requires", field, message));
            };
            let Some(offered) = listed.0.get(name) else {
                let message = format!(
                    "no add-on {name} is listed; validate it together with the catalogue that has it"
                );
                wrong("name", message);
                continue;
            };
            let range = requirement.version.as_deref().unwrap_or_default();
            let Ok(constraint) = Constraint::parse(range) else {
                continue;
            };
            let fits = |text: &&str| tolerant::parse(text).is_ok_and(|it| constraint.matches(&it));
            if !range.trim().is_empty() && !offered.iter().any(fits) {
                wrong(
                    "version",
                    format!("no version of {name} is listed that fits {range}"),
                );
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn catalogue(name: &str, versions: Value) -> AddonCatalogue {
        let spec = json!({"addons": [{"name": name, "versions": versions}]});
        AddonCatalogue::new("c", serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn a_requirement_is_met_by_what_is_listed() {
        let db = catalogue("db", json!([{"version": "1.4.0", "source": {}}]));
        for (requires, expected) in [
            (json!({"name": "db"}), None),
            (json!({"name": "db", "version": ""}), None),
            (json!({"name": "db", "version": ">=1.2"}), None),
            (json!({"name": "db", "version": ">= not a range"}), None),
            (
                json!({"name": "db", "version": ">=2"}),
                Some("requires[0].version: no version of db is listed that fits >=2"),
            ),
            (
                json!({"name": "cache"}),
                Some(
                    "requires[0].name: no add-on cache is listed; validate it together with the catalogue that has it",
                ),
            ),
        ] {
            let web = catalogue("web", json!([{"source": {}, "requires": [requires]}]));
            let problems = find_unmet(
                &web,
                &ListedVersions::from_catalogues([&web, &db].into_iter()),
            );
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let expected = expected.map(|it| format!("spec.addons[0].versions[0].{it}"));
            assert_eq!(texts, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
