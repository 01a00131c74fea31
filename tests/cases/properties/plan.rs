//! The laws of the plan, on a simulated cluster: it answers creates and updates as the API server does, forgets what is
//! deleted, and can be cut off behind any request.

use std::collections::{BTreeMap, BTreeSet};

use addons_tests::tally::Tally;
use common::api::installation::{Conflicts, Installed, ObjectState, Reconcile};
use common::api::names::{ANNOTATION_APPLY, APPLY_CREATE_ONLY, LABEL_OWNER, owner_hash};
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::{KindInfo, KindTable};
use common::manifest::{Manifest, Place};
use common::plan::desired::{Desired, DesiredContext};
use common::plan::inventory::{Answer, Inventory, Item};
use common::plan::order::Rank;
use common::plan::planner::{Goal, PlanError, PlanInput, Wanted, plan};
use common::plan::snapshot::{LiveObject, Snapshot};
use common::plan::{Action, InstallationName, Plan, Step};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// apiVersion, kind, plural, namespaced. Till is defined by a CRD of the set.
const KINDS: [(&str, &str, &str, bool); 9] = [
    ("v1", "ConfigMap", "configmaps", true),
    ("v1", "Secret", "secrets", true),
    ("v1", "Namespace", "namespaces", false),
    ("v1", "ServiceAccount", "serviceaccounts", true),
    (
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        true,
    ),
    ("apps/v1", "Deployment", "deployments", true),
    (
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "clusterroles",
        false,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        false,
    ),
    (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        false,
    ),
];

fn kinds() -> KindTable {
    let mut kinds = KindTable::default();
    for (api_version, kind, plural, namespaced) in KINDS {
        let info = KindInfo {
            plural: plural.to_owned(),
            namespaced,
            writable: true,
        };
        kinds.insert(&Gvk::new(api_version, kind), info);
    }
    kinds.insert_crd(&till_crd(0));
    kinds
}

fn till_crd(content: u8) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tills.shop.example", "labels": {"content": content.to_string()}},
        "spec": {"group": "shop.example", "scope": "Namespaced", "names": {"kind": "Till", "plural": "tills"},
            "versions": [{"name": "v1", "served": true}]}})
}

/// A manifest object in small: kind, name, content, whether it is create-only.
type Spec = (usize, u8, u8, bool);

fn manifests(specs: &[Spec]) -> Vec<Manifest> {
    let mut objects = BTreeMap::new();
    let mut custom = false;
    for &(kind, name, content, once) in specs {
        let (api_version, kind) = match KINDS.get(kind) {
            Some((_, "CustomResourceDefinition", ..)) | None => {
                custom = true;
                ("shop.example/v1", "Till")
            }
            Some((api_version, kind, ..)) => (*api_version, *kind),
        };
        let mut object = json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": format!("x{name}"), "annotations": {"content": content.to_string()}}});
        if once {
            object["metadata"]["annotations"][ANNOTATION_APPLY] = json!(APPLY_CREATE_ONLY);
        }
        objects.insert((kind, name), object);
    }
    if custom {
        objects.insert(("CustomResourceDefinition", 0), till_crd(0));
    }
    let numbered = objects.into_values().zip(1..);
    let manifests = numbered.map(|(object, line)| Manifest {
        object,
        place: Place {
            file: "m.yaml".to_owned(),
            line,
            column: 0,
        },
    });
    manifests.collect()
}

fn name() -> InstallationName {
    InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "till".to_owned(),
    }
}

fn us() -> String {
    owner_hash("kubectl-addons", "till")
}

fn desired(manifests: Vec<Manifest>) -> Desired {
    let ctx = DesiredContext {
        installation: &name(),
        target_namespace: "shop",
        kinds: &kinds(),
    };
    Desired::new(manifests, &ctx).expect("every kind is served")
}

/// A cluster and the record of one installation in it.
#[derive(Clone, Debug, Default)]
struct Cluster {
    live: BTreeMap<ObjectKey, LiveObject>,
    record: Inventory,
    /// Every uid that our own creates got.
    created: BTreeSet<String>,
    clock: u32,
}

impl Cluster {
    fn tick(&mut self) -> String {
        self.clock += 1;
        self.clock.to_string()
    }

