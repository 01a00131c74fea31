//! A wanted installation: the chosen entry and its record.

mod due;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addons_plan::choices::Choices;
use addons_plan::closing::ClosingStep;
use addons_plan::gitops;
use addons_plan::inventory::Inventory;
use addons_plan::prune::KeptKind;
use addons_plan::{Deletion, Verb};
use addons_render::hooks::Occasion;
use addons_versions::tolerant;
use common::api::catalogue::{Method, PruneKind};
use common::api::installation::{
    AddonFrom, AddonInstallation, AddonInstallationSpec, AddonInstallationStatus, AddonRef,
    Installed, ObjectState,
};
use common::api::names::{ANNOTATION_DEFAULTED, ANNOTATION_WRITTEN_BY, InstallationName};
use common::catalogue::content::{self, ContentError};
use common::catalogue::due::DueVerdict;
use common::catalogue::select::SelectionRules;
use common::catalogue::{CatalogueEntry, Origin};
use common::manifest::Manifest;
use common::manifest::key::ObjectKey;
use common::registry::{Registry, RegistryNameError};
use kube::ResourceExt as _;
use serde_json::json;

use crate::error::OperationError;
use crate::intent::Edits;

/// A wanted installation.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Namespace and name of the record.
    pub name: InstallationName,
    /// The record in the cluster.
    pub existing: Option<AddonInstallation>,
    /// The wanted record: the existing one with the new spec, or a new one.
    pub wanted: AddonInstallation,
    /// The chosen entry.
    pub entry: CatalogueEntry,
    /// The rules that chose it.
    pub rules: SelectionRules,
    /// Whether the user named this version: a downgrade is then an error, and is otherwise ignored.
    pub is_asked_for: bool,
    /// What another tool has recorded of the same add-on.
    pub shared: Option<SharedRecord>,
    /// Whether existing objects that no installation owns are adopted, whatever the caller's choices are.
    pub adopts: bool,
    /// Whether this command adopts what another tool installed, which is rendered as an upgrade.
    pub takes_over: bool,
    /// Its objects, if they were read already: then nothing is fetched and rendered.
    pub given: Option<Arc<GivenObjects>>,
    /// The paths of its spec that the caller changes, without those that get defaults.
    pub edits: Vec<Vec<String>>,
    /// The revision that it is rolled back to.
    pub revision: Option<i64>,
    /// Whether the record stays as it is written: defaults are then filled in only for the rendering, and a changed spec is detected by its
    /// generation.
    pub keeps_spec: bool,
}

/// What another tool that manages the same add-on has recorded of it.
#[derive(Clone, Debug)]
pub struct SharedRecord {
    /// The namespace that carries the record. It must exist even if no object is in it.
    pub namespace: String,
    /// The field manager of that tool.
    pub manager: &'static str,
    /// Whether the add-on is due, if that record decides it and not ours.
    pub due: Option<DueVerdict>,
    /// The steps that update the record after the operation.
    pub closing: Vec<ClosingStep>,
    /// How to find the objects that the tool installed; `None` if our record has them, or if the tool installed none.
    pub unrecorded: Option<UnrecordedSearch>,
}

/// The rules to find live objects of an add-on that no inventory has.
#[derive(Clone, Debug, Default)]
pub struct UnrecordedSearch {
    /// The rules.
    pub rules: Vec<PruneKind>,
    /// Rules that are not applied, and why.
    pub warnings: Vec<String>,
    /// Labels by which the tool finds objects of a former version: a warning counts the desired objects without them.
    pub selector: BTreeMap<String, String>,
    /// Whose selector it is, for that warning: `kops'`.
    pub whose: &'static str,
}

/// Objects that were read by the caller, such as those of a file in a directory.
#[derive(Clone, Debug, Default)]
pub struct GivenObjects {
    /// Where they were read. Errors name the installation by it.
    pub path: String,
    /// The number of the file, if the command applies its files in the order of their numbers.
    pub number: Option<u64>,
    /// The objects.
    pub manifests: Vec<Manifest>,
    /// The digest of their manifests.
    pub digest: String,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// Recorded objects that stay although they are not among the given ones, with the reasons.
    pub kept: BTreeMap<ObjectKey, String>,
    /// Objects without an owner that are deleted once the given ones are ready.
    pub superseded: Vec<Deletion>,
}

