//! The rules of a policy, what each allows, and how several policies combine.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::fixtures::{catalogue, installation, requester};
use common::catalogue::Catalogue;

fn policy(name: &str, spec: Value) -> AddonPolicy {
    let spec = serde_json::from_value(spec).unwrap();
    AddonPolicy::new(name, spec)
}

fn enforced(field: &str, allowed: Value) -> AddonPolicy {
    policy(
        "p",
        json!({"action": "Enforce", "allowed": {field: allowed}}),
    )
}

fn entry(catalogue_name: &str, support: Value, source: Value) -> CatalogueEntry {
    let versions = json!([{"version": "1.0.0", "source": source}]);
    let addon = json!({"name": "web", "support": support, "versions": versions});
    let object = catalogue(catalogue_name, json!([addon]));
    Catalogue::from_objects(&[object]).entries.remove(0)
}

fn inline(catalogue_name: &str) -> CatalogueEntry {
    entry(
        catalogue_name,
        Value::Null,
        json!({"inline": {"manifest": ""}}),
    )
}

fn of_index(location: &str) -> CatalogueEntry {
    let location = location.to_owned();
    CatalogueEntry {
        origin: Arc::new(Origin::Index { location }),
        ..inline("any")
    }
}

/// A request with usual values.
struct Case {
    reference: Value,
    more: Value,
    labels: BTreeMap<String, String>,
    entry: Option<CatalogueEntry>,
    images: Option<BTreeSet<String>>,
    requester: Option<Requester>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            reference: json!({"name": "web"}),
            more: json!({}),
            labels: BTreeMap::new(),
            entry: None,
            images: None,
            requester: None,
        }
    }
}

impl Case {
    fn of(entry: CatalogueEntry) -> Self {
        Self {
            entry: Some(entry),
            ..Self::default()
        }
    }

    fn judged(&self, policies: &[AddonPolicy]) -> Verdict {
        let installation = installation("team", "web", self.reference.clone(), self.more.clone());
        let candidate = PolicyCandidate {
            installation: &installation,
            labels: &self.labels,
            entry: self.entry.as_ref(),
            images: self.images.as_ref(),
            requester: self.requester.as_ref(),
        };
        let mut verdict = Verdict::default();
        evaluate(policies, &candidate, &mut verdict);
        verdict
    }

