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
use common::manifest::key::ObjectKey;

use addons_engine::inspect::{Namespace, Owned};
use common::right::Right;
pub use problem::{Problem, Severity};
pub use webhook::{Asked, Certificate, Webhook};

/// A fact, or why it could not be read.
pub type Checked<T> = Result<T, Unread>;

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The reason in words.
    pub why: String,
    /// Whether the caller may not read it, which says nothing about the cluster.
    pub is_forbidden: bool,
}

/// The facts for a diagnosis.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The time of the API server.
    pub now: Timestamp,
    /// The system namespace.
    pub system: String,
    /// The API server.
    pub server: Server,
    /// Our CRDs, as this release installs them and as they are live.
    pub definitions: Checked<Vec<Pair>>,
    /// Rights that commands need and the caller does not have.
    pub lacking: Checked<Vec<Right>>,
    /// The webhook.
    pub webhook: Checked<Webhook>,
    /// The admission policies and their bindings.
    pub policies: Checked<Vec<Pair>>,
    /// All installations.
    pub records: Checked<Vec<AddonInstallation>>,
    /// Health of the installations of this cluster, by owner hash.
    pub health: Checked<BTreeMap<String, Health>>,
    /// The catalogues of the system namespace.
    pub catalogues: Checked<Vec<AddonCatalogue>>,
    /// The reconciler's Lease, if it exists.
    pub lease: Checked<Option<Lease>>,
    /// Objects with our owner label.
    pub owned: Checked<Vec<Owned>>,
    /// All namespaces.
    pub namespaces: Checked<BTreeMap<String, Namespace>>,
    /// uid of kube-system.
    pub cluster: Checked<Option<String>>,
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
pub struct Pair {
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
pub fn diagnose(facts: &Facts) -> Vec<Problem> {
    let mut found = Vec::new();
    if !facts.server.is_supported {
        found.push(Problem::OldServer {
            version: facts.server.version.clone(),
        });
    }
    let is_defined = definitions(facts, &mut found);
    let lacking = read(&facts.lacking, "the rights of the caller", &mut found);
    found.extend(lacking.into_iter().flatten().map(|right| Problem::Right {
        right: right.clone(),
    }));
    let records = facts.records.as_deref().unwrap_or_default();
    if let Some(webhook) = read(&facts.webhook, "the webhook", &mut found) {
        let is_wanted = is_recorded(&webhook.parts, records);
        found.extend(webhook::judge(webhook, facts.now, is_defined, is_wanted));
    }
    if let Some(policies) = read(&facts.policies, "the admission policies", &mut found) {
        found.extend(judge_policies(policies, is_recorded(policies, records)));
    }
    if is_defined {
        leftovers::judge(facts, &mut found);
        let catalogues = read(&facts.catalogues, "the catalogues", &mut found);
        let catalogues = || catalogues.into_iter().flatten();
        found.extend(catalogues().filter_map(unreadable));
        found.extend(catalogues().filter_map(duplicate));
    }
    found
}

/// Returns a fact. If it could not be read, adds a problem that says so.
fn read<'a, T>(
    fact: &'a Checked<T>,
    what: &'static str,
    found: &mut Vec<Problem>,
) -> Option<&'a T> {
    match fact {
        Ok(fact) => Some(fact),
        Err(unread) => {
            found.push(Problem::Unchecked {
                what,
                unread: unread.clone(),
            });
            None
        }
    }
}

/// Checks our CRDs. Returns whether all of them exist.
fn definitions(facts: &Facts, found: &mut Vec<Problem>) -> bool {
    let Some(pairs) = read(&facts.definitions, "the definitions", found) else {
        return true;
    };
    let mut are_there = true;
    for pair in pairs {
        let name = name(&pair.wanted);
        let Some(live) = &pair.live else {
            are_there = false;
            found.push(Problem::DefinitionMissing { name });
            continue;
        };
        match (version(live), version(&pair.wanted)) {
            (Some(live), Some(ours)) if live > ours => found.push(Problem::DefinitionNewer {
                name,
                version: live.to_string(),
            }),
            _ if difference(&pair.wanted, live).is_some() => {
                found.push(Problem::DefinitionDiffers { name });
            }
            _ => {}
        }
    }
    are_there
}

fn version(definition: &Value) -> Option<Version> {
    let annotations = &definition["metadata"]["annotations"];
    Version::parse(annotations[ANNOTATION_CRD_VERSION].as_str()?).ok()
}

/// Returns whether an installation has recorded some of these objects. They are expected to exist then, even if none does.
fn is_recorded(pairs: &[Pair], records: &[AddonInstallation]) -> bool {
    let keys = pairs.iter().filter_map(|pair| ObjectKey::of(&pair.wanted));
    let keys: BTreeSet<ObjectKey> = keys.collect();
    records.iter().any(|record| {
        let inventory = Inventory::of(record.status.as_ref());
        inventory.objects.keys().any(|key| keys.contains(key))
    })
}

/// Returns the problems of the admission policies. If none exists, policies are expected only if `is_wanted`; if some exist, all are
/// expected.
fn judge_policies(pairs: &[Pair], is_wanted: bool) -> Vec<Problem> {
    if pairs.iter().all(|pair| pair.live.is_none()) && !is_wanted {
        return vec![Problem::NoPolicies];
    }
    let judged = pairs.iter().filter_map(|pair| {
        let object = format!("{} {}", text(&pair.wanted["kind"]), name(&pair.wanted));
        match &pair.live {
            None => Some(Problem::PolicyMissing { object }),
            Some(live) => {
                difference(&pair.wanted, live).map(|field| Problem::PolicyDiffers { object, field })
            }
        }
    });
    judged.collect()
}

fn unreadable(catalogue: &AddonCatalogue) -> Option<Problem> {
    let metadata = &catalogue.metadata;
    Some(Problem::Unreadable {
        resource: "addoncatalogue",
        object: InstallationName {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        },
        unreadable: catalogue.spec.unreadable.clone()?,
    })
}

fn duplicate(catalogue: &AddonCatalogue) -> Option<Problem> {
    let status = catalogue.status.as_ref()?;
    let raised = conditions::raised(&status.conditions, conditions::DUPLICATE)?;
    Some(Problem::Duplicate {
        catalogue: catalogue.metadata.name.clone().unwrap_or_default(),
        message: raised.message.clone(),
    })
}

/// Returns the path of the first field in which a live object differs from the wanted one. Fields that are not in the wanted object may
/// have any value.
fn difference(wanted: &Value, live: &Value) -> Option<String> {
    let below = |name: &str, found: String| match found.is_empty() {
        true => name.to_owned(),
        false => format!("{name}.{found}"),
    };
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().find_map(|(name, wanted)| {
            let found = difference(wanted, live.get(name).unwrap_or(&Value::Null))?;
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
                Some(below(&index.to_string(), difference(wanted, live)?))
            })
        }
        _ => (wanted != live).then(String::new),
    }
}

fn name(object: &Value) -> String {
    text(&object["metadata"]["name"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
