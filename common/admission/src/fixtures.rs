//! Objects and facts for tests.

use super::marks::GuardMarks;
use super::*;
use crate::verdict::{AdmissionProblem, Verdict};
use common::api::catalogue::AddonCatalogue;
pub use common::api::fixtures::*;

/// Facts with these catalogues on Kubernetes 1.36.3.
pub fn facts(catalogues: Vec<AddonCatalogue>) -> AdmissionFacts {
    AdmissionFacts {
        catalogues: catalogues
            .into_iter()
            .map(|catalogue| Arc::new(catalogue.into()))
            .collect(),
        cluster: ClusterVersions {
            kubernetes: Some(semver::Version::new(1, 36, 3)),
            kkp: None,
            profile: None,
        },
        ..AdmissionFacts::default()
    }
}

/// A user in `groups`.
pub fn requester(groups: &[&str]) -> Requester {
    Requester {
        user: "jane".to_owned(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
    }
}

/// A member of the core group.
pub fn core() -> Requester {
    requester(&[names::CORE_GROUP])
}

/// Problems as text.
pub fn texts(problems: &[AdmissionProblem]) -> Vec<String> {
    problems.iter().map(AdmissionProblem::to_string).collect()
}

/// The rules of the problems of a verdict.
pub fn rules_of(verdict: &Verdict) -> Vec<&str> {
    verdict
        .problems
        .iter()
        .map(|problem| problem.rule)
        .collect()
}

/// Marks of an installation `coredns` in the system namespace with this metadata.
pub fn marks(core: bool, metadata: serde_json::Value) -> GuardMarks {
    let mut object = core_installation("coredns");
    object.spec.core_addon = core;
    let mut all = serde_json::to_value(&object.metadata).unwrap();
    for (key, value) in metadata.as_object().unwrap() {
        all[key] = value.clone();
    }
    object.metadata = serde_json::from_value(all).unwrap();
    GuardMarks::from_installation(&object)
}
