//! The wanted objects of an installation, as they are sent: addressed, in their namespace, marked as ours.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::conflicts::{Policy, PolicyError};
use super::graph::annotations::{AnnotationError, remarks};
use super::{Action, Step, Target, one_a_line};
use common::api::installation::Conflicts;
use common::api::names::InstallationName;
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::KindTable;
use common::manifest::kinds::traits::defined_kind;
use common::manifest::kinds::traits::{KeptKind, is_built_in};
use common::manifest::normal::normalise;
use common::manifest::ownership::{self, Marks, is_create_only};
use common::manifest::{Manifest, Place, digest};
use common::values::mask::Mask;

/// The wanted objects of one installation, by key; the order of the manifest does not matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desired {
    /// The objects.
    pub objects: BTreeMap<ObjectKey, DesiredObject>,
    /// Corrections that were made, sorted.
    pub warnings: Vec<String>,
}

/// One wanted object.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// Where requests go.
    pub target: Target,
    /// The whole object as it is sent.
    pub object: Arc<Value>,
    /// [`digest_of`] the object.
    pub digest: String,
    /// Created once, never updated or pruned (annotation `kubectl-addons.dev/apply: create-only`, semantics 12).
    pub create_only: bool,
    /// Whether it is left to whoever has it already: a definition from `crds/` of a chart, which helm does not change either.
    pub is_shared: bool,
    /// Where it was read.
    pub place: Place,
}

/// The inputs for resolving manifests.
#[derive(Clone, Copy, Debug)]
pub struct DesiredContext<'a> {
    /// The installation that owns the objects.
    pub installation: &'a InstallationName,
    /// The namespace of objects that name none (semantics 7).
    pub target_namespace: &'a str,
    /// What the cluster serves; what CRDs of the manifests will serve is added here.
    pub kinds: &'a KindTable,
    /// Values of Secrets: see [`digest_of`].
    pub mask: &'a Mask,
}

/// Every reason why manifests cannot become wanted objects, sorted by place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", one_a_line(problems))]
pub struct DesiredError {
    /// The reasons; one at least.
    pub problems: Vec<Problem>,
}

/// Why one manifest cannot become a wanted object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Problem {
    /// No apiVersion, kind or metadata.name.
    #[error("{place}: an object needs apiVersion, kind and metadata.name")]
    Incomplete {
        /// Where.
        place: Place,
    },
    /// The cluster does not serve the kind.
    #[error("{place}: {key}: the cluster does not serve {kind} in {api_version}; {hint}", kind = key.kind)]
    Unserved {
        /// Where.
        place: Place,
        /// The object.
        key: ObjectKey,
        /// As it is written.
        api_version: String,
        /// What to do.
        hint: String,
    },
    /// A kind such as TokenReview.
    #[error("{place}: {key}: a {kind} is a question to the API server and cannot be installed; take it out of the manifest", kind = key.kind)]
    NotWritable {
        /// Where.
        place: Place,
        /// The object.
        key: ObjectKey,
    },
    /// Two different objects of one key.
    #[error("{place}: {key} is already at {first}, with other content; remove one of them")]
    Duplicate {
        /// Where the second one is.
        place: Place,
        /// The object.
        key: ObjectKey,
        /// Where the first one is.
        first: Place,
    },
    /// An annotation for conflicts or recreation that cannot be read.
    #[error("{place}: {key}: {error}")]
    Policy {
        /// Where.
        place: Place,
        /// The object.
        key: ObjectKey,
        /// What is wrong with it.
        error: PolicyError,
    },
    /// An annotation about the order that the tool which reads it would refuse.
    #[error("{place}: {key}: {error}")]
    Annotation {
        /// Where.
        place: Place,
        /// The object.
        key: ObjectKey,
        /// What is wrong; it is part of the message, because denials print one line.
        error: AnnotationError,
    },
}

