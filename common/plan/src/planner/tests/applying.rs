//! What is applied, refused and waited for.

use std::collections::BTreeMap;

use super::*;

/// One wanted object: every way in which it can be recorded and live.
#[test]
fn decisions() {
    const SAME: &str = "=";
    type Record = Option<(ObjectState, &'static str)>;
    type Live = Option<(Option<&'static str>, &'static str, i64)>;
    type Outcome = Result<(Option<Action>, ObjectState, ObjectState), &'static str>;
    const US: Option<&str> = Some("us");
    const THEM: Option<&str> = Some("5d41402abc4b2a76");
    use Action::{Create, Refresh, Restore, Update};
    let foreign = "shop/ConfigMap x exists, and no installation owns it";
    let theirs = "shop/ConfigMap x belongs to another installation (owner label 5d41402abc4b2a76); remove it there, \
                  or take it out of this manifest";
    // kind, (recorded state, digest), (owner label, uid, generation), due?, (action, state before, state after)
    #[rustfmt::skip]
    let rows: Vec<(&str, Record, Live, bool, Outcome)> = vec![
        ("ConfigMap", None, None, true, Ok((Some(Create), Planned, Owned))),
        ("ConfigMap", None, None, false, Ok((Some(Create), Planned, Owned))),
        ("ConfigMap", Some((Owned, SAME)), None, true, Ok((Some(Create), Planned, Owned))),
        ("ConfigMap", Some((Owned, SAME)), Some((US, "u1", 1)), true, Ok((None, Owned, Owned))),
        ("ConfigMap", Some((Owned, "old")), Some((US, "u1", 1)), true, Ok((Some(Update), Owned, Owned))),
        // Edited: the generation moved, our label is gone, or it was restored from a backup.
        ("ConfigMap", Some((Owned, SAME)), Some((US, "u1", 2)), true, Ok((Some(Restore), Owned, Owned))),
        ("ConfigMap", Some((Owned, SAME)), Some((None, "u1", 1)), true, Ok((Some(Restore), Owned, Owned))),
        ("ConfigMap", Some((Owned, SAME)), Some((US, "u2", 1)), true, Ok((Some(Restore), Owned, Owned))),
        ("ConfigMap", Some((Owned, SAME)), Some((US, "u1", 2)), false, Ok((None, Owned, Owned))),
        // Created again by another client.
        ("ConfigMap", Some((Owned, SAME)), Some((None, "u2", 1)), true, Ok((Some(Restore), Preexisting, Preexisting))),
        ("ConfigMap", Some((Owned, SAME)), Some((None, "u2", 1)), false, Ok((None, Owned, Owned))),
        // Not ours.
        ("ConfigMap", None, Some((None, "u1", 1)), true, Err(foreign)),
        ("ConfigMap", None, Some((THEM, "u1", 1)), true, Err(theirs)),
        ("ConfigMap", Some((Owned, SAME)), Some((THEM, "u1", 1)), true, Err(theirs)),
        ("ConfigMap", Some((Planned, "")), Some((None, "u1", 1)), true, Err(foreign)),
        ("ConfigMap", Some((Preexisting, SAME)), Some((None, "u1", 1)), true, Ok((Some(Restore), Preexisting, Preexisting))),
        ("ConfigMap", Some((Preexisting, SAME)), Some((US, "u1", 1)), true, Ok((None, Preexisting, Preexisting))),
        // Left by an operation that was interrupted.
        ("ConfigMap", None, Some((US, "u1", 1)), true, Ok((Some(Update), Owned, Owned))),
        ("ConfigMap", Some((Planned, "")), Some((US, "u1", 1)), true, Ok((Some(Update), Owned, Owned))),
        ("ConfigMap", Some((Planned, "")), None, true, Ok((Some(Create), Planned, Owned))),
        // Wanted again.
        ("PersistentVolumeClaim", Some((Retained, SAME)), Some((US, "u1", 1)), true, Ok((None, Owned, Owned))),
        // It is not known whether a Secret changed.
        ("Secret", Some((Owned, "")), Some((US, "u1", 1)), true, Ok((Some(Refresh), Owned, Owned))),
        ("Secret", Some((Owned, "")), Some((US, "u1", 2)), false, Ok((None, Owned, Owned))),
        ("Secret", None, Some((US, "u1", 1)), true, Ok((Some(Refresh), Owned, Owned))),
        ("Secret", None, None, true, Ok((Some(Create), Planned, Owned))),
        // Namespaces that are not ours are only recorded.
        ("Namespace", None, None, true, Ok((Some(Create), Planned, Owned))),
        ("Namespace", None, Some((None, "u1", 1)), true, Ok((None, Preexisting, Preexisting))),
        ("Namespace", None, Some((THEM, "u1", 1)), true, Ok((None, Preexisting, Preexisting))),
        ("Namespace", None, Some((US, "u1", 1)), true, Ok((Some(Update), Owned, Owned))),
        ("Namespace", Some((Owned, SAME)), Some((None, "u2", 1)), true, Ok((None, Preexisting, Preexisting))),
        ("Namespace", Some((Owned, "old")), Some((US, "u1", 1)), true, Ok((Some(Update), Owned, Owned))),
        ("once", None, None, true, Ok((Some(Create), Planned, Retained))),
        ("once", None, Some((None, "u1", 1)), true, Ok((None, Preexisting, Preexisting))),
        ("once", Some((Planned, "")), Some((US, "u1", 1)), true, Ok((None, Retained, Retained))),
        ("once", Some((Retained, "old")), Some((US, "u1", 7)), true, Ok((None, Retained, Retained))),
        ("once", Some((Owned, "old")), Some((US, "u1", 7)), true, Ok((None, Retained, Retained))),
    ];
    for (kind, recorded, live, due, expected) in rows {
        let case = format!("{kind} {recorded:?} {live:?} due {due}");
        let mut object = manifest(if kind == "once" { "ConfigMap" } else { kind }, "x");
        if kind == "once" {
            object["metadata"]["annotations"] = json!({ANNOTATION_APPLY: APPLY_CREATE_ONLY});
        }
        let mut world = world().want([object]);
        let (key, digest) = world
            .desired
            .objects
            .iter()
            .map(|(key, object)| (key.clone(), object.digest.clone()))
            .next()
            .unwrap();
        if let Some((state, recorded)) = recorded {
            let digest = if recorded == SAME { &digest } else { recorded };
            world = world.record(key.clone(), state, digest);
        }
        if let Some((owner, uid, generation)) = live {
            world = world.live(key.clone(), owner, uid, generation);
        }
        world.wanted.due = due;
        let outcome = world
            .plan_for(None)
            .map_err(|error| error.to_string())
            .map(|plan| {
                let action = plan.steps.first().map(|step| step.action);
                assert_eq!(
                    plan.unchanged.len(),
                    usize::from(action.is_none()),
                    "{case}"
                );
                let state = |inventory: &Inventory| inventory.objects[&key].object.state;
                (action, state(&plan.union), state(&plan.exact))
            });
        assert_eq!(outcome, expected.map_err(str::to_owned), "{case}");
    }
}

/// A Job with a time to live ran and was deleted: it does not run again, and is not waited for.
#[test]
fn a_job_that_went_at_its_end_is_no_missing_object() {
    let job = |ttl: Value, image: &str| {
        let mut job = manifest("Job", "once");
        job["spec"] = json!({"ttlSecondsAfterFinished": ttl, "template": {"image": image}});
        job
    };
    for (ttl, image, is_complete, actions, waits) in [
        (json!(0), "one", true, &[][..], 0),
        (json!(0), "two", true, &[Action::Create], 1),
        // It failed, or nobody saw its end.
        (json!(0), "one", false, &[Action::Create], 1),
        (Value::Null, "one", true, &[Action::Create], 1),
    ] {
        let expiring = if ttl.is_null() { 0 } else { waits };
        let recorded = world().want([job(ttl.clone(), "one")]);
        let (key, digest) = recorded
            .desired
            .objects
            .iter()
            .map(|(key, object)| (key.clone(), object.digest.clone()))
            .next()
            .unwrap();
        let plan = world()
            .want([job(ttl, image)])
            .record(key, Owned, if is_complete { &digest } else { "" })
            .plan();
        let found: Vec<Action> = plan.steps.iter().map(|step| step.action).collect();
        assert_eq!(
            (found.as_slice(), plan.wait_for.len(), plan.expiring.len()),
            (actions, waits, expiring),
            "{image}"
        );
        assert_eq!(plan.exact.objects.len(), 1);
    }
}

#[test]
fn ensure_repairs_without_being_due() {
    let mut world = world().want([manifest("ConfigMap", "x"), manifest("Secret", "s")]);
    let digest = world.desired.objects[&key("ConfigMap", "x")].digest.clone();
    world = world
        .record(key("ConfigMap", "x"), Owned, &digest)
        .record(key("Secret", "s"), Owned, "")
        .live(key("ConfigMap", "x"), Some("us"), "u1", 5)
        .live(key("Secret", "s"), Some("us"), "u1", 1);
    world.wanted.due = false;
    assert!(world.plan().is_empty());
    world.wanted.reconcile = ReconcilePolicy::Ensure;
    let plan = world.plan();
    let steps: Vec<_> = plan
        .steps
        .iter()
        .map(|step| (step.action, step.policy.conflicts))
        .collect();
    assert_eq!(
        steps,
        [(Action::Restore, ConflictPolicy::Take)],
        "the Secret was not edited"
    );
    world.wanted.conflicts = ConflictPolicy::Fail;
    let plan = world.plan();
    assert!(
        plan.steps
            .iter()
            .all(|step| step.policy.conflicts == ConflictPolicy::Fail)
    );
}

#[test]
fn every_refusal_at_once() {
    let mut elsewhere = manifest("ConfigMap", "e");
    elsewhere["metadata"]["namespace"] = json!("nowhere");
    let mut world = world()
        .want([
            elsewhere,
            manifest("ConfigMap", "helm"),
            manifest("ConfigMap", "going"),
            manifest("ConfigMap", "claimed"),
            manifest("ConfigMap", "fine"),
        ])
        .live(key("ConfigMap", "helm"), None, "u1", 1)
        .live(key("ConfigMap", "going"), Some("us"), "u2", 1);
    let helm = world
        .snapshot
        .live
        .get_mut(&key("ConfigMap", "helm"))
        .unwrap();
    helm.other_owner = Some("Helm release shop/web".to_owned());
    world
        .snapshot
        .live
        .get_mut(&key("ConfigMap", "going"))
        .unwrap()
        .terminating = true;
    let other = InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "scale".to_owned(),
    };
    world
        .claims
        .objects
        .insert(key("ConfigMap", "claimed"), other);
    assert_eq!(
        world.error(),
        "shop/ConfigMap claimed belongs to the installation kubectl-addons/scale; remove it there, or take it out of \
         this manifest\n\
         shop/ConfigMap going is being deleted; wait until it is gone (see its finalizers), then run this again\n\
         shop/ConfigMap helm belongs to Helm release shop/web\n\
         Namespace nowhere does not exist and objects stand in it; create it, or set createNamespace for the target namespace"
    );
}

