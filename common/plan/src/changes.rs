//! The changes that a plan makes to live objects, as values. The engine finds them when it checks a plan by dry runs
//! ([`InstallationPlan::changed_fields`]), `diff` prints them, and a plan file stores them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::immutable::Recreation;
use super::review::changes_only_marks;
use super::{Action, InstallationPlan, Step};
use common::manifest::key::ObjectKey;
use common::values::mask::SecretMask;

/// The change of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectDiff {
    /// The object.
    pub key: ObjectKey,
    /// What the plan does with it.
    pub action: Action,
    /// Whether it is new.
    pub created: bool,
    /// Changed fields, sorted by path; empty if the server would change nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// Why it is deleted and created again: immutable fields that change, if the plan allows this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recreated: Option<String>,
    /// The error with which the server refused the dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the user can do about the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<RefusalRemedy>,
    /// Why the server could not check it yet: `namespace shop does not exist yet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unjudged: Option<String>,
}

/// What the user can do about an object that the server refuses to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RefusalRemedy {
    /// Upgrade: another client created the object after the plan was made.
    Upgrade,
    /// Take the fields that other managers own, or leave them.
    TakeOrYield,
    /// Give the live fields the wanted values, or change the annotation by which the manifest refuses conflicts.
    Annotation,
    /// Recreate the object.
    Recreate,
    /// Remove the change from the manifest, because objects of this kind are never recreated.
    ByHand,
    /// Delete this webhook configuration of the installation: its backend does not answer, so it denies the writes that would repair it.
    DeleteWebhooks(Box<ObjectKey>),
}

/// The change of one field. Values of Secrets are masked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FieldChange {
    /// The path, e.g. `spec.template.spec.containers[metrics-server].image`.
    pub path: String,
    /// The live value; absent if the field is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// The value after the apply; absent if the field is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// The other managers that own the live value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<FieldOwner>,
}

/// A field manager that is not ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FieldOwner {
    /// Its name.
    pub manager: String,
    /// When it last changed its fields of the object (managedFields), as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// The kind of change of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ObjectChange {
    /// It is new.
    Added,
    /// Fields change.
    Changed,
    /// The server would change nothing.
    Unchanged,
    /// It is deleted and created again.
    Recreated,
    /// The server refuses it.
    Refused,
}

impl ObjectDiff {
    /// Returns the kind of change.
    #[must_use]
    pub fn change(&self) -> ObjectChange {
        if self.error.is_some() {
            ObjectChange::Refused
        } else if self.recreated.is_some() {
            ObjectChange::Recreated
        } else if self.created {
            ObjectChange::Added
        } else if !self.fields.is_empty()
            || self.unjudged.is_some() && self.action == Action::Update
        {
            // Its manifest changed, even if the server could not check it yet.
            ObjectChange::Changed
        } else {
            ObjectChange::Unchanged
        }
    }
}

impl InstallationPlan {
    /// Returns what the plan does to each object that it applies, by the verdicts of the dry runs that checked it.
    #[must_use]
    pub fn changes(&self) -> Vec<ObjectDiff> {
        self.steps
            .iter()
            .map(|step| self.step_change(step))
            .collect()
    }

    fn step_change(&self, step: &Step) -> ObjectDiff {
        let key = &step.target.key;
        let change = ObjectDiff {
            key: key.clone(),
            action: step.action,
            created: step.action == Action::Create,
            fields: Vec::new(),
            recreated: None,
            error: None,
            remedy: None,
            unjudged: None,
        };
        if let Some(refusal) = self.refusal(key) {
            return ObjectDiff {
                error: Some(refusal.message.clone()),
                remedy: refusal.remedy.clone(),
                ..change
            };
        }
        if let Some(recreation) = self.recreation(key) {
            return recreation_change(recreation, step, change);
        }
        let mut unjudged = self.unjudged.iter();
        if let Some(unjudged) = unjudged.find(|unjudged| unjudged.key == *key) {
            return ObjectDiff {
                unjudged: Some(unjudged.why.clone()),
                fields: self.changed_fields.get(key).cloned().unwrap_or_default(),
                ..change
            };
        }
        ObjectDiff {
            fields: self.changed_fields.get(key).cloned().unwrap_or_default(),
            ..change
        }
    }
}

/// Returns the change of a step that needs a deletion.
fn recreation_change(recreation: &Recreation, step: &Step, change: ObjectDiff) -> ObjectDiff {
    let reasons = recreation.reasons();
    let is_accepted = recreation.obstacle.is_none();
    match recreation.holders.as_slice() {
        [] if step.policy.recreate && is_accepted => ObjectDiff {
            recreated: Some(reasons),
            ..change
        },
        [] => ObjectDiff {
            error: Some(match recreation.describe_obstacle() {
                Some(why) => format!("cannot be changed: {reasons}; {why}"),
                None => format!("cannot be changed: {reasons}"),
            }),
            remedy: Some(if is_accepted {
                RefusalRemedy::Recreate
            } else {
                RefusalRemedy::ByHand
            }),
            ..change
        },
        holders
            if holders
                .iter()
                .all(|holder| step.policy.deletes_first(holder)) =>
        {
            change
        }
        holders => {
            let keys: Vec<String> = holders.iter().map(|it| it.target.key.to_string()).collect();
            ObjectDiff {
                error: Some(format!(
                    "{reasons}; {}, which is pruned, has to be deleted first",
                    keys.join(", ")
                )),
                ..change
            }
        }
    }
}

