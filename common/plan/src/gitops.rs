//! Argo CD and Flux: which of their objects apply an object again and again, by the marks that they leave on it, and which fields of
//! an installation they set (semantics 12).

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value, json};

use crate::found::{HELM_NAME, LAST_APPLIED};
use common::api::installation::{AddonInstallation, AddonInstallationSpec};
use common::entrance;
use common::manifest::managed_fields::former::tool;

/// A kind whose objects apply others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Its API group.
    pub group: &'static str,
    /// Its name.
    pub kind: &'static str,
    words: &'static str,
}

const APPLICATION: Kind = Kind {
    group: "argoproj.io",
    kind: "Application",
    words: "Argo CD application",
};
const KUSTOMIZATION: Kind = Kind {
    group: "kustomize.toolkit.fluxcd.io",
    kind: "Kustomization",
    words: "Flux Kustomization",
};
const RELEASE: Kind = Kind {
    group: "helm.toolkit.fluxcd.io",
    kind: "HelmRelease",
    words: "Flux HelmRelease",
};
const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
/// Label by which Argo CD finds its objects.
const INSTANCE: &str = "argocd.argoproj.io/instance";
/// The one that it used by default before 3.0: each chart of Helm sets it as well, so it says nothing by itself.
const COMMON_INSTANCE: &str = "app.kubernetes.io/instance";
/// Under which names they write, and by objects of which kind.
const MANAGERS: [(&str, Kind); 4] = [
    ("argocd-controller", APPLICATION),
    ("argocd-application-controller", APPLICATION),
    ("kustomize-controller", KUSTOMIZATION),
    ("helm-controller", RELEASE),
];

/// An object that applies another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reconciler {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; `None` = any.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Reconciler {
    /// Those that the marks of an object name, the most certain first; they may be gone. The label that charts set as well counts
    /// where one of `managers`, the field managers of the object, is Argo CD, or where kubectl's apply, which old versions of it used,
    /// has left its annotation and Helm none.
    #[must_use]
    pub fn named_by<'a>(
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
            // An application outside Argo CD's own namespace is named with its namespace, which holds no underscore.
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

impl fmt::Display for Reconciler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind.words, self.name),
            None => write!(f, "{} {}", self.kind.words, self.name),
        }
    }
}

/// One that exists, or of which that is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveReconciler {
    /// The object, as the marks name it.
    pub reconciler: Reconciler,
    /// The namespace that it is in; `None` where that is not known.
    pub namespace: Option<String>,
    /// Whether it was seen; otherwise it may not be read.
    pub is_seen: bool,
}

impl LiveReconciler {
    /// The command that suspends it, so that it neither applies its objects again nor deletes them when it is deleted. Flux leaves the
    /// objects of what is suspended; Argo CD deletes those of an application that has its finalizer.
    #[must_use]
    pub fn suspension(&self) -> String {
        let Reconciler { kind, name, .. } = &self.reconciler;
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

/// What applies the spec of an installation from Git.
#[derive(Clone, Debug, PartialEq)]
pub struct Owner {
    /// The object, or the tool where no mark names one: `Argo CD application shop`.
    pub by: String,
    set: Vec<Set>,
}

/// The fields of a spec that a tool sets.
#[derive(Clone, Debug, PartialEq)]
enum Set {
    /// As `fieldsV1` has them.
    Fields(Value),
    /// As client-side apply has noted them: the creator of an object also owns what the server filled in.
    Applied(Value),
}

/// Leaves of the field managers of a record those who set its spec, and which fields only where [`Owner::of`] asks for them: of a
/// thousand records, the rest is megabytes.
pub fn keep_writers(managers: &mut Vec<ManagedFieldsEntry>) {
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

impl Owner {
    /// That of a record, by the field managers of its spec. Whether its object exists is not asked: Argo CD may run in another cluster.
    #[must_use]
    pub fn of(record: &AddonInstallation) -> Option<Self> {
        let metadata = &record.metadata;
        let mut found: Option<(&str, Kind)> = None;
        let mut set = Vec::new();
        for entry in metadata.managed_fields.iter().flatten() {
            let name = entry.manager.as_deref().unwrap_or_default();
            let known = MANAGERS.iter().find(|(manager, _)| *manager == name);
            let spec = entry.fields_v1.as_ref().and_then(|all| all.0.get("f:spec"));
            let is_main = entry.subresource.as_deref().is_none_or(str::is_empty);
            if let (Some(known), Some(spec), true) = (known, spec, is_main) {
                found = found.or(Some(*known));
                let is_update = entry.operation.as_deref() == Some("Update");
                let noted = is_update.then(|| last_applied(record)).flatten();
                set.push(noted.map_or_else(|| Set::Fields(spec.clone()), Set::Applied));
            }
        }
        let (manager, kind) = found?;
        let none = BTreeMap::new();
        let labels = metadata.labels.as_ref().unwrap_or(&none);
        let annotations = metadata.annotations.as_ref().unwrap_or(&none);
        let managers = metadata.managed_fields.iter().flatten();
        let managers = managers.filter_map(|entry| entry.manager.as_deref());
        let named = Reconciler::named_by(labels, annotations, managers);
        let named = named.into_iter().find(|one| one.kind == kind);
        Some(Self {
            by: named.map_or_else(|| tool(manager).to_owned(), |one| one.to_string()),
            set,
        })
    }

    /// Whether it sets the field at this path of the spec, or something below it.
    #[must_use]
    pub fn sets(&self, path: &[String]) -> bool {
        self.set.iter().any(|set| {
            let (mut at, prefix) = match set {
                Set::Fields(set) => (set, "f:"),
                Set::Applied(spec) => (spec, ""),
            };
            for name in path {
                match at.get(format!("{prefix}{name}")) {
                    Some(below) => at = below,
                    // `{}` is a field as a whole.
                    None => return !prefix.is_empty() && at.as_object().is_some_and(Map::is_empty),
                }
            }
            true
        })
    }
}

/// The spec that client-side apply has sent last.
fn last_applied(record: &AddonInstallation) -> Option<Value> {
    let annotations = record.metadata.annotations.as_ref()?;
    let mut applied: Value = entrance::from_str(annotations.get(LAST_APPLIED)?).ok()?;
    applied.get_mut("spec").map(Value::take)
}

/// The paths at which two specs differ; lists are compared as a whole.
#[must_use]
pub fn edits(from: &AddonInstallationSpec, to: &AddonInstallationSpec) -> Vec<Vec<String>> {
    let json = |spec| serde_json::to_value(spec).unwrap_or_default();
    let mut found = Vec::new();
    compare(&json(from), &json(to), &mut Vec::new(), &mut found);
    found
}

/// The same with each value under its own path, also the first of a map and the last: not the map that came or went with it.
#[must_use]
pub fn edits_by_value(
    from: &AddonInstallationSpec,
    to: &AddonInstallationSpec,
) -> Vec<Vec<String>> {
    let with_maps_of = |spec: &AddonInstallationSpec, other: &AddonInstallationSpec| {
        let mut spec = spec.clone();
        let values = spec.values.get_or_insert_with(|| json!({}));
        add_maps(values, other.values.as_ref().unwrap_or(&Value::Null));
        spec
    };
    edits(&with_maps_of(from, to), &with_maps_of(to, from))
}

/// Gives `values` the maps that only `other` has, empty; a map without values is named itself.
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

/// The recursion ends with the depth of an object.
fn compare(from: &Value, to: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
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
        compare(&of(old), &of(new), path, found);
        path.pop();
    }
}

#[cfg(test)]
mod tests;
