//! Diagnoses a cluster from facts that were read before, each of which may be missing. A problem is a value; the command that fixes it is
//! added by the command line.

mod leftovers;
pub mod problem;
pub mod reading;
mod webhook;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use semver::Version;
use serde_json::Value;

use addons_plan::inventory::Inventory;
use addons_plan::standing::Health;
use common::api::catalogue::AddonCatalogue;
use common::api::conditions;
use common::api::installation::AddonInstallation;
use common::api::names::{ANNOTATION_CRD_VERSION, InstallationName};
use common::catalogue::installed::find_deprecation;
use common::catalogue::{Catalogue, version_label};
use common::manifest::key::ObjectKey;

use addons_engine::inspect::{NamespaceState, OwnedObject};
use common::right::Right;
pub use problem::{DoctorProblem, Severity};
pub use webhook::{CertificateFacts, WebhookFacts, WebhookReply};

/// A fact, or why it could not be read.
pub type FactResult<T> = Result<T, UnreadFact>;

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadFact {
    /// The reason in words.
    pub why: String,
    /// Whether the caller may not read it, which says nothing about the cluster.
    pub is_forbidden: bool,
}

/// The facts for a diagnosis.
#[derive(Clone, Debug)]
pub struct DoctorFacts {
    /// The time of the API server.
    pub now: Timestamp,
    /// The system namespace.
    pub system: String,
    /// The API server.
    pub server: Server,
    /// Our CRDs, as this release installs them and as they are live.
    pub definitions: FactResult<Vec<ObjectPair>>,
    /// Rights that commands need and the caller does not have.
    pub missing_rights: FactResult<Vec<Right>>,
    /// The webhook.
    pub webhook: FactResult<WebhookFacts>,
    /// The admission policies and their bindings.
    pub policies: FactResult<Vec<ObjectPair>>,
    /// All installations.
    pub records: FactResult<Vec<AddonInstallation>>,
    /// Health of the installations of this cluster, by owner hash.
    pub health: FactResult<BTreeMap<String, Health>>,
    /// The catalogues of the system namespace.
    pub catalogues: FactResult<Vec<AddonCatalogue>>,
    /// The reconciler's Lease, if it exists.
    pub lease: FactResult<Option<Lease>>,
    /// Objects with our owner label.
    pub owned: FactResult<Vec<OwnedObject>>,
    /// All namespaces.
    pub namespaces: FactResult<BTreeMap<String, NamespaceState>>,
    /// uid of kube-system.
    pub cluster: FactResult<Option<String>>,
}

/// Facts about the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `v1.36.3`.
    pub version: String,
    /// Whether it is new enough to serve admission policies.
    pub is_supported: bool,
}

/// An object as this release installs it, and as it is live.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectPair {
    /// The object as this release installs it.
    pub wanted: Value,
    /// The live object; `None` if it does not exist.
    pub live: Option<Value>,
}

/// The Lease of the leading reconciler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The holder; empty if the Lease was given back.
    pub holder: String,
    /// When it was last renewed.
    pub renewed: Option<Timestamp>,
    /// How long it is valid after a renewal, in seconds.
    pub seconds: i64,
}

impl Lease {
    /// Returns whether it is held now.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let renewed = self.renewed;
        !self.holder.is_empty()
            && renewed.is_some_and(|renewed| now.duration_since(renewed).as_secs() < self.seconds)
    }
}

/// Returns the problems of a cluster, in the order in which they are best fixed.
#[must_use]
pub fn diagnose(facts: &DoctorFacts) -> Vec<DoctorProblem> {
    let mut found = Vec::new();
    if !facts.server.is_supported {
        found.push(DoctorProblem::OldServer {
            version: facts.server.version.clone(),
        });
    }
    let is_defined = check_definitions(facts, &mut found);
    let lacking = take_fact(
        &facts.missing_rights,
        "the rights of the caller",
        &mut found,
    );
    found.extend(
        lacking
            .into_iter()
            .flatten()
            .map(|right| DoctorProblem::Right {
                right: right.clone(),
            }),
    );
    let records = facts.records.as_deref().unwrap_or_default();
    if let Some(webhook) = take_fact(&facts.webhook, "the webhook", &mut found) {
        let is_wanted = is_recorded(&webhook.parts, records);
        found.extend(webhook::find_webhook_problems(
            webhook, facts.now, is_defined, is_wanted,
        ));
    }
    if let Some(policies) = take_fact(&facts.policies, "the admission policies", &mut found) {
        found.extend(check_policies(policies, is_recorded(policies, records)));
    }
    if is_defined {
        leftovers::find_leftovers(facts, &mut found);
        let catalogues = take_fact(&facts.catalogues, "the catalogues", &mut found);
        let catalogues = || catalogues.into_iter().flatten();
        found.extend(catalogues().filter_map(unreadable_problem));
        found.extend(catalogues().filter_map(duplicate_problem));
        let offered = Catalogue::from_objects(facts.catalogues.as_deref().unwrap_or_default());
        found.extend(
            records
                .iter()
                .filter_map(|record| deprecated_problem(record, &offered)),
        );
    }
    found
}