#[test]
fn the_target_namespace() {
    let mut world = world().want([manifest("ConfigMap", "x")]);
    assert_eq!(world.plan().create_namespace, None);
    world.snapshot.namespaces.clear();
    assert_eq!(world.plan().create_namespace.as_deref(), Some("shop"));
    world.wanted.create_namespace = false;
    assert!(world.error().starts_with("Namespace shop does not exist"));
    world.wanted.create_namespace = true;
    world.coming.insert("shop".to_owned());
    let create = world.plan().create_namespace;
    assert_eq!(create, None, "another add-on of the command brings it");
    world.coming.clear();
    let mut world = world.want([manifest("ConfigMap", "x"), manifest("Namespace", "shop")]);
    let plan = world.plan();
    assert_eq!(plan.create_namespace, None, "the set brings it");
    world = world.want([manifest("Namespace", "other")]);
    assert_eq!(world.plan().create_namespace, None, "nothing goes there");
}

#[test]
fn a_release_of_helm_stands_in_the_target_namespace() {
    let mut world = world();
    world.wanted.helm_release = Some("till");
    assert_eq!(world.plan().create_namespace, None);
    world.snapshot.namespaces.clear();
    assert_eq!(world.plan().create_namespace.as_deref(), Some("shop"));
    world.wanted.create_namespace = false;
    assert!(world.error().starts_with("Namespace shop does not exist"));
}

