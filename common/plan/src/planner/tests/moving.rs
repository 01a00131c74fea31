//! Objects that change their owner or their group, and objects that cannot be read.

use super::*;
use crate::Action::{Create, Update};
use common::api::names::owner_hash;

const THEM: &str = "5d41402abc4b2a76";

fn claim() -> ObjectKey {
    key("PersistentVolumeClaim", "data")
}

fn other() -> InstallationName {
    InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "scale".to_owned(),
    }
}

/// A world that wants a claim that carries this label.
fn wants_claim(owner: &str) -> World {
    let mut world = world();
    let info = KindInfo {
        plural: "persistentvolumeclaims".to_owned(),
        singular: "persistentvolumeclaim".to_owned(),
        namespaced: true,
        writable: true,
        has_status: true,
    };
    world
        .kinds
        .insert(&Gvk::new("v1", "PersistentVolumeClaim"), info);
    world
        .want([manifest("PersistentVolumeClaim", "data")])
        .live(claim(), Some(owner), "u9", 1)
}

/// Trust 11.
#[test]
fn what_an_installation_that_is_gone_left_behind_is_taken_over() {
    let mut world = wants_claim("0123456789abcdef");
    let live = world.snapshot.live.get_mut(&claim()).unwrap();
    live.other_owner = Some("add-on installation a/one".to_owned());
    let plan = world.plan();
    let step = plan.step(&claim()).unwrap();
    assert_eq!(step.action, Update);
    assert_eq!(step.policy.inherited.as_deref(), Some("0123456789abcdef"));
    assert_eq!(
        plan.warnings,
        [
            "shop/PersistentVolumeClaim data is taken over from add-on installation a/one, which is gone"
        ]
    );
    let recorded = &plan.union.objects[&claim()].object;
    assert_eq!((recorded.state, recorded.uid.as_str()), (Owned, "u9"));
    // Of one that exists nothing is taken.
    let refused = wants_claim(THEM).error();
    assert!(
        refused.contains("belongs to another installation"),
        "{refused}"
    );
}

/// Trust 11.
#[test]
fn what_another_installation_only_retains_moves() {
    let owner = owner_hash(&other().namespace, &other().name);
    let mut world = wants_claim(&owner);
    world.claims.add_owner(&other());
    let claims = |state| super::world().record(claim(), state, "d").inventory;
    world.claims.add_objects(&other(), &claims(Owned));
    assert!(world.error().contains("belongs to the installation"));
    world.claims.add_objects(&other(), &claims(Retained));
    let plan = world.plan();
    assert_eq!(
        plan.warnings,
        [
            "shop/PersistentVolumeClaim data moves from the installation kubectl-addons/scale, which only retains it"
        ]
    );
    // What is created once is wanted, although it is recorded as retained.
    world.snapshot.live.get_mut(&claim()).unwrap().create_only = true;
    assert!(world.plan_for(None).is_err());
}

/// Trust 13.
#[test]
fn what_cannot_be_read_stays_recorded_and_stops_nothing() {
    let web = key("Deployment", "web");
    let why = "conversion webhook failed".to_owned();
    let mut world = world()
        .want([manifest("Deployment", "web"), manifest("ConfigMap", "new")])
        .record(web.clone(), Owned, "d")
        .record(key("ConfigMap", "old"), Owned, "d");
    for unread in [web.clone(), key("ConfigMap", "old")] {
        world.snapshot.unreadable.insert(unread, why.clone());
    }
    let plan = world.plan();
    let actions: Vec<_> = plan.steps.iter().map(|step| step.action).collect();
    assert_eq!(actions, [Create, Update]);
    assert_eq!(plan.unreachable, [key("ConfigMap", "old")]);
    assert!(plan.exact.objects.contains_key(&key("ConfigMap", "old")));
    assert_eq!(plan.warnings.len(), 2, "{:?}", plan.warnings);

    let plan = world.plan_for(Some(false)).unwrap();
    assert_eq!(plan.unreachable.len(), 2);
    assert_eq!(plan.deletions().count(), 0, "{:?}", plan.closing);
    assert!(plan.warnings.iter().any(|line| line.contains("--keep")));
}

/// Trust 13: of a group that answers only in part it is not known what is gone.
#[test]
fn a_silent_group_may_still_serve_what_is_recorded() {
    let till = ObjectKey {
        group: "shop.example".to_owned(),
        ..key("Till", "front")
    };
    let mut world = world().record(till.clone(), Owned, "d");
    let info = world.kinds.preferred("", "ConfigMap").unwrap().1.clone();
    world
        .kinds
        .insert(&Gvk::new("shop.example/v1", "Drawer"), info);
    let kind = (till.group.clone(), till.kind.clone());
    world
        .snapshot
        .unserved
        .insert(kind.clone(), UnservedKind::Gone);
    assert_eq!(world.plan_for(Some(false)).unwrap().unreachable, []);
    let silent = UnservedKind::Unknown("its server does not answer".to_owned());
    world.snapshot.unserved.insert(kind, silent);
    assert_eq!(world.plan_for(Some(false)).unwrap().unreachable, [till]);
}

