//! Classes of the addon-manager: what becomes of an object when its class changes, and when it moves to another add-on.

use super::*;
use crate::Action::{self, Create, Update};
use crate::claims::LeavingObject;
use crate::closing::ClosingStep;
use Class::{Absent, EnsureExists, Ignored, Reconcile};

/// What its manifest says of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Reconcile,
    EnsureExists,
    /// The manifest is there, without a label or unreadable.
    Ignored,
    Absent,
}

fn object(class: Class) -> Option<Value> {
    let mut object = manifest("ConfigMap", "x");
    match class {
        Reconcile => Some(object),
        EnsureExists => {
            object["metadata"]["annotations"] = json!({ANNOTATION_APPLY: APPLY_CREATE_ONLY});
            Some(object)
        }
        Ignored | Absent => None,
    }
}

fn x() -> ObjectKey {
    key("ConfigMap", "x")
}

/// A world in which an object of this class was installed; `is_live`: and is still there.
fn installed(class: Class, is_live: bool) -> World {
    let Some(object) = object(class) else {
        return world();
    };
    let world = world().want([object]);
    let digest = world.desired.objects[&x()].digest.clone();
    let state = if class == EnsureExists {
        Retained
    } else {
        Owned
    };
    let world = world.record(x(), state, &digest);
    if is_live {
        world.live(x(), Some("us"), "u1", 1)
    } else {
        world
    }
}

impl World {
    fn now(mut self, class: Class) -> Self {
        if class == Ignored {
            self.held.insert(x(), "it has no label".to_owned());
        }
        self.wanted.due = false;
        self.wanted.reconcile = common::api::installation::ReconcilePolicy::Ensure;
        self.want(object(class))
    }
}

/// Class before, class now, whether it is there, request, whether it is deleted, how it is recorded afterwards.
type Row = (
    Class,
    Class,
    bool,
    Option<Action>,
    bool,
    Option<ObjectState>,
);

#[rustfmt::skip]
const TRANSITIONS: [Row; 20] = [
    (Reconcile, Reconcile, true, None, false, Some(Owned)),
    (Reconcile, Reconcile, false, Some(Create), false, Some(Owned)),
    // The addon-manager deletes it here, because the live object still carries the other label.
    (Reconcile, EnsureExists, true, None, false, Some(Retained)),
    (Reconcile, EnsureExists, false, Some(Create), false, Some(Retained)),
    (Reconcile, Ignored, true, None, false, Some(Owned)),
    (Reconcile, Ignored, false, None, false, None),
    (Reconcile, Absent, true, None, true, None),
    (Reconcile, Absent, false, None, false, None),
    (EnsureExists, Reconcile, true, Some(Update), false, Some(Owned)),
    (EnsureExists, Reconcile, false, Some(Create), false, Some(Owned)),
    (EnsureExists, EnsureExists, true, None, false, Some(Retained)),
    (EnsureExists, EnsureExists, false, Some(Create), false, Some(Retained)),
    (EnsureExists, Ignored, true, None, false, Some(Retained)),
    (EnsureExists, Ignored, false, None, false, None),
    (EnsureExists, Absent, true, None, false, Some(Retained)),
    (EnsureExists, Absent, false, None, false, None),
    (Ignored, Reconcile, false, Some(Create), false, Some(Owned)),
    (Ignored, EnsureExists, false, Some(Create), false, Some(Retained)),
    (Absent, Reconcile, false, Some(Create), false, Some(Owned)),
    (Absent, EnsureExists, false, Some(Create), false, Some(Retained)),
];

#[test]
fn transitions() {
    for (before, now, is_live, action, is_deleted, recorded) in TRANSITIONS {
        let plan = installed(before, is_live).now(now).plan();
        let found = (
            plan.steps.first().map(|step| step.action),
            plan.deletions().any(|deletion| deletion.target.key == x()),
            plan.exact.objects.get(&x()).map(|item| item.object.state),
        );
        let row = format!("{before:?} -> {now:?}, there: {is_live}");
        assert_eq!(found, (action, is_deleted, recorded), "{row}");
    }
}

