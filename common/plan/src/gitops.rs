//! Argo CD and Flux: the objects of theirs that apply another object, known by the marks that they leave on it (semantics 12.10), and the
//! fields of an installation that they set (semantics 12.20).

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value, json};

use crate::found::{HELM_NAME, LAST_APPLIED};
use common::api::installation::{AddonInstallation, AddonInstallationSpec};
use common::entrance;
use common::manifest::managed_fields::former::tool_name;

/// A kind of Argo CD or Flux whose objects apply other objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitOpsKind {
    /// Its API group.
    pub group: &'static str,
    /// Its name.
    pub kind: &'static str,
    words: &'static str,
}

const APPLICATION: GitOpsKind = GitOpsKind {
    group: "argoproj.io",
    kind: "Application",
    words: "Argo CD application",
};
const KUSTOMIZATION: GitOpsKind = GitOpsKind {
    group: "kustomize.toolkit.fluxcd.io",
    kind: "Kustomization",
    words: "Flux Kustomization",
};
const RELEASE: GitOpsKind = GitOpsKind {
    group: "helm.toolkit.fluxcd.io",
    kind: "HelmRelease",
    words: "Flux HelmRelease",
};
const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
/// Label that Argo CD uses to find its objects.
const INSTANCE: &str = "argocd.argoproj.io/instance";
/// Label that Argo CD used by default before 3.0. Every Helm chart sets it as well, so it proves nothing by itself.
const COMMON_INSTANCE: &str = "app.kubernetes.io/instance";
/// Field managers of Argo CD and Flux, each with the kind of the object that applies.
const MANAGERS: [(&str, GitOpsKind); 4] = [
    ("argocd-controller", APPLICATION),
    ("argocd-application-controller", APPLICATION),
    ("kustomize-controller", KUSTOMIZATION),
    ("helm-controller", RELEASE),
];

/// An Argo CD or Flux object that applies another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitOpsReconciler {
    /// Its kind.
    pub kind: GitOpsKind,
    /// Its namespace; `None` means any.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl GitOpsReconciler {
    /// Returns the Argo CD and Flux objects that the marks of an object name, the most certain first. They may no longer exist. The label
    /// that charts set as well counts only if one of `managers`, the field managers of the object, is Argo CD, or if the object has the
    /// annotation of kubectl's apply, which old versions of Argo CD used, and none of Helm.
    #[must_use]
    pub fn from_marks<'a>(
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
        managers: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Self> {
        let is_argo = |name: &str| {
            let mut known = MANAGERS.iter();
            known.any(|(manager, kind)| *manager == name && *kind == APPLICATION)
        };
        let is_applied =
            annotations.contains_key(LAST_APPLIED) && !annotations.contains_key(HELM_NAME);
        let counts = is_applied || managers.into_iter().any(is_argo);
        let common = Some(COMMON_INSTANCE).filter(|_| counts);

        let tracked = annotations.get(TRACKING_ID);
        // `APPLICATION:GROUP/KIND:NAMESPACE/NAME`.
        let tracked = tracked.and_then(|id| id.split(':').next());
        let labelled = [INSTANCE].into_iter().chain(common);
        let labelled = labelled.filter_map(|name| labels.get(name));
        let names = tracked.into_iter().chain(labelled.map(String::as_str));
        let applications = names.map(|name| {
            // The name of an application outside Argo CD's own namespace is prefixed with its namespace, which contains no underscore.
            let (namespace, name) = match name.split_once('_') {
                Some((namespace, name)) => (Some(namespace.to_owned()), name),
                None => (None, name),
            };
            Self {
                kind: APPLICATION,
                namespace,
                name: name.to_owned(),
            }
        });
        let flux = [KUSTOMIZATION, RELEASE].into_iter().filter_map(|kind| {
            let label = |name| labels.get(&format!("{}/{name}", kind.group));
            Some(Self {
                kind,
                namespace: label("namespace").cloned(),
                name: label("name")?.clone(),
            })
        });
        let mut found: Vec<Self> = Vec::new();
        for one in applications.chain(flux) {
            if !one.name.is_empty() && !found.contains(&one) {
                found.push(one);
            }
        }
        found
    }
}