/// Trust 14.
#[test]
fn an_object_is_found_in_the_group_that_its_kind_moved_to() {
    let old = ObjectKey {
        group: "extensions".to_owned(),
        ..key("Deployment", "web")
    };
    let new = key("Deployment", "web");
    let world = world().record(old.clone(), Owned, "d");
    let reads = reads(&world.desired, &world.inventory, &world.kinds);
    assert!(reads.objects.contains(&new) && reads.objects.contains(&old));
    // Another object of that name is not ours.
    let other = world.live(new.clone(), Some("us"), "u2", 1);
    assert_eq!(
        other.plan_for(Some(false)).unwrap().unreachable,
        std::slice::from_ref(&old)
    );
    let same = other.live(new.clone(), Some("us"), "u1", 1);
    let plan = same.plan_for(Some(false)).unwrap();
    let deleted = plan.deletions();
    let deleted: Vec<_> = deleted.map(|deletion| &deletion.target.key).collect();
    assert_eq!(deleted, [&new]);
    assert_eq!(plan.unreachable, []);
    let plan = same.want([manifest("Deployment", "web")]).plan();
    assert!(!plan.union.objects.contains_key(&old));
    assert_eq!(plan.steps.len(), 1);
}

/// An object that is in our inventory and was never applied.
fn recorded(state: ObjectState) -> InventoryItem {
    let mut item = InventoryItem::planned("x", "v1");
    item.object.state = state;
    item.object.uid = "u1".to_owned();
    item
}

/// An object that was only recorded differs from a move that was cut off by its state alone.
#[test]
fn a_namespace_of_another_installation_is_recorded_also_the_second_time() {
    for (kind, state, moves) in [
        ("Namespace", Preexisting, false),
        ("Namespace", Owned, true),
        ("ConfigMap", Preexisting, true),
        ("ConfigMap", Owned, true),
    ] {
        let mut world = world().want([manifest(kind, "x")]);
        world
            .inventory
            .objects
            .insert(key(kind, "x"), recorded(state));
        let plan = world.live(key(kind, "x"), Some(THEM), "u1", 1).plan();
        assert_eq!(
            plan.step(&key(kind, "x")).is_some(),
            moves,
            "{kind} {state:?}"
        );
        let after = &plan.exact.objects[&key(kind, "x")].object;
        assert_eq!(after.state == Preexisting, !moves, "{kind} {state:?}");
    }
}

/// Several add-ons of a command want to create it: the apply shows which one does.
#[test]
fn what_another_add_on_of_the_command_creates_is_wanted_too() {
    for (kind, is_refused) in [("Namespace", false), ("once", false), ("ConfigMap", true)] {
        let mut object = manifest(if kind == "once" { "ConfigMap" } else { kind }, "x");
        if kind == "once" {
            object["metadata"]["annotations"] = json!({ANNOTATION_APPLY: APPLY_CREATE_ONLY});
        }
        let mut world = world().want([object]);
        let key = world.desired.objects.keys().next().unwrap().clone();
        let planned = super::world().record(key.clone(), Owned, "d").inventory;
        world.claims.add_objects(&other(), &planned);
        let Ok(plan) = world.plan_for(None) else {
            assert!(is_refused, "{kind}");
            continue;
        };
        let step = plan.step(&key).unwrap();
        assert_eq!(
            (step.action, step.policy.only_recorded),
            (Create, true),
            "{kind}"
        );
    }
}

/// Case H05.
#[test]
fn labels_of_a_namespace_that_exists_are_named_where_they_are_missing() {
    let mut object = manifest("Namespace", "x");
    object["metadata"]["labels"] = json!({"a": "1", "b": "2", "c": "3"});
    let mut world = world()
        .want([object])
        .live(key("Namespace", "x"), None, "u1", 1);
    let live = world.snapshot.live.get_mut(&key("Namespace", "x")).unwrap();
    let labels = [("a", "1"), ("b", "0")];
    live.labels = labels
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let said = "Namespace x exists and keeps its labels; missing: b=2 (it is 0), c=3; to set them: kubectl label namespace x b=2 c=3 --overwrite";
    assert_eq!(world.plan().warnings, [said]);
    world.wanted.due = false;
    assert!(world.plan().warnings.is_empty(), "it is said once");
}
