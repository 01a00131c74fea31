//! Adopts what other tools installed of an add-on: only owners change (semantics 12.11). It also lists what other tools installed.

pub mod records;
pub mod release;

use std::collections::{BTreeMap, BTreeSet};

use addons_admission::mutate::default_namespace;
use addons_engine::{former, marks, refusals};
use addons_plan::changes::ObjectDiff;
use addons_plan::choices::Choices;
use addons_plan::desired::DesiredObject;
use addons_plan::found::{ForeignInstall, FoundBy, find_installs};
use addons_plan::planner::record_equal;
use addons_plan::snapshot::FormerMark;
use addons_plan::{Verb, recreate};
use common::api::catalogue::AddonVersion;
use common::api::installation::ObjectState;
use common::api::names::{InstallationName, owner_hash};
use common::manifest::key::ObjectKey;

use crate::context::{Context, Offer};
use crate::error::{AdoptError, OperationError};
use crate::plan::{Plan, PlannedInstallation, owners};
use crate::records::Records;
use crate::resolve::resolved::Resolved;
use crate::resolve::{Resolution, Resolver};

/// A plan to adopt installations.
#[derive(Debug)]
pub struct PlannedAdoption {
    /// The plan: only owners change.
    pub plan: Plan,
    /// For each installation, the changes that the next upgrade to the same version would make to objects that exist. A refusal of the
    /// server is part of them.
    pub changes: Vec<Vec<ObjectDiff>>,
}

impl Resolver<'_> {
    /// Plans to take over the existing objects of these installations, and compares them with their manifests. `force` includes objects
    /// that a live Argo CD or Flux object applies, and records in Git.
    ///
    /// # Errors
    /// [`AdoptError`]; those of a plan. The server cannot be reached.
    pub async fn adopt(
        &self,
        mut resolution: Resolution,
        force: bool,
    ) -> Result<PlannedAdoption, OperationError> {
        if let Some(there) = resolution
            .installations
            .iter()
            .find(|one| is_installed(one))
        {
            return Err(AdoptError::Installed(there.name.clone()).into());
        }
        for resolved in &mut resolution.installations {
            resolved.takes_over = true;
        }
        let choices = Choices {
            adopt: true,
            force_adopt: force,
            force,
            only_owners: true,
            ..Choices::default()
        };
        let mut plan = self.plan(resolution, &choices).await?.whole()?;
        for planned in &plan.installations {
            let name = &planned.plan.installation;
            if planned.release.is_some() {
                return Err(AdoptError::Release(name.clone()).into());
            }
            if planned.plan.is_empty() && planned.record.installed().is_some() {
                return Err(AdoptError::Adopted(name.clone()).into());
            }
            // Objects that we own already were taken over by a run that was interrupted: this run records them.
            if planned.plan.is_empty() && planned.plan.unchanged.is_empty() {
                return Err(self.nothing_to_adopt_error(planned).await);
            }
        }
        // Every object exists, so no object waits for another.
        plan.graph.edges.clear();
        let mut changes = Vec::new();
        for planned in &mut plan.installations {
            let next = next_upgrade(self.ctx, planned).await?;
            record_equal(&mut planned.plan, &planned.desired, &next)?;
            changes.push(next);
        }
        Ok(PlannedAdoption { plan, changes })
    }

    /// Returns the error for a plan none of whose objects exists.
    async fn nothing_to_adopt_error(&self, planned: &PlannedInstallation) -> OperationError {
        let release = records::find_release(self.ctx, planned).await;
        let addon = planned.plan.addon.clone();
        match release {
            Ok(release) => AdoptError::Nothing {
                elsewhere: match &release {
                    Some(_) => None,
                    None => {
                        let mut installs = list_foreign_installs(self.ctx).await.into_iter();
                        installs
                            .find(|install| install.is_addon(&addon))
                            .map(Box::new)
                    }
                },
                addon,
                release: release.map(Box::new),
            }
            .into(),
            Err(error) => error,
        }
    }
}

