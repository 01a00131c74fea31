//! Finds what has changed since a plan file was made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::json;

use crate::changes::ObjectDiff;
use crate::conflicts::Policy;
use crate::crd_safety::Breakage;
use crate::facts::{LiveFact, PlanFacts, RecordFacts};
use crate::migration::Migration;
use crate::{Action, InstallationPlan, Step, Target, refusal};
use common::api::installation::Installed;
use common::manifest::key::ObjectKey;

use super::PlanFile;

/// One change since the plan was made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// What has changed: an object, the installation, a kind or the entry.
    pub subject: String,
    /// How it has changed.
    pub what: String,
}

/// The plan file is outdated and was not run. Nothing was written. Exit 4.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is not what the plan was made for; nothing was changed:{}",
    lines(differences)
)]
pub struct PlanOutdated {
    /// All differences; never empty.
    pub differences: Vec<Difference>,
    /// `NAME@VERSION` of the add-ons that the file installs, for the suggested command.
    pub addons: Vec<String>,
    /// Names of the installations that the file uninstalls.
    pub gone: Vec<String>,
}

impl Difference {
    /// Creates a difference.
    pub fn new(subject: impl fmt::Display, what: impl Into<String>) -> Self {
        Self {
            subject: subject.to_string(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.what)
    }
}

fn lines(differences: &[Difference]) -> String {
    let lines = differences.iter().map(|one| format!("\n  {one}"));
    lines.collect()
}

/// Returns the differences of the record alone, which explain why no plan can be made now.
#[must_use]
pub fn moved_record(then: &InstallationPlan, now: Option<&RecordFacts>) -> Vec<Difference> {
    let mut found = PlanComparison::default();
    found.record(&then.installation, then.record.as_ref(), now);
    found.differences
}

/// Returns all differences between the plan of a file (`then`) and the plan that is made now.
#[must_use]
pub fn moved(then: &InstallationPlan, now: &InstallationPlan) -> Vec<Difference> {
    let now = &with_generated(then, now);
    let mut found = PlanComparison {
        differences: moved_record(then, now.record.as_ref()),
        told: BTreeSet::new(),
    };
    let name = &then.installation;
    if let (Some(then), Some(now)) = (&then.entry, &now.entry)
        && then.digest != now.digest
    {
        let subject = format!("{} in {}, {}", then.addon, then.origin, then.place);
        found.add(subject, "the entry changed");
    }
    let installed = |plan: &InstallationPlan| plan.to.clone().unwrap_or_default();
    found.target(name, &installed(then), &installed(now));
    if then.wanted != now.wanted && !then.verb.ends_installation() {
        found.add(name, "defaults changed: another spec would be recorded");
    }
    found.facts(&then.facts, &now.facts);
    found.actions(then, now);
    found.warnings(then, now);
    // The whole plans are compared, so that no difference goes unnoticed.
    if found.differences.is_empty() && json!(then) != json!(now) {
        found.add(name, "another plan would be made");
    }
    found.differences
}

/// Returns the plan `now` with the file's digests for objects that both plans generate at random: each rendering has other values,
/// and the inputs of the rendering are compared anyway.
fn with_generated(then: &InstallationPlan, now: &InstallationPlan) -> InstallationPlan {
    let mut now = now.clone();
    for step in &mut now.steps {
        let key = &step.target.key;
        let is_generated = then.generated.contains(key) && now.generated.contains(key);
        if let Some(then) = then.step(key).filter(|_| is_generated) {
            step.digest.clone_from(&then.digest);
        }
    }
    now
}

/// Returns the objects of a plan file that the server would change in another way now. For objects that are generated at random, only
/// the paths are compared. Times at which other managers last wrote are ignored.
#[must_use]
pub fn moved_changes(then: &PlanFile, now: &[ObjectDiff]) -> Vec<Difference> {
    let plans = then.installations.iter();
    let generated: BTreeSet<&ObjectKey> = plans.flat_map(|plan| &plan.generated).collect();
    let by_object = |changes: &[ObjectDiff]| {
        let mut found: BTreeMap<ObjectKey, Vec<ObjectDiff>> = BTreeMap::new();
        for change in changes {
            let mut change = change.clone();
            let is_generated = generated.contains(&change.key);
            for field in &mut change.fields {
                if is_generated {
                    (field.old, field.new) = (None, None);
                }
                for owner in &mut field.owners {
                    owner.since = None;
                }
            }
            found.entry(change.key.clone()).or_default().push(change);
        }
        found
    };
    let (then, now) = (by_object(&then.changes), by_object(now));
    let objects: BTreeSet<&ObjectKey> = then.keys().chain(now.keys()).collect();
    // The writer of the file could not ask the server; that the object and its manifest are the same is checked apart from this.
    let may_not_change =
        |change: &ObjectDiff| change.unjudged.as_deref() == Some(refusal::NOT_ALLOWED);
    let is_unasked = |key: &ObjectKey| {
        let mut changes = then.get(key).into_iter().flatten();
        changes.any(may_not_change)
    };
    let moved = objects
        .into_iter()
        .filter(|key| then.get(*key) != now.get(*key) && !is_unasked(key));
    moved
        .map(|key| Difference::new(key, "other changes would be made than the plan shows"))
        .collect()
}

/// Returns the compared properties of a target, with the words for messages.
fn described(target: &Installed) -> [(&'static str, String); 8] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let rules = target.rules.map(|rules| rules.to_string());
    [
        ("version", target.version.clone()),
        ("id", target.id.clone()),
        ("manifestHash", target.manifest_hash.clone()),
        ("values", target.values_hash.clone()),
        ("data of templates", target.template_data_hash.clone()),
        ("private registry", text(&target.registry)),
        ("source", text(&target.resolved)),
        ("rules", text(&rules)),
    ]
}

#[derive(Default)]
struct PlanComparison {
    differences: Vec<Difference>,
    /// Objects for which a difference was reported.
    told: BTreeSet<ObjectKey>,
}

impl PlanComparison {
    fn add(&mut self, subject: impl fmt::Display, what: impl Into<String>) {
        self.differences.push(Difference::new(subject, what));
    }

    fn object(&mut self, key: &ObjectKey, what: impl Into<String>) {
        // Only the first difference of an object is reported, because the others usually follow from it.
        if self.told.insert(key.clone()) {
            self.add(key, what);
        }
    }

    fn record(
        &mut self,
        name: impl fmt::Display,
        then: Option<&RecordFacts>,
        now: Option<&RecordFacts>,
    ) {
        let subject = format!("installation {name}");
        match (then, now) {
            (None, None) => {}
            (None, Some(_)) => self.add(subject, "another client created it"),
            (Some(_), None) => self.add(subject, "it is gone"),
            (Some(then), Some(now)) if then.uid != now.uid => {
                self.add(
                    subject,
                    "it is another one with the same name, created later",
                );
            }
            (Some(then), Some(now)) => {
                if then.spec != now.spec {
                    self.add(&subject, "its spec, labels or annotations changed");
                }
                if then.inventory != now.inventory {
                    self.add(
                        &subject,
                        "its inventory changed: another client installed or upgraded it",
                    );
                }
                if then.operation != now.operation {
                    let what = if now.operation {
                        "an operation is in progress, or was interrupted"
                    } else {
                        "the operation that was under way has ended"
                    };
                    self.add(&subject, what);
                }
            }
        }
    }

    fn target(&mut self, name: impl fmt::Display, then: &Installed, now: &Installed) {
        let subject = format!("installation {name}");
        for ((word, then), (_, now)) in described(then).into_iter().zip(described(now)) {
            if then != now {
                self.add(
                    &subject,
                    format!("{word} {} → {}", short(&then), short(&now)),
                );
            }
        }
    }

    fn facts(&mut self, then: &PlanFacts, now: &PlanFacts) {
        let by_kind = |facts: &PlanFacts| -> BTreeMap<(String, String), Option<String>> {
            let kinds = facts.kinds.iter();
            kinds
                .map(|fact| ((fact.group.clone(), fact.kind.clone()), fact.served.clone()))
                .collect()
        };
        let now_kinds = by_kind(now);
        for ((group, kind), then) in by_kind(then) {
            let Some(now) = now_kinds.get(&(group.clone(), kind.clone())) else {
                continue;
            };
            let subject = if group.is_empty() {
                format!("kind {kind}")
            } else {
                format!("kind {kind} of {group}")
            };
            match (&then, now) {
                (then, now) if then == now => {}
                (None, _) => self.add(subject, "the cluster serves it now"),
                (_, None) => self.add(subject, "the cluster no longer serves it"),
                (Some(then), Some(now)) => {
                    self.add(subject, format!("served as {then}, now as {now}"));
                }
            }
        }
        for namespace in then.namespaces.symmetric_difference(&now.namespaces) {
            let what = if now.namespaces.contains(namespace) {
                "it is there now"
            } else {
                "it is gone"
            };
            self.add(format!("Namespace {namespace}"), what);
        }
        let live = |facts: &'_ PlanFacts| -> BTreeMap<ObjectKey, LiveFact> {
            let facts = facts.live.iter();
            facts.map(|fact| (fact.key.clone(), fact.clone())).collect()
        };
        let (then, now) = (live(then), live(now));
        let keys: BTreeSet<&ObjectKey> = then.keys().chain(now.keys()).collect();
        for key in keys {
            if let Some(what) = moved_object(then.get(key), now.get(key)) {
                self.object(key, what);
            }
        }
    }

    /// Compares the actions, for objects without another difference.
    fn actions(&mut self, then: &InstallationPlan, now: &InstallationPlan) {
        let keys = then.steps.iter().chain(&now.steps);
        let keys: BTreeSet<&ObjectKey> = keys.map(|step| &step.target.key).collect();
        for key in keys {
            match (then.step(key), now.step(key)) {
                (None, None) => {}
                (None, Some(_)) => self.object(key, "it would be applied now"),
                (Some(_), None) => self.object(key, "it would no longer be applied"),
                (Some(then), Some(now)) if then.digest != now.digest => {
                    self.object(key, "other content would be applied");
                }
                (Some(then), Some(now)) if request(then) != request(now) => {
                    self.object(key, "it would be applied in another way");
                }
                (Some(_), Some(_)) => {}
            }
        }
        let (ended_then, ended_now) = (ended(then), ended(now));
        for ended in ended_then.symmetric_difference(&ended_now) {
            let (word, key) = ended;
            let what = match ended_now.contains(ended) {
                true => format!("it would be {word} now"),
                false => format!("it would no longer be {word}"),
            };
            self.object(key, what);
        }
        for Migration { definition, .. } in now.migrations() {
            if then.migrations().all(|one| one.definition != *definition) {
                self.object(definition, "objects would be written again now");
            }
        }
        for recreation in &now.recreations {
            if !then.recreations.contains(recreation) {
                let why = recreation.reasons();
                let what = if recreation.holders.is_empty() {
                    format!("it would be deleted and created again now ({why})")
                } else {
                    format!("other objects would be deleted before it now ({why})")
                };
                self.object(&recreation.key, what);
            }
        }
        let accepted: Vec<String> = then.breakages.iter().flat_map(Breakage::lines).collect();
        for breakage in now.breakages.iter().flat_map(Breakage::lines) {
            if !accepted.contains(&breakage) {
                self.add(&then.installation, format!("not accepted: {breakage}"));
            }
        }
        if then.create_namespace != now.create_namespace && self.differences.is_empty() {
            self.add(&then.installation, "another namespace would be created");
        }
    }

    /// Compares the warnings, because the reviewer of the plan relied on them.
    fn warnings(&mut self, then: &InstallationPlan, now: &InstallationPlan) {
        for warning in now.warnings.iter().filter(|it| !then.warnings.contains(it)) {
            self.add(&now.installation, format!("not in the plan: {warning}"));
        }
        for warning in then.warnings.iter().filter(|it| !now.warnings.contains(it)) {
            self.add(&now.installation, format!("no longer holds: {warning}"));
        }
    }
}

/// Returns the objects that are not ours after a plan, with the words for what happens to them.
fn ended(plan: &InstallationPlan) -> BTreeSet<(&'static str, &ObjectKey)> {
    let deleted = plan.deletions().map(|it| ("deleted", &it.target.key));
    let released = plan.released().map(|key| ("released", key));
    let retained = plan.retained.iter().map(|key| ("retained", key));
    deleted.chain(released).chain(retained).collect()
}

/// Returns how an object is applied, without its content.
fn request(step: &Step) -> (&Target, Action, &Policy) {
    (&step.target, step.action, &step.policy)
}

fn moved_object(then: Option<&LiveFact>, now: Option<&LiveFact>) -> Option<String> {
    let (then, now) = match (then, now) {
        (None, Some(_)) => return Some("it is there now".to_owned()),
        (Some(_), None) => return Some("it is gone".to_owned()),
        (None, None) => return None,
        (Some(then), Some(now)) => (then, now),
    };
    if then == now {
        return None;
    }
    let none = || "none".to_owned();
    Some(if then.uid != now.uid {
        "it was deleted and made again".to_owned()
    } else if now.terminating && !then.terminating {
        "it is being deleted".to_owned()
    } else if then.owner != now.owner {
        let owner = |fact: &LiveFact| fact.owner.clone().unwrap_or_else(none);
        format!("its owner label {} → {}", owner(then), owner(now))
    } else if then.generation != now.generation {
        let generation = |fact: &LiveFact| fact.generation.map_or_else(none, |g| g.to_string());
        format!(
            "edited: generation {} → {}",
            generation(then),
            generation(now)
        )
    } else {
        "edited by another client".to_owned()
    })
}

/// Shortens a hash for messages.
fn short(text: &str) -> String {
    match text.chars().count() {
        0 => "none".to_owned(),
        1..=24 => text.to_owned(),
        _ => text.chars().take(12).chain("…".chars()).collect(),
    }
}