/// What someone else made is only created where it is missing, and refused where it is to be reconciled.
#[test]
fn an_object_of_others() {
    let world = |class| world().now(class).live(x(), None, "u9", 1);
    let plan = world(EnsureExists).plan();
    assert!(plan.steps.is_empty());
    assert_eq!(plan.exact.objects[&x()].object.state, Preexisting);
    assert!(
        world(Reconcile)
            .error()
            .contains("exists, and no installation owns it"),
        "{}",
        world(Reconcile).error()
    );
    assert!(world(Ignored).plan().is_empty());
}

#[test]
fn what_is_held_is_kept_by_an_uninstallation_too() {
    let mut world = installed(Reconcile, true);
    assert_eq!(world.plan_for(Some(false)).unwrap().deletions().count(), 1);
    world
        .held
        .insert(x(), "its kind is not in the list".to_owned());
    let plan = world.plan_for(Some(false)).unwrap();
    assert_eq!(plan.deletions().count(), 0);
    assert_eq!(plan.retained, [x()]);
    assert_eq!(
        plan.warnings,
        ["shop/ConfigMap x stays: its kind is not in the list"]
    );
}

/// A changed manifest of an object that is only created is shown; the mark that makes it so is not a change.
#[test]
fn a_differing_manifest_is_shown() {
    let plan = installed(Reconcile, true).now(EnsureExists).plan();
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    let mut other = object(EnsureExists).unwrap();
    other["data"] = json!({"key": "2"});
    let plan = installed(EnsureExists, true)
        .now(EnsureExists)
        .want([other])
        .plan();
    assert!(plan.steps.is_empty());
    assert_eq!(
        plan.warnings,
        ["shop/ConfigMap x differs from its manifest, and stays: it is only created"]
    );
}

fn other() -> InstallationName {
    InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "scale".to_owned(),
    }
}

/// Semantics 13: the giver forgets, the taker takes over, and no request deletes anything.
#[test]
fn an_object_that_moves_is_not_deleted() {
    let mut giver = installed(Reconcile, true).now(Absent);
    giver.claims.taken.insert(x(), other());
    for uninstall in [None, Some(false)] {
        let plan = giver.plan_for(uninstall).unwrap();
        assert_eq!(plan.deletions().count(), 0);
        assert!(!plan.exact.objects.contains_key(&x()));
        assert!(plan.union.objects.contains_key(&x()));
        assert!(matches!(plan.closing[..], [ClosingStep::HandOver(_)]));
        assert!(!plan.is_empty());
    }

    let owner = owner_hash(&other().namespace, &other().name);
    for state in [Owned, Preexisting] {
        let mut taker = world().now(Reconcile).live(x(), Some(&owner), "u1", 1);
        taker.claims.add_owner(&other());
        let theirs = world().record(x(), state, "d").inventory;
        taker.claims.add_objects(&other(), &theirs);
        assert!(taker.error().contains("belongs to the installation"));
        let leaving = LeavingObject {
            from: other(),
            state,
        };
        taker.claims.add_leaving(&x(), &leaving);
        let plan = taker.plan();
        let step = plan.step(&x()).unwrap();
        assert_eq!(
            (step.action, step.policy.inherited.as_ref()),
            (Update, Some(&owner))
        );
        assert_eq!(plan.exact.objects[&x()].object.state, state);
    }
}

/// The label is still that of the former owner, whose record has forgotten the object.
#[test]
fn a_move_that_was_cut_off_continues() {
    let owner = owner_hash(&other().namespace, &other().name);
    let mut world = world().now(Reconcile).live(x(), Some(&owner), "u1", 1);
    world.claims.add_owner(&other());
    assert!(world.plan_for(None).is_err(), "it is not in our inventory");
    let mut item = InventoryItem::planned("x", "v1");
    item.object.state = Owned;
    item.object.uid = "u1".to_owned();
    world.inventory.objects.insert(x(), item);
    let plan = world.plan();
    assert_eq!(
        plan.step(&x()).unwrap().policy.inherited.as_ref(),
        Some(&owner)
    );
}