    fn apply(&mut self, step: &Step) -> Answer {
        let resource_version = self.tick();
        let created = !self.live.contains_key(&step.target.key);
        let uid = format!("uid-{resource_version}");
        let live = self.live.entry(step.target.key.clone()).or_default();
        if created {
            live.uid.clone_from(&uid);
            self.created.insert(uid);
        }
        // ConfigMaps, Secrets, accounts and namespaces have no generation.
        if !step.target.key.group.is_empty() {
            live.generation = Some(live.generation.unwrap_or(0) + 1);
        }
        live.resource_version = resource_version;
        live.owner = step.object["metadata"]["labels"][LABEL_OWNER]
            .as_str()
            .map(str::to_owned);
        Answer {
            created,
            uid: live.uid.clone(),
            generation: live.generation,
            resource_version: live.resource_version.clone(),
        }
    }

    /// Somebody else's deed, by number: creates, edits, deletes, recreates, takes our label off.
    fn meddle(&mut self, key: &ObjectKey, deed: u8) {
        let version = self.tick();
        let stranger = LiveObject {
            uid: format!("foreign-{version}"),
            generation: (!key.group.is_empty()).then_some(1),
            resource_version: version.clone(),
            ..LiveObject::default()
        };
        match (deed % 4, self.live.get_mut(key)) {
            (0, _) => {
                self.live.remove(key);
            }
            (1, Some(live)) => {
                live.generation = live.generation.map(|generation| generation + 1);
                live.resource_version = version;
            }
            (2, Some(live)) => {
                live.owner = None;
                live.resource_version = version;
            }
            _ => {
                self.live.insert(key.clone(), stranger);
            }
        }
    }

    fn plan(&self, desired: &Desired, due: bool, reconcile: Reconcile) -> Result<Plan, PlanError> {
        let wanted = Wanted {
            desired,
            to: &Installed::default(),
            target_namespace: "shop",
            create_namespace: true,
            conflicts: Conflicts::Take,
            reconcile,
            due,
            allow_prune: true,
        };
        self.plan_goal(Goal::Install(wanted))
    }

    fn plan_goal(&self, goal: Goal<'_>) -> Result<Plan, PlanError> {
        let snapshot = Snapshot {
            live: self.live.clone(),
            namespaces: BTreeSet::from(["shop".to_owned()]),
            ..Snapshot::default()
        };
        plan(&PlanInput {
            installation: &name(),
            addon: "till",
            from: None,
            goal,
            inventory: &self.record,
            snapshot: &snapshot,
            kinds: &kinds(),
            claims: &BTreeMap::new(),
            delete_kinds: &BTreeSet::new(),
        })
    }

    /// Does what a plan says, and is cut off behind `requests` requests; whether it got to the end. Everything between the
    /// first and the last record is lost when it is cut off, as it is for a client that is killed.
    fn execute(&mut self, plan: &Plan, requests: usize) -> bool {
        self.record = plan.union.clone();
        let mut record = self.record.clone();
        let mut left = requests;
        for step in plan.steps() {
            if left == 0 {
                return false;
            }
            left -= 1;
            let answer = self.apply(step);
            let key = &step.target.key;
            record.applied(key, &plan.exact.objects[key], &answer);
        }
        for deletion in plan.prune.iter().flatten() {
            if left == 0 {
                return false;
            }
            left -= 1;
            let key = &deletion.target.key;
            let live = self.live.remove(key);
            assert_eq!(live.map(|live| live.uid).as_ref(), Some(&deletion.uid));
            record.remove(key);
        }
        for target in &plan.release {
            if let Some(live) = self.live.get_mut(&target.key) {
                live.owner = None;
            }
            record.remove(&target.key);
        }
        record.close(&plan.exact, &BTreeSet::new());
        self.record = record;
        true
    }

    fn run(&mut self, desired: &Desired) {
        if let Ok(plan) = self.plan(desired, true, Reconcile::Once) {
            self.execute(&plan, usize::MAX);
        }
    }
}

fn specs() -> impl Strategy<Value = Vec<Spec>> {
    let once = prop_oneof![9 => Just(false), 1 => Just(true)];
    proptest::collection::vec((0..10_usize, 0..3_u8, 0..3_u8, once), 0..14)
}

