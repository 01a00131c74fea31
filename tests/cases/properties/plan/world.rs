//! A simulated cluster, random sets of objects, and somebody else who meddles with them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use addons_plan::claims::Claims;
use addons_plan::desired::{Desired, DesiredContext};
use addons_plan::inventory::{ApplyAnswer, Inventory};
use addons_plan::planner::{Goal, PlanError, PlanInput, WantedObjects, plan};
use addons_plan::prune::limit::PruneLimit;
use addons_plan::restored::RecordCoverage;
use addons_plan::snapshot::{Controller, LiveObject, Snapshot};
use addons_plan::{InstallationPlan, Step};
use common::api::installation::{ConflictPolicy, Installed, ReconcilePolicy};
use common::api::names::InstallationName;
use common::api::names::{ANNOTATION_APPLY, APPLY_CREATE_ONLY, LABEL_OWNER, owner_hash};
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::{KindInfo, KindTable};
use common::manifest::{FilePosition, Manifest};
use common::values::mask::SecretMask;
use proptest::prelude::*;
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

pub(super) fn kinds() -> KindTable {
    let mut kinds = KindTable::default();
    for (api_version, kind, plural, namespaced) in KINDS {
        let info = KindInfo {
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            namespaced,
            writable: true,
            has_status: false,
        };
        kinds.insert(&Gvk::new(api_version, kind), info);
    }
    kinds.insert_crd(&till_crd(0));
    kinds
}

pub(super) fn till_crd(content: u8) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tills.shop.example", "labels": {"content": content.to_string()}},
        "spec": {"group": "shop.example", "scope": "Namespaced", "names": {"kind": "Till", "plural": "tills"},
            "versions": [{"name": "v1", "served": true}]}})
}

/// A manifest object in small: kind, name, content, whether it is create-only.
pub(super) type Spec = (usize, u8, u8, bool);

pub(super) fn manifests(specs: &[Spec]) -> Vec<Manifest> {
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
        object: Arc::new(object),
        place: FilePosition {
            file: "m.yaml".to_owned(),
            line,
            column: 0,
        },
    });
    manifests.collect()
}

pub(super) fn name() -> InstallationName {
    InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "till".to_owned(),
    }
}

pub(super) fn us() -> String {
    owner_hash("kubectl-addons", "till")
}

#[expect(
    clippy::expect_used,
    reason = "every kind of the world is served, and keys are unique"
)]
pub(super) fn desired(manifests: Vec<Manifest>) -> Desired {
    let ctx = DesiredContext {
        installation: &name(),
        target_namespace: "shop",
        kinds: &kinds(),
        mask: &SecretMask::default(),
    };
    Desired::new(manifests, &ctx).expect("every kind is served")
}

/// A cluster and the record of one installation in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    pub(super) live: BTreeMap<ObjectKey, LiveObject>,
    pub(super) record: Inventory,
    /// Every uid that our own creates got, and what was restored from a backup with our label on it.
    pub(super) created: BTreeSet<String>,
    pub(super) clock: u32,
}

impl Cluster {
    pub(super) fn tick(&mut self) -> String {
        self.clock += 1;
        self.clock.to_string()
    }

    pub(super) fn apply(&mut self, step: &Step) -> ApplyAnswer {
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
        ApplyAnswer {
            created,
            uid: live.uid.clone(),
            generation: live.generation,
            resource_version: live.resource_version.clone(),
            fields: String::new(),
            only_recorded: false,
        }
    }

    /// Somebody else's deed, by number: deletes, edits, takes our label off, restores from a backup, marks it as one to keep, puts a
    /// controller over it, creates or recreates.
    pub(super) fn meddle(&mut self, key: &ObjectKey, deed: u8) {
        let version = self.tick();
        let stranger = LiveObject {
            uid: format!("foreign-{version}"),
            generation: (!key.group.is_empty()).then_some(1),
            resource_version: version.clone(),
            ..LiveObject::default()
        };
        match (deed % 7, self.live.get_mut(key)) {
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
            (3, Some(live)) if live.owner.is_some() => {
                live.uid = format!("uid-{version}");
                live.resource_version = version;
                self.created.insert(live.uid.clone());
            }
            (4, Some(live)) => live.keep = Some("helm.sh/resource-policy: keep".to_owned()),
            (5, Some(live)) => {
                live.controlled_by = Some(Controller {
                    kind: "Till".to_owned(),
                    name: "front".to_owned(),
                    uid: format!("foreign-{version}"),
                });
            }
            _ => {
                self.live.insert(key.clone(), stranger);
            }
        }
    }

