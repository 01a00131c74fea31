//! An object is given back: our marks leave it, the fields of our manager become those of the manager that they were taken from, and the
//! marks of its former tool return (semantics 12). No other field changes, so no pod is restarted.

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

/// The managers of helm and of client-side apply.
const HELM: &str = "helm";
const HELM_HOOK: &str = "helm.sh/hook";
/// Besides the annotations of a release, the mark without which helm refuses an object.
const HELM_LABEL: &str = "/metadata/labels/app.kubernetes.io~1managed-by";

/// Who gives objects back, and to which release.
pub(in super::super) struct Giving<'a> {
    manager: String,
    owner: String,
    /// The release of Helm, where there is one: objects that we have created for it since get its marks.
    release: Option<&'a FormerRecord>,
}

impl<'a> Giving<'a> {
    /// For a plan.
    pub(in super::super) fn of(plan: &'a InstallationPlan) -> Self {
        let name = &plan.installation;
        let mut releases = plan
            .former()
            .filter(|record| record.tool == FormerTool::Helm);
        // Of two releases it is not known whose an object was.
        let release = releases.next().filter(|_| releases.next().is_none());
        Self {
            manager: names::field_manager(&name.namespace, &name.name),
            owner: names::owner_hash(&name.namespace, &name.name),
            release,
        }
    }

    /// Gives one object back; one that is gone, is another one or is not ours any more stays as it is.
    pub(in super::super) async fn give(
        &self,
        cluster: &Cluster,
        object: &Deletion,
    ) -> Result<(), EngineError> {
        // Two writes: what a write adds becomes a field of its manager, and the second one gives that to the apply of helm, which has the
        // other fields. It would otherwise be found again as a manager of its own (semantics 12).
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

    /// The release whose marks an object gets: the one that it had them of. What we have created since gets those of the one release
    /// that there was, without which helm would refuse it; helm itself marks neither hooks nor definitions of `crds/`.
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

    /// The changes that give an object the marks of its release; `None` where it has them, or is of none.
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

    /// The changes that take our marks and fields from an object.
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
