//! Permission to recreate objects if one of their fields cannot change, from the manifest or the user.
//!
//! Objects that hold data or other objects are never recreated (claims, volumes, CRDs, namespaces), nor are those that existed before the
//! installation.

use std::collections::BTreeSet;

use serde_json::Value;

use super::conflicts::Policy;
use super::desired::DesiredObject;
use super::inventory::InventoryItem;
use super::{Action, InstallationPlan, Step};
use common::api::installation::{ConflictPolicy, ObjectState};
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::KeptKind;
use common::nearest::nearest;

/// An object that the user named for recreation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedObject {
    kind: String,
    group: Option<String>,
    name: String,
}

/// An error: an object that the user named cannot be recreated. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecreateError {
    /// The text is not `KIND/NAME`.
    #[error("{0:?} is not an object; write KIND/NAME, for example Deployment/web")]
    Unreadable(String),
    /// No plan of the command contains such an object.
    #[error("no object {typed} is part of this command{}", hint(.near))]
    Unknown {
        /// As the user wrote it.
        typed: String,
        /// Objects with a similar name.
        near: Vec<String>,
    },
    /// Its kind is never recreated.
    #[error(
        "{key} is never recreated: {why}; change it by hand, or take the change out of the manifest"
    )]
    Kept {
        /// The object.
        key: ObjectKey,
        /// What would be lost.
        why: &'static str,
    },
    /// Nothing recreates it.
    #[error("{typed} is not recreated: {why}; leave out --recreate {typed}")]
    Needless {
        /// As the user wrote it.
        typed: String,
        /// The reason.
        why: NeedlessReason,
    },
    /// It existed before the installation.
    #[error(
        "{0} existed before this installation, which never deletes it: take the change out of the manifest"
    )]
    Preexisting(ObjectKey),
}

/// The reason why an object that the user named is not recreated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NeedlessReason {
    /// It is up to date, or nothing is due.
    #[error("it is up to date")]
    UpToDate,
    /// It is missing.
    #[error("it does not exist, and is created")]
    Missing,
    /// All its fields can change.
    #[error("it is changed in place")]
    InPlace,
    /// It is pruned, and no object needs what it holds.
    #[error("it is deleted anyway, and nothing waits for that")]
    Pruned,
}

fn hint(near: &[String]) -> String {
    if near.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", near.join(" or "))
    }
}

impl NamedObject {
    /// Parses `Deployment/web` or `deployment.apps/web`.
    ///
    /// # Errors
    /// [`RecreateError::Unreadable`].
    pub fn parse(typed: &str) -> Result<Self, RecreateError> {
        let unreadable = || RecreateError::Unreadable(typed.to_owned());
        let (kind, name) = typed.split_once('/').ok_or_else(unreadable)?;
        let (kind, group) = match kind.split_once('.') {
            Some((kind, group)) => (kind, Some(group.to_owned())),
            None => (kind, None),
        };
        if kind.is_empty() || name.is_empty() || name.contains('/') {
            return Err(unreadable());
        }
        Ok(Self {
            kind: kind.to_owned(),
            group,
            name: name.to_owned(),
        })
    }

    fn matches(&self, key: &ObjectKey) -> bool {
        self.kind.eq_ignore_ascii_case(&key.kind)
            && self.group.as_ref().is_none_or(|group| *group == key.group)
            && self.name == key.name
    }
}

/// Permits the plans of one command to recreate the objects that the user named. A pruned one may be deleted before an object that needs
/// something it holds.
///
/// # Errors
/// The first name that is not part of a plan, or that is never recreated.
pub fn allow_recreations<'a>(
    plans: impl IntoIterator<Item = &'a mut InstallationPlan>,
    typed: &[String],
) -> Result<(), RecreateError> {
    let wishes: Vec<NamedObject> = typed
        .iter()
        .map(|typed| NamedObject::parse(typed))
        .collect::<Result<_, _>>()?;
    let mut found = vec![false; wishes.len()];
    let mut known = BTreeSet::new();
    for plan in plans {
        let mut allowed = BTreeSet::new();
        let wanted = plan.steps.iter().map(|step| &step.target.key);
        let pruned = plan.deletions();
        let pruned = pruned.map(|deletion| &deletion.target.key);
        for key in wanted.chain(&plan.unchanged).chain(pruned) {
            known.insert(format!("{}/{}", key.kind, key.name));
            for (wish, found) in wishes.iter().zip(&mut found) {
                if wish.matches(key) {
                    check_allowed(key, plan)?;
                    allowed.insert(key.clone());
                    *found = true;
                }
            }
        }
        for step in &mut plan.steps {
            // An object that does not exist needs no recreation.
            step.policy.recreate |=
                step.action != Action::Create && allowed.contains(&step.target.key);
        }
        let pruned = plan.deletions();
        let pruned = pruned.map(|deletion| &deletion.target.key);
        let named = pruned.filter(|key| allowed.contains(*key));
        plan.may_go_first = named.cloned().collect();
    }
    match typed.iter().zip(found).find(|(_, found)| !found) {
        Some((typed, _)) => Err(RecreateError::Unknown {
            near: find_similar(typed, &known),
            typed: typed.clone(),
        }),
        None => Ok(()),
    }
}

