//! Every expression of a catalogue must be valid: constraints read the facts of a cluster, health checks an object (semantics 3, 17.11).

use std::collections::{BTreeMap, BTreeSet};

use super::versions;
use crate::verdict::AdmissionProblem;
use common::api::catalogue::{AddonCatalogue, AddonVersion, HelmMode};
use common::expression::{Expression, ExpressionError, profile};

/// The most different expressions of a catalogue, each of which is compiled once.
const MOST: usize = 200;
/// The group whose objects are ready once their kinds are served, whatever their status says.
const DEFINITIONS: &str = "apiextensions.k8s.io";

/// The expressions that were compiled, each with its error.
#[derive(Default)]
struct CompiledExpressions<'a> {
    constraints: BTreeMap<&'a str, Option<String>>,
    checks: BTreeMap<&'a str, Option<String>>,
}

/// Returns the expressions that are not valid, and health checks that exclude each other.
#[must_use]
pub fn wrong_expressions(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    let mut problems = Vec::new();
    let mut compiled = CompiledExpressions::default();
    for (place, _, version) in versions(catalogue) {
        let mut wrong = |field: String, message: String| {
            let field = format!("{place}.{field}");
            problems.push(AdmissionProblem::invalid("expression", field, message));
        };
        let constraint = version.constraints.expression.as_deref();
        if let Some(text) = constraint.filter(|text| !text.trim().is_empty())
            && let Some(error) = compiled.constraint_error(text)
        {
            wrong("constraints.expression".to_owned(), error);
        }
        check_health_checks(version, &mut wrong);
        for (i, check) in version.health_check_exprs.iter().enumerate() {
            for (field, text) in check.expressions() {
                if let Some(error) = compiled.check_error(text) {
                    wrong(format!("healthCheckExprs[{i}].{field}"), error);
                }
            }
        }
    }
    problems
}

/// Checks what the health checks of a version are for.
fn check_health_checks(version: &AddonVersion, wrong: &mut impl FnMut(String, String)) {
    let helm = version.template.helm.as_ref();
    if helm.is_some_and(|helm| helm.mode == HelmMode::Release)
        && !version.health_check_exprs.is_empty()
    {
        let message = "helm waits by its own rules where it installs the release";
        wrong("healthCheckExprs".to_owned(), message.to_owned());
    }
    let mut kinds = BTreeSet::new();
    for (i, check) in version.health_check_exprs.iter().enumerate() {
        let (group, kind) = (check.group(), check.kind());
        if group == DEFINITIONS {
            let message = "definitions are ready once their kinds are served";
            let field = format!("healthCheckExprs[{i}].apiVersion");
            wrong(field, message.to_owned());
        }
        if !kinds.insert((group, kind)) {
            let kind = kind.unwrap_or("every other kind");
            let message = format!("{kind} of group {group:?} has expressions already");
            wrong(format!("healthCheckExprs[{i}]"), message);
        }
    }
}

impl<'a> CompiledExpressions<'a> {
    /// Returns what is wrong with a constraint.
    fn constraint_error(&mut self, text: &'a str) -> Option<String> {
        if let Some(known) = self.constraints.get(text) {
            return known.clone();
        }
        let error = self.error(|| profile::compile(text));
        self.constraints.insert(text, error.clone());
        error
    }

    /// Returns what is wrong with an expression of a health check.
    fn check_error(&mut self, text: &'a str) -> Option<String> {
        if let Some(known) = self.checks.get(text) {
            return known.clone();
        }
        let error = self.error(|| Expression::compile(text));
        self.checks.insert(text, error.clone());
        error
    }

    fn error(
        &self,
        compile: impl FnOnce() -> Result<Expression, ExpressionError>,
    ) -> Option<String> {
        match self.constraints.len() + self.checks.len() < MOST {
            true => compile().err().map(|error| error.to_string()),
            false => Some(format!(
                "a catalogue has at most {MOST} different expressions"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(fields: Value) -> Vec<String> {
        let mut version = json!({"version": "1.0.0", "source": {}});
        for (name, value) in fields.as_object().unwrap() {
            version[name] = value.clone();
        }
        let spec = json!({"addons": [{"name": "a", "versions": [version]}]});
        let catalogue = AddonCatalogue::new("c", serde_json::from_value(spec).unwrap());
        let problems = wrong_expressions(&catalogue).into_iter();
        let at = "spec.addons[0].versions[0].";
        problems
            .map(|problem| problem.to_string().replace(at, ""))
            .collect()
    }

    #[test]
    fn wrong_expressions_are_found() {
        let check = |fields: Value| {
            let mut check = json!({"apiVersion": "x.y/v1", "kind": "Widget", "current": "true"});
            for (name, value) in fields.as_object().unwrap() {
                check[name] = value.clone();
            }
            json!({"healthCheckExprs": [check]})
        };
        let release = json!({"method": "helm", "helm": {"mode": "release"}});
        let twice = json!({"apiVersion": "x.y/v2", "current": "true"});
        for (fields, expected) in [
            (
                json!({"constraints": {"expression": "provider == 'aws'"}}),
                None,
            ),
            (json!({"constraints": {"expression": " "}}), None),
            (
                json!({"constraints": {"expression": "region == 'eu'"}}),
                Some("constraints.expression: region is not a fact of clusters"),
            ),
            (check(json!({"failed": "", "inProgress": null})), None),
            (
                check(json!({"failed": "status.phase =="})),
                Some("healthCheckExprs[0].failed: it is not a CEL expression"),
            ),
            (
                check(json!({"current": "status.conditions.exist(it, it.status)"})),
                Some("healthCheckExprs[0].current: there is no function exist"),
            ),
            (
                check(json!({"current": "1 + 1"})),
                Some("healthCheckExprs[0].current: it is neither true nor false"),
            ),
            (
                check(json!({"apiVersion": "apiextensions.k8s.io/v1"})),
                Some("healthCheckExprs[0].apiVersion: definitions are ready"),
            ),
            (
                json!({"healthCheckExprs": [twice, twice]}),
                Some("healthCheckExprs[1]: every other kind of group \"x.y\" has expressions"),
            ),
            (
                json!({"template": release, "healthCheckExprs": [twice]}),
                Some("healthCheckExprs: helm waits by its own rules"),
            ),
        ] {
            let problems = problems(fields.clone());
            let found = problems.first().map(String::as_str).unwrap_or_default();
            assert!(
                found.starts_with(expected.unwrap_or_default()),
                "{fields}: {problems:?}"
            );
            assert_eq!(
                problems.len(),
                usize::from(expected.is_some()),
                "{problems:?}"
            );
        }
    }

    #[test]
    fn a_catalogue_has_a_bounded_number_of_expressions() {
        let checks = |count: usize| {
            let check = |at: usize| json!({"apiVersion": format!("g{at}/v1"), "current": format!("status.a == {at}")});
            let checks: Vec<Value> = (0..count).map(check).collect();
            problems(json!({"healthCheckExprs": checks})).len()
        };
        assert_eq!((checks(MOST), checks(MOST + 1)), (0, 1));
    }
}
