//! Recorded objects that are not wanted.

use super::*;
use crate::closing::ClosingStep;

fn pruned(plan: &InstallationPlan) -> Vec<Vec<String>> {
    let group = |stage: &[ClosingStep]| {
        let names = stage.iter().filter_map(|step| match step {
            ClosingStep::Delete { deletion: d, .. } => Some(format!("{} {}", d.target.key, d.uid)),
            _ => None,
        });
        names.collect()
    };
    let mut groups: Vec<Vec<String>> = plan.stages().map(group).collect();
    groups.retain(|group| !group.is_empty());
    groups
}

fn names(keys: &[ObjectKey]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

/// One recorded object that is not wanted: every way in which it can be recorded and live.
#[test]
fn pruning() {
    const US: Option<&str> = Some("us");
    // kind, recorded state, (owner label, uid), what becomes of it
    let rows = [
        ("ConfigMap", Owned, Some((US, "u1")), "delete u1"),
        ("ConfigMap", Owned, None, "forget"),
        ("ConfigMap", Owned, Some((None, "u1")), "warn"),
        ("ConfigMap", Owned, Some((Some("5d41"), "u1")), "warn"),
        ("ConfigMap", Owned, Some((US, "u2")), "warn"),
        ("ConfigMap", Planned, Some((US, "u7")), "delete u7"),
        ("ConfigMap", Planned, Some((None, "u7")), "forget"),
        ("ConfigMap", Preexisting, Some((US, "u1")), "release"),
        ("ConfigMap", Preexisting, Some((US, "u2")), "forget"),
        // Created once: never pruned.
        ("ConfigMap", Retained, Some((US, "u1")), "retain"),
        ("PersistentVolumeClaim", Owned, Some((US, "u1")), "retain"),
        (
            "PersistentVolumeClaim",
            Retained,
            Some((US, "u1")),
            "retain",
        ),
        ("PersistentVolumeClaim", Retained, None, "forget"),
        (
            "CustomResourceDefinition",
            Owned,
            Some((US, "u1")),
            "retain",
        ),
        ("Namespace", Owned, Some((US, "u1")), "retain"),
        ("Deployment", Owned, Some((US, "u1")), "delete u1"),
    ];
    for uninstall in [None, Some(false)] {
        for (kind, state, live, expected) in rows {
            let case = format!("{kind} {state:?} {live:?} {uninstall:?}");
            let mut world = world().record(key(kind, "x"), state, "d");
            if let Some((owner, uid)) = live {
                world = world.live(key(kind, "x"), owner, uid, 1);
            }
            let plan = world.plan_for(uninstall).unwrap();
            let deleted = plan.deletions().next();
            let mut found = vec![];
            found.extend(deleted.map(|deletion| format!("delete {}", deletion.uid)));
            found.extend(plan.released().map(|_| "release".to_owned()));
            found.extend(plan.retained.iter().map(|_| "retain".to_owned()));
            found.extend(plan.warnings.iter().map(|_| "warn".to_owned()));
            if found.is_empty() {
                found.push("forget".to_owned());
            }
            assert_eq!(found, [expected], "{case}");
            let stays: Vec<_> = plan
                .exact
                .objects
                .values()
                .map(|i| i.object.state)
                .collect();
            assert_eq!(
                stays,
                if expected == "retain" {
                    vec![Retained]
                } else {
                    vec![]
                },
                "{case}"
            );
            assert!(plan.union.objects.contains_key(&key(kind, "x")), "{case}");
            let kept = world.plan_for(Some(true)).unwrap();
            assert!(
                kept.is_empty() && kept.retained.len() == usize::from(live.is_some()),
                "{case}"
            );
        }
    }
}

#[test]
fn kept_kinds_go_when_named_and_not_needed() {
    let mut member = manifest("ConfigMap", "m");
    member["metadata"]["namespace"] = json!("full");
    let mut world = world()
        .want([member])
        .record(key("Namespace", "empty"), Owned, "d")
        .record(key("Namespace", "full"), Owned, "d")
        .record(key("Namespace", "shared"), Owned, "d")
        .record(key("PersistentVolumeClaim", "data"), Owned, "d");
    for name in ["empty", "full", "shared"] {
        world = world.live(key("Namespace", name), Some("us"), "u1", 1);
    }
    world = world.live(key("PersistentVolumeClaim", "data"), Some("us"), "u1", 1);
    world.snapshot.namespaces.insert("full".to_owned());
    world.claims.objects.insert(
        key("Namespace", "shared"),
        InstallationName {
            namespace: "kubectl-addons".to_owned(),
            name: "scale".to_owned(),
        },
    );
    world.delete_kinds.insert(KeptKind::Namespace);
    // uids are of one cluster: here every object has its own.
    for (i, live) in world.snapshot.live.values_mut().enumerate() {
        live.uid = format!("u{i}");
    }
    for (key, item) in &mut world.inventory.objects {
        item.object.uid.clone_from(&world.snapshot.live[key].uid);
    }
    let plan = world.plan();
    assert_eq!(pruned(&plan), [["Namespace empty u0"]]);
    assert_eq!(
        names(&plan.retained),
        [
            "Namespace full",
            "Namespace shared",
            "shop/PersistentVolumeClaim data"
        ]
    );
    assert_eq!(
        plan.warnings,
        [
            "Namespace full is retained: objects that stay are in it",
            "Namespace shared is retained: kubectl-addons/scale wants it, too"
        ]
    );
}

#[test]
fn kinds_that_are_not_served() {
    let psp = || ObjectKey {
        group: "policy".to_owned(),
        kind: "PodSecurityPolicy".to_owned(),
        namespace: None,
        name: "x".to_owned(),
    };
    let till = || ObjectKey {
        group: "shop.example".to_owned(),
        kind: "Till".to_owned(),
        namespace: None,
        name: "front".to_owned(),
    };
    let mut world = world().record(psp(), Owned, "d").record(till(), Owned, "d");
    for (key, unserved) in [
        (psp(), UnservedKind::Gone),
        (
            till(),
            UnservedKind::Unknown("its server does not answer".to_owned()),
        ),
    ] {
        world
            .snapshot
            .unserved
            .insert((key.group, key.kind), unserved);
    }
    let plan = world.plan();
    assert!(plan.is_empty());
    assert_eq!(
        plan.warnings,
        [
            "PodSecurityPolicy x is forgotten: the cluster no longer serves PodSecurityPolicy",
            "Till front cannot be reached: its server does not answer; if it exists, it stays",
        ]
    );
    assert_eq!(plan.exact.objects.keys().collect::<Vec<_>>(), [&till()]);
}

/// Semantics 13: protections start at 10 objects.
#[test]
fn empty_and_mostly_pruning_sets() {
    // (recorded and live, of these wanted, refused?)
    let rows = [
        (9, 0, false),
        (10, 0, true),
        (10, 4, true),
        (10, 5, false),
        (11, 5, true),
    ];
    for (there, wanted, refused) in rows {
        let name = |i: usize| format!("x{i}");
        let mut world = world().want((0..wanted).map(|i| manifest("ConfigMap", &name(i))));
        for i in 0..there {
            let key = key("ConfigMap", &name(i));
            world = world
                .record(key.clone(), Owned, "d")
                .live(key.clone(), Some("us"), "u1", 1);
            let uid = format!("u{i}");
            world
                .snapshot
                .live
                .get_mut(&key)
                .unwrap()
                .uid
                .clone_from(&uid);
            world.inventory.objects.get_mut(&key).unwrap().object.uid = uid;
        }
        let plan = world.plan_for(None);
        if refused {
            assert_eq!(
                plan.unwrap_err().to_string(),
                format!(
                    "{} of {there} objects would be pruned, and the limit is 50%; the new version has {wanted}",
                    there - wanted
                )
            );
            let share = u8::try_from((100 * (there - wanted)).div_ceil(there)).unwrap();
            let share = PruneLimit::new(share).unwrap();
            let error = world.plan_for(None).unwrap_err();
            assert!(
                matches!(error, PlanError::MostlyPruned { needed, .. } if needed == share),
                "{error:?}"
            );
            world.wanted.allow_prune = share;
            assert_eq!(world.plan().deletions().count(), there - wanted);
        } else {
            assert_eq!(
                plan.unwrap().deletions().count(),
                there - wanted,
                "{there} {wanted}"
            );
        }
        let uninstall = world.plan_for(Some(false)).unwrap();
        assert_eq!(uninstall.deletions().count(), there, "asked for by name");
    }
}

/// An object served in two groups is one object: it is not deleted under its old key.
#[test]
fn moved_to_another_group() {
    let mut old = key("Deployment", "web");
    old.group = "extensions".to_owned();
    let mut world = world().want([manifest("Deployment", "web")]);
    let info = KindInfo {
        plural: "deployments".to_owned(),
        singular: "deployment".to_owned(),
        namespaced: true,
        writable: true,
        has_status: false,
    };
    world
        .kinds
        .insert(&Gvk::new("extensions/v1", "Deployment"), info);
    world = world
        .record(old.clone(), Owned, "d")
        .live(old, Some("us"), "u1", 1)
        .live(key("Deployment", "web"), Some("us"), "u1", 1);
    let plan = world.plan();
    assert_eq!(
        plan.steps
            .iter()
            .map(|step| step.action)
            .collect::<Vec<_>>(),
        [Action::Update]
    );
    assert_eq!(plan.deletions().count(), 0);
    assert_eq!(
        plan.exact.objects.keys().collect::<Vec<_>>(),
        [&key("Deployment", "web")]
    );
}

/// An object that is certainly ours stays while a foreign mark or controller keeps it, and stays recorded: later
/// it is deleted.
#[test]
fn marks_and_controllers_keep_objects() {
    use crate::snapshot::Controller;
    let controller = |uid: &str| Controller {
        kind: "Till".to_owned(),
        name: "front".to_owned(),
        uid: uid.to_owned(),
    };
    let rows = [
        (None, None, None),
        (
            Some("helm.sh/resource-policy: keep".to_owned()),
            None,
            Some("it carries helm.sh/resource-policy: keep"),
        ),
        (
            None,
            Some(controller("elsewhere")),
            Some("its controller is Till front"),
        ),
        // Its controller is an object of the same add-on.
        (None, Some(controller("u1")), None),
    ];
    for uninstall in [None, Some(false)] {
        for (keep, controlled_by, why) in rows.clone() {
            let key = key("ConfigMap", "x");
            let mut world =
                world()
                    .record(key.clone(), Owned, "d")
                    .live(key.clone(), Some("us"), "u1", 1);
            let live = world.snapshot.live.get_mut(&key).unwrap();
            live.keep = keep;
            live.controlled_by = controlled_by;
            let plan = world.plan_for(uninstall).unwrap();
            let Some(why) = why else {
                assert_eq!(pruned(&plan), [["shop/ConfigMap x u1"]]);
                continue;
            };
            assert_eq!(plan.deletions().count(), 0);
            assert_eq!(
                plan.warnings,
                [format!("shop/ConfigMap x is retained: {why}")]
            );
            assert_eq!(plan.retained.as_slice(), std::slice::from_ref(&key));
            assert_eq!(plan.exact.objects[&key].object.state, Owned);
        }
    }
}

/// (what else there is, what becomes of the namespace `house` and of the definition of Things, and why).
#[test]
fn what_others_live_in_stays() {
    let other = || InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "scale".to_owned(),
    };
    let house = || key("Namespace", "house");
    let inside = |kind: &str| ObjectKey {
        namespace: Some("house".to_owned()),
        ..key(kind, "inside")
    };
    let base = || {
        let mut world = world()
            .record(house(), Owned, "d")
            .live(house(), Some("us"), "u1", 1);
        world.delete_kinds.insert(KeptKind::Namespace);
        world
    };
    for uninstall in [None, Some(false)] {
        let ends = |world: World, expected: &[&str]| {
            let plan = world.plan_for(uninstall).unwrap();
            assert_eq!(plan.warnings, expected, "{uninstall:?}");
            let is_kept = plan.retained.contains(&house());
            assert_eq!(is_kept, !expected.is_empty(), "{uninstall:?}");
            assert_eq!(pruned(&plan).is_empty(), is_kept, "{uninstall:?}");
        };
        ends(base(), &[]);
        let mut world = base();
        world.claims.namespaces.insert("house".to_owned(), other());
        ends(
            world,
            &["Namespace house is retained: kubectl-addons/scale is installed into it"],
        );
        let mut world = base();
        let inventory = super::world()
            .record(inside("ConfigMap"), Owned, "d")
            .inventory;
        world.claims.add_objects(&other(), &inventory);
        ends(
            world,
            &["Namespace house is retained: kubectl-addons/scale is installed into it"],
        );
        // A claim that is kept would be deleted with its namespace.
        let mut world = base()
            .record(inside("PersistentVolumeClaim"), Owned, "d")
            .live(inside("PersistentVolumeClaim"), Some("us"), "u1", 1);
        for (i, live) in world.snapshot.live.values_mut().enumerate() {
            live.uid = format!("u{i}");
        }
        for (key, item) in &mut world.inventory.objects {
            item.object.uid.clone_from(&world.snapshot.live[key].uid);
        }
        ends(
            world,
            &["Namespace house is retained: house/PersistentVolumeClaim inside stays in it"],
        );
    }
}

