//! Requirements between add-ons: they are checked before anything is planned or uninstalled, and determine the order.

use std::collections::{BTreeMap, BTreeSet};

use addons_plan::claims::is_believed;
use addons_plan::requires::{self, Dependent, InstallOrder, PresentInstallation, RequiresError};
use common::api::catalogue::Requirement;
use common::api::conditions::{Condition, READY, TIMED_OUT};
use common::api::installation::{
    AddonInstallation, AddonInstallationStatus, InstallationPhase, Installed, ObjectState,
};
use common::api::names::InstallationName;

use crate::context::Context;
use crate::error::Dependents;
use crate::event::Finding;
use crate::records::{Records, name_of};
use crate::resolve::resolved::Resolved;

/// The versions of each add-on in the catalogues, of which a refusal names one that fits.
pub(crate) type AvailableVersions = BTreeMap<String, Vec<String>>;

/// Returns for each installation the others of the command that have to be installed first.
///
/// # Errors
/// Every requirement that is neither installed nor part of the command.
pub(crate) fn order_installations(
    ctx: &Context,
    installations: &[&Resolved],
    records: &Records,
    available: &AvailableVersions,
) -> Result<Vec<Vec<InstallationName>>, RequiresError> {
    let order = check(installations, records, available)?;
    for unready in order.unready {
        ctx.report_finding(Finding::Requirement(unready));
    }
    let named = |first: Vec<usize>| {
        let first = first
            .into_iter()
            .filter_map(|index| installations.get(index));
        first.map(|resolved| resolved.name.clone()).collect()
    };
    Ok(order.first.into_iter().map(named).collect())
}

/// Checks the requirements of the installations of a command.
///
/// # Errors
/// As [`order_installations`].
pub(crate) fn check(
    installations: &[&Resolved],
    records: &Records,
    available: &AvailableVersions,
) -> Result<InstallOrder, RequiresError> {
    let names: Vec<String> = installations
        .iter()
        .map(|resolved| resolved.name.to_string())
        .collect();
    let wanted: Vec<requires::AddonCandidate<'_>> = installations
        .iter()
        .zip(&names)
        .map(|(resolved, installation)| requires::AddonCandidate {
            installation,
            addon: &resolved.entry.addon,
            version: &resolved.entry.version.version,
            requires: &resolved.entry.version.requires,
        })
        .collect();
    let present = NamedRecords::new(records.in_cluster());
    requires::resolve_order(&wanted, &present.list_present(&records.system), available)
}

/// Orders the records of an uninstallation, each before those that it requires. `installed` are the installations that the command installs
/// before. Reports as findings the dependents that do not count because their records are not taken at their word (semantics 13.5).
///
/// # Errors
/// Installations that stay require one of them.
pub(crate) fn order_uninstallations(
    ctx: &Context,
    going: Vec<&AddonInstallation>,
    records: &Records,
    installed: &[AddonInstallation],
) -> Result<Vec<AddonInstallation>, Dependents> {
    let goes = |record: &AddonInstallation| {
        let name = name_of(record);
        let mut others = going.iter().copied().chain(installed);
        others.any(|other| name_of(other) == name)
    };
    let staying = records.in_cluster().filter(|record| !goes(record));
    let staying = staying.chain(installed).collect();
    for dependent in refuse_dependents(&going, staying, &records.system)? {
        ctx.report_finding(Finding::Deprived(dependent));
    }
    let mut rest = going;
    let mut ordered = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let is_required = |record: &&AddonInstallation| {
            rest.iter().any(|other| {
                name_of(other) != name_of(record)
                    && requirements(other)
                        .iter()
                        .any(|needed| needed.name == addon_name(record))
            })
        };
        // Only another client could write records that require each other: any of them is uninstalled first.
        let next = rest
            .iter()
            .position(|record| !is_required(record))
            .unwrap_or(0);
        ordered.push(rest.remove(next).clone());
    }
    Ok(ordered)
}

