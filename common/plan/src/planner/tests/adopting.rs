//! Objects that exist and that no installation owns (semantics 12).

use super::*;
use crate::Action::{Adopt, Create, Update};
use crate::changes::{FieldChange, ObjectDiff};
use crate::gitops::{GitOpsReconciler, LiveReconciler};
use crate::snapshot::Controller;

fn map() -> ObjectKey {
    key("ConfigMap", "x")
}

/// A world that wants a ConfigMap which is there, and adopts it.
fn adopting(change: impl FnOnce(&mut LiveObject)) -> World {
    let mut world = world()
        .want([manifest("ConfigMap", "x")])
        .live(map(), None, "u7", 1);
    world.wanted.adopt = true;
    change(world.snapshot.live.get_mut(&map()).unwrap());
    world
}

#[test]
fn what_no_installation_owns_becomes_ours() {
    for (other_owner, managed_by, from) in [
        (
            Some("Helm release shop/web"),
            Some("Helm"),
            "Helm release shop/web",
        ),
        (None, Some("kops"), "kops"),
        (None, None, "unknown"),
    ] {
        let world = adopting(|live| {
            live.other_owner = other_owner.map(str::to_owned);
            live.managed_by = managed_by.map(str::to_owned);
        });
        let plan = world.plan();
        let step = plan.step(&map()).unwrap();
        let adoption = step.policy.adopted.as_ref().unwrap();
        assert_eq!(step.action, Adopt);
        assert_eq!(
            (adoption.from.as_str(), adoption.uid.as_str()),
            (from, "u7")
        );
        // Recorded as ours before the first write: whoever is cut off continues.
        let recorded = &plan.union.objects[&map()].object;
        assert_eq!((recorded.state, recorded.uid.as_str()), (Owned, "u7"));
        assert_eq!(plan.exact.objects[&map()].object.state, Owned);
    }
    let mut refused = adopting(|_| {});
    refused.wanted.adopt = false;
    assert_eq!(
        refused.error(),
        "shop/ConfigMap x exists, and no installation owns it"
    );
}

/// `Argo CD application shop`.
fn application() -> LiveReconciler {
    let labels = [("argocd.argoproj.io/instance".to_owned(), "shop".to_owned())].into();
    let named = GitOpsReconciler::from_marks(&labels, &BTreeMap::new(), []);
    LiveReconciler {
        reconciler: named.into_iter().next().unwrap(),
        namespace: Some("argocd".to_owned()),
        is_seen: true,
    }
}

#[test]
fn what_others_own_is_never_adopted() {
    let controller = Controller {
        kind: "Till".to_owned(),
        name: "front".to_owned(),
        uid: "c1".to_owned(),
    };
    let with = |change: fn(&mut LiveObject, Controller)| {
        adopting(|live| change(live, controller.clone())).error()
    };
    assert_eq!(
        with(|live, controller| live.controlled_by = Some(controller)),
        "shop/ConfigMap x is made by its controller, Till front; take it out of the manifest"
    );
    assert_eq!(
        with(|live, _| live.reconciled_by = Some(application())),
        "shop/ConfigMap x is applied by Argo CD application shop, which would take it back"
    );
    let label = with(|live, _| live.owner = Some("5d41402abc4b2a76".to_owned()));
    assert!(label.contains("belongs to another installation"), "{label}");
    for is_retained in [false, true] {
        let mut claimed = adopting(|_| {});
        let other = InstallationName {
            namespace: "kubectl-addons".to_owned(),
            name: "scale".to_owned(),
        };
        let claims = &mut claimed.claims;
        let to = if is_retained {
            &mut claims.retained
        } else {
            &mut claims.objects
        };
        to.insert(map(), other);
        let error = claimed.error();
        assert!(
            error.contains("the installation kubectl-addons/scale"),
            "{error}"
        );
    }
}

#[test]
fn an_adoption_that_was_cut_off_is_continued() {
    let begun = |owner, uid| {
        let mut world = world()
            .want([manifest("ConfigMap", "x")])
            .record(map(), Owned, "")
            .live(map(), owner, uid, 1);
        let recorded = world.inventory.objects.get_mut(&map()).unwrap();
        recorded.object.generation = None;
        world
    };
    for (owner, action) in [(None, Adopt), (Some("us"), Update)] {
        let plan = begun(owner, "u1").plan();
        let step = plan.step(&map()).unwrap();
        assert_eq!(step.action, action);
        assert!(step.policy.adopted.is_some(), "{owner:?}");
    }
    // Another one of that name is not the one that was adopted.
    let plan = begun(None, "u2").plan();
    assert_eq!(plan.step(&map()).unwrap().policy.adopted, None);
}