impl GivenObjects {
    /// Wraps an error with the place of the objects.
    pub(crate) fn wrap_error(&self, resolved: &Resolved, error: OperationError) -> OperationError {
        let directory = resolved.wanted.spec.addon_ref.directory.clone();
        OperationError::InDirectory {
            path: self.path.clone(),
            installation: resolved.name.clone(),
            directory: directory.unwrap_or_default(),
            error: Box::new(error),
        }
    }
}

impl Resolved {
    /// Creates the record for `entry`. Fields that the user did not set stay unchanged.
    #[must_use]
    pub fn new(
        name: InstallationName,
        existing: Option<AddonInstallation>,
        entry: CatalogueEntry,
        rules: SelectionRules,
    ) -> Self {
        let mut wanted = existing.clone().unwrap_or_else(|| {
            let mut record = AddonInstallation::new(
                &name.name,
                AddonInstallationSpec {
                    create_namespace: true,
                    ..Default::default()
                },
            );
            record.metadata.namespace = Some(name.namespace.clone());
            record
        });
        forget_writer(&mut wanted);
        wanted.spec.addon_ref = match &existing {
            Some(existing) => updated_reference(&entry, &existing.spec.addon_ref),
            None => reference(&entry, &AddonRef::default()),
        };
        Self {
            name,
            existing,
            wanted,
            entry,
            rules,
            is_asked_for: false,
            shared: None,
            adopts: false,
            takes_over: false,
            given: None,
            edits: Vec::new(),
            revision: None,
            keeps_spec: false,
        }
    }

    /// Pins the record to the chosen version and id (semantics 12.2).
    pub fn pin(&mut self) {
        let before = self.existing.as_ref().map(|record| &record.spec.addon_ref);
        if before.is_some_and(|before| before.version.is_some() && refers_to(before, &self.entry)) {
            return;
        }
        let (version, id) = version_and_id(&self.entry);
        let id = id.filter(|_| !before.is_some_and(leaves_id_open));
        self.wanted.spec.addon_ref.version = version;
        self.wanted.spec.addon_ref.id = id;
    }

    /// Writes the digest of the entry into the record of a core add-on (semantics 8). A digest that the caller names, or that the record of
    /// another add-on names, is compared instead.
    ///
    /// # Errors
    /// [`ContentError`].
    pub fn accept_content(&mut self) -> Result<(), ContentError> {
        let before = self.existing.as_ref().map(|record| &record.spec.addon_ref);
        let before = before.and_then(|before| before.digest.as_ref());
        let spec = &mut self.wanted.spec;
        let named = spec.addon_ref.digest.as_ref();
        if named.is_some() && (!spec.core_addon || named != before) {
            return content::check(spec, &self.entry);
        }
        if spec.core_addon {
            spec.addon_ref.digest = content::accepted_digest(&self.entry)?;
        }
        Ok(())
    }

    /// Applies changes to the values, the related fields and the pin of the record. Returns the paths to remove that its values do not
    /// have.
    ///
    /// # Errors
    /// A change does not fit the existing values.
    pub(crate) fn apply_edits(&mut self, edits: &Edits) -> Result<Vec<String>, OperationError> {
        let spec = &mut self.wanted.spec;
        let absent = edits.missing_paths(spec.values.as_ref());
        let template = &self.entry.version.template;
        let former = edits.former.as_ref();
        let former = former.filter(|_| template.method == Method::Helm);
        if !edits.values.is_empty() || former.is_some() {
            let had_none = spec.values.is_none();
            let values = spec.values.take().or_else(|| former.cloned());
            let values = edits.apply_to(values, &template.form_spec)?;
            // Removing something from no values leaves no values, and not an empty map, which would be another spec.
            spec.values = Some(values).filter(|values| !had_none || *values != json!({}));
        }
        if let Some(secrets) = &edits.values_from {
            spec.values_from.clone_from(secrets);
        }
        if let Some(registry) = &edits.registry {
            spec.registry = (!registry.is_empty()).then(|| registry.clone());
        }
        if let Some(skip_crds) = edits.skip_crds {
            spec.skip_crds = skip_crds;
        }
        if let Some(patches) = &edits.patches {
            spec.patches.clone_from(patches);
        }
        if edits.unpin {
            (spec.addon_ref.version, spec.addon_ref.id) = (None, None);
        }
        Ok(absent)
    }