impl DesiredObject {
    /// Whether it is left to whoever has it already, and then only recorded: a Namespace, what is created once, and what is shared.
    #[must_use]
    pub fn is_left(&self) -> bool {
        let key = &self.target.key;
        let is_namespace = key.group.is_empty() && key.kind == "Namespace";
        is_namespace || self.create_only || self.is_shared
    }

    /// The step that applies it to an object that exists.
    #[must_use]
    pub fn as_update(&self) -> Step {
        Step {
            target: self.target.clone(),
            action: Action::Update,
            object: Arc::clone(&self.object),
            uid: None,
            digest: self.digest.clone(),
            seen: None,
            policy: Policy::default(),
        }
    }
}

impl Problem {
    fn place(&self) -> &Place {
        match self {
            Self::Incomplete { place }
            | Self::Unserved { place, .. }
            | Self::NotWritable { place, .. }
            | Self::Duplicate { place, .. }
            | Self::Policy { place, .. }
            | Self::Annotation { place, .. } => place,
        }
    }
}

/// Groups and kinds that the cluster has to serve for `manifests`, without those that definitions among them define.
#[must_use]
pub fn needed_kinds(manifests: &[Manifest]) -> BTreeSet<(String, String)> {
    let objects = || manifests.iter().map(|manifest| &*manifest.object);
    let defined: BTreeSet<_> = objects().filter_map(defined_kind).collect();
    objects()
        .filter_map(Gvk::of)
        .map(|gvk| (gvk.group, gvk.kind))
        .filter(|kind| !defined.contains(kind))
        .collect()
}

/// Digest of an object as it is sent; empty for Secrets and for what holds values of Secrets, which could be guessed from it
/// (semantics 13).
#[must_use]
pub fn digest_of(key: &ObjectKey, object: &Value, mask: &Mask) -> String {
    if key.is_secret() || mask.hides(object) {
        String::new()
    } else {
        digest::digest(object)
    }
}

impl Desired {
    /// Resolves every manifest: how it is addressed, its namespace (semantics 7: objects without one get the target
    /// namespace, a cluster-scoped object loses its own with a warning), the marks of ownership, the digest.
    /// The same object twice is taken once, as `kubectl apply` does (kops' prometheus-operator of v0.19.0 has one).
    ///
    /// # Errors
    /// [`DesiredError`] with every problem of every manifest.
    pub fn new(
        mut manifests: Vec<Manifest>,
        ctx: &DesiredContext<'_>,
    ) -> Result<Self, DesiredError> {
        manifests.sort_by(|a, b| a.place.cmp(&b.place));
        let mut kinds = ctx.kinds.clone();
        for manifest in &manifests {
            if defined_kind(&manifest.object).is_some() {
                kinds.define(&manifest.object);
            }
        }
        let marks = Marks::of(ctx.installation);
        let mut desired = Self::default();
        let mut problems = Vec::new();
        for manifest in manifests {
            let place = manifest.place.clone();
            match desired.resolve(manifest, &kinds, &marks, ctx) {
                Ok(object) => {
                    problems.extend(desired.read_order(&object));
                    problems.extend(desired.add(object, place));
                }
                Err(problem) => problems.push(*problem),
            }
        }
        if problems.is_empty() {
            desired.warnings.sort();
            return Ok(desired);
        }
        problems.sort_by(|a, b| (a.place(), a).cmp(&(b.place(), b)));
        Err(DesiredError { problems })
    }

    /// Marks the definitions of these names as shared.
    pub fn share(&mut self, definitions: &BTreeSet<String>) {
        for (key, object) in &mut self.objects {
            let is_definition = KeptKind::of(key) == Some(KeptKind::CustomResourceDefinition);
            object.is_shared |= is_definition && definitions.contains(&key.name);
        }
    }

    /// Every namespace of an object.
    #[must_use]
    pub fn namespaces(&self) -> BTreeSet<&str> {
        self.objects
            .keys()
            .filter_map(|key| key.namespace.as_deref())
            .collect()
    }