/// Refuses an object that the user named although no plan of the command recreates it. Each plan comes with whether it continues another
/// operation, which may have recreated the object. `in_place` has the objects that are changed in place, with the index of their plan.
///
/// # Errors
/// [`RecreateError::Needless`], for the first such name.
pub fn check(
    plans: &[(&InstallationPlan, bool)],
    typed: &[String],
    in_place: &BTreeSet<(usize, ObjectKey)>,
) -> Result<(), RecreateError> {
    for typed in typed {
        let wish = NamedObject::parse(typed)?;
        let mut why = NeedlessReason::UpToDate;
        let mut is_needed = false;
        for (part, (plan, continues)) in plans.iter().enumerate() {
            let is_unchanged = plan.unchanged.iter().any(|key| wish.matches(key));
            let steps = plan.steps.iter();
            let steps: Vec<&Step> = steps
                .filter(|step| wish.matches(&step.target.key))
                .collect();
            is_needed |= *continues && (is_unchanged || !steps.is_empty());
            for step in steps {
                let key = &step.target.key;
                match step.action {
                    Action::Create => why = NeedlessReason::Missing,
                    _ if in_place.contains(&(part, key.clone())) => why = NeedlessReason::InPlace,
                    _ => is_needed = true,
                }
            }
            let pruned = plan.may_go_first.iter();
            for key in pruned.filter(|key| wish.matches(key)) {
                let mut recreations = plan.recreations.iter();
                if recreations
                    .any(|recreation| recreation.deleted_keys().any(|deleted| deleted == key))
                {
                    is_needed = true;
                } else {
                    why = NeedlessReason::Pruned;
                }
            }
        }
        if !is_needed {
            return Err(RecreateError::Needless {
                typed: typed.clone(),
                why,
            });
        }
    }
    Ok(())
}

/// Returns the policy of a step. An object that existed before the installation is never recreated, whatever the manifest says.
pub(super) fn step_policy(
    wanted: &DesiredObject,
    conflicts: ConflictPolicy,
    before: &InventoryItem,
) -> Policy {
    // An unreadable annotation was refused when the object was resolved.
    let mut policy = Policy::from_object(&wanted.object, conflicts).unwrap_or(Policy {
        conflicts,
        ..Policy::default()
    });
    policy.shared = before.object.state == ObjectState::Preexisting;
    policy.only_recorded = wanted.is_left_to_owner();
    policy.recreate &= before.object.state == ObjectState::Owned
        && KeptKind::from_key(&wanted.target.key).is_none();
    policy
}

/// Whether the manifest of an object permits its recreation.
#[must_use]
pub fn is_accepted(object: &Value) -> bool {
    let is_kept =
        ObjectKey::from_object(object).is_some_and(|key| KeptKind::from_key(&key).is_some());
    !is_kept
        && Policy::from_object(object, ConflictPolicy::default())
            .is_ok_and(|policy| policy.recreate)
}

fn check_allowed(key: &ObjectKey, plan: &InstallationPlan) -> Result<(), RecreateError> {
    if let Some(kind) = KeptKind::from_key(key) {
        return Err(RecreateError::Kept {
            key: key.clone(),
            why: kind.loss(),
        });
    }
    match plan.exact.objects.get(key) {
        Some(item) if item.object.state == ObjectState::Preexisting => {
            Err(RecreateError::Preexisting(key.clone()))
        }
        _ => Ok(()),
    }
}