    /// Stores which fields of the spec differ from the stored record, before defaults are filled in.
    pub(crate) fn note_edits(&mut self) {
        let existing = self.existing.as_ref();
        self.edits = existing.map_or_else(Vec::new, |existing| {
            gitops::diff_specs(&existing.spec, &self.wanted.spec)
        });
    }

    /// Applies the choices of the caller that become part of the spec.
    pub(crate) fn apply_choices(&mut self, choices: &Choices) {
        let spec = &mut self.wanted.spec;
        if let Some(conflicts) = choices.conflicts.filter(|it| *it != spec.conflicts) {
            spec.conflicts = conflicts;
            self.edits.push(vec!["conflicts".to_owned()]);
        }
    }

    /// Returns the record as the operation leaves it.
    pub(crate) fn record(&self) -> &AddonInstallation {
        match &self.existing {
            Some(existing) if self.keeps_spec => existing,
            _ => &self.wanted,
        }
    }

    /// Returns the namespace that carries the record of another tool, if there is one.
    pub(crate) fn record_namespace(&self) -> Option<&str> {
        let shared = self.shared.as_ref();
        shared.map(|shared| shared.namespace.as_str())
    }

    /// Returns the namespace of objects that name none (semantics 7.1).
    #[must_use]
    pub fn target_namespace(&self) -> &str {
        let default = self
            .entry
            .version
            .default_namespace
            .as_deref()
            .unwrap_or(&self.entry.addon);
        self.wanted
            .spec
            .target_namespace
            .as_deref()
            .unwrap_or(default)
    }

    /// Returns the private registry of its images: that of the installation, else that of its catalogue.
    ///
    /// # Errors
    /// The text is not a registry.
    pub fn registry(&self) -> Result<Option<Registry>, RegistryNameError> {
        let registry = self.entry.registry_for(&self.wanted.spec);
        registry.map(str::parse).transpose()
    }

    /// Whether the definitions in `crds/` of its charts are left out, because the installation or its entry says so.
    pub(crate) fn skips_crds(&self) -> bool {
        let helm = self.entry.version.template.helm.as_ref();
        self.wanted.spec.skip_crds || helm.is_some_and(|helm| helm.skip_crds)
    }

    /// Returns `NAME in catalogue C, spec.addons[0].versions[0]`, or the location of a folder that is not an entry.
    #[must_use]
    pub fn place(&self) -> String {
        let entry = &self.entry;
        match (&*entry.origin, entry.place.as_str()) {
            (Origin::Index { location }, "") | (Origin::Installation { location }, _) => {
                return location.clone();
            }
            (Origin::Directory { path }, _) => return format!("{} in {path}", entry.addon),
            _ => {}
        }
        format!("{} in {}, {}", entry.addon, entry.origin, entry.place)
    }

    /// Returns the occasion for hooks. It is an upgrade if something is already installed, by us or by a tool that it is adopted from,
    /// because install hooks do not run on live objects. An interrupted adoption counts as well (semantics 12.8).
    #[must_use]
    pub fn occasion(&self) -> Occasion {
        let was_begun = self.status().is_some_and(|status| {
            let operations = status.operation.iter().map(|operation| &operation.verb);
            let mut verbs = operations.chain(status.history.iter().map(|revision| &revision.verb));
            !status.former.is_empty() || verbs.any(|verb| *verb == Verb::Adopt)
        });
        match self.takes_over || was_begun || self.installed().is_some() {
            true => Occasion::Upgrade,
            false => Occasion::Install,
        }
    }

    /// Returns the status of the stored record.
    pub(crate) fn status(&self) -> Option<&AddonInstallationStatus> {
        self.existing.as_ref()?.status.as_ref()
    }

    /// Returns what the stored record says is installed.
    pub(crate) fn installed(&self) -> Option<&Installed> {
        self.existing.as_ref()?.installed()
    }

