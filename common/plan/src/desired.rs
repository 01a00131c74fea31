//! The desired objects of an installation as they are sent: with API version and namespace resolved, and with the owner label.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::conflicts::{Policy, PolicyError};
use super::graph::annotations::{OrderAnnotationError, check_annotations};
use super::{Action, Step, Target, one_a_line};
use common::api::installation::ConflictPolicy;
use common::api::names::InstallationName;
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::KindTable;
use common::manifest::kinds::traits::defined_kind;
use common::manifest::kinds::traits::{KeptKind, is_built_in};
use common::manifest::normal::normalise;
use common::manifest::ownership::{self, OwnershipMarks, is_create_only};
use common::manifest::{FilePosition, Manifest, digest};
use common::values::mask::SecretMask;

/// The desired objects of one installation, by key. Their order in the manifest does not matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desired {
    /// The objects.
    pub objects: BTreeMap<ObjectKey, DesiredObject>,
    /// Warnings about corrections of the manifests, sorted.
    pub warnings: Vec<String>,
}

/// A desired object.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// How requests address it.
    pub target: Target,
    /// The complete object as it is sent.
    pub object: Arc<Value>,
    /// Its digest ([`digest_of`]); empty for Secrets.
    pub digest: String,
    /// Whether it is created once and never updated or pruned (annotation `kubectl-addons.dev/apply: create-only`, semantics 12.9).
    pub create_only: bool,
    /// Whether it stays unchanged if it already exists and this installation does not own it: a CRD from `crds/` of a chart (semantics
    /// 12.9).
    pub is_shared: bool,
    /// Its position in the manifests.
    pub place: FilePosition,
}

/// The inputs for resolving manifests.
#[derive(Clone, Copy, Debug)]
pub struct DesiredContext<'a> {
    /// The installation that owns the objects.
    pub installation: &'a InstallationName,
    /// The namespace for objects that do not name one (semantics 7.1).
    pub target_namespace: &'a str,
    /// The kinds that the cluster serves. Those that CRDs of the manifests define are added here.
    pub kinds: &'a KindTable,
    /// Values of Secrets that must not be digested: see [`digest_of`].
    pub mask: &'a SecretMask,
}

/// All problems that keep manifests from becoming desired objects, sorted by position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", one_a_line(problems))]
pub struct DesiredError {
    /// The problems; at least one.
    pub problems: Vec<ManifestProblem>,
}

/// A problem that keeps a manifest from becoming a desired object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ManifestProblem {
    /// No apiVersion, kind or metadata.name.
    #[error("{place}: an object needs apiVersion, kind and metadata.name")]
    Incomplete {
        /// Its position.
        place: FilePosition,
    },
    /// The cluster does not serve the kind in this version.
    #[error("{place}: {key}: the cluster does not serve {kind} in {api_version}; {hint}", kind = key.kind)]
    Unserved {
        /// Its position.
        place: FilePosition,
        /// The object.
        key: ObjectKey,
        /// The apiVersion of the manifest.
        api_version: String,
        /// How to resolve it.
        hint: String,
    },
    /// A kind that cannot be stored, such as TokenReview.
    #[error("{place}: {key}: a {kind} is a question to the API server and cannot be installed; take it out of the manifest", kind = key.kind)]
    NotWritable {
        /// Its position.
        place: FilePosition,
        /// The object.
        key: ObjectKey,
    },
    /// Two different objects with the same key.
    #[error("{place}: {key} is already at {first}, with other content; remove one of them")]
    Duplicate {
        /// The position of the second one.
        place: FilePosition,
        /// The object.
        key: ObjectKey,
        /// The position of the first one.
        first: FilePosition,
    },
    /// An annotation for conflicts or recreation that cannot be read.
    #[error("{place}: {key}: {error}")]
    Policy {
        /// Its position.
        place: FilePosition,
        /// The object.
        key: ObjectKey,
        /// What is wrong with it.
        error: PolicyError,
    },
    /// An annotation about the order that its own tool would refuse.
    #[error("{place}: {key}: {error}")]
    Annotation {
        /// Its position.
        place: FilePosition,
        /// The object.
        key: ObjectKey,
        /// The error. It is part of the message instead of a source, because denials print one line.
        error: OrderAnnotationError,
    },
}

impl DesiredObject {
    /// Whether it is only recorded if another owner already has it: a Namespace, a create-only object, or a shared CRD.
    #[must_use]
    pub fn is_left_to_owner(&self) -> bool {
        let key = &self.target.key;
        let is_namespace = key.group.is_empty() && key.kind == "Namespace";
        is_namespace || self.create_only || self.is_shared
    }

