//! Rules for how a version is rendered: method, source, values and form have to fit together (semantics 9, 10).
//!
//! The schema has some of these rules as well, but `catalogue validate` and clusters with older CRDs have only these.

use super::versions;
use crate::verdict::AdmissionProblem;
use common::api::catalogue::{AddonCatalogue, Method};
use common::values::form;

/// A chart must come from a source of charts, and settings for helm need method helm.
#[must_use]
pub fn mismatched_method(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    let mut problems = Vec::new();
    for (place, _, version) in versions(catalogue) {
        let (template, source) = (&version.template, &version.source);
        let is_helm = template.method == Method::Helm;
        let waits = !template.required_resource_types.is_empty();
        for (is_wrong, field, message) in [
            (
                source.helm.is_some() && !is_helm,
                "source.helm",
                "source.helm requires template.method helm",
            ),
            (
                source.inline.is_some() && is_helm,
                "source.inline",
                "a chart cannot be written inline; its source is helm, git, docker or url",
            ),
            (
                template.helm.is_some() && !is_helm,
                "template.helm",
                "helm can only be set with method helm",
            ),
            (
                waits && is_helm,
                "template.requiredResourceTypes",
                "requiredResourceTypes cannot be used with method helm",
            ),
        ] {
            if is_wrong {
                let field = format!("{place}.{field}");
                problems.push(AdmissionProblem::invalid("method", field, message));
            }
        }
    }
    problems
}

/// Plain manifests take neither values nor a form (semantics 10.5).
#[must_use]
pub fn manifest_without_values(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    let mut problems = Vec::new();
    for (place, _, version) in versions(catalogue) {
        if version.template.method != Method::Manifest {
            continue;
        }
        let values = match &version.values {
            Some(serde_json::Value::Object(values)) => !values.is_empty(),
            other => other.is_some(),
        };
        let template = &version.template;
        for (field, given) in [
            ("values", values),
            ("template.formSpec", !template.form_spec.is_empty()),
            ("template.formOnly", template.form_only),
        ] {
            if given {
                problems.push(AdmissionProblem::invalid(
                    "manifest-without-values",
                    format!("{place}.{field}"),
                    "method manifest takes no values; the method is go-template or helm",
                ));
            }
        }
    }
    problems
}

/// Forms must be usable: paths, types, `enum`, `pattern` and defaults (semantics 10.3).
#[must_use]
pub fn unusable_forms(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    let mut patterns = form::CheckedPatterns::default();
    let mut problems = Vec::new();
    for (place, _, version) in versions(catalogue) {
        let violations = form::check_form(&version.template.form_spec, &mut patterns);
        problems.extend(violations.into_iter().map(|violation| {
            AdmissionProblem::invalid(
                "form",
                format!("{place}.template.formSpec"),
                format!("{}: {}", violation.path, violation.message),
            )
        }));
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures::{catalogue, source, texts};

    /// A catalogue of one version with these fields.
    fn one(fields: Value) -> AddonCatalogue {
        let mut version = json!({"version": "1.0.0", "source": source()});
        for (key, value) in fields.as_object().unwrap() {
            version[key] = value.clone();
        }
        catalogue("c", json!([{"name": "a", "versions": [version]}]))
    }

    /// The fields that are wrong, below the version.
    fn fields(problems: Vec<AdmissionProblem>) -> Vec<String> {
        let below = |field: &str| field.replace("spec.addons[0].versions[0].", "");
        problems
            .iter()
            .map(|problem| below(&problem.field))
            .collect()
    }

    #[test]
    fn method_and_source_go_together() {
        let chart = json!({"helm": {"url": "https://charts.example.test", "chart": "a"}});
        let inline = json!({"inline": {"manifest": ""}});
        let git = json!({"git": {"remote": "https://git.example.test/a"}});
        let types = json!([{"version": "v1", "kind": "ServiceMonitor"}]);
        for (source, template, wrong) in [
            (&chart, json!({"method": "helm"}), &[][..]),
            (
                &git,
                json!({"method": "helm", "helm": {"releaseName": "a"}}),
                &[],
            ),
            (
                &git,
                json!({"method": "go-template", "requiredResourceTypes": types}),
                &[],
            ),
            (
                &inline,
                json!({"method": "manifest", "requiredResourceTypes": types}),
                &[],
            ),
            (&inline, json!({"method": "go-template"}), &[]),
            (&chart, json!({"method": "go-template"}), &["source.helm"]),
            (&chart, json!({}), &["source.helm"]),
            (&inline, json!({"method": "helm"}), &["source.inline"]),
            (
                &git,
                json!({"method": "go-template", "helm": {}}),
                &["template.helm"],
            ),
            (&git, json!({"helm": {}}), &["template.helm"]),
            (
                &chart,
                json!({"method": "helm", "requiredResourceTypes": types}),
                &["template.requiredResourceTypes"],
            ),
        ] {
            let both = json!({"source": source, "template": template});
            assert_eq!(
                fields(mismatched_method(&one(both.clone()))),
                wrong,
                "{both}"
            );
        }
    }

    #[test]
    fn plain_manifests_take_no_values() {
        let form = json!([{"internalName": "replicas"}]);
        for (given, wrong) in [
            (json!({}), &[][..]),
            (json!({"values": {}}), &[]),
            (json!({"values": {"a": 1}}), &["values"]),
            (
                json!({"values": {"a": 1}, "template": {"formSpec": form, "formOnly": true}}),
                &["values", "template.formSpec", "template.formOnly"],
            ),
            (
                json!({"values": {"a": 1}, "template": {"method": "helm", "formSpec": form, "formOnly": true}}),
                &[],
            ),
            (
                json!({"values": {"a": 1}, "template": {"method": "go-template"}}),
                &[],
            ),
        ] {
            let problems = manifest_without_values(&one(given.clone()));
            assert_eq!(fields(problems), wrong, "{given}");
        }
    }

    #[test]
    fn forms_have_flat_defaults_of_their_types() {
        let at = "spec.addons[0].versions[0].template.formSpec";
        for (field, problem) in [
            (
                json!({"internalName": "a.b", "type": "number", "default": 1.5}),
                None,
            ),
            (
                json!({"internalName": "a", "type": "text-area", "default": "x\ny"}),
                None,
            ),
            (
                json!({"internalName": "a", "type": "string", "default": "x"}),
                None,
            ),
            (
                json!({"internalName": "a", "type": "number", "default": "1"}),
                Some("a: default: a number is expected, this is text"),
            ),
            (
                json!({"internalName": "a", "default": {"nested": 1}}),
                Some("a: default: text is expected, this is a map"),
            ),
            (
                json!({"internalName": "a", "type": "boolean", "default": [true]}),
                Some("a: default: true or false is expected, this is a list"),
            ),
            (
                json!({"internalName": "a", "enum": ["x", "y"], "default": "z"}),
                Some("a: default: must be one of x, y"),
            ),
            (
                json!({"internalName": "a", "pattern": "["}),
                Some("a: pattern: found unclosed character class"),
            ),
            (
                json!({"internalName": ".a"}),
                Some(".a: a key of the path is empty"),
            ),
        ] {
            let template = json!({"template": {"method": "go-template", "formSpec": [field]}});
            let expected: Vec<String> = problem.iter().map(|it| format!("{at}: {it}")).collect();
            assert_eq!(texts(&unusable_forms(&one(template))), expected, "{field}");
        }
    }
}
