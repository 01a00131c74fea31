use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::Action;
use crate::desired::DesiredContext;
use crate::inventory::InventoryItem;
use crate::snapshot::{Inhabitants, LiveObject, UnservedKind};
use ObjectState::{Owned, Planned, Preexisting, Retained};
use common::api::installation::{HelmRelease, InventoryObject, ObjectState};
use common::api::names::{ANNOTATION_APPLY, APPLY_CREATE_ONLY};
use common::manifest::key::Gvk;
use common::manifest::kinds::KindInfo;
use common::manifest::{FilePosition, Manifest};
use common::values::mask::SecretMask;

mod adopting;
mod applying;
mod classes;
mod moving;
mod pruning;

/// The inputs of a plan, for one installation `kubectl-addons/till` with target namespace `shop`.
struct World {
    name: InstallationName,
    desired: Desired,
    inventory: Inventory,
    memory: RecordCoverage,
    snapshot: Snapshot,
    kinds: KindTable,
    mask: SecretMask,
    claims: Claims,
    delete_kinds: BTreeSet<KeptKind>,
    coming: BTreeSet<String>,
    held: BTreeMap<ObjectKey, String>,
    wanted: Options,
}

#[derive(Clone, Copy)]
struct Options {
    /// helm installs a release of that name into the target namespace.
    helm_release: Option<&'static str>,
    create_namespace: bool,
    conflicts: ConflictPolicy,
    reconcile: ReconcilePolicy,
    due: bool,
    allow_prune: PruneLimit,
    adopt: bool,
    only_owners: bool,
    shared_manager: Option<&'static str>,
}

fn world() -> World {
    let mut kinds = KindTable::default();
    for (api_version, kind, namespaced) in [
        ("v1", "ConfigMap", true),
        ("v1", "Secret", true),
        ("v1", "Namespace", false),
        ("v1", "PersistentVolumeClaim", true),
        ("v1", "ServiceAccount", true),
        ("apps/v1", "Deployment", true),
        ("batch/v1", "Job", true),
        ("policy/v1", "PodDisruptionBudget", true),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", false),
    ] {
        let info = KindInfo {
            plural: format!("{}s", kind.to_lowercase()),
            singular: kind.to_lowercase(),
            namespaced,
            writable: true,
            has_status: false,
        };
        kinds.insert(&Gvk::new(api_version, kind), info);
    }
    World {
        name: InstallationName {
            namespace: "kubectl-addons".to_owned(),
            name: "till".to_owned(),
        },
        desired: Desired::default(),
        inventory: Inventory::default(),
        memory: RecordCoverage::Open,
        snapshot: Snapshot {
            namespaces: BTreeSet::from(["shop".to_owned()]),
            ..Snapshot::default()
        },
        kinds,
        mask: SecretMask::default(),
        claims: Claims {
            // Another installation that exists.
            owners: BTreeSet::from(["5d41402abc4b2a76".to_owned()]),
            ..Claims::default()
        },
        delete_kinds: BTreeSet::new(),
        coming: BTreeSet::new(),
        held: BTreeMap::new(),
        wanted: Options {
            helm_release: None,
            create_namespace: true,
            conflicts: ConflictPolicy::Take,
            reconcile: ReconcilePolicy::Once,
            due: true,
            allow_prune: PruneLimit::default(),
            adopt: false,
            only_owners: false,
            shared_manager: None,
        },
    }
}

fn manifest(kind: &str, name: &str) -> Value {
    let api_version = match kind {
        "Deployment" => "apps/v1",
        "Job" => "batch/v1",
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
        _ => "v1",
    };
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

fn key(kind: &str, name: &str) -> ObjectKey {
    let mut key = ObjectKey::from_object(&manifest(kind, name)).unwrap();
    if !matches!(kind, "Namespace" | "CustomResourceDefinition") {
        key.namespace = Some("shop".to_owned());
    }
    key
}

impl World {
    fn want(mut self, objects: impl IntoIterator<Item = Value>) -> Self {
        let manifests = objects.into_iter().map(|object| Manifest {
            object: Arc::new(object),
            place: FilePosition::default(),
        });
        let ctx = DesiredContext {
            installation: &self.name,
            target_namespace: "shop",
            kinds: &self.kinds,
            mask: &self.mask,
        };
        self.desired = Desired::new(manifests.collect(), &ctx).unwrap();
        self
    }

    fn record(mut self, key: ObjectKey, state: ObjectState, digest: &str) -> Self {
        let generation = (state != Planned).then_some(1);
        let item = InventoryItem {
            version: "v1".to_owned(),
            object: InventoryObject {
                name: key.name.clone(),
                state,
                uid: if state == Planned { "" } else { "u1" }.to_owned(),
                digest: digest.to_owned(),
                generation,
                resource_version: None,
                fields: None,
                yielded: Vec::new(),
            },
        };
        self.inventory.objects.insert(key, item);
        self
    }

    fn live(mut self, key: ObjectKey, owner: Option<&str>, uid: &str, generation: i64) -> Self {
        let owner = match owner {
            Some("us") => Some(owner_hash("kubectl-addons", "till")),
            owner => owner.map(str::to_owned),
        };
        let live = LiveObject {
            uid: uid.to_owned(),
            generation: Some(generation),
            resource_version: "9".to_owned(),
            owner,
            ..LiveObject::default()
        };
        self.snapshot.live.insert(key, live);
        self
    }

    fn plan_for(&self, uninstall: Option<bool>) -> Result<InstallationPlan, PlanError> {
        let Options {
            helm_release,
            create_namespace,
            conflicts,
            reconcile,
            due,
            allow_prune,
            adopt,
            only_owners,
            shared_manager,
        } = self.wanted;
        let to = Installed {
            helm_release: helm_release.map(|name| HelmRelease {
                name: name.to_owned(),
                namespace: "shop".to_owned(),
            }),
            ..Installed::default()
        };
        let wanted = WantedObjects {
            desired: &self.desired,
            to: &to,
            target_namespace: "shop",
            create_namespace,
            record_namespace: None,
            shared_manager,
            coming: &self.coming,
            conflicts,
            reconcile,
            due,
            allow_prune,
            adopt,
            revision: None,
        };
        let goal = match uninstall {
            Some(keep) => Goal::Uninstall { keep },
            None if only_owners => Goal::Adopt(wanted),
            None => Goal::Install(wanted),
        };
        // Nothing lives in a definition or namespace unless the test says so.
        let mut snapshot = self.snapshot.clone();
        for key in deletable(&Desired::default(), &self.inventory, &self.delete_kinds) {
            snapshot.inhabited.entry(key).or_default();
        }
        plan(&PlanInput {
            installation: &self.name,
            addon: "till",
            from: None,
            goal,
            inventory: &self.inventory,
            memory: self.memory,
            snapshot: &snapshot,
            kinds: &self.kinds,
            claims: &self.claims,
            unmarked: &BTreeSet::new(),
            delete_kinds: &self.delete_kinds,
            held: &self.held,
            resting: &BTreeSet::new(),
        })
    }

    fn plan(&self) -> InstallationPlan {
        self.plan_for(None).unwrap()
    }

    fn error(&self) -> String {
        self.plan_for(None).unwrap_err().to_string()
    }
}
