//! What a future release of Kubernetes would do to an installation: whether its version fits, which version would, and which of the APIs
//! that it uses are deprecated, removed or unknown there; what else in the cluster can block the upgrade ([`risk`]), and the order of
//! upgrades. These functions send no requests.

pub mod api_services;
pub mod check;
pub mod lifecycle;
pub mod order;
pub mod risk;
pub mod stored;
pub mod webhooks;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use addons_plan::inventory::Inventory;
use common::api::catalogue::{Deprecation, Requirement};
use common::api::installation::AddonInstallation;
use common::api::names::field_manager;
use common::catalogue::due::{DueReason, DueVerdict, decide_due};
use common::catalogue::installed::find_deprecation;
use common::catalogue::select::{
    ClusterVersions, EntryRequest, SelectionRules, choose, find_misfit,
};
use common::catalogue::{Catalogue, CatalogueEntry, version_label};
use common::manifest::key::{Gvk, ObjectKey};
use lifecycle::{ApiFate, KubernetesRelease, Lifecycle};

/// The facts of the cluster before and after its upgrade.
#[derive(Clone, Debug)]
pub struct UpgradeClusters {
    /// The cluster with its present release.
    pub now: ClusterVersions,
    /// The cluster with the future release.
    pub then: ClusterVersions,
}

/// A field manager, and the API version in which it last wrote an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiWriter {
    /// Its name.
    pub manager: String,
    /// The API version as in managedFields: `policy/v1beta1`.
    pub api_version: String,
}

/// The verdict on an installation, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum PreflightVerdict {
    /// Its version fits, and its APIs are served.
    Fits,
    /// It is not known.
    Unknown,
    /// Its version does not fit, or an API that it uses is not served.
    DoesNotFit,
}

/// Whether the constraints of the installed version allow the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseConstraint {
    /// They allow it, or do not mention it.
    Allows,
    /// They exclude it, with the reason.
    Excludes(String),
    /// It is not known, with the reason.
    Unknown(String),
}

/// The version to upgrade to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "when", content = "version")]
pub enum UpgradeRemedy {
    /// It fits both releases: upgrade to it before the cluster.
    Before(String),
    /// It fits only the future release: upgrade to it right after the cluster.
    After(String),
}

/// An API that an installation uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsedApi {
    /// The API.
    #[serde(flatten)]
    pub api: Gvk,
    /// The number of objects that use it.
    pub objects: usize,
    /// The field managers that write it; empty if the manifests of the add-on use it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<String>,
    /// Its state in the future release.
    #[serde(flatten)]
    pub fate: ApiFate,
}

/// The result for one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreflightFinding {
    /// The overall verdict.
    pub verdict: PreflightVerdict,
    /// Whether the installed version allows the release.
    pub constraint: ReleaseConstraint,
    /// The version to upgrade to; only if the installed one does not fit.
    pub remedy: Option<UpgradeRemedy>,
    /// What that version requires of other add-ons.
    pub requires: Vec<Requirement>,
    /// Set if the installed version is deprecated. It does not affect the verdict.
    pub deprecated: Option<Deprecation>,
    /// The APIs of its objects, except those that are served without deprecation.
    pub apis: Vec<UsedApi>,
    /// The APIs in which other managers write its objects. They do not affect the verdict, because most entries are outdated.
    pub writers: Vec<UsedApi>,
}

