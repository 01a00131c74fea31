//! The laws of the plan, on a simulated cluster: it answers creates and updates as the API server does, forgets what is
//! deleted, and can be cut off behind any request.

mod world;

use addons_plan::closing::ClosingStep;
use addons_plan::inventory::{Inventory, InventoryItem};
use addons_plan::order::ObjectRank;
use addons_plan::planner::{Goal, PlanError};
use addons_plan::prune::limit::PruneLimit;
use addons_plan::{Action, InstallationPlan, Step};
use common::api::installation::{ObjectState, ReconcilePolicy};
use common::manifest::key::ObjectKey;
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::law;
use world::{Cluster, clusters, desired, manifests, specs, us};

fn law<S: Strategy>(
    name: &'static str,
    strategy: S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let cases = law::cases(400, 20_000);
    let config = Config {
        max_global_rejects: cases.cases * 10,
        ..cases
    };
    law::law(name, config, strategy, test);
}

#[test]
fn nothing_is_left_to_do_after_a_perfect_execution() {
    let strategy = (clusters(), specs());
    law(
        "properties::plan empty after",
        strategy,
        |(mut cluster, specs)| {
            let desired = desired(manifests(&specs));
            let plan = cluster.plan(&desired, true, ReconcilePolicy::Once);
            prop_assume!(plan.is_ok(), "foreign objects are refused");
            let plan = plan.expect("just seen");
            prop_assert!(cluster.execute(&plan, usize::MAX));
            for reconcile in [ReconcilePolicy::Once, ReconcilePolicy::Ensure] {
                let again = cluster
                    .plan(&desired, false, reconcile)
                    .expect("nothing is foreign now");
                prop_assert!(again.is_empty(), "{again:#?}");
                prop_assert_eq!(&again.exact, &cluster.record);
            }
            let due = cluster
                .plan(&desired, true, ReconcilePolicy::Once)
                .expect("nothing is foreign now");
            prop_assert!(due.steps.iter().all(|step| step.action == Action::Refresh));
            prop_assert!(due.deletions().next().is_none() && due.released().next().is_none());
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
            let install = cluster.plan(&desired, true, ReconcilePolicy::Once).ok();
            let uninstall = cluster.plan_goal(Goal::Uninstall { keep: false }).ok();
            for plan in install.iter().chain(&uninstall) {
                for deletion in plan.deletions() {
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
                    prop_assert_eq!(&live.keep, &None);
                    prop_assert_eq!(&live.controlled_by, &None);
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
                    .plan(&desired, true, ReconcilePolicy::Once)
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
            let plan = cluster.plan(&desired, true, ReconcilePolicy::Once);
            prop_assume!(plan.is_ok(), "foreign objects are refused");
            let plan = plan.expect("just seen");
            let holds = |key: &ObjectKey| plan.union.objects.contains_key(key);
            prop_assert!(cluster.record.objects.keys().all(holds));
            prop_assert!(desired.objects.keys().all(holds));
            prop_assert!(plan.exact.objects.keys().all(holds));
            for step in &plan.steps {
                let state = plan.union.objects[&step.target.key].object.state;
                prop_assert_eq!(step.action == Action::Create, state == ObjectState::Planned);
            }
            for key in plan.deletions().map(|deletion| &deletion.target.key) {
                prop_assert!(!plan.exact.objects.contains_key(key));
                prop_assert_eq!(&plan.union.objects[key], &cluster.record.objects[key]);
            }
            for key in &plan.retained {
                let (kept, live) = (&plan.exact.objects[key].object, &cluster.live[key]);
                // What a mark or a controller keeps goes once that is gone, so it stays what it was.
                let is_marked = live.keep.is_some() || live.controlled_by.is_some();
                prop_assert!(is_marked || kept.state == ObjectState::Retained);
                prop_assert_eq!(&kept.uid, &live.uid);
            }
            Ok(())
        },
    );
}

/// Without leave for all, no set of ten or more loses more than its share, and the share that the refusal names is enough.
#[test]
fn no_more_is_pruned_than_allowed() {
    let strategy = (clusters(), specs(), 0..=100_u8);
    law(
        "properties::plan prune limit",
        strategy,
        |(cluster, specs, percent)| {
            let desired = desired(manifests(&specs));
            let limit = PruneLimit::new(percent).expect("a share");
            let pruned = |plan: &InstallationPlan| plan.deletions().count();
            let all = cluster.plan_within(&desired, PruneLimit::ALL);
            prop_assume!(all.is_ok(), "foreign objects are refused");
            let all = all.expect("just seen");
            match cluster.plan_within(&desired, limit) {
                Ok(plan) => prop_assert_eq!(pruned(&plan), pruned(&all)),
                Err(PlanError::MostlyPruned {
                    prune,
                    there,
                    needed,
                    ..
                }) => {
                    prop_assert!(there >= 10 && needed > limit);
                    let is_empty = desired.objects.is_empty();
                    prop_assert!(is_empty || prune * 100 > there * usize::from(percent));
                    prop_assert_eq!(prune, pruned(&all));
                    prop_assert!(cluster.plan_within(&desired, needed).is_ok());
                }
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
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
            let mut item = InventoryItem::planned(&key.name, version);
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
                .plan(&desired, true, ReconcilePolicy::Once)
                .ok();
            let later = cluster.plan(&desired, true, ReconcilePolicy::Once).ok();
            for plan in fresh.iter().chain(&later) {
                // In which order they are applied is the graph's: see the laws of `order`.
                let by_key = |a: &Step, b: &Step| a.target.key < b.target.key;
                prop_assert!(plan.steps.is_sorted_by(by_key));
                let count = plan.steps.len();
                prop_assert_eq!(count + plan.unchanged.len(), desired.objects.len());
                // Custom resources go before what runs their controller, and that before what it needs.
                let group = |rank: ObjectRank| {
                    plan.stages().position(|stage| {
                        stage.iter().any(|step| match step {
                            ClosingStep::Delete { deletion, .. } => {
                                ObjectRank::from_object(&deletion.target.key, None) == rank
                            }
                            _ => false,
                        })
                    })
                };
                let order = [
                    ObjectRank::CustomResources,
                    ObjectRank::Admission,
                    ObjectRank::Workloads,
                    ObjectRank::Identity,
                ];
                let groups: Vec<usize> = order.into_iter().filter_map(group).collect();
                prop_assert!(groups.is_sorted_by(|a, b| a < b), "{:?}", plan.closing);
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
                let plan = cluster.plan(&desired(manifests), true, ReconcilePolicy::Once);
                plan.map_or_else(|error| error.to_string(), |plan| format!("{plan:?}"))
            };
            prop_assert_eq!(text(manifests), text(shuffled));
            Ok(())
        },
    );
}