impl fmt::Display for GitOpsReconciler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind.words, self.name),
            None => write!(f, "{} {}", self.kind.words, self.name),
        }
    }
}

/// A [`GitOpsReconciler`] that exists, or that may not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveReconciler {
    /// The object, as the marks name it.
    pub reconciler: GitOpsReconciler,
    /// Its namespace; `None` if unknown.
    pub namespace: Option<String>,
    /// Whether it was read. Otherwise it may not be read, and counts as live.
    pub is_seen: bool,
}

impl LiveReconciler {
    /// Returns the command that suspends the object, so that it neither applies its objects again nor deletes them when it is deleted. A
    /// suspended Flux object leaves its objects; Argo CD deletes those of an application that has its finalizer.
    #[must_use]
    pub fn suspend_command(&self) -> String {
        let GitOpsReconciler { kind, name, .. } = &self.reconciler;
        let namespace = self.namespace.as_deref().unwrap_or("NAMESPACE");
        let patch = if *kind == APPLICATION {
            r#"{"metadata":{"finalizers":null},"spec":{"syncPolicy":{"automated":null}}}"#
        } else {
            r#"{"spec":{"suspend":true}}"#
        };
        let object = kind.kind.to_lowercase();
        format!(
            "kubectl patch {object}.{} {name} -n {namespace} --type=merge -p '{patch}'",
            kind.group
        )
    }
}

impl fmt::Display for LiveReconciler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reconciler.fmt(f)?;
        match self.is_seen {
            true => Ok(()),
            false => f.write_str(" (if it exists: it cannot be read)"),
        }
    }
}

/// The Argo CD or Flux object that applies the spec of an installation from Git.
#[derive(Clone, Debug, PartialEq)]
pub struct GitOpsOwner {
    /// The object, or the tool if no mark names the object: `Argo CD application shop`.
    pub by: String,
    set: Vec<OwnedFields>,
}

/// The fields of a spec that a tool sets.
#[derive(Clone, Debug, PartialEq)]
enum OwnedFields {
    /// The managed fields, as `fieldsV1`.
    Fields(Value),
    /// The spec that client-side apply last sent. The managed fields of an object's creator would also include what the server filled in.
    Applied(Value),
}

/// Reduces the managedFields of a record to the managers that set its spec, with fields only for those that [`GitOpsOwner::from_record`] needs: for a
/// thousand records, the rest takes megabytes.
pub fn keep_spec_writers(managers: &mut Vec<ManagedFieldsEntry>) {
    managers.retain(|entry| {
        let is_main = entry.subresource.as_deref().is_none_or(str::is_empty);
        let fields = entry.fields_v1.as_ref();
        is_main && fields.is_some_and(|fields| fields.0.get("f:spec").is_some())
    });
    for entry in managers {
        let name = entry.manager.as_deref().unwrap_or_default();
        if MANAGERS.iter().all(|(manager, _)| *manager != name) {
            entry.fields_v1 = None;
        }
    }
}

impl GitOpsOwner {
    /// Finds the owner by the field managers of the record's spec. It does not check that the object exists, because Argo CD may run in
    /// another cluster.
    #[must_use]
    pub fn from_record(record: &AddonInstallation) -> Option<Self> {
        let metadata = &record.metadata;
        let mut found: Option<(&str, GitOpsKind)> = None;
        let mut set = Vec::new();
        for entry in metadata.managed_fields.iter().flatten() {
            let name = entry.manager.as_deref().unwrap_or_default();
            let known = MANAGERS.iter().find(|(manager, _)| *manager == name);
            let spec = entry.fields_v1.as_ref().and_then(|all| all.0.get("f:spec"));
            let is_main = entry.subresource.as_deref().is_none_or(str::is_empty);
            if let (Some(known), Some(spec), true) = (known, spec, is_main) {
                found = found.or(Some(*known));
                let is_update = entry.operation.as_deref() == Some("Update");
                let noted = is_update.then(|| last_applied_spec(record)).flatten();
                set.push(
                    noted.map_or_else(|| OwnedFields::Fields(spec.clone()), OwnedFields::Applied),
                );
            }
        }
        let (manager, kind) = found?;
        let none = BTreeMap::new();
        let labels = metadata.labels.as_ref().unwrap_or(&none);
        let annotations = metadata.annotations.as_ref().unwrap_or(&none);
        let managers = metadata.managed_fields.iter().flatten();
        let managers = managers.filter_map(|entry| entry.manager.as_deref());
        let named = GitOpsReconciler::from_marks(labels, annotations, managers);
        let named = named.into_iter().find(|one| one.kind == kind);
        Some(Self {
            by: named.map_or_else(|| tool_name(manager).to_owned(), |one| one.to_string()),
            set,
        })
    }