/// Returns objects of the same name, else the one with the closest name.
fn find_similar(typed: &str, known: &BTreeSet<String>) -> Vec<String> {
    let name = typed.rsplit('/').next().unwrap_or(typed);
    let same = known
        .iter()
        .filter(|known| known.ends_with(&format!("/{name}")));
    let same: Vec<String> = same.take(3).cloned().collect();
    if !same.is_empty() {
        return same;
    }
    let known = known.iter().map(String::as_str);
    nearest(typed, known)
        .map(str::to_owned)
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::closing::ClosingStep;
    use crate::teardown::TeardownTurn;
    use crate::{Deletion, Target, Verb};
    use common::api::names::InstallationName;

    fn key(group: &str, kind: &str, name: &str) -> ObjectKey {
        ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
        }
    }

    /// A plan that updates `Deployment web` and `PersistentVolumeClaim data`, creates `Job once`, reconciles `Service web`,
    /// which existed before, leaves `ConfigMap same`, and prunes `Service former`.
    fn plan() -> InstallationPlan {
        let step = |key: ObjectKey, action| Step {
            target: Target {
                key,
                version: "v1".to_owned(),
                plural: String::new(),
            },
            action,
            object: Arc::new(json!({})),
            uid: None,
            digest: String::new(),
            seen: None,
            policy: Policy::default(),
        };
        let service = key("", "Service", "web");
        let mut item = InventoryItem::planned("web", "v1");
        item.object.state = ObjectState::Preexisting;
        let mut exact = crate::inventory::Inventory::default();
        exact.objects.insert(service.clone(), item);
        let steps = vec![
            step(key("apps", "Deployment", "web"), Action::Update),
            step(key("", "PersistentVolumeClaim", "data"), Action::Update),
            step(key("batch", "Job", "once"), Action::Create),
            step(service, Action::Restore),
        ];
        InstallationPlan {
            verb: Verb::Upgrade,
            steps,
            unchanged: vec![key("", "ConfigMap", "same")],
            closing: vec![ClosingStep::Delete {
                turn: TeardownTurn::Workloads,
                deletion: Deletion {
                    target: Target {
                        key: key("", "Service", "former"),
                        version: "v1".to_owned(),
                        plural: "services".to_owned(),
                    },
                    uid: "1".to_owned(),
                    resource_version: String::new(),
                    labels: BTreeMap::new(),
                },
            }],
            exact,
            ..InstallationPlan::nothing(
                InstallationName {
                    namespace: "kubectl-addons".to_owned(),
                    name: "shop".to_owned(),
                },
                "shop",
            )
        }
    }

    fn allowed(typed: &[&str]) -> Result<Vec<String>, String> {
        let mut plan = plan();
        let typed: Vec<String> = typed.iter().map(|typed| (*typed).to_owned()).collect();
        allow_recreations([&mut plan], &typed).map_err(|error| error.to_string())?;
        let steps = plan.steps.iter().filter(|step| step.policy.recreate);
        let keys = steps.map(|step| &step.target.key);
        let keys = keys.chain(&plan.may_go_first);
        Ok(keys.map(|key| key.name.clone()).collect())
    }

    #[test]
    fn what_the_user_names_may_be_recreated() {
        for (typed, wanted) in [
            (&[][..], &[][..]),
            (&["Deployment/web"], &["web"]),
            (&["deployment.apps/web"], &["web"]),
            (&["Job/once", "ConfigMap/same"], &[]),
            (&["Service/former"], &["former"]),
        ] {
            let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(allowed(typed), Ok(wanted), "{typed:?}");
        }
    }

    #[test]
    fn what_nothing_recreates_is_refused() {
        let mut plan = plan();
        plan.may_go_first = BTreeSet::from([key("", "Service", "former")]);
        let web = key("apps", "Deployment", "web");
        let in_place = BTreeSet::from([(0, web), (0, key("", "Service", "web"))]);
        let none = BTreeSet::new();
        for (typed, continues, in_place, refused) in [
            ("Deployment/web", false, &none, None),
            (
                "Deployment/web",
                false,
                &in_place,
                Some("it is changed in place"),
            ),
            (
                "Service/web",
                false,
                &in_place,
                Some("it is changed in place"),
            ),
            (
                "Service/former",
                false,
                &none,
                Some("it is deleted anyway, and nothing waits for that"),
            ),
            (
                "Job/once",
                false,
                &none,
                Some("it does not exist, and is created"),
            ),
            ("ConfigMap/same", false, &none, Some("it is up to date")),
            ("ConfigMap/same", true, &none, None),
            ("Job/once", true, &none, None),
            ("Job/other", true, &none, Some("it is up to date")),
        ] {
            let checked = check(&[(&plan, continues)], &[typed.to_owned()], in_place);
            let expected = refused.map(|why| {
                format!("{typed} is not recreated: {why}; leave out --recreate {typed}")
            });
            assert_eq!(checked.err().map(|error| error.to_string()), expected);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_sentence() {
        for (typed, words) in [
            ("web", "write KIND/NAME"),
            ("Deployment/", "write KIND/NAME"),
            ("/web", "write KIND/NAME"),
            ("a/b/c", "write KIND/NAME"),
            (
                "StatefulSet/web",
                "did you mean Deployment/web or Service/web?",
            ),
            ("Deployment/wbe", "did you mean Deployment/web?"),
            (
                "Deployment.batch/web",
                "no object Deployment.batch/web is part of this command",
            ),
            (
                "PersistentVolumeClaim/data",
                "is never recreated: the data in it would be lost",
            ),
            ("Service/web", "existed before this installation"),
        ] {
            let refused = allowed(&[typed]).unwrap_err();
            assert!(refused.contains(words), "{typed}: {refused}");
        }
    }
}