    fn resolve(
        &mut self,
        manifest: Manifest,
        kinds: &KindTable,
        marks: &Marks,
        ctx: &DesiredContext<'_>,
    ) -> Result<DesiredObject, Box<Problem>> {
        let Manifest {
            object: mut shared,
            place,
        } = manifest;
        let object = Arc::make_mut(&mut shared);
        let (Some(gvk), Some(mut key)) = (Gvk::of(object), ObjectKey::of(object)) else {
            return Err(Box::new(Problem::Incomplete { place }));
        };
        let Some(info) = kinds.get(&gvk) else {
            return Err(Box::new(Problem::Unserved {
                place,
                key,
                api_version: gvk.api_version(),
                hint: unserved_hint(&gvk, kinds),
            }));
        };
        if !info.writable {
            return Err(Box::new(Problem::NotWritable { place, key }));
        }
        if let Err(error) = Policy::of(object, Conflicts::default()) {
            return Err(Box::new(Problem::Policy { place, key, error }));
        }
        key.namespace = key.namespace.filter(|namespace| !namespace.is_empty());
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            if info.namespaced {
                let namespace = key
                    .namespace
                    .get_or_insert_with(|| ctx.target_namespace.to_owned());
                metadata.insert("namespace".to_owned(), json!(namespace));
            } else {
                metadata.remove("namespace");
                if let Some(namespace) = key.namespace.take() {
                    self.warnings.push(format!(
                        "{place}: {key} is cluster-scoped: metadata.namespace {namespace} is left out"
                    ));
                }
            }
        }
        let stripped = ownership::strip(object);
        if !stripped.is_empty() {
            self.warnings.push(format!(
                "{place}: {key} was copied from a cluster: {} is left out",
                stripped.join(", ")
            ));
        }
        for warning in normalise(&key, object) {
            self.warnings.push(format!("{place}: {key}: {warning}"));
        }
        marks.put_on(object);
        Ok(DesiredObject {
            digest: digest_of(&key, object, ctx.mask),
            create_only: is_create_only(object),
            is_shared: false,
            object: shared,
            target: Target {
                key,
                version: gvk.version,
                plural: info.plural.clone(),
            },
            place,
        })
    }

    /// What is wrong with the annotations about order.
    fn read_order(&mut self, object: &DesiredObject) -> impl Iterator<Item = Problem> {
        let (place, key) = (object.place.clone(), object.target.key.clone());
        let remarks = remarks(&key, &object.object);
        for warning in remarks.warnings {
            self.warnings.push(format!("{place}: {key}: {warning}"));
        }
        let errors = remarks.errors.into_iter();
        errors.map(move |error| Problem::Annotation {
            place: place.clone(),
            key: key.clone(),
            error,
        })
    }

    fn add(&mut self, object: DesiredObject, place: Place) -> Option<Problem> {
        let key = object.target.key.clone();
        let Some(first) = self.objects.get(&key) else {
            self.objects.insert(key, object);
            return None;
        };
        // The version is not part of the key, but of the object.
        if first.object == object.object {
            self.warnings.push(format!(
                "{place}: {key} is already at {}, with the same content",
                first.place
            ));
            return None;
        }
        Some(Problem::Duplicate {
            place,
            key,
            first: first.place.clone(),
        })
    }
}

fn unserved_hint(gvk: &Gvk, kinds: &KindTable) -> String {
    if let Some((served, _)) = kinds.preferred(&gvk.group, &gvk.kind) {
        format!("it is served as {}", served.api_version())
    } else if is_built_in(&gvk.group) {
        "choose a version of the add-on that fits this Kubernetes version".to_owned()
    } else {
        "its CustomResourceDefinition is neither in the cluster nor in the manifest: install the add-on that defines it first"
            .to_owned()
    }
}

#[cfg(test)]
mod tests;