    /// Returns a step that updates the existing object.
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

impl ManifestProblem {
    /// Returns the position of the object.
    #[must_use]
    pub fn place(&self) -> &FilePosition {
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

/// Returns the groups and kinds that the cluster has to serve for `manifests`, without those that CRDs among them define.
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

/// Returns the digest of an object as it is sent. It is empty for Secrets and for objects that contain values of Secrets, because these
/// could be guessed from it (semantics 13.4).
#[must_use]
pub fn digest_of(key: &ObjectKey, object: &Value, mask: &SecretMask) -> String {
    if key.is_secret() || mask.hides(object) {
        String::new()
    } else {
        digest::digest(object)
    }
}

impl Desired {
    /// Resolves every manifest: API version and plural, namespace (semantics 7.1: objects without one get the target namespace, and a
    /// cluster-scoped object loses its own with a warning), ownership marks and digest. Identical duplicates are merged, as `kubectl apply`
    /// does (kops' prometheus-operator of v0.19.0 has one).
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
                kinds.apply_definition(&manifest.object);
            }
        }
        let marks = OwnershipMarks::for_installation(ctx.installation);
        let mut desired = Self::default();
        let mut problems = Vec::new();
        for manifest in manifests {
            let place = manifest.place.clone();
            match desired.resolve(manifest, &kinds, &marks, ctx) {
                Ok(object) => {
                    problems.extend(desired.check_order_annotations(&object));
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

    /// Marks the CRDs with these names as shared.
    pub fn mark_shared(&mut self, definitions: &BTreeSet<String>) {
        for (key, object) in &mut self.objects {
            let is_definition = KeptKind::from_key(key) == Some(KeptKind::CustomResourceDefinition);
            object.is_shared |= is_definition && definitions.contains(&key.name);
        }
    }

    /// Returns the namespaces of all objects.
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
        marks: &OwnershipMarks,
        ctx: &DesiredContext<'_>,
    ) -> Result<DesiredObject, Box<ManifestProblem>> {
        let Manifest {
            object: mut shared,
            place,
        } = manifest;
        let object = Arc::make_mut(&mut shared);
        let (Some(gvk), Some(mut key)) = (Gvk::of(object), ObjectKey::from_object(object)) else {
            return Err(Box::new(ManifestProblem::Incomplete { place }));
        };
        let Some(info) = kinds.get(&gvk) else {
            return Err(Box::new(ManifestProblem::Unserved {
                place,
                key,
                api_version: gvk.api_version(),
                hint: unserved_hint(&gvk, kinds),
            }));
        };
        if !info.writable {
            return Err(Box::new(ManifestProblem::NotWritable { place, key }));
        }
        if let Err(error) = Policy::from_object(object, ConflictPolicy::default()) {
            return Err(Box::new(ManifestProblem::Policy { place, key, error }));
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
        let stripped = ownership::strip_server_fields(object);
        if !stripped.is_empty() {
            self.warnings.push(format!(
                "{place}: {key} was copied from a cluster: {} is left out",
                stripped.join(", ")
            ));
        }
        for warning in normalise(&key, object) {
            self.warnings.push(format!("{place}: {key}: {warning}"));
        }
        marks.add_to(object);
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

    /// Checks the annotations about order: collects their warnings and returns their errors.
    fn check_order_annotations(
        &mut self,
        object: &DesiredObject,
    ) -> impl Iterator<Item = ManifestProblem> {
        let (place, key) = (object.place.clone(), object.target.key.clone());
        let remarks = check_annotations(&key, &object.object);
        for warning in remarks.warnings {
            self.warnings.push(format!("{place}: {key}: {warning}"));
        }
        let errors = remarks.errors.into_iter();
        errors.map(move |error| ManifestProblem::Annotation {
            place: place.clone(),
            key: key.clone(),
            error,
        })
    }

    fn add(&mut self, object: DesiredObject, place: FilePosition) -> Option<ManifestProblem> {
        let key = object.target.key.clone();
        let Some(first) = self.objects.get(&key) else {
            self.objects.insert(key, object);
            return None;
        };
        // The API version is part of the object, but not of the key.
        if first.object == object.object {
            self.warnings.push(format!(
                "{place}: {key} is already at {}, with the same content",
                first.place
            ));
            return None;
        }
        Some(ManifestProblem::Duplicate {
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