/// Lists what other tools have installed. Returns an empty list if it cannot be read.
async fn list_foreign_installs(ctx: &Context) -> Vec<ForeignInstall> {
    let read = async {
        let records = Records::read(ctx).await?;
        let marks = marks::read(ctx.cluster().await?).await?;
        Ok::<_, OperationError>(find_installs(&marks.objects, &records.owners()))
    };
    read.await.unwrap_or_default()
}

/// Returns the changes of the next upgrade to the same version, including those of objects that an interrupted adoption already took over.
async fn next_upgrade(
    ctx: &Context,
    planned: &PlannedInstallation,
) -> Result<Vec<ObjectDiff>, OperationError> {
    let mut plan = planned.plan.clone();
    let ours = std::mem::take(&mut plan.unchanged);
    let is_applied = |key: &&ObjectKey| {
        let item = planned.plan.exact.objects.get(*key);
        item.is_some_and(|item| item.object.state == ObjectState::Owned)
    };
    let ours = ours.iter().filter(is_applied);
    let ours = ours.filter_map(|key| planned.desired.objects.get(key));
    plan.steps.extend(ours.map(DesiredObject::as_update));
    for step in &mut plan.steps {
        step.policy.recreate = recreate::is_accepted(&step.object);
    }
    plan.steps
        .sort_by(|one, other| one.target.key.cmp(&other.target.key));
    // The writes of an upgrade are checked, those of an adoption change only owners.
    plan.verb = Verb::Upgrade;
    refusals::find_refusals(ctx.cluster().await?, &mut [&mut plan]).await?;
    Ok(plan.changes())
}

/// Whether an operation of kubectl addons has applied the installation, or is about to.
fn is_installed(resolved: &Resolved) -> bool {
    let installed = resolved.installed();
    installed.is_some_and(|installed| !installed.adopted)
}

/// What other tools installed.
#[derive(Debug)]
pub struct ForeignInstalls {
    /// What was found by the marks of live objects.
    pub installs: Vec<ForeignInstall>,
    /// The names of the add-ons on offer, and their versions.
    pub offered: BTreeMap<String, Vec<String>>,
    /// The default target namespaces of these versions.
    namespaces: BTreeMap<String, BTreeSet<String>>,
    /// The add-ons for which the catalogue names a namespace.
    placed: BTreeSet<String>,
    /// The collections that could not be listed, and why.
    pub unreadable: Vec<(String, String)>,
}

/// Finds what other tools installed, with one metadata-only LIST per kind.
///
/// # Errors
/// The server cannot be reached, or the index cannot be read.
pub async fn find_foreign_installs(
    ctx: &Context,
    offer: &Offer,
) -> Result<ForeignInstalls, OperationError> {
    let records = Records::read(ctx).await?;
    let marks = marks::read(ctx.cluster().await?).await?;
    let mut installs = find_installs(&marks.objects, &records.owners());
    retain_orphans(ctx, &records, &mut installs).await?;
    name_applications(ctx, &mut installs).await?;
    name_charts(ctx, &mut installs).await?;
    // kops' annotation of a namespace also names what this tool has installed from its index.
    let is_ours = |install: &ForeignInstall| {
        let mut records = records.all.iter();
        install.objects == 0
            && records.any(|record| record.metadata.name.as_ref() == Some(&install.name))
    };
    installs.retain(|install| !is_ours(install));
    let may_read =
        !matches!(offer, Offer::Catalogues) || ctx.readable_catalogues().await?.is_some();
    let mut offered: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut namespaces: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut placed = BTreeSet::new();
    if may_read {
        for entry in &ctx.catalogue(offer).await?.entries {
            if entry.version.default_namespace.is_some() {
                placed.insert(entry.addon.clone());
            }
            let defaults = namespaces.entry(entry.addon.clone()).or_default();
            defaults.extend(default_namespace(entry).map(str::to_owned));
            let versions = offered.entry(entry.addon.clone()).or_default();
            versions.push(entry.version.version.clone());
            for install in installs.iter_mut().filter(|one| one.name == entry.addon) {
                take_version_of_entry(install, &entry.version);
            }
        }
    }
    Ok(ForeignInstalls {
        installs,
        offered,
        namespaces,
        placed,
        unreadable: marks.unreadable,
    })
}