    /// Returns the record to restore if nothing was applied: the stored one or, for a new installation, the new one without user input.
    /// Returns `None` if an interrupted operation may have applied something with the stored spec.
    pub(crate) fn fallback(&self) -> Option<AddonInstallation> {
        let Some(existing) = &self.existing else {
            let mut record = self.wanted.clone();
            record.spec.values = None;
            record.spec.registry = None;
            record.spec.skip_crds = false;
            record.spec.patches = Vec::new();
            record.annotations_mut().remove(ANNOTATION_DEFAULTED);
            return Some(record);
        };
        let status = existing.status.as_ref();
        let is_interrupted = status.is_some_and(|status| status.operation.is_some());
        (!is_interrupted).then(|| {
            let mut former = existing.clone();
            forget_writer(&mut former);
            former
        })
    }

    /// Whether the record retains an object of these kinds, which are to be deleted now.
    pub(crate) fn retains(&self, kinds: &BTreeSet<KeptKind>) -> bool {
        let inventory = Inventory::from_status(self.status());
        inventory.objects.iter().any(|(key, item)| {
            item.object.state == ObjectState::Retained
                && KeptKind::from_key(key).is_some_and(|kind| kinds.contains(&kind))
        })
    }
}

/// Removes the writer of the record: the next writer is not the former one (semantics 19.3). Core add-ons are exempt.
fn forget_writer(record: &mut AddonInstallation) {
    if let Some(annotations) = &mut record.metadata.annotations
        && !record.spec.core_addon
    {
        annotations.remove(ANNOTATION_WRITTEN_BY);
    }
}

/// Returns a reference to the entry. It names the version only if `before` does; otherwise it follows newer entries (semantics 12.2).
fn reference(entry: &CatalogueEntry, before: &AddonRef) -> AddonRef {
    let mut reference = AddonRef::default();
    match &*entry.origin {
        Origin::Catalogue { name, .. } => reference.catalogue = Some(name.clone()),
        Origin::Index { location } => reference.index = Some(location.clone()),
        Origin::Installation { .. } => {
            reference.from = Some(Box::new(AddonFrom::from_version(&entry.version)))
        }
        Origin::Directory { path } => reference.directory = Some(path.clone()),
    }
    let (version, id) = version_and_id(entry);
    AddonRef {
        name: entry.addon.clone(),
        version: version.filter(|_| before.version.is_some()),
        id: id.filter(|_| before.version.is_some() || before.id.is_some()),
        ..reference
    }
}

/// Returns the reference of a record to `entry`. Fields that the record leaves open stay open, so that a file that holds the record may
/// name another origin. A reference that already means the entry stays unchanged (semantics 10.2).
fn updated_reference(entry: &CatalogueEntry, before: &AddonRef) -> AddonRef {
    if refers_to(before, entry) {
        return before.clone();
    }
    let mut next = reference(entry, before);
    if leaves_id_open(before) {
        next.id = None;
    }
    if !has_origin(before) && matches!(*entry.origin, Origin::Catalogue { .. }) {
        next.catalogue = None;
    }
    next
}

/// Whether a reference means this entry.
fn refers_to(reference: &AddonRef, entry: &CatalogueEntry) -> bool {
    let origin = match &*entry.origin {
        Origin::Catalogue { name, .. } => {
            !has_origin(reference) || reference.catalogue.as_ref() == Some(name)
        }
        Origin::Index { location } => reference.index.as_ref() == Some(location),
        Origin::Installation { .. } => {
            reference.from.as_deref() == Some(&AddonFrom::from_version(&entry.version))
        }
        Origin::Directory { path } => reference.directory.as_ref() == Some(path),
    };
    let version = reference.version.as_deref();
    let id = reference.id.as_deref();
    origin
        && reference.name == entry.addon
        && version.is_none_or(|version| tolerant::is_same(version, &entry.version.version))
        && id.is_none_or(|id| id == entry.version.id)
}

/// Whether a reference names a version with any id.
fn leaves_id_open(reference: &AddonRef) -> bool {
    reference.version.is_some() && reference.id.is_none()
}

fn has_origin(reference: &AddonRef) -> bool {
    reference.catalogue.is_some() || !reference.is_of_catalogue()
}

/// Returns the version and id of an entry, if it has them.
fn version_and_id(entry: &CatalogueEntry) -> (Option<String>, Option<String>) {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    (some(&entry.version.version), some(&entry.version.id))
}

#[cfg(test)]
#[path = "resolved/tests.rs"]
mod tests;