/// What somebody else does: to which of the objects of the world (by number), and what.
fn deeds() -> impl Strategy<Value = Vec<(u8, u8)>> {
    proptest::collection::vec((any::<u8>(), any::<u8>()), 0..6)
}

/// A cluster behind two versions and somebody else's deeds, perhaps cut off in the second version.
fn clusters() -> impl Strategy<Value = Cluster> {
    let cut = prop_oneof![Just(usize::MAX), 0..12_usize];
    (deeds(), specs(), deeds(), specs(), cut, deeds()).prop_map(
        |(before, first, between, second, cut, after)| {
            let mut cluster = Cluster::default();
            let (first, second) = (desired(manifests(&first)), desired(manifests(&second)));
            let keys: Vec<ObjectKey> = first
                .objects
                .keys()
                .chain(second.objects.keys())
                .cloned()
                .collect();
            let meddle = |cluster: &mut Cluster, deeds: &[(u8, u8)]| {
                for (object, deed) in deeds {
                    if let Some(key) = keys.get(usize::from(*object) % keys.len().max(1)) {
                        cluster.meddle(key, *deed);
                    }
                }
            };
            meddle(&mut cluster, &before);
            cluster.run(&first);
            meddle(&mut cluster, &between);
            if let Ok(plan) = cluster.plan(&second, true, Reconcile::Once) {
                cluster.execute(&plan, cut);
            }
            meddle(&mut cluster, &after);
            cluster
        },
    )
}

/// Runs one law on random inputs; long matrices run whole with `FULL=1`.
fn law<S: Strategy>(
    name: &'static str,
    strategy: S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let cases = if std::env::var_os("FULL").is_some() {
        20_000
    } else {
        400
    };
    let mut tally = Tally::new(name);
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&strategy, |value| test(value));
    if let Err(error) = result {
        panic!("{error}");
    }
    (0..cases).for_each(|_| tally.ran());
}

#[test]
fn nothing_is_left_to_do_after_a_perfect_execution() {
    let strategy = (clusters(), specs());
    law(
        "properties::plan empty after",
        strategy,
        |(mut cluster, specs)| {
            let desired = desired(manifests(&specs));
            let Ok(plan) = cluster.plan(&desired, true, Reconcile::Once) else {
                return Ok(());
            };
            prop_assert!(cluster.execute(&plan, usize::MAX));
            for reconcile in [Reconcile::Once, Reconcile::Ensure] {
                let again = cluster
                    .plan(&desired, false, reconcile)
                    .expect("nothing is foreign now");
                prop_assert!(again.is_empty(), "{again:#?}");
                prop_assert_eq!(&again.exact, &cluster.record);
            }
            let due = cluster
                .plan(&desired, true, Reconcile::Once)
                .expect("nothing is foreign now");
            prop_assert!(due.steps().all(|step| step.action == Action::Refresh));
            prop_assert!(due.prune.is_empty() && due.release.is_empty());
            for object in desired.objects.keys() {
                prop_assert!(cluster.live.contains_key(object));
            }
            // What is recorded fits into the stored shape and comes back the same.
            prop_assert_eq!(
                &Inventory::from_groups(&cluster.record.to_groups()),
                &cluster.record
            );
            Ok(())
        },
    );
}

#[test]
fn only_what_is_ours_is_pruned() {
    law(
        "properties::plan prune",
        (clusters(), specs()),
        |(cluster, specs)| {
            let desired = desired(manifests(&specs));
            let install = cluster.plan(&desired, true, Reconcile::Once).ok();
            let uninstall = cluster.plan_goal(Goal::Uninstall { keep: false }).ok();
            for plan in install.iter().chain(&uninstall) {
                for deletion in plan.prune.iter().flatten() {
                    let key = &deletion.target.key;
                    let item = &cluster.record.objects[key];
                    let live = &cluster.live[key];
                    prop_assert_eq!(&live.uid, &deletion.uid);
                    prop_assert_eq!(live.owner.as_ref(), Some(&us()));
                    let planned = item.object.state == ObjectState::Planned;
                    prop_assert!(planned || item.object.uid == live.uid);
                    prop_assert_ne!(item.object.state, ObjectState::Preexisting);
                    prop_assert!(
                        cluster.created.contains(&live.uid),
                        "{} was made by somebody else",
                        key
                    );
                    prop_assert!(plan.to.is_none() || !desired.objects.contains_key(key));
                    let kind = key.kind.as_str();
                    prop_assert!(
                        ![
                            "Namespace",
                            "CustomResourceDefinition",
                            "PersistentVolumeClaim"
                        ]
                        .contains(&kind)
                    );
                }
            }
            let keep = cluster
                .plan_goal(Goal::Uninstall { keep: true })
                .expect("never refused");
            prop_assert!(keep.is_empty());
            Ok(())
        },
    );
}

