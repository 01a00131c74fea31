//! Reviews: whatever bytes come, the answer is JSON with the uid that could be read, and defaults are filled in once.

#![expect(clippy::unwrap_used, reason = "what a target finds ends it")]

use std::sync::Arc;

use addons_admission::answer::{ReviewTask, answer};
use addons_admission::review::{Response, ReviewRequest};
use addons_admission::{AdmissionFacts, mutate};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonInstallation;
use common::api::names::{API_VERSION, GROUP, LABEL_CLUSTER, LABEL_DERIVED_FROM, SYSTEM_NAMESPACE};
use common::catalogue::select::ClusterVersions;
use serde_json::{Value, json};

const TOKENS: &[&str] = &[
    "\"uid\":\"",
    "\"operation\":\"DELETE\",",
    "\"operation\":\"CONNECT\",",
    "\"object\":null,",
    "\"oldObject\":null,",
    "\"subResource\":\"status\",",
    "\"kind\":\"AddonCatalogue\"",
    "\"kind\":\"AddonInstallation\"",
    "\"kind\":\"Namespace\"",
    "\"kind\":\"AddonPolicy\"",
    "\"action\":\"Enforce\",",
    "\"sourceHosts\":[\"*.a\",\"s3://b\",\"[::1]\"],",
    "\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[]}],",
    "\"spec\":null",
    "\"values\":{\"a\":{\"b/c~d\":[1,2.0,null]}},",
    "\"coreAddon\":true,",
    "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",",
    "\"deletionTimestamp\":\"never\",",
    "\"finalizers\":[\"kubectl-addons.dev/core-guard\"],",
    "\"version\":\"v1\",",
    "\"version\":\">=1.30 <\",",
    "\\ud800",
    "\\u0000",
    "1e999",
    "[[[[[[[[",
    "{\"a\":",
    "\u{202e}",
];

/// An add-on with a form and values, and one of class Core.
fn catalogues() -> [AddonCatalogue; 2] {
    let version = json!({"version": "1.0.0", "source": {"inline": {"manifest": ""}},
        "values": {"a": {"b/c~d": [1]}, "image": "x"},
        "template": {"method": "go-template", "formSpec": [{"internalName": "spec.replicas", "type": "number", "default": 1}]}});
    let catalogue = |name: &str, class: &str, addon: &str| {
        let object = json!({"apiVersion": API_VERSION, "kind": "AddonCatalogue",
            "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
            "spec": {"class": class, "addons": [{"name": addon, "versions": [version]}]}});
        serde_json::from_value(object).unwrap()
    };
    [
        catalogue("platform", "Custom", "web"),
        catalogue("base", "Core", "coredns"),
    ]
}

/// One that says something of each kind.
fn policy() -> Value {
    json!({"apiVersion": API_VERSION, "kind": "AddonPolicy", "metadata": {"name": "strict"}, "spec": {
        "action": "Enforce",
        "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
        "allowed": {"catalogues": ["platform"], "sourceHosts": ["*.example.test"],
            "imageRegistries": ["registry.example.test"], "supportClasses": ["Optional"]},
        "installers": {"groups": ["a"]},
    }})
}

/// The add-on of class Core in use.
fn core() -> AddonInstallation {
    let core = json!({"apiVersion": API_VERSION, "kind": "AddonInstallation",
        "metadata": {"name": "coredns", "namespace": SYSTEM_NAMESPACE},
        "spec": {"coreAddon": true, "addonRef": {"name": "coredns"}}});
    serde_json::from_value(core).unwrap()
}

