//! One wanted installation: the chosen entry and its record.

mod due;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addons_plan::Verb;
use addons_plan::choices::Choices;
use addons_plan::gitops;
use addons_plan::inventory::Inventory;
use addons_plan::prune::KeptKind;
use addons_render::hooks::Occasion;
use addons_versions::tolerant;
use common::api::installation::{
    AddonInstallation, AddonInstallationSpec, AddonInstallationStatus, AddonRef, Installed,
    ObjectState,
};
use common::api::names::{ANNOTATION_DEFAULTED, ANNOTATION_WRITTEN_BY, InstallationName};
use common::catalogue::content::{self, ContentError};
use common::catalogue::select::Rules;
use common::catalogue::{Entry, Origin};
use common::manifest::key::ObjectKey;
use common::registry::{Registry, RegistryError};
use kube::ResourceExt as _;
use serde_json::json;

use crate::directory::Found;
use crate::error::OperationError;
use crate::intent::Edits;
use crate::kops::Kops;

/// One wanted installation.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Namespace and name of the record.
    pub name: InstallationName,
    /// The record in the cluster.
    pub existing: Option<AddonInstallation>,
    /// The wanted record: the existing one with the new spec, or a new one.
    pub wanted: AddonInstallation,
    /// The chosen entry.
    pub entry: Entry,
    /// The rules that chose it.
    pub rules: Rules,
    /// Whether this version was named: then a downgrade is an error; otherwise it is ignored.
    pub is_asked_for: bool,
    /// What kops' own tool has recorded of it, where that knows it.
    pub kops: Option<Kops>,
    /// Whether objects that exist and that no installation owns become ours, whatever the caller's choices are.
    pub adopts: bool,
    /// Whether this command takes over what another tool installed: it is rendered as an upgrade.
    pub takes_over: bool,
    /// Its objects, where it was found in a directory.
    pub found: Option<Arc<Found>>,
    /// The paths of its spec that the caller changes; what is filled in by default is not among them.
    pub edits: Vec<Vec<String>>,
    /// The revision that it goes back to.
    pub revision: Option<i64>,
    /// Whether the record stays as it is written: then defaults are filled in for the rendering only, and a changed spec is told by
    /// its generation.
    pub keeps_spec: bool,
}