    pub(super) fn plan(
        &self,
        desired: &Desired,
        due: bool,
        reconcile: ReconcilePolicy,
    ) -> Result<InstallationPlan, PlanError> {
        self.plan_goal(Goal::Install(WantedObjects {
            due,
            reconcile,
            ..wanted(desired)
        }))
    }

    pub(super) fn plan_within(
        &self,
        desired: &Desired,
        allow_prune: PruneLimit,
    ) -> Result<InstallationPlan, PlanError> {
        self.plan_goal(Goal::Install(WantedObjects {
            allow_prune,
            ..wanted(desired)
        }))
    }

    pub(super) fn plan_goal(&self, goal: Goal<'_>) -> Result<InstallationPlan, PlanError> {
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
            memory: RecordCoverage::Open,
            snapshot: &snapshot,
            kinds: &kinds(),
            claims: &Claims::default(),
            unmarked: &BTreeSet::new(),
            delete_kinds: &BTreeSet::new(),
            held: &BTreeMap::new(),
            resting: &BTreeSet::new(),
        })
    }

    /// Does what a plan says, and is cut off behind `requests` requests; whether it got to the end. Everything between the
    /// first and the last record is lost when it is cut off, as it is for a client that is killed.
    pub(super) fn execute(&mut self, plan: &InstallationPlan, requests: usize) -> bool {
        self.record = plan.union.clone();
        let mut record = self.record.clone();
        let mut left = requests;
        for step in &plan.steps {
            if left == 0 {
                return false;
            }
            left -= 1;
            let answer = self.apply(step);
            let key = &step.target.key;
            record.record_applied(key, &plan.exact.objects[key], &answer, Vec::new());
        }
        for deletion in plan.deletions() {
            if left == 0 {
                return false;
            }
            left -= 1;
            let key = &deletion.target.key;
            // The precondition: another object of that name stays.
            if self
                .live
                .get(key)
                .is_some_and(|live| live.uid == deletion.uid)
            {
                self.live.remove(key);
            }
            record.remove(key);
        }
        for key in plan.released() {
            if let Some(live) = self.live.get_mut(key) {
                live.owner = None;
            }
            record.remove(key);
        }
        record.close(&plan.exact, &BTreeSet::new());
        self.record = record;
        true
    }

    pub(super) fn run(&mut self, desired: &Desired) {
        if let Ok(plan) = self.plan(desired, true, ReconcilePolicy::Once) {
            self.execute(&plan, usize::MAX);
        }
    }
}

fn wanted(desired: &Desired) -> WantedObjects<'_> {
    static TO: LazyLock<Installed> = LazyLock::new(Installed::default);
    static NONE: BTreeSet<String> = BTreeSet::new();
    WantedObjects {
        desired,
        to: &TO,
        target_namespace: "shop",
        create_namespace: true,
        record_namespace: None,
        coming: &NONE,
        conflicts: ConflictPolicy::Take,
        reconcile: ReconcilePolicy::Once,
        due: true,
        allow_prune: PruneLimit::ALL,
        adopt: false,
        revision: None,
        shared_manager: None,
    }
}

pub(super) fn specs() -> impl Strategy<Value = Vec<Spec>> {
    let once = prop_oneof![9 => Just(false), 1 => Just(true)];
    proptest::collection::vec((0..10_usize, 0..3_u8, 0..3_u8, once), 0..14)
}

/// What somebody else does: to which of the objects of the world (by number), and what.
pub(super) fn deeds() -> impl Strategy<Value = Vec<(u8, u8)>> {
    proptest::collection::vec((any::<u8>(), any::<u8>()), 0..6)
}

/// A cluster behind two versions and somebody else's deeds, also between plan and execution, perhaps cut off in the second.
pub(super) fn clusters() -> impl Strategy<Value = Cluster> {
    let cut = prop_oneof![Just(usize::MAX), 0..12_usize];
    (deeds(), specs(), deeds(), specs(), deeds(), cut, deeds()).prop_map(
        |(before, first, between, second, race, cut, after)| {
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
            if let Ok(plan) = cluster.plan(&second, true, ReconcilePolicy::Once) {
                // Somebody who makes a planned object before us, and we are killed before we can tell: the label will say
                // that it is ours. Nothing can know better (semantics 13), so a race is not cut off here.
                if cut == usize::MAX {
                    meddle(&mut cluster, &race);
                }
                cluster.execute(&plan, cut);
            }
            meddle(&mut cluster, &after);
            cluster
        },
    )
}