/// The catalogues, a policy, and the add-on of class Core in use.
fn facts() -> AdmissionFacts {
    AdmissionFacts {
        catalogues: catalogues().map(|one| Arc::new(one.into())).into(),
        installations: vec![Arc::new(core().into())],
        policies: vec![Arc::new(serde_json::from_value(policy()).unwrap())],
        cluster: ClusterVersions {
            kubernetes: Some(semver::Version::new(1, 36, 3)),
            kkp: None,
            profile: None,
        },
        ..AdmissionFacts::default()
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let metadata = |name: &str| json!({"name": name, "namespace": SYSTEM_NAMESPACE});
    let installation = json!({"apiVersion": API_VERSION, "kind": "AddonInstallation", "metadata": metadata("web"),
        "spec": {"addonRef": {"name": "web", "version": "1"}, "values": {"spec": {"replicas": 3}}, "unknown": [1]}});
    let [platform, base] = catalogues();
    let mut copy = json!(platform);
    copy["metadata"] =
        json!({"name": "copy", "namespace": "team", "labels": {LABEL_DERIVED_FROM: "a"}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": SYSTEM_NAMESPACE, "labels": {LABEL_CLUSTER: "local"}}});
    let core = json!(core());
    let base = json!(base);
    let (policy, nothing) = (policy(), Value::Null);
    [
        ("AddonInstallation", "CREATE", &installation, &nothing),
        ("AddonInstallation", "UPDATE", &installation, &core),
        ("AddonInstallation", "DELETE", &nothing, &core),
        ("AddonCatalogue", "CREATE", &copy, &nothing),
        ("AddonCatalogue", "UPDATE", &base, &copy),
        ("AddonCatalogue", "DELETE", &nothing, &base),
        ("AddonPolicy", "CREATE", &policy, &nothing),
        ("AddonPolicy", "UPDATE", &policy, &policy),
        ("Namespace", "UPDATE", &namespace, &namespace),
        ("Namespace", "DELETE", &nothing, &namespace),
    ]
    .iter()
    .map(|(kind, operation, object, old)| {
        let group = if *kind == "Namespace" { "" } else { GROUP };
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "0b4e", "operation": operation, "name": "", "namespace": SYSTEM_NAMESPACE,
            "kind": {"group": group, "version": "v1alpha1", "kind": kind},
            "resource": {"group": group, "version": "v1alpha1", "resource": "r"},
            "userInfo": {"username": "jane", "groups": ["a"]}, "object": object, "oldObject": old,
        }});
        review.to_string().into_bytes()
    })
    .collect()
}

/// The uid of an answer that is JSON as the API server wants it.
fn uid(response: &Response) -> String {
    let text = serde_json::to_string(response).unwrap();
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["kind"], "AdmissionReview");
    let allowed = read["response"]["allowed"].as_bool().unwrap();
    assert_eq!(allowed, read["response"].get("status").is_none(), "{text}");
    // Both or none.
    let patch = read["response"].get("patch").is_some();
    assert_eq!(patch, read["response"].get("patchType").is_some(), "{text}");
    read["response"]["uid"].as_str().unwrap().to_owned()
}

/// Answers as the webhook does; the uids of all answers.
fn answered(bytes: &[u8], facts: &AdmissionFacts) -> Vec<String> {
    let request = match ReviewRequest::from_slice(bytes) {
        Ok(request) => request,
        Err(error) => return Response::unreadable(&error).iter().map(uid).collect(),
    };
    let tasks = [
        ReviewTask::Mutate,
        ReviewTask::Validate,
        ReviewTask::Clusters { is_entitled: true },
        ReviewTask::Clusters { is_entitled: false },
    ];
    let answers = tasks.map(|task| {
        let (response, verdict) = answer(task, &request, facts).unwrap();
        assert_eq!(response.is_allowed(), verdict.problems.is_empty());
        assert_eq!(response.uid(), request.uid);
        uid(&response)
    });
    filled_once(&request, facts);
    answers.into()
}

/// The patch fits the object, and the patched object gets none. Objects are as the API server writes them: no key occurs twice.
fn filled_once(request: &ReviewRequest<'_>, facts: &AdmissionFacts) {
    let Some(mut object) = request
        .object
        .and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok())
    else {
        return;
    };
    let patch = filled(request, &object, facts);
    json_patch::patch(&mut object, &patch).unwrap();
    let second = filled(request, &object, facts);
    assert!(second.0.is_empty(), "{second}\n{object}");
}

/// What is filled into an object in the place of that of the request.
fn filled(
    request: &ReviewRequest<'_>,
    object: &Value,
    facts: &AdmissionFacts,
) -> json_patch::Patch {
    let text = object.to_string();
    let raw: &serde_json::value::RawValue = serde_json::from_str(&text).unwrap();
    let asked = ReviewRequest {
        object: Some(raw),
        ..request.clone()
    };
    mutate::mutate(&asked, facts).patch
}

#[test]
fn review() {
    let facts = facts();
    let seeds = seeds();
    super::mutant::run("fuzz::review", seeds, TOKENS, |bytes| {
        answered(bytes, &facts);
        // Where the bytes are JSON and say a uid, each answer has it. Keys that occur twice are ambiguous before they are read.
        let Ok(review) = serde_json::from_slice::<Value>(bytes) else {
            return;
        };
        let wanted = review.pointer("/request/uid").and_then(Value::as_str);
        if let Some(wanted) = wanted.filter(|uid| !uid.is_empty()) {
            let answers = answered(review.to_string().as_bytes(), &facts);
            assert!(!answers.is_empty(), "no answer to {review}");
            assert!(answers.iter().all(|uid| uid == wanted), "{answers:?}");
        }
    });
}