#[test]
fn waits_for_what_can_be_unready() {
    let mut balanced = manifest("Service", "lb");
    balanced["spec"] = json!({"type": "LoadBalancer"});
    let mut world = world();
    let info = KindInfo {
        plural: "services".to_owned(),
        singular: "service".to_owned(),
        namespaced: true,
        writable: true,
        has_status: false,
    };
    world.kinds.insert(&Gvk::new("v1", "Service"), info);
    let world = world.want([
        manifest("ConfigMap", "c"),
        manifest("Service", "plain"),
        balanced,
        manifest("Deployment", "web"),
        manifest("PersistentVolumeClaim", "data"),
        manifest("Namespace", "n"),
    ]);
    let waits: Vec<_> = world
        .plan()
        .wait_for
        .iter()
        .map(|t| t.key.to_string())
        .collect();
    assert_eq!(
        waits,
        [
            "shop/PersistentVolumeClaim data",
            "shop/Service lb",
            "shop/Deployment web"
        ]
    );
}

#[test]
fn the_record_has_a_budget() {
    let world = world().want((0..6_000).map(|i| manifest("ConfigMap", &format!("{i:0>40}"))));
    assert!(
        world.error().starts_with("6000 objects need "),
        "{}",
        world.error()
    );
}

/// Semantics 12: what the snapshot found stands in the step, so that a dry run and an apply agree.
#[test]
fn a_step_names_the_autoscaler_that_its_replicas_yield_to() {
    let mut scaled = manifest("Deployment", "a");
    scaled["spec"] = json!({"replicas": 2});
    let mut world = world()
        .want([scaled, manifest("Deployment", "b")])
        .record(key("Deployment", "a"), Owned, "old")
        .live(key("Deployment", "a"), Some("us"), "u1", 1);
    let reads = reads(&world.desired, &world.inventory, &world.kinds);
    assert_eq!(reads.replicas, BTreeSet::from([key("Deployment", "a")]));
    assert_eq!(reads.objects.len(), 2);
    let autoscaler = (key("Deployment", "a"), "auto".to_owned());
    world.snapshot.autoscalers = BTreeMap::from([autoscaler]);
    let plan = world.plan();
    let found: Vec<_> = plan
        .steps
        .iter()
        .map(|step| step.policy.autoscaler.as_deref())
        .collect();
    assert_eq!(found, [Some("auto"), None]);
}