/// Killed behind any request, the next run with any set finishes: nothing of ours is left that the record does not know.
#[test]
fn nothing_leaks_when_cut_off() {
    let strategy = (specs(), specs(), specs(), 0..14_usize, 0..14_usize);
    law(
        "properties::plan cut off",
        strategy,
        |(first, second, third, cut, again)| {
            let mut cluster = Cluster::default();
            cluster.run(&desired(manifests(&first)));
            for (specs, cut) in [(second, cut), (third, again)] {
                let desired = desired(manifests(&specs));
                let plan = cluster
                    .plan(&desired, true, Reconcile::Once)
                    .expect("nobody else is here");
                cluster.execute(&plan, cut);
                for (key, live) in &cluster.live {
                    if live.owner.as_ref() == Some(&us()) {
                        prop_assert!(cluster.record.objects.contains_key(key), "{} leaks", key);
                    }
                }
            }
            let uninstall = cluster
                .plan_goal(Goal::Uninstall { keep: false })
                .expect("never refused");
            cluster.execute(&uninstall, usize::MAX);
            for key in cluster.live.keys() {
                prop_assert!(uninstall.retained.contains(key), "{} leaks", key);
            }
            Ok(())
        },
    );
}

#[test]
fn the_union_holds_old_and_new() {
    law(
        "properties::plan union",
        (clusters(), specs()),
        |(cluster, specs)| {
            let desired = desired(manifests(&specs));
            let Ok(plan) = cluster.plan(&desired, true, Reconcile::Once) else {
                return Ok(());
            };
            let holds = |key: &ObjectKey| plan.union.objects.contains_key(key);
            prop_assert!(cluster.record.objects.keys().all(holds));
            prop_assert!(desired.objects.keys().all(holds));
            prop_assert!(plan.exact.objects.keys().all(holds));
            for step in plan.steps() {
                let state = plan.union.objects[&step.target.key].object.state;
                prop_assert_eq!(step.action == Action::Create, state == ObjectState::Planned);
            }
            for key in plan
                .prune
                .iter()
                .flatten()
                .map(|deletion| &deletion.target.key)
            {
                prop_assert!(!plan.exact.objects.contains_key(key));
                prop_assert_eq!(&plan.union.objects[key], &cluster.record.objects[key]);
            }
            for key in &plan.retained {
                prop_assert_eq!(plan.exact.objects[key].object.state, ObjectState::Retained);
            }
            Ok(())
        },
    );
}

fn inventories() -> impl Strategy<Value = Inventory> {
    let state = prop_oneof![
        Just(ObjectState::Owned),
        Just(ObjectState::Planned),
        Just(ObjectState::Preexisting),
        Just(ObjectState::Retained),
    ];
    let object = (
        prop_oneof![Just(""), Just("apps")],
        prop_oneof![Just("A"), Just("B")],
        proptest::option::of(prop_oneof![Just("shop"), Just("kube-system")]),
        "[a-c]{1,2}",
        prop_oneof![Just("v1"), Just("v1beta1")],
        state,
        proptest::option::of(0..3_i64),
    );
    let item = object.prop_map(
        |(group, kind, namespace, name, version, state, generation)| {
            let key = ObjectKey {
                group: group.to_owned(),
                kind: kind.to_owned(),
                namespace: namespace.map(str::to_owned),
                name,
            };
            let mut item = Item::planned(&key.name, version);
            item.object.state = state;
            item.object.generation = generation;
            (key, item)
        },
    );
    let objects = proptest::collection::vec(item, 0..12);
    objects.prop_map(|objects| Inventory {
        objects: objects.into_iter().collect(),
    })
}

