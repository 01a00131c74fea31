//! Pod templates of the kinds that run pods.

use serde_json::Value;

use super::NodeId;
use super::draft::GraphDraft;
use common::manifest::key::ObjectKey;

/// The pods of a workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkloadTemplate<'a> {
    /// Their namespace.
    pub namespace: &'a str,
    /// Their metadata, if present.
    pub metadata: Option<&'a Value>,
    /// Their spec.
    pub spec: &'a Value,
    /// The path of their spec in the object.
    pub path: &'static str,
}

/// Whether objects of this kind run pods.
pub(crate) fn runs_pods(key: &ObjectKey) -> bool {
    template_place(key).is_some()
}

/// Returns where objects of a kind have their pod template, as a JSON pointer, and the path of its spec.
fn template_place(key: &ObjectKey) -> Option<(&'static str, &'static str)> {
    Some(match (key.group.as_str(), key.kind.as_str()) {
        ("", "Pod") => ("", "spec"),
        ("", "ReplicationController")
        | ("apps" | "extensions", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
        | ("batch", "Job") => ("/spec/template", "spec.template.spec"),
        ("batch", "CronJob") => (
            "/spec/jobTemplate/spec/template",
            "spec.jobTemplate.spec.template.spec",
        ),
        _ => return None,
    })
}

impl<'a> WorkloadTemplate<'a> {
    /// Returns the pod template of an object; `None` if the object runs no pods.
    pub fn from_object(key: &'a ObjectKey, object: &'a Value) -> Option<Self> {
        let (pointer, path) = template_place(key)?;
        let holder = object.pointer(pointer)?;
        Some(Self {
            namespace: key.namespace.as_deref()?,
            metadata: holder.get("metadata"),
            spec: holder.get("spec")?,
            path,
        })
    }

    /// Returns the name of the ServiceAccount that the pods run as.
    pub fn service_account(&self) -> &'a str {
        let named = |field| {
            let name = self.spec.get(field).and_then(Value::as_str);
            name.filter(|name| !name.is_empty())
        };
        named("serviceAccountName")
            .or_else(|| named("serviceAccount"))
            .unwrap_or("default")
    }

    /// Returns a label of the pods.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        self.metadata?.get("labels")?.get(key)?.as_str()
    }
}

/// Returns every object that runs pods.
pub(super) fn workloads<'a>(draft: &GraphDraft<'a>) -> Vec<(NodeId, WorkloadTemplate<'a>)> {
    let objects = draft.objects();
    objects
        .filter_map(|(id, item)| Some((id, WorkloadTemplate::from_object(item.key, item.object)?)))
        .collect()
}

/// Returns the items of a list in an object; none if the list is missing.
pub(crate) fn list_items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Returns a string in an object, unless it is empty.
pub(crate) fn read_text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    let text = object.pointer(pointer).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}