/// Gives an install of kops the version of the entry that it was installed from: the one with its id and hash.
fn take_version_of_entry(install: &mut ForeignInstall, entry: &AddonVersion) {
    let is_it = install.id.as_ref() == Some(&entry.id)
        && install.manifest_hash.is_some()
        && install.manifest_hash == entry.manifest_hash;
    if is_it && install.version.is_none() {
        install.version = Some(entry.version.clone());
    }
}

/// Removes orphans whose installation may exist after all, in another namespace or where the caller may not read it.
async fn retain_orphans(
    ctx: &Context,
    records: &Records,
    installs: &mut Vec<ForeignInstall>,
) -> Result<(), OperationError> {
    let (orphans, mut rest): (Vec<ForeignInstall>, Vec<ForeignInstall>) = std::mem::take(installs)
        .into_iter()
        .partition(|install| install.found_by == FoundBy::Orphan);
    for orphan in orphans {
        let name = InstallationName {
            namespace: orphan.namespace.clone().unwrap_or_default(),
            name: orphan.name.clone(),
        };
        let owner = owner_hash(&name.namespace, &name.name);
        if owners::is_recorded(ctx, records, &owner, Some(&name)).await? == Some(false) {
            rest.push(orphan);
        }
    }
    rest.sort_by(|one, other| {
        (one.found_by, &one.namespace, &one.name).cmp(&(
            other.found_by,
            &other.namespace,
            &other.name,
        ))
    });
    *installs = rest;
    Ok(())
}

/// Gives kapp applications their names: the label of their objects only has a number.
async fn name_applications(
    ctx: &Context,
    installs: &mut [ForeignInstall],
) -> Result<(), OperationError> {
    let mut unnamed = installs
        .iter_mut()
        .filter(|install| install.found_by == FoundBy::Kapp)
        .peekable();
    if unnamed.peek().is_none() {
        return Ok(());
    }
    let applications = former::kapp::applications(ctx.cluster().await?).await?;
    for install in unnamed {
        let mut known = applications.iter();
        if let Some(application) = known.find(|one| one.label == install.name) {
            install.name.clone_from(&application.name);
            install.namespace = Some(application.namespace.clone());
        }
    }
    Ok(())
}

/// Gives Helm releases the chart and version from their records. Labels of objects are only a hint: in a chart with subcharts, they name
/// the subcharts.
async fn name_charts(ctx: &Context, installs: &mut [ForeignInstall]) -> Result<(), OperationError> {
    let cluster = ctx.cluster().await?;
    for install in installs
        .iter_mut()
        .filter(|one| one.found_by == FoundBy::Helm)
    {
        let mark = FormerMark::Helm {
            namespace: install.namespace.clone().unwrap_or_default(),
            name: install.name.clone(),
        };
        let Some(release) = records::read_stored(cluster, &mark).await? else {
            continue;
        };
        if let Some(chart) = release.chart() {
            install.version = Some(chart.version);
            install.chart = Some(chart.name);
        }
        for subchart in release.subcharts() {
            let name = subchart.name.clone();
            install.subcharts.insert(name, subchart.version.clone());
        }
    }
    Ok(())
}