/// Refuses if an installation that stays requires one that is uninstalled. Returns dependents whose records do not count at their word for
/// it. Dependents of dependents are named as well, so that a command that uninstalls all of them is not refused again.
fn refuse_dependents(
    records: &[&AddonInstallation],
    mut staying: Vec<&AddonInstallation>,
    system: &str,
) -> Result<BTreeSet<Dependent>, Dependents> {
    let mut gone: Vec<&AddonInstallation> = records.to_vec();
    let mut lines = Vec::new();
    let mut deprived = BTreeSet::new();
    loop {
        let addons: Vec<&str> = gone.iter().map(|record| addon_name(record)).collect();
        let present = NamedRecords::new(staying.clone());
        let dependents = requires::find_dependents(&addons, &present.list_present(system));
        let counts = |dependent: &Dependent| {
            let at = dependent.installation.split_once('/');
            let at = at.map_or("", |(namespace, _)| namespace);
            let mut required = gone
                .iter()
                .filter(|one| addon_name(one) == dependent.requires);
            required.any(|one| is_believed(at, &name_of(one).namespace, system))
        };
        let (dependents, others): (Vec<_>, Vec<_>) = dependents.into_iter().partition(counts);
        deprived.extend(others);
        if dependents.is_empty() {
            break;
        }
        lines.extend(dependents.iter().map(|dependent| {
            let constraint = dependent.constraint.as_deref();
            let constraint = constraint.map_or_else(String::new, |version| format!(" {version}"));
            format!(
                "{} requires {}{constraint}",
                dependent.installation, dependent.requires
            )
        }));
        let is_dependent = |record: &&AddonInstallation| {
            let name = name_of(record).to_string();
            dependents.iter().any(|one| one.installation == name)
        };
        let (going, rest) = staying.into_iter().partition(is_dependent);
        gone.extend::<Vec<_>>(going);
        staying = rest;
    }
    if lines.is_empty() {
        return Ok(deprived);
    }
    Err(Dependents {
        lines,
        together: gone.iter().map(|record| name_of(record).name).collect(),
    })
}

/// Returns the names of the other uninstalled records that a record requires: they stay if it stays.
pub(crate) fn required_among(
    record: &AddonInstallation,
    gone: &[AddonInstallation],
) -> Vec<InstallationName> {
    let needed = |other: &&AddonInstallation| {
        requirements(record)
            .iter()
            .any(|needed| needed.name == addon_name(other))
    };
    gone.iter().filter(needed).map(name_of).collect()
}

/// Records with their names as text.
struct NamedRecords<'a>(Vec<(String, &'a AddonInstallation)>);

impl<'a> NamedRecords<'a> {
    fn new(records: impl IntoIterator<Item = &'a AddonInstallation>) -> Self {
        let records = records.into_iter();
        Self(
            records
                .map(|record| (name_of(record).to_string(), record))
                .collect(),
        )
    }

    fn list_present(&self, system: &str) -> Vec<PresentInstallation<'_>> {
        let present = self.0.iter().filter_map(|(installation, record)| {
            let status = record.status.as_ref()?;
            let installed = present_version(status)?;
            Some(PresentInstallation {
                installation,
                addon: addon_name(record),
                version: &installed.version,
                requires: &installed.requires,
                ready: status.phase == Some(InstallationPhase::Ready),
                is_believed: name_of(record).namespace == system,
            })
        });
        present.collect()
    }
}

/// Returns what of an installation meets requirements: the installed version, or one that was applied and did not become ready in time,
/// because it may be waiting for those that require it (semantics 17.7).
fn present_version(status: &AddonInstallationStatus) -> Option<&Installed> {
    let is_late = |one: &&Condition| one.r#type == READY && one.reason == TIMED_OUT;
    let objects = status.inventory.iter().flat_map(|group| &group.objects);
    let mut planned = objects.filter(|object| object.state == ObjectState::Planned);
    let is_applied = status.conditions.iter().any(|one| is_late(&one)) && planned.next().is_none();
    let last = status.history.first().filter(|_| is_applied);
    last.map(|last| &last.installed)
        .or(status.installed.as_ref())
}

fn addon_name(record: &AddonInstallation) -> &str {
    &record.spec.addon_ref.name
}

fn requirements(record: &AddonInstallation) -> &[Requirement] {
    let installed = record.installed();
    installed.map_or(&[], |installed| &installed.requires)
}
