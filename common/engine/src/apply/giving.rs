//! An object is given back: our marks leave it, the fields of our manager become those of the manager that they were taken from, and the
//! marks of its former tool return (semantics 12). No other field changes, so no pod is restarted.

use serde_json::{Value, json};

use common::api::installation::{FormerRecord, FormerTool};
use common::api::names;
use common::manifest::managed_fields::{CLIENT_SIDE_APPLY, former};
use common::plan::found::{HELM_NAME, HELM_NAMESPACE, LAST_APPLIED};
use common::plan::{Deletion, InstallationPlan};
use common::values::path;

use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::managed::{self, FIELDS, annotation};
use super::settle::managers;

/// Another client may write the object meanwhile, and definitions may have dropped versions that managedFields still name.
const TRIES: usize = 8;
/// The managers of helm and of client-side apply.
const HELM: &str = "helm";
/// Besides the annotations of a release, the mark without which helm refuses an object.
const HELM_LABEL: &str = "/metadata/labels/app.kubernetes.io~1managed-by";

/// Who gives objects back, and to which release.
pub(in super::super) struct Giving<'a> {
    manager: String,
    owner: String,
    /// The release of Helm, where there is one: our applies removed its marks.
    release: Option<&'a FormerRecord>,
}

impl<'a> Giving<'a> {
    /// For a plan.
    pub(in super::super) fn of(plan: &'a InstallationPlan) -> Self {
        let name = &plan.installation;
        let mut releases = plan
            .former
            .iter()
            .filter(|record| record.tool == FormerTool::Helm && record.is_set_aside);
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
        let target = &object.target;
        // Whose the marks are that return: those of a release, or the annotation of client-side apply.
        let manager = match self.release {
            Some(_) => HELM,
            None => CLIENT_SIDE_APPLY,
        };
        let mut tries = 1;
        loop {
            let given = managed::rewrite_with(cluster, target, manager, |live, _| {
                let is_it = text(live, "/metadata/uid") == Some(object.uid.as_str());
                is_it.then(|| self.patch(live)).flatten()
            });
            let error = match given.await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => error,
            };
            match managed::gone_version(&error) {
                _ if tries == TRIES => return Err(error),
                Some(version) => {
                    managed::heal(cluster, target, manager, version, error).await?;
                }
                None if error.is_conflict() => {}
                None => return Err(error),
            }
            tries += 1;
        }
    }

    /// The changes of one object; `None` where it is not ours.
    fn patch(&self, live: &Value) -> Option<Vec<Value>> {
        let label = format!("/metadata/labels/{}", path::escaped(names::LABEL_OWNER));
        text(live, &label).filter(|owner| *owner == self.owner)?;
        let note = annotation(names::ANNOTATION_FORMER_MANAGER);
        let entries = former::let_go(managers(live), &self.manager, text(live, &note));
        let mut patch = vec![
            json!({"op": "replace", "path": FIELDS, "value": entries}),
            json!({"op": "remove", "path": label}),
        ];
        let last_applied = annotation(names::ANNOTATION_FORMER_LAST_APPLIED);
        for path in [annotation(names::ANNOTATION_INSTALLATION), note] {
            if live.pointer(&path).is_some() {
                patch.push(json!({"op": "remove", "path": path}));
            }
        }
        if live.pointer(&last_applied).is_some() {
            let to = annotation(LAST_APPLIED);
            patch.push(json!({"op": "move", "from": last_applied, "path": to}));
        }
        if let Some(FormerRecord {
            namespace, name, ..
        }) = self.release
        {
            if live.pointer("/metadata/annotations").is_none() {
                patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
            }
            for (path, value) in [
                (annotation(HELM_NAME), name.as_str()),
                (annotation(HELM_NAMESPACE), namespace),
                (HELM_LABEL.to_owned(), "Helm"),
            ] {
                if text(live, &path) != Some(value) {
                    patch.push(json!({"op": "add", "path": path, "value": value}));
                }
            }
        }
        Some(patch)
    }
}

fn text<'a>(live: &'a Value, pointer: &str) -> Option<&'a str> {
    live.pointer(pointer)?.as_str()
}