    #[track_caller]
    fn says(&self, policy: &AddonPolicy, expected: &[&str]) {
        let verdict = self.judged(std::slice::from_ref(policy));
        let found: Vec<String> = verdict.problems.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn catalogues() {
    let only = enforced("catalogues", json!(["platform", "base"]));
    Case::of(inline("platform")).says(&only, &[]);
    Case::of(inline("custom")).says(
        &only,
        &["spec.addonRef: catalogue custom is not allowed by AddonPolicy p (spec.allowed.catalogues); choose from platform, base"],
    );
    let with = |reference: Value| Case {
        reference,
        ..Case::default()
    };
    with(json!({"name": "web"})).says(&only, &[]);
    with(json!({"name": "web", "catalogue": "base"})).says(&only, &[]);
    for (reference, expected) in [
        (
            json!({"name": "web", "catalogue": "custom"}),
            "spec.addonRef.catalogue: catalogue custom",
        ),
        (
            json!({"name": "web", "index": "https://h/i"}),
            "spec.addonRef.index: an index",
        ),
        (
            json!({"name": "web", "directory": "/d"}),
            "spec.addonRef.directory: a directory",
        ),
    ] {
        let expected = format!(
            "{expected} is not allowed by AddonPolicy p (spec.allowed.catalogues); choose from platform, base"
        );
        with(reference).says(&only, &[&expected]);
    }
}

#[test]
fn source_hosts() {
    let only = enforced("sourceHosts", json!(["git.example.com", "*.example.org"]));
    let from = |remote: &str| entry("c", Value::Null, json!({"git": {"remote": remote}}));
    Case::of(inline("c")).says(&only, &[]);
    Case::of(from("https://git.example.com/r")).says(&only, &[]);
    Case::of(from("https://a.example.org/r")).says(&only, &[]);
    let rest = "which is not allowed by AddonPolicy p (spec.allowed.sourceHosts); choose a version from git.example.com, *.example.org";
    let evil = format!("spec.addonRef: web 1.0.0 is read from evil.test, {rest}");
    Case::of(from("https://evil.test/r")).says(&only, &[&evil]);
    let machine = format!("spec.addonRef: web 1.0.0 is read from no host, {rest}");
    Case::of(from("/srv/r")).says(&only, &[&machine]);
    let directory = Case {
        reference: json!({"name": "web", "directory": "/d"}),
        ..Case::default()
    };
    let expected = format!("spec.addonRef.directory: a directory is read from no host, {rest}");
    directory.says(&only, &[&expected]);
    // Both the index and the locations that it names count.
    let index = Case {
        reference: json!({"name": "web", "index": "https://evil.test/index.yaml"}),
        ..Case::of(from("https://git.example.com/r"))
    };
    let expected = format!("spec.addonRef.index: the index is read from evil.test, {rest}");
    index.says(&only, &[&expected]);
}

#[test]
fn support_classes() {
    let only = enforced("supportClasses", json!(["Core", "Optional"]));
    let of = |class: Value| Case::of(entry("c", class, json!({"inline": {"manifest": ""}})));
    of(json!("Optional")).says(&only, &[]);
    let rest = "is not allowed by AddonPolicy p (spec.allowed.supportClasses); choose an add-on of class Core, Optional";
    let other = format!("spec.addonRef.name: support class Customer of web {rest}");
    of(json!("Customer")).says(&only, &[&other]);
    let none = format!("spec.addonRef.name: web has no support class, which {rest}");
    of(Value::Null).says(&only, &[&none]);
    Case::default().says(&only, &[]);
}

#[test]
fn image_registries() {
    let only = enforced("imageRegistries", json!(["mirror.example.com/addons"]));
    let with = |images: &[&str]| Case {
        images: Some(images.iter().map(|&image| image.to_owned()).collect()),
        ..Case::default()
    };
    Case::default().says(&only, &[]);
    with(&["mirror.example.com/addons/web:1"]).says(&only, &[]);
    let rest = "is not allowed by AddonPolicy p (spec.allowed.imageRegistries); set spec.registry or values so that it comes from mirror.example.com/addons";
    let nginx = format!("spec: image nginx:1 {rest}");
    with(&["mirror.example.com/addons/web:1", "nginx:1"]).says(&only, &[&nginx]);
    let many = with(&["a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1"]);
    let verdict = many.judged(&[only]);
    assert_eq!(verdict.problems.len(), 6);
    assert_eq!(
        verdict.problems[5].message,
        "2 more images are not allowed by AddonPolicy p (spec.allowed.imageRegistries)"
    );
}

#[test]
fn installers() {
    let only = policy(
        "p",
        json!({"action": "Enforce", "installers": {
            "users": ["anna"], "groups": ["ops"], "serviceAccounts": [{"namespace": "ci", "name": "deploy"}],
        }}),
    );
    let by = |user: &str, groups: &[&str]| Case {
        requester: Some(Requester {
            user: user.to_owned(),
            ..requester(groups)
        }),
        ..Case::default()
    };
    by("anna", &[]).says(&only, &[]);
    by("jane", &["dev", "ops"]).says(&only, &[]);
    by("system:serviceaccount:ci:deploy", &[]).says(&only, &[]);
    Case::default().says(&only, &[]);
    by("", &[]).says(
        &only,
        &["metadata.annotations[kubectl-addons.dev/written-by]: an unknown writer is not allowed by AddonPolicy p \
           (spec.installers); ask user anna, group ops, ServiceAccount ci/deploy to set the annotation"],
    );
    for user in ["jane", "ops", "system:serviceaccount:ci:other"] {
        let expected = format!(
            "metadata.namespace: installing in team as {user} is not allowed by AddonPolicy p (spec.installers); \
             ask user anna, group ops, ServiceAccount ci/deploy"
        );
        by(user, &["dev"]).says(&only, &[&expected]);
    }
}

#[test]
fn every_policy_has_to_allow_and_each_acts_as_it_says() {
    let (strict, lax) = (
        json!({"action": "Enforce", "allowed": {"catalogues": ["platform"]}}),
        json!({"action": "Warn", "allowed": {"catalogues": ["base"]}}),
    );
    let policies = [policy("strict", strict), policy("lax", lax)];
    let of = |name: &str| {
        let verdict = Case::of(inline(name)).judged(&policies);
        let lines: Vec<String> = verdict.breaches.iter().map(Breach::to_audit_line).collect();
        (verdict.problems.len(), verdict.warnings.len(), lines)
    };
    let (enforce, warn) = (
        "strict policy-catalogue Enforce",
        "lax policy-catalogue Warn",
    );
    assert_eq!(of("platform"), (0, 1, vec![warn.to_owned()]));
    assert_eq!(of("base"), (1, 0, vec![enforce.to_owned()]));
    assert_eq!(
        of("other"),
        (1, 1, vec![enforce.to_owned(), warn.to_owned()])
    );
}

#[test]
fn a_policy_judges_the_namespaces_that_it_selects() {
    let only = policy(
        "p",
        json!({
            "action": "Enforce", "allowed": {"catalogues": ["platform"]},
            "namespaceSelector": {"matchLabels": {"team": "a"}},
        }),
    );
    for (team, count) in [("a", 1), ("b", 0)] {
        let case = Case {
            labels: BTreeMap::from([("team".to_owned(), team.to_owned())]),
            ..Case::of(inline("custom"))
        };
        assert_eq!(
            case.judged(std::slice::from_ref(&only)).problems.len(),
            count,
            "{team}"
        );
    }
}

#[test]
fn core_add_ons_are_exempt() {
    let only = enforced("catalogues", json!(["platform"]));
    let case = Case {
        more: json!({"coreAddon": true}),
        ..Case::of(inline("base"))
    };
    assert_eq!(case.judged(&[only]), Verdict::default());
}

#[test]
fn what_was_kept_with_a_revision_and_is_listed_nowhere_is_in_no_catalogue() {
    let only = enforced("catalogues", json!(["platform"]));
    Case::of(of_index("revision 3 of team/web")).says(
        &only,
        &["spec.addonRef: a version that no catalogue lists is not allowed by AddonPolicy p (spec.allowed.catalogues); choose from platform"],
    );
}

/// The webhook treats a policy that it cannot read like one that allows no installers.
#[test]
fn without_installers_no_one_may_install() {
    let closed = policy("p", json!({"action": "Enforce", "installers": {}}));
    let case = Case {
        requester: Some(requester(&["ops"])),
        ..Case::default()
    };
    case.says(
        &closed,
        &["metadata.namespace: installing in team as jane is not allowed by AddonPolicy p (spec.installers); ask an administrator: the policy cannot be read"],
    );
}