/// Checks one installation. `catalogue`: its origin, or why that cannot be read; `None` for an origin without constraints.
#[must_use]
pub fn check_installation(
    record: &AddonInstallation,
    catalogue: Option<Result<&Catalogue, String>>,
    writers: &BTreeMap<ObjectKey, Vec<ApiWriter>>,
    clusters: &UpgradeClusters,
    rules: SelectionRules,
    table: &Lifecycle,
) -> PreflightFinding {
    let release = clusters
        .then
        .kubernetes
        .as_ref()
        .map(KubernetesRelease::from);
    let inventory = Inventory::from_status(record.status.as_ref());
    let apis = release.map_or_else(Vec::new, |release| applied_apis(&inventory, release, table));
    let deprecated = match &catalogue {
        Some(Ok(catalogue)) => find_deprecation(record, catalogue).cloned(),
        None | Some(Err(_)) => None,
    };
    let (constraint, fitting) = match catalogue {
        None => (ReleaseConstraint::Allows, None),
        Some(Err(why)) => (ReleaseConstraint::Unknown(why), None),
        Some(Ok(catalogue)) => (
            check_constraint(record, catalogue, clusters, rules),
            find_remedy(record, catalogue, clusters, rules),
        ),
    };
    let verdict = apis.iter().map(|used| fate_verdict(&used.fate));
    let verdict = verdict.fold(constraint.verdict(), PreflightVerdict::max);
    let fitting = fitting.filter(|_| verdict == PreflightVerdict::DoesNotFit);
    let (remedy, requires) = fitting.unzip();
    PreflightFinding {
        verdict,
        remedy,
        requires: requires.unwrap_or_default(),
        deprecated,
        constraint,
        writers: release.map_or_else(Vec::new, |release| {
            written_apis(record, &inventory, writers, release, table)
        }),
        apis,
    }
}

impl ReleaseConstraint {
    fn verdict(&self) -> PreflightVerdict {
        match self {
            Self::Allows => PreflightVerdict::Fits,
            Self::Excludes(_) => PreflightVerdict::DoesNotFit,
            Self::Unknown(_) => PreflightVerdict::Unknown,
        }
    }
}

fn fate_verdict(fate: &ApiFate) -> PreflightVerdict {
    match fate {
        ApiFate::Served | ApiFate::Deprecated { .. } => PreflightVerdict::Fits,
        ApiFate::Unknown => PreflightVerdict::Unknown,
        ApiFate::Removed { .. } | ApiFate::NotYet { .. } => PreflightVerdict::DoesNotFit,
    }
}

/// Returns whether the installed entry allows the release.
fn check_constraint(
    record: &AddonInstallation,
    catalogue: &Catalogue,
    clusters: &UpgradeClusters,
    rules: SelectionRules,
) -> ReleaseConstraint {
    let Some(installed) = record.installed() else {
        return ReleaseConstraint::Unknown("nothing is installed yet".to_owned());
    };
    let some = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
    let (version, id) = (some(&installed.version), some(&installed.id));
    let request = EntryRequest {
        addon: &record.spec.addon_ref.name,
        version: version.as_deref(),
        id: id.as_deref(),
        catalogue: record.spec.addon_ref.catalogue.as_deref(),
    };
    let any = ClusterVersions::default();
    let Some(entry) = choose(&catalogue.entries, &request, &any, rules).chosen else {
        if let Some(unread) = catalogue.find_unread(request.addon, request.catalogue) {
            return ReleaseConstraint::Unknown(unread.why.clone());
        }
        return ReleaseConstraint::Unknown(format!(
            "its origin no longer lists {}",
            version_label(&installed.version, &installed.id)
        ));
    };
    match find_misfit(&entry.version.constraints, &clusters.then) {
        None if installed.helm_release.is_some() => {
            ReleaseConstraint::Unknown("helm keeps the list of its objects".to_owned())
        }
        None => ReleaseConstraint::Allows,
        Some(why) => ReleaseConstraint::Excludes(why.to_string()),
    }
}

/// Returns the version to upgrade to, and what it requires.
fn find_remedy(
    record: &AddonInstallation,
    catalogue: &Catalogue,
    clusters: &UpgradeClusters,
    rules: SelectionRules,
) -> Option<(UpgradeRemedy, Vec<Requirement>)> {
    let entry = next_entry(record, catalogue, clusters, rules)?;
    let version = version_label(&entry.version.version, &entry.version.id);
    let remedy = match find_misfit(&entry.version.constraints, &clusters.now) {
        None => UpgradeRemedy::Before(version),
        Some(_) => UpgradeRemedy::After(version),
    };
    Some((remedy, entry.version.requires.clone()))
}