#[test]
fn inventories_are_stored_and_joined() {
    law(
        "properties::plan inventory",
        (inventories(), inventories()),
        |(old, new)| {
            let groups = old.to_groups();
            prop_assert_eq!(&Inventory::from_groups(&groups), &old);
            let names: Vec<_> = groups
                .iter()
                .map(|g| (&g.group, &g.kind, &g.namespace, &g.version))
                .collect();
            prop_assert!(
                names.is_sorted_by(|a, b| a < b),
                "one group a kind, namespace and version"
            );
            prop_assert!(
                groups
                    .iter()
                    .all(|g| g.objects.is_sorted_by(|a, b| a.name < b.name))
            );

            let union = Inventory::union(&old, &new);
            for (key, item) in &union.objects {
                let expected = old.objects.get(key).or_else(|| new.objects.get(key));
                prop_assert_eq!(Some(item), expected);
            }
            prop_assert!(
                old.objects
                    .keys()
                    .chain(new.objects.keys())
                    .all(|key| union.objects.contains_key(key))
            );
            prop_assert_eq!(&Inventory::union(&union, &new), &union);
            prop_assert_eq!(Inventory::union(&old, &Inventory::default()), old);
            Ok(())
        },
    );
}

#[test]
fn order_of_steps_and_deletions() {
    law(
        "properties::plan order",
        (clusters(), specs()),
        |(cluster, specs)| {
            let desired = desired(manifests(&specs));
            let fresh = Cluster::default()
                .plan(&desired, true, Reconcile::Once)
                .ok();
            let later = cluster.plan(&desired, true, Reconcile::Once).ok();
            for plan in fresh.iter().chain(&later) {
                let wave = |wanted: &dyn Fn(&ObjectKey) -> bool| {
                    let has = |wave: &common::plan::Wave| {
                        wave.steps.iter().any(|s| wanted(&s.target.key))
                    };
                    let waves: Vec<usize> = plan
                        .waves
                        .iter()
                        .enumerate()
                        .filter(|(_, w)| has(w))
                        .map(|(i, _)| i)
                        .collect();
                    (waves.first().copied(), waves.last().copied())
                };
                let definitions = wave(&|key| key.kind == "CustomResourceDefinition");
                let customs = wave(&|key| key.kind == "Till");
                if let (Some(definition), Some(custom)) = (definitions.1, customs.0) {
                    prop_assert!(definition < custom);
                    prop_assert!(plan.waves[definition].barrier);
                } else {
                    prop_assert!(plan.waves.iter().all(|wave| !wave.barrier));
                }
                let namespaces = wave(&|key| key.kind == "Namespace");
                let members = wave(&|key| key.namespace.is_some());
                if let (Some(namespace), Some(member)) = (namespaces.1, members.0) {
                    prop_assert!(namespace < member);
                }
                for wave in &plan.waves {
                    prop_assert!(!wave.steps.is_empty());
                    prop_assert!(wave.steps.is_sorted_by(|a, b| a.target < b.target));
                }
                let count = plan.steps().count();
                prop_assert_eq!(count + plan.unchanged.len(), desired.objects.len());
                // Custom resources go before what runs their controller, and that before what it needs.
                let group = |rank: Rank| {
                    plan.prune.iter().position(|group| {
                        group
                            .iter()
                            .any(|deletion| Rank::of(&deletion.target.key, None) == rank)
                    })
                };
                let order = [
                    Rank::Admission,
                    Rank::CustomResources,
                    Rank::Workloads,
                    Rank::Identity,
                ];
                let groups: Vec<usize> = order.into_iter().filter_map(group).collect();
                prop_assert!(groups.is_sorted_by(|a, b| a < b), "{:?}", plan.prune);
            }
            Ok(())
        },
    );
}

#[test]
fn the_order_of_the_input_does_not_matter() {
    let strategy = (clusters(), specs()).prop_flat_map(|(cluster, specs)| {
        let manifests = manifests(&specs);
        let shuffled = Just(manifests.clone()).prop_shuffle();
        (Just(cluster), Just(manifests), shuffled)
    });
    law(
        "properties::plan input order",
        strategy,
        |(cluster, manifests, shuffled)| {
            let text = |manifests| {
                let plan = cluster.plan(&desired(manifests), true, Reconcile::Once);
                plan.map_or_else(|error| error.to_string(), |plan| format!("{plan:?}"))
            };
            prop_assert_eq!(text(manifests), text(shuffled));
            Ok(())
        },
    );
}