impl Resolved {
    /// The record for `entry`; fields that the user did not set stay unchanged.
    #[must_use]
    pub fn new(
        name: InstallationName,
        existing: Option<AddonInstallation>,
        entry: Entry,
        rules: Rules,
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
            Some(existing) => moved(&entry, &existing.spec.addon_ref),
            None => reference(&entry, &AddonRef::default()),
        };
        Self {
            name,
            existing,
            wanted,
            entry,
            rules,
            is_asked_for: false,
            kops: None,
            adopts: false,
            takes_over: false,
            found: None,
            edits: Vec::new(),
            revision: None,
            keeps_spec: false,
        }
    }

    /// Writes the chosen version and id into the record: it stays at them until other ones are asked for (semantics 12).
    pub(crate) fn pin(&mut self) {
        let before = self.existing.as_ref().map(|record| &record.spec.addon_ref);
        if before.is_some_and(|before| before.version.is_some() && means(before, &self.entry)) {
            return;
        }
        let (version, id) = named(&self.entry);
        let id = id.filter(|_| !before.is_some_and(leaves_id_open));
        self.wanted.spec.addon_ref.version = version;
        self.wanted.spec.addon_ref.id = id;
    }

    /// Names the entry by its digest in the record of a core add-on (semantics 8). What the caller names is compared, and so is what the
    /// record of another add-on names.
    ///
    /// # Errors
    /// [`ContentError`].
    pub(crate) fn accept_content(&mut self) -> Result<(), ContentError> {
        let before = self.existing.as_ref().map(|record| &record.spec.addon_ref);
        let before = before.and_then(|before| before.digest.as_ref());
        let spec = &mut self.wanted.spec;
        let named = spec.addon_ref.digest.as_ref();
        if named.is_some() && (!spec.core_addon || named != before) {
            return content::check(spec, &self.entry);
        }
        if spec.core_addon {
            spec.addon_ref.digest = content::accepted(&self.entry)?;
        }
        Ok(())
    }

    /// Changes its values, what else its record says of them, and its pin. Returns the paths that were to be taken away and that its values do not have.
    ///
    /// # Errors
    /// A change that does not go with what is there.
    pub(crate) fn edit(&mut self, edits: &Edits) -> Result<Vec<String>, OperationError> {
        let spec = &mut self.wanted.spec;
        let absent = edits.absent(spec.values.as_ref());
        if !edits.values.is_empty() {
            let form = &self.entry.version.template.form_spec;
            let had_none = spec.values.is_none();
            let values = edits.over(spec.values.take(), form)?;
            // No values and an empty map are two specs: nothing was taken away from none.
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
        if edits.unpin {
            (spec.addon_ref.version, spec.addon_ref.id) = (None, None);
        }
        Ok(absent)
    }

    /// Notes what the spec says now that the record does not: called before defaults are filled in.
    pub(crate) fn note_edits(&mut self) {
        let existing = self.existing.as_ref();
        self.edits = existing.map_or_else(Vec::new, |existing| {
            gitops::edits(&existing.spec, &self.wanted.spec)
        });
    }

    /// What the caller decided of it for good.
    pub(crate) fn decide(&mut self, choices: &Choices) {
        let spec = &mut self.wanted.spec;
        if let Some(conflicts) = choices.conflicts.filter(|it| *it != spec.conflicts) {
            spec.conflicts = conflicts;
            self.edits.push(vec!["conflicts".to_owned()]);
        }
    }

    /// The record as the operation leaves it.
    pub(crate) fn record(&self) -> &AddonInstallation {
        match &self.existing {
            Some(existing) if self.keeps_spec => existing,
            _ => &self.wanted,
        }
    }

    /// The namespace that carries kops' record of it, where there is one.
    pub(crate) fn record_namespace(&self) -> Option<&str> {
        self.kops.as_ref().map(|kops| kops.namespace.as_str())
    }

    /// The namespace of objects that name none (semantics 7).
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

    /// The private registry that its images come from: the installation's, else that of its catalogue.
    ///
    /// # Errors
    /// Text that is not a registry.
    pub fn registry(&self) -> Result<Option<Registry>, RegistryError> {
        let registry = self.entry.registry_for(&self.wanted.spec);
        registry.map(str::parse).transpose()
    }

    /// Whether the definitions in `crds/` of its charts are left out: the installation says so, or its catalogue.
    pub(crate) fn skips_crds(&self) -> bool {
        let helm = self.entry.version.template.helm.as_ref();
        self.wanted.spec.skip_crds || helm.is_some_and(|helm| helm.skip_crds)
    }

    /// `NAME in catalogue C, spec.addons[0].versions[0]`; a folder that is not an entry has no place.
    #[must_use]
    pub fn place(&self) -> String {
        let entry = &self.entry;
        match (&*entry.origin, entry.place.as_str()) {
            (Origin::Index { location }, "") => return location.clone(),
            (Origin::Directory { path }, _) => return format!("{} in {path}", entry.addon),
            _ => {}
        }
        format!("{} in {}, {}", entry.addon, entry.origin, entry.place)
    }

    /// Whether something is installed already, by us or by another tool that it is taken over from: hooks for installations do not run
    /// on what is live. An adoption that was interrupted counts, too (semantics 12).
    #[must_use]
    pub fn occasion(&self) -> Occasion {
        let is_adopt = |verb: &str| Verb::of_record(verb) == Some(Verb::Adopt);
        let was_begun = self.status().is_some_and(|status| {
            let operations = status.operation.iter().map(|operation| &operation.verb);
            let mut verbs = operations.chain(status.history.iter().map(|revision| &revision.verb));
            !status.former.is_empty() || verbs.any(|verb| is_adopt(verb))
        });
        match self.takes_over || was_begun || self.installed().is_some() {
            true => Occasion::Upgrade,
            false => Occasion::Install,
        }
    }

    /// The status of the stored record.
    pub(crate) fn status(&self) -> Option<&AddonInstallationStatus> {
        self.existing.as_ref()?.status.as_ref()
    }

    /// What the stored record says is installed.
    pub(crate) fn installed(&self) -> Option<&Installed> {
        self.existing.as_ref()?.installed()
    }

    /// The record to go back to where nothing of the operation is applied: the stored one, or for a new one that without what the user
    /// entered. `None` where an interrupted operation may have applied something with the stored spec.
    pub(crate) fn fallback(&self) -> Option<AddonInstallation> {
        let Some(existing) = &self.existing else {
            let mut record = self.wanted.clone();
            record.spec.values = None;
            record.spec.registry = None;
            record.spec.skip_crds = false;
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

    /// The recorded objects that stay although they are not wanted, and why: those of an add-on that was found in a directory.
    pub(crate) fn held(&self, inventory: &Inventory) -> BTreeMap<ObjectKey, String> {
        let found = self.found.as_ref();
        found.map(|found| found.held(inventory)).unwrap_or_default()
    }

    /// Whether the record retains an object of these kinds, which are to be deleted now.
    pub(crate) fn retains(&self, kinds: &BTreeSet<KeptKind>) -> bool {
        let inventory = Inventory::of(self.status());
        inventory.objects.iter().any(|(key, item)| {
            item.object.state == ObjectState::Retained
                && KeptKind::of(key).is_some_and(|kind| kinds.contains(&kind))
        })
    }
}

/// Takes away who wrote the record: whoever writes it next is not its former writer (semantics 19). Core add-ons are exempt.
fn forget_writer(record: &mut AddonInstallation) {
    if let Some(annotations) = &mut record.metadata.annotations
        && !record.spec.core_addon
    {
        annotations.remove(ANNOTATION_WRITTEN_BY);
    }
}

/// Where the entry is from. The version is named where `before` names one: what names none follows newer entries (semantics 12).
fn reference(entry: &Entry, before: &AddonRef) -> AddonRef {
    let (mut catalogue, mut index, mut directory) = (None, None, None);
    match &*entry.origin {
        Origin::Catalogue { name, .. } => catalogue = Some(name.clone()),
        Origin::Index { location } => index = Some(location.clone()),
        Origin::Directory { path } => directory = Some(path.clone()),
    }
    let (version, id) = named(entry);
    AddonRef {
        name: entry.addon.clone(),
        version: version.filter(|_| before.version.is_some()),
        id: id.filter(|_| before.version.is_some() || before.id.is_some()),
        catalogue,
        index,
        directory,
        digest: None,
    }
}

/// The reference of a record to `entry`. What the record leaves to us it still leaves to us, so that whoever keeps it in a file may
/// name another origin there; one that means the entry already stays as it is spelled.
fn moved(entry: &Entry, before: &AddonRef) -> AddonRef {
    if means(before, entry) {
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

/// Whether a reference is one to this entry.
fn means(reference: &AddonRef, entry: &Entry) -> bool {
    let origin = match &*entry.origin {
        Origin::Catalogue { name, .. } => {
            !has_origin(reference) || reference.catalogue.as_ref() == Some(name)
        }
        Origin::Index { location } => reference.index.as_ref() == Some(location),
        Origin::Directory { path } => reference.directory.as_ref() == Some(path),
    };
    let version = reference.version.as_deref();
    let id = reference.id.as_deref();
    origin
        && reference.name == entry.addon
        && version.is_none_or(|version| tolerant::same(version, &entry.version.version))
        && id.is_none_or(|id| id == entry.version.id)
}

/// Whether it names a version of whatever id.
fn leaves_id_open(reference: &AddonRef) -> bool {
    reference.version.is_some() && reference.id.is_none()
}

fn has_origin(reference: &AddonRef) -> bool {
    reference.catalogue.is_some() || reference.index.is_some() || reference.directory.is_some()
}

/// Version and id of an entry, as far as it has them.
fn named(entry: &Entry) -> (Option<String>, Option<String>) {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    (some(&entry.version.version), some(&entry.version.id))
}

#[cfg(test)]
#[path = "resolved/tests.rs"]
mod tests;