#[test]
fn namespaces_and_what_is_created_once_are_only_recorded() {
    let mut namespace =
        world()
            .want([manifest("Namespace", "shop")])
            .live(key("Namespace", "shop"), None, "u7", 1);
    namespace.wanted.adopt = true;
    let plan = namespace.plan();
    assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    let recorded = &plan.exact.objects[&key("Namespace", "shop")].object;
    assert_eq!(recorded.state, Preexisting);
    let mut missing = adopting(|_| {});
    missing.snapshot.live.clear();
    assert_eq!(missing.plan().step(&map()).unwrap().action, Create);
}

/// Nothing is created, applied or pruned, and no digest says that anything was.
#[test]
fn only_owners_change() {
    let mut world = world()
        .want([
            manifest("ConfigMap", "x"),
            manifest("ConfigMap", "missing"),
            manifest("ConfigMap", "ours"),
        ])
        .live(map(), None, "u7", 1)
        .record(key("ConfigMap", "ours"), Owned, "old")
        .live(key("ConfigMap", "ours"), Some("us"), "u1", 1)
        .record(key("ConfigMap", "dropped"), Owned, "d")
        .live(key("ConfigMap", "dropped"), Some("us"), "u1", 1);
    world.wanted.only_owners = true;
    let plan = world.plan();
    assert_eq!(plan.verb, Verb::Adopt);
    assert!(plan.to.as_ref().unwrap().adopted);
    let [step] = plan.steps.as_slice() else {
        panic!("{:?}", plan.steps);
    };
    assert_eq!((&step.target.key, step.action), (&map(), Adopt));
    assert!(step.policy.adopted.as_ref().unwrap().only_owner);
    assert_eq!(plan.unchanged, [key("ConfigMap", "ours")]);
    assert_eq!(plan.deletions().count(), 0, "{:?}", plan.closing);
    let digest = |name: &str| {
        plan.exact.objects[&key("ConfigMap", name)]
            .object
            .digest
            .clone()
    };
    assert_eq!(
        (digest("x"), digest("ours"), digest("dropped")),
        (String::new(), "old".to_owned(), "d".to_owned())
    );
    assert!(
        !plan
            .exact
            .objects
            .contains_key(&key("ConfigMap", "missing"))
    );
    assert_eq!(plan.union.objects[&map()].object.uid, "u7");
    // What others own is refused here, too.
    let live = world.snapshot.live.get_mut(&map()).unwrap();
    live.reconciled_by = Some(application());
    assert!(world.error().contains("is applied by Argo CD"));
}

/// (objects that differ, whether one does not exist, whether an upgrade is due, whether `x` has a digest)
#[test]
fn what_is_as_its_manifest_says_is_not_due() {
    for (differing, is_missing, is_due, is_recorded) in [
        (&[][..], false, false, true),
        (&["y"], false, true, true),
        (&["x", "y"], false, true, false),
        (&[], true, true, true),
    ] {
        let names = ["x", "y"];
        let mut world = world().want(names.map(|name| manifest("ConfigMap", name)));
        for name in names {
            if name == "x" || !is_missing {
                world = world.live(key("ConfigMap", name), None, "u7", 1);
            }
        }
        world.wanted.only_owners = true;
        let mut plan = world.plan();
        let steps = plan.steps.iter();
        let changes = steps.map(|step| ObjectDiff {
            key: step.target.key.clone(),
            action: step.action,
            created: false,
            fields: match differing.contains(&step.target.key.name.as_str()) {
                true => vec![FieldChange {
                    path: "data.key".to_owned(),
                    old: None,
                    new: None,
                    owners: Vec::new(),
                }],
                false => Vec::new(),
            },
            recreated: None,
            error: None,
            remedy: None,
            unjudged: None,
        });
        let changes: Vec<ObjectDiff> = changes.collect();
        record_equal(&mut plan, &world.desired, &changes).unwrap();
        assert_eq!(plan.to.as_ref().unwrap().adopted, is_due, "{differing:?}");
        let digest = &plan.exact.objects[&map()].object.digest;
        assert_eq!(!digest.is_empty(), is_recorded, "{differing:?}");
    }
}

/// What a tool that shares the installation has applied since becomes ours with the next apply, and with no other.
#[test]
fn fields_of_a_tool_that_shares_the_installation_become_ours() {
    for (digest, managers, shared_manager, expected) in [
        ("old", &["kops"][..], Some("kops"), Some("kops")),
        ("old", &["kubectl-edit"], Some("kops"), None),
        ("old", &["kops"], None, None),
    ] {
        let mut world = world()
            .want([manifest("ConfigMap", "x")])
            .record(map(), Owned, digest)
            .live(map(), Some("us"), "u1", 1);
        let live = world.snapshot.live.get_mut(&map()).unwrap();
        live.managers = managers.iter().map(|name| (*name).to_owned()).collect();
        world.wanted.shared_manager = shared_manager;
        let plan = world.plan();
        let step = plan.step(&map()).unwrap();
        let from = step.policy.adopted.as_ref().map(|it| it.from.as_str());
        assert_eq!((step.action, from), (Update, expected), "{managers:?}");
    }
}
