//! What is wrong with a cluster as far as this tool is concerned: judged from facts that were read before, each of which may be
//! missing. A problem is a value; its way out is a command, and so a matter of the command line.

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

/// What was read, or why it could not be.
pub type Checked<T> = Result<T, Unread>;

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// In words.
    pub why: String,
    /// Whether the caller may not read it: that says nothing of the cluster.
    pub is_forbidden: bool,
}

/// Everything that is judged.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The time of the API server.
    pub now: Timestamp,
    /// The system namespace.
    pub system: String,
    /// The API server.
    pub server: Server,
    /// Our definitions, as this release has them and as they are.
    pub definitions: Checked<Vec<Pair>>,
    /// What verbs need and the caller may not do.
    pub lacking: Checked<Vec<Right>>,
    /// The webhook.
    pub webhook: Checked<Webhook>,
    /// The admission policies and their bindings.
    pub policies: Checked<Vec<Pair>>,
    /// All installations.
    pub records: Checked<Vec<AddonInstallation>>,
    /// The objects of those of this cluster, by owner hash.
    pub health: Checked<BTreeMap<String, Health>>,
    /// The catalogues of the system namespace.
    pub catalogues: Checked<Vec<AddonCatalogue>>,
    /// The reconciler's Lease, where there is one.
    pub lease: Checked<Option<Lease>>,
    /// Objects with our owner label.
    pub owned: Checked<Vec<Owned>>,
    /// All namespaces.
    pub namespaces: Checked<BTreeMap<String, Namespace>>,
    /// uid of kube-system.
    pub cluster: Checked<Option<String>>,
}

/// The API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `v1.36.3`.
    pub version: String,
    /// Whether it serves admission policies.
    pub is_supported: bool,
}

/// An object as this release has it, and as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// As this release has it.
    pub wanted: Value,
    /// As it is; `None` where it does not exist.
    pub live: Option<Value>,
}

/// Who leads the reconciler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Who; empty where it was given back.
    pub holder: String,
    /// When it was last renewed.
    pub renewed: Option<Timestamp>,
    /// For how long it is held, in seconds.
    pub seconds: i64,
}

impl Lease {
    /// Whether it is held now.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let renewed = self.renewed;
        !self.holder.is_empty()
            && renewed.is_some_and(|renewed| now.duration_since(renewed).as_secs() < self.seconds)
    }
}

/// What is wrong, in the order in which it is best mended.
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

/// What was read; otherwise that it could not be is a problem of its own.
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

/// Judges our definitions; returns whether all of them exist.
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

/// Whether an installation has recorded some of these objects: then they are wanted, also where none of them exists.
fn is_recorded(pairs: &[Pair], records: &[AddonInstallation]) -> bool {
    let keys = pairs.iter().filter_map(|pair| ObjectKey::of(&pair.wanted));
    let keys: BTreeSet<ObjectKey> = keys.collect();
    records.iter().any(|record| {
        let inventory = Inventory::of(record.status.as_ref());
        inventory.objects.keys().any(|key| keys.contains(key))
    })
}

/// What is wrong with the policies. Without any of them none was wanted, unless `is_wanted`; with some, each of them is.
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

/// The first field in which a live object is not what was wanted; what was not said may be anything.
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
        // A set: what others add to it cannot be taken back, and makes it no weaker.
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
