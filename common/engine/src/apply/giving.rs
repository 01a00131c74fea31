//! Gives an object back: removes our marks, returns the fields of our manager to the manager from which they were taken, and restores the
//! marks of the former tool (semantics 12.13). No other field changes, so no pod is restarted.

use serde_json::{Value, json};

use addons_plan::found::{HELM_NAME, HELM_NAMESPACE, LAST_APPLIED};
use addons_plan::{Deletion, InstallationPlan};
use common::api::installation::{FormerRecord, FormerTool};
use common::api::names;
use common::manifest::managed_fields::{CLIENT_SIDE_APPLY, former};

use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::managed::{self, MANAGED_FIELDS, annotation_pointer, label_pointer};
use super::settle::managed_fields_of;

/// The field manager of helm.
const HELM: &str = "helm";
const HELM_HOOK: &str = "helm.sh/hook";
/// The label without which helm refuses an object, besides the annotations of its release.
const HELM_LABEL: &str = "/metadata/labels/app.kubernetes.io~1managed-by";

/// The installation that gives objects back, and the release to which they return.
pub(in super::super) struct Giving<'a> {
    manager: String,
    owner: String,
    /// The Helm release, if there is exactly one. Objects that the installation created since get its marks.
    release: Option<&'a FormerRecord>,
}

impl<'a> Giving<'a> {
    /// Creates it for the installation of a plan.
    pub(in super::super) fn of(plan: &'a InstallationPlan) -> Self {
        let name = &plan.installation;
        let mut releases = plan
            .former()
            .filter(|record| record.tool == FormerTool::Helm);
        // With two releases, it is unknown to which an object belongs.
        let release = releases.next().filter(|_| releases.next().is_none());
        Self {
            manager: names::field_manager(&name.namespace, &name.name),
            owner: names::owner_hash(&name.namespace, &name.name),
            release,
        }
    }

    /// Gives one object back. Leaves an object alone that was deleted or recreated, or that the installation does not own any more.
    pub(in super::super) async fn give(
        &self,
        cluster: &Cluster,
        object: &Deletion,
    ) -> Result<(), EngineError> {
        // Two writes, because the fields that a write adds belong to its manager: the second write moves them to helm's apply, which has
        // the other fields. Otherwise the manager of the first write would be found as a tool of its own (semantics 12.11).
        let is_definition = object.target.key.kind == "CustomResourceDefinition";
        self.write(cluster, object, HELM, |live| {
            self.marks(live, is_definition)
        })
        .await?;
        self.write(cluster, object, CLIENT_SIDE_APPLY, |live| self.patch(live))
            .await
    }

    async fn write(
        &self,
        cluster: &Cluster,
        object: &Deletion,
        manager: &str,
        change: impl Fn(&Value) -> Option<Vec<Value>>,
    ) -> Result<(), EngineError> {
        let given = managed::rewrite_with(cluster, &object.target, manager, |live| {
            let is_it = text(live, "/metadata/uid") == Some(object.uid.as_str());
            (is_it && self.is_ours(live))
                .then(|| change(live))
                .flatten()
        });
        match given.await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(drop),
        }
    }

    fn is_ours(&self, live: &Value) -> bool {
        text(live, &label_pointer(names::LABEL_OWNER)) == Some(self.owner.as_str())
    }

    /// Returns the release whose marks an object gets: the one whose marks it had before. Objects that the installation created since get
    /// those of its only release, because helm would refuse them otherwise; helm itself marks neither hooks nor CRDs from `crds/`.
    fn release(&self, live: &Value, is_definition: bool) -> Option<(String, String)> {
        let note = text(live, &annotation_pointer(names::ANNOTATION_FORMER_RELEASE));
        if let Some((namespace, name)) = note.and_then(|note| note.split_once('/')) {
            return Some((namespace.to_owned(), name.to_owned()));
        }
        let was_adopted = live
            .pointer(&annotation_pointer(names::ANNOTATION_FORMER_MANAGER))
            .is_some();
        let is_hook = live.pointer(&annotation_pointer(HELM_HOOK)).is_some();
        let record = self
            .release
            .filter(|_| !was_adopted && !is_hook && !is_definition)?;
        Some((record.namespace.clone(), record.name.clone()))
    }

    /// Returns the patch that gives an object the marks of its release; `None` if it has them, or belongs to no release.
    fn marks(&self, live: &Value, is_definition: bool) -> Option<Vec<Value>> {
        let (namespace, name) = self.release(live, is_definition)?;
        let mut patch = Vec::new();
        if live.pointer("/metadata/annotations").is_none() {
            patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
        }
        for (path, value) in [
            (annotation_pointer(HELM_NAME), name.as_str()),
            (annotation_pointer(HELM_NAMESPACE), &namespace),
            (HELM_LABEL.to_owned(), "Helm"),
        ] {
            if text(live, &path) != Some(value) {
                patch.push(json!({"op": "add", "path": path, "value": value}));
            }
        }
        (!patch.is_empty()).then_some(patch)
    }

    /// Returns the patch that removes our marks and fields from an object.
    fn patch(&self, live: &Value) -> Option<Vec<Value>> {
        let note = annotation_pointer(names::ANNOTATION_FORMER_MANAGER);
        let entries =
            former::release_fields(managed_fields_of(live), &self.manager, text(live, &note));
        let mut patch = vec![
            json!({"op": "replace", "path": MANAGED_FIELDS, "value": entries}),
            json!({"op": "remove", "path": label_pointer(names::LABEL_OWNER)}),
        ];
        let last_applied = annotation_pointer(names::ANNOTATION_FORMER_LAST_APPLIED);
        let release = annotation_pointer(names::ANNOTATION_FORMER_RELEASE);
        for path in [
            annotation_pointer(names::ANNOTATION_INSTALLATION),
            note,
            release,
        ] {
            if live.pointer(&path).is_some() {
                patch.push(json!({"op": "remove", "path": path}));
            }
        }
        if live.pointer(&last_applied).is_some() {
            let to = annotation_pointer(LAST_APPLIED);
            patch.push(json!({"op": "move", "from": last_applied, "path": to}));
        }
        Some(patch)
    }
}

fn text<'a>(live: &'a Value, pointer: &str) -> Option<&'a str> {
    live.pointer(pointer)?.as_str()
}