/// Masks values of Secrets that templates wrote into an object, also in paths: the path of an item of a set ends with its value.
pub fn mask_fields(fields: &mut [FieldChange], mask: &SecretMask) {
    for field in fields {
        let value = field.old.as_ref().or(field.new.as_ref());
        let place = value.map(|value| match value {
            Value::String(text) => format!("[{text}]"),
            value => format!("[{value}]"),
        });
        mask.mask_change([&mut field.old, &mut field.new]);
        let list = place.and_then(|place| field.path.strip_suffix(&place));
        let now = field.old.as_ref().or(field.new.as_ref());
        if let (Some(list), Some(Value::String(now))) = (list, now) {
            field.path = format!("{list}[{now}]");
        }
    }
}

/// The number of objects for each kind of change in a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Objects whose content changes.
    pub changed: usize,
    /// Objects of which only labels and annotations change that name a version or a tool.
    pub relabelled: usize,
    /// New objects.
    pub added: usize,
    /// Objects that are deleted.
    pub pruned: usize,
    /// Objects that are released because they existed before the installation.
    pub released: usize,
    /// Objects that are no longer ours and stay.
    pub retained: usize,
    /// Objects that do not change.
    pub unchanged: usize,
    /// Objects that are deleted and created again.
    pub recreated: usize,
    /// Objects that the server refuses.
    pub refused: usize,
}

impl Counts {
    /// Counts the changes of a plan and of its dry run.
    #[must_use]
    pub fn of(plan: &InstallationPlan, objects: &[ObjectDiff]) -> Self {
        let of = |change: ObjectChange| {
            let objects = objects.iter().filter(|object| object.change() == change);
            objects.count()
        };
        let deletions = plan.deletions();
        let (kept, pruned): (Vec<_>, Vec<_>) =
            deletions.partition(|deletion| plan.refusal(&deletion.target.key).is_some());
        let relabelled = objects.iter().filter(|it| changes_only_marks(it)).count();
        Self {
            changed: of(ObjectChange::Changed) - relabelled,
            relabelled,
            added: of(ObjectChange::Added) + usize::from(plan.create_namespace.is_some()),
            pruned: pruned.len(),
            released: plan.released().count(),
            retained: plan.retained.len(),
            unchanged: of(ObjectChange::Unchanged) + plan.unchanged.len(),
            recreated: of(ObjectChange::Recreated),
            refused: of(ObjectChange::Refused) + kept.len(),
        }
    }

    /// Whether anything differs.
    #[must_use]
    pub fn differs(&self) -> bool {
        let others = self.relabelled + self.released + self.recreated + self.refused;
        self.changed + self.added + self.pruned + others > 0
    }
}

impl std::fmt::Display for Counts {
    /// `1 changed, 1 added, 1 pruned, 6 unchanged`; rarer kinds of change are left out if their count is 0.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} changed, {} added, {} pruned",
            self.changed, self.added, self.pruned
        )?;
        for (count, word) in [
            (self.relabelled, "relabelled"),
            (self.released, "released"),
            (self.retained, "retained"),
            (self.recreated, "recreated"),
            (self.refused, "refused"),
        ] {
            if count > 0 {
                write!(f, ", {count} {word}")?;
            }
        }
        write!(f, ", {} unchanged", self.unchanged)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_sides_of_a_hidden_change_are_hidden() {
        let field = |path: &str, old: Value, new: Value| FieldChange {
            path: path.to_owned(),
            old: Some(old),
            new: Some(new),
            owners: Vec::new(),
        };
        let mut fields = [
            field("data.dsn", json!("app:before@db"), json!("app:hunter2@db")),
            field("data.a", json!("a"), json!("b")),
        ];
        let secret = json!({"password": "hunter2"});
        mask_fields(&mut fields, &SecretMask::from_values([&secret].into_iter()));
        assert_eq!(
            fields,
            [
                field("data.dsn", json!("***"), json!("***")),
                field("data.a", json!("a"), json!("b"))
            ]
        );
    }

    #[test]
    fn the_old_side_is_hidden_where_it_may_be_a_former_value() {
        let changed = |old: Value, new: Value| {
            let mut sides = (Some(old), Some(new));
            SecretMask::default()
                .with_former(true)
                .mask_change([&mut sides.0, &mut sides.1]);
            sides
        };
        for (old, shown) in [
            (json!("app:hunter2@db"), json!("***")),
            (json!(54321), json!("***")),
            (json!({"dsn": ["hunter2"]}), json!("***")),
            (json!("abc"), json!("abc")),
            (json!([1, true, null]), json!([1, true, null])),
        ] {
            let new = json!("app:default@db");
            assert_eq!(changed(old, new.clone()), (Some(shown), Some(new)));
        }
    }
}