/// Returns a fact. If it could not be read, adds a problem that says so.
fn take_fact<'a, T>(
    fact: &'a FactResult<T>,
    what: &'static str,
    found: &mut Vec<DoctorProblem>,
) -> Option<&'a T> {
    match fact {
        Ok(fact) => Some(fact),
        Err(unread) => {
            found.push(DoctorProblem::Unchecked {
                what,
                unread: unread.clone(),
            });
            None
        }
    }
}

/// Checks our CRDs. Returns whether all of them exist.
fn check_definitions(facts: &DoctorFacts, found: &mut Vec<DoctorProblem>) -> bool {
    let Some(pairs) = take_fact(&facts.definitions, "the definitions", found) else {
        return true;
    };
    let mut are_there = true;
    for pair in pairs {
        let name = object_name(&pair.wanted);
        let Some(live) = &pair.live else {
            are_there = false;
            found.push(DoctorProblem::DefinitionMissing { name });
            continue;
        };
        match (definition_version(live), definition_version(&pair.wanted)) {
            (Some(live), Some(ours)) if live > ours => found.push(DoctorProblem::DefinitionNewer {
                name,
                version: live.to_string(),
            }),
            _ if find_difference(&pair.wanted, live).is_some() => {
                found.push(DoctorProblem::DefinitionDiffers { name });
            }
            _ => {}
        }
    }
    are_there
}

fn definition_version(definition: &Value) -> Option<Version> {
    let annotations = &definition["metadata"]["annotations"];
    Version::parse(annotations[ANNOTATION_CRD_VERSION].as_str()?).ok()
}

/// Returns whether an installation has recorded some of these objects. They are expected to exist then, even if none does.
fn is_recorded(pairs: &[ObjectPair], records: &[AddonInstallation]) -> bool {
    let keys = pairs
        .iter()
        .filter_map(|pair| ObjectKey::from_object(&pair.wanted));
    let keys: BTreeSet<ObjectKey> = keys.collect();
    records.iter().any(|record| {
        let inventory = Inventory::from_status(record.status.as_ref());
        inventory.objects.keys().any(|key| keys.contains(key))
    })
}

/// Returns the problems of the admission policies. If none exists, policies are expected only if `is_wanted`; if some exist, all are
/// expected.
fn check_policies(pairs: &[ObjectPair], is_wanted: bool) -> Vec<DoctorProblem> {
    if pairs.iter().all(|pair| pair.live.is_none()) && !is_wanted {
        return vec![DoctorProblem::NoPolicies];
    }
    let judged = pairs.iter().filter_map(|pair| {
        let object = format!(
            "{} {}",
            text(&pair.wanted["kind"]),
            object_name(&pair.wanted)
        );
        match &pair.live {
            None => Some(DoctorProblem::PolicyMissing { object }),
            Some(live) => find_difference(&pair.wanted, live)
                .map(|field| DoctorProblem::PolicyDiffers { object, field }),
        }
    });
    judged.collect()
}

fn unreadable_problem(catalogue: &AddonCatalogue) -> Option<DoctorProblem> {
    let metadata = &catalogue.metadata;
    Some(DoctorProblem::Unreadable {
        resource: "addoncatalogue",
        object: InstallationName {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        },
        unreadable: catalogue.spec.unreadable.clone()?,
    })
}

fn duplicate_problem(catalogue: &AddonCatalogue) -> Option<DoctorProblem> {
    let status = catalogue.status.as_ref()?;
    let raised = conditions::find_raised(&status.conditions, conditions::DUPLICATE)?;
    Some(DoctorProblem::Duplicate {
        catalogue: catalogue.metadata.name.clone().unwrap_or_default(),
        message: raised.message.clone(),
    })
}

/// Catalogues by reference are not read here, so the versions that they list are unknown.
fn deprecated_problem(record: &AddonInstallation, offered: &Catalogue) -> Option<DoctorProblem> {
    let installed = record.installed()?;
    Some(DoctorProblem::Deprecated {
        installation: leftovers::name_of(record),
        version: version_label(&installed.version, &installed.id),
        deprecation: find_deprecation(record, offered)?.clone(),
    })
}

/// Returns the path of the first field in which a live object differs from the wanted one. Fields that are not in the wanted object may
/// have any value.
fn find_difference(wanted: &Value, live: &Value) -> Option<String> {
    let below = |name: &str, found: String| match found.is_empty() {
        true => name.to_owned(),
        false => format!("{name}.{found}"),
    };
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().find_map(|(name, wanted)| {
            let found = find_difference(wanted, live.get(name).unwrap_or(&Value::Null))?;
            Some(below(name, found))
        }),
        // Compared as a set: additions by others cannot be taken back, and do not weaken it.
        (Value::Array(wanted), Value::Array(live)) if wanted.iter().all(Value::is_string) => {
            let is_there = wanted.iter().all(|wanted| live.contains(wanted));
            (!is_there).then(String::new)
        }
        (Value::Array(wanted), Value::Array(live)) if wanted.len() == live.len() => {
            let mut pairs = wanted.iter().zip(live).enumerate();
            pairs.find_map(|(index, (wanted, live))| {
                Some(below(&index.to_string(), find_difference(wanted, live)?))
            })
        }
        _ => (wanted != live).then(String::new),
    }
}

fn object_name(object: &Value) -> String {
    text(&object["metadata"]["name"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