/// (what lives in the definition of Tills, why it stays).
#[test]
fn a_definition_with_objects_of_others_stays() {
    let till = || ObjectKey {
        group: "shop.example".to_owned(),
        ..key("Till", "front")
    };
    let cart = || ObjectKey {
        kind: "Cart".to_owned(),
        ..till()
    };
    let other = InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "scale".to_owned(),
    };
    let crd = key("CustomResourceDefinition", "tills.shop.example");
    let base = || {
        let mut world =
            world()
                .record(crd.clone(), Owned, "d")
                .live(crd.clone(), Some("us"), "u1", 1);
        world
            .delete_kinds
            .insert(KeptKind::CustomResourceDefinition);
        let found = Inhabitants {
            group: "shop.example".to_owned(),
            kind: "Till".to_owned(),
            ..Inhabitants::default()
        };
        world.snapshot.inhabited.insert(crd.clone(), found);
        world
    };
    let kept = |change: &dyn Fn(&mut World), why: Option<&str>| {
        for uninstall in [None, Some(false)] {
            let mut world = base();
            change(&mut world);
            let plan = world.plan_for(uninstall).unwrap();
            let of_definition = plan
                .warnings
                .iter()
                .find_map(|warning| warning.strip_prefix(&format!("{crd} is retained: ")));
            assert_eq!(of_definition, why, "{uninstall:?}");
            assert_eq!(pruned(&plan).is_empty(), why.is_some(), "{uninstall:?}");
        }
    };
    let found = |world: &mut World, change: &dyn Fn(&mut Inhabitants)| {
        change(world.snapshot.inhabited.get_mut(&crd).unwrap());
    };
    kept(&|_| {}, None);
    // The table of kinds does not know a Till.
    kept(
        &|world| drop(world.claims.objects.insert(till(), other.clone())),
        Some("kubectl-addons/scale has objects of its kind"),
    );
    kept(
        &|world| drop(world.claims.objects.insert(cart(), other.clone())),
        None,
    );
    // It moves to another installation of the command.
    kept(
        &|world| drop(world.claims.taken.insert(till(), other.clone())),
        Some("kubectl-addons/scale has objects of its kind"),
    );
    // By the label: the installation is recorded elsewhere.
    let far = || Some((till(), Some("far/app".to_owned())));
    kept(
        &|world| found(world, &|inside| inside.owned = far()),
        Some("shop/Till front is of its kind and belongs to far/app"),
    );
    let unseen = || Some("not allowed: list tills".to_owned());
    kept(
        &|world| found(world, &|inside| inside.unreadable_reason = unseen()),
        Some("objects of others may be of its kind: not allowed: list tills"),
    );
    // An object of the installation itself that stays.
    kept(
        &|world| {
            *world = base()
                .record(till(), Owned, "d")
                .live(till(), Some("us"), "u2", 1);
            let mut info = world.kinds.preferred("", "ConfigMap").unwrap().1.clone();
            info.plural = "tills".to_owned();
            world
                .kinds
                .insert(&Gvk::new("shop.example/v1", "Till"), info);
            let why = "its manifest cannot be read".to_owned();
            world.held.insert(till(), why);
        },
        Some("shop/Till front stays, and is of its kind"),
    );
}