/// Returns the newest version that is later than the installed one and fits both releases, otherwise the newest that fits the future one.
#[must_use]
pub fn next_entry<'c>(
    record: &AddonInstallation,
    catalogue: &'c Catalogue,
    clusters: &UpgradeClusters,
    rules: SelectionRules,
) -> Option<&'c CatalogueEntry> {
    let fits_now =
        |entry: &&CatalogueEntry| find_misfit(&entry.version.constraints, &clusters.now).is_none();
    let entries = || catalogue.entries.iter();
    newest_fitting(record, entries().filter(fits_now), &clusters.then, rules)
        .or_else(|| newest_fitting(record, entries(), &clusters.then, rules))
}

/// Returns the newest entry that is later than the installed one and fits a cluster.
fn newest_fitting<'c>(
    record: &AddonInstallation,
    entries: impl Iterator<Item = &'c CatalogueEntry>,
    facts: &ClusterVersions,
    rules: SelectionRules,
) -> Option<&'c CatalogueEntry> {
    let installed = record.installed()?;
    let request = EntryRequest {
        addon: &record.spec.addon_ref.name,
        catalogue: record.spec.addon_ref.catalogue.as_deref(),
        ..EntryRequest::default()
    };
    let choice = choose(entries, &request, facts, rules);
    let entry = choice.chosen?;
    let (spec, values) = (&record.spec, &installed.values_hash);
    let due = decide_due(installed, entry, spec, choice.rules, None, values);
    let reason = match due {
        DueVerdict::Yes { reason } => reason,
        DueVerdict::No | DueVerdict::Downgrade { .. } => return None,
    };
    let is_other = matches!(reason, DueReason::Version { .. } | DueReason::Id { .. });
    is_other.then_some(entry)
}

/// Returns the APIs in which our objects were applied, except those that are served without deprecation.
fn applied_apis(
    inventory: &Inventory,
    release: KubernetesRelease,
    table: &Lifecycle,
) -> Vec<UsedApi> {
    let mut counts: BTreeMap<Gvk, usize> = BTreeMap::new();
    for (key, item) in &inventory.objects {
        *counts.entry(api(key, &item.version)).or_default() += 1;
    }
    let used = counts.into_iter().filter_map(|(api, objects)| {
        let fate = table.fate(&api, release)?;
        (fate != ApiFate::Served).then_some(UsedApi {
            api,
            objects,
            managers: Vec::new(),
            fate,
        })
    });
    used.collect()
}

/// Returns the APIs in which other managers write our objects, if they are deprecated or removed in the release.
fn written_apis(
    record: &AddonInstallation,
    inventory: &Inventory,
    writers: &BTreeMap<ObjectKey, Vec<ApiWriter>>,
    release: KubernetesRelease,
    table: &Lifecycle,
) -> Vec<UsedApi> {
    let metadata = &record.metadata;
    let own = field_manager(
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    );
    let mut found: BTreeMap<Gvk, (usize, BTreeSet<String>)> = BTreeMap::new();
    for key in inventory.objects.keys() {
        let mut of_object: BTreeMap<Gvk, BTreeSet<String>> = BTreeMap::new();
        let others = writers.get(key).into_iter().flatten();
        for writer in others.filter(|writer| writer.manager != own) {
            let api = Gvk::new(&writer.api_version, &key.kind);
            let managers = of_object.entry(api).or_default();
            managers.insert(writer.manager.clone());
        }
        for (api, managers) in of_object {
            let (objects, all) = found.entry(api).or_default();
            *objects += 1;
            all.extend(managers);
        }
    }
    let used = found.into_iter().filter_map(|(api, (objects, managers))| {
        let fate = table.fate(&api, release)?;
        let is_trouble = matches!(fate, ApiFate::Deprecated { .. } | ApiFate::Removed { .. });
        is_trouble.then_some(UsedApi {
            api,
            objects,
            managers: managers.into_iter().collect(),
            fate,
        })
    });
    used.collect()
}

fn api(key: &ObjectKey, version: &str) -> Gvk {
    Gvk {
        group: key.group.clone(),
        version: version.to_owned(),
        kind: key.kind.clone(),
    }
}

#[cfg(test)]
mod tests;