impl ForeignInstalls {
    /// Returns the offered version of an add-on that another tool installed under this name, or from the chart of that name. Only what is
    /// installed in `target` counts or, if it is `None`, in the default namespaces of the add-on.
    #[must_use]
    pub fn version_of(&self, addon: &str, name: &str, target: Option<&str>) -> ForeignVersion<'_> {
        let is_there = |install: &ForeignInstall| match (target, self.namespaces.get(addon)) {
            (Some(target), _) => install.is_in_namespace(target),
            (None, Some(defaults)) => defaults
                .iter()
                .any(|default| install.is_in_namespace(default)),
            (None, None) => false,
        };
        let is_it = |install: &&ForeignInstall| {
            let is_named = install.name == name || install.chart.as_deref() == Some(addon);
            is_named && is_there(install)
        };
        // The record of kops stays, and decides by id and hash what is due.
        let is_of_kops = |install: &ForeignInstall| {
            install.found_by == FoundBy::Kops && install.version.is_none()
        };
        if self.installs.iter().filter(is_it).any(is_of_kops) {
            return ForeignVersion::Only;
        }
        let installs = self.installs.iter().filter(is_it);
        let mut versions = installs.filter_map(|it| Some((it, it.version_label(addon)?)));
        let offered = self.offered.get(addon).map_or(&[][..], Vec::as_slice);
        match (versions.next(), versions.next()) {
            (Some((install, found)), None) => match find_offered_version(offered, install, addon) {
                Some(version) => ForeignVersion::Found(version),
                None if install.id.is_some() && install.version.is_some() => ForeignVersion::Only,
                None => ForeignVersion::NotOffered(found),
            },
            _ if offered.len() > 1 => ForeignVersion::Unknown,
            _ => ForeignVersion::Only,
        }
    }
}

/// Which version of an add-on another tool installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignVersion<'a> {
    /// This version, as the catalogue spells it.
    Found(&'a str),
    /// This version, which no catalogue on offer has.
    NotOffered(String),
    /// The version is not known.
    Unknown,
    /// The only version on offer, or the one that kops' record decides.
    Only,
}

/// Returns the installed version as the offer spells it. `None` if it is not on offer, or if kops records no version and the offer has no
/// other one.
#[must_use]
pub fn find_offered_version<'a>(
    offered: &'a [String],
    install: &ForeignInstall,
    addon: &str,
) -> Option<&'a str> {
    let bare = |version: &str| version.trim_start_matches('v').to_owned();
    let found = bare(install.version_of(addon)?);
    let is_only = offered.iter().all(|version| bare(version) == found);
    if install.id.is_some() && is_only {
        return None;
    }
    let mut offered = offered.iter();
    let same = offered.find(|version| bare(version) == found);
    same.map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (version of kops' record, offered versions, whether the entry of its hash is among them, version to name, label)
    #[test]
    fn an_add_on_of_kops_has_the_version_of_its_entry() {
        for (offered, is_there, named, label) in [
            (&["9.99.0", "9.99.0"][..], true, None, "9.99.0"),
            (&["1.0.0", "1.1.0"], true, Some("1.0.0"), "1.0.0"),
            (&["1.0.0", "1.1.0"], false, None, "id k8s-1.16"),
        ] {
            let mut install = ForeignInstall {
                found_by: FoundBy::Kops,
                name: "dns".to_owned(),
                namespace: None,
                version: None,
                id: Some("k8s-1.16".to_owned()),
                manifest_hash: Some("abc".to_owned()),
                chart: None,
                channel: None,
                subcharts: BTreeMap::new(),
                objects: 1,
                namespaces: BTreeSet::new(),
            };
            let offered: Vec<String> = offered.iter().map(|one| (*one).to_owned()).collect();
            for (version, hash) in offered.iter().zip(["abc", "def"]) {
                let hash = if is_there { hash } else { "other" };
                let entry = AddonVersion {
                    version: version.clone(),
                    id: "k8s-1.16".to_owned(),
                    manifest_hash: Some(hash.to_owned()),
                    ..AddonVersion::default()
                };
                take_version_of_entry(&mut install, &entry);
            }
            assert_eq!(find_offered_version(&offered, &install, "dns"), named);
            assert_eq!(install.version_label("dns").as_deref(), Some(label));
            let found = ForeignInstalls {
                installs: vec![install],
                offered: BTreeMap::from([("dns".to_owned(), offered.clone())]),
                namespaces: BTreeMap::new(),
                placed: BTreeSet::new(),
                unreadable: Vec::new(),
            };
            // Without a version, the record of kops decides.
            let expected = named.map_or(ForeignVersion::Only, ForeignVersion::Found);
            let found = found.version_of("dns", "dns", Some("kube-system"));
            assert_eq!(found, expected);
        }
    }
}