/// What was there before us is never recreated, nor what holds data.
#[test]
fn only_what_is_ours_may_be_recreated() {
    let marked = |kind: &str| {
        let mut object = manifest(kind, "a");
        object["metadata"]["annotations"] = json!({"kubectl-addons.dev/recreate": "true"});
        object
    };
    for (kind, state, allowed) in [
        ("Deployment", Owned, true),
        ("Deployment", Preexisting, false),
        ("PersistentVolumeClaim", Owned, false),
    ] {
        let world = world().want([marked(kind)]);
        let world = world.record(key(kind, "a"), state, "old");
        let world = world.live(key(kind, "a"), Some("us"), "u1", 1);
        let plan = world.plan();
        let found: Vec<_> = plan.steps.iter().map(|step| step.policy.recreate).collect();
        assert_eq!(found, [allowed], "{kind} {state:?}");
    }
}

/// Semantics 13: a digest of what a template made of a Secret could be guessed.
#[test]
fn what_holds_a_value_of_a_secret_is_treated_as_one() {
    let mut world = world();
    world.mask = SecretMask::from_values([json!({"password": "hunter2"})].iter());
    let mut object = manifest("ConfigMap", "x");
    object["data"] = json!({"url": "postgres://app:hunter2@db"});
    let mut job = manifest("Job", "j");
    job["spec"] = json!({"ttlSecondsAfterFinished": 1, "args": ["hunter2"]});
    world = world
        .want([object, job, manifest("ConfigMap", "y")])
        .record(key("ConfigMap", "x"), Owned, "recorded before")
        .record(key("Job", "j"), Owned, "")
        .live(key("ConfigMap", "x"), Some("us"), "u1", 1)
        .live(key("ConfigMap", "y"), Some("us"), "u1", 1);
    let plan = world.plan();
    let actions: Vec<_> = plan.steps.iter().map(|step| step.action).collect();
    assert_eq!(actions, [Action::Refresh, Action::Update, Action::Create]);
    for (name, kind, is_empty) in [
        ("x", "ConfigMap", true),
        ("j", "Job", true),
        ("y", "ConfigMap", false),
    ] {
        let item = &plan.exact.objects[&key(kind, name)];
        assert_eq!(item.object.digest.is_empty(), is_empty, "{name}");
    }
    // Where nothing is due, the missing Job has run; without an edit the rest stays.
    world =
        world
            .record(key("ConfigMap", "x"), Owned, "")
            .record(key("ConfigMap", "y"), Owned, "d");
    world.wanted.due = false;
    world.wanted.reconcile = ReconcilePolicy::Ensure;
    let steps = world.plan().steps;
    let keys: Vec<_> = steps
        .iter()
        .map(|step| step.target.key.name.as_str())
        .collect();
    assert_eq!(keys, ["y"]);
}