    /// Whether it sets the field of the spec at `path`, or one below it.
    #[must_use]
    pub fn sets(&self, path: &[String]) -> bool {
        self.set.iter().any(|set| {
            let (mut at, prefix) = match set {
                OwnedFields::Fields(set) => (set, "f:"),
                OwnedFields::Applied(spec) => (spec, ""),
            };
            for name in path {
                match at.get(format!("{prefix}{name}")) {
                    Some(below) => at = below,
                    // `{}` stands for the whole field.
                    None => return !prefix.is_empty() && at.as_object().is_some_and(Map::is_empty),
                }
            }
            true
        })
    }
}

/// Reads the spec that client-side apply last sent.
fn last_applied_spec(record: &AddonInstallation) -> Option<Value> {
    let annotations = record.metadata.annotations.as_ref()?;
    let mut applied: Value = entrance::from_str(annotations.get(LAST_APPLIED)?).ok()?;
    applied.get_mut("spec").map(Value::take)
}

/// Returns the paths at which two specs differ. Lists are compared as a whole.
#[must_use]
pub fn diff_specs(from: &AddonInstallationSpec, to: &AddonInstallationSpec) -> Vec<Vec<String>> {
    let json = |spec| serde_json::to_value(spec).unwrap_or_default();
    let mut found = Vec::new();
    collect_differences(&json(from), &json(to), &mut Vec::new(), &mut found);
    found
}

/// Like [`diff_specs`], but lists each value under its own path, even if a whole map was added or removed.
#[must_use]
pub fn diff_specs_by_value(
    from: &AddonInstallationSpec,
    to: &AddonInstallationSpec,
) -> Vec<Vec<String>> {
    let with_maps_of = |spec: &AddonInstallationSpec, other: &AddonInstallationSpec| {
        let mut spec = spec.clone();
        let values = spec.values.get_or_insert_with(|| json!({}));
        add_maps(values, other.values.as_ref().unwrap_or(&Value::Null));
        spec
    };
    diff_specs(&with_maps_of(from, to), &with_maps_of(to, from))
}

/// Adds to `values`, as empty maps, the non-empty maps that only `other` has. A map without values is reported itself.
fn add_maps(values: &mut Value, other: &Value) {
    let (Value::Object(values), Value::Object(other)) = (values, other) else {
        return;
    };
    for (name, other) in other {
        if other.as_object().is_some_and(|map| !map.is_empty()) {
            add_maps(values.entry(name).or_insert_with(|| json!({})), other);
        }
    }
}

/// Collects the paths at which two values differ. The recursion depth is bounded by that of the object.
fn collect_differences(
    from: &Value,
    to: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<Vec<String>>,
) {
    let (Value::Object(old), Value::Object(new)) = (from, to) else {
        if from != to {
            found.push(path.clone());
        }
        return;
    };
    let added = new.keys().filter(|name| !old.contains_key(*name));
    for name in old.keys().chain(added) {
        path.push(name.clone());
        let of = |all: &Map<String, Value>| all.get(name).cloned().unwrap_or_default();
        collect_differences(&of(old), &of(new), path, found);
        path.pop();
    }
}

#[cfg(test)]
mod tests;
