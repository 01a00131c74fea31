//! What add-ons require of each other: checked before anything is planned or removed, and an order (product.md 3).

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use common::api::catalogue::Requirement;
use common::api::installation::{AddonInstallation, Phase};
use common::plan::InstallationName;
use common::plan::requires::{self, Present};

use crate::output;

use super::candidate::Candidate;
use super::known::{Known, name_of};

/// The versions of each add-on that the catalogues have: a refusal names one that would do.
pub type Available = BTreeMap<String, Vec<String>>;

/// Which other candidates of the command go first, candidate by candidate.
///
/// # Errors
/// Everything that is required and neither there nor part of the command.
pub fn order(
    candidates: &[&Candidate],
    known: &Known,
    available: &Available,
) -> Result<Vec<Vec<InstallationName>>> {
    let names: Vec<String> = candidates
        .iter()
        .map(|candidate| candidate.name.to_string())
        .collect();
    let wanted: Vec<requires::Candidate<'_>> = candidates
        .iter()
        .zip(&names)
        .map(|(candidate, installation)| requires::Candidate {
            installation,
            addon: &candidate.entry.addon,
            version: &candidate.entry.version.version,
            requires: &candidate.entry.version.requires,
        })
        .collect();
    let records = Records::of(&known.records);
    let order = requires::order(&wanted, &records.present(), available)?;
    for warning in &order.warnings {
        output::note(&format!("careful: {warning}"));
    }
    let named = |first: Vec<usize>| {
        let first = first.into_iter().filter_map(|index| candidates.get(index));
        first.map(|candidate| candidate.name.clone()).collect()
    };
    Ok(order.first.into_iter().map(named).collect())
}

/// The records of an uninstallation, each before those that it requires.
///
/// # Errors
/// Installations that stay and require one of them.
pub fn teardown(records: Vec<&AddonInstallation>, known: &Known) -> Result<Vec<AddonInstallation>> {
    let goes = |record: &AddonInstallation| {
        let name = name_of(record);
        records.iter().any(|gone| name_of(gone) == name)
    };
    let staying = known.records.iter().filter(|record| !goes(record));
    refuse_dependents(&records, staying.collect())?;
    let mut rest = records;
    let mut ordered = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let is_required = |record: &&AddonInstallation| {
            rest.iter().any(|other| {
                name_of(other) != name_of(record)
                    && requirements(other)
                        .iter()
                        .any(|needed| needed.name == addon(record))
            })
        };
        // Records that require each other were written by somebody else: any of them goes first.
        let next = rest
            .iter()
            .position(|record| !is_required(record))
            .unwrap_or(0);
        ordered.push(rest.remove(next).clone());
    }
    Ok(ordered)
}

/// Refuses where one of those that stay requires one that goes. What is named includes those that require these: the command
/// that accepts it is not refused again.
fn refuse_dependents(
    records: &[&AddonInstallation],
    mut staying: Vec<&AddonInstallation>,
) -> Result<()> {
    let mut gone: Vec<&AddonInstallation> = records.to_vec();
    let mut lines = Vec::new();
    loop {
        let addons: Vec<&str> = gone.iter().map(|record| addon(record)).collect();
        let dependents = requires::required_by(&addons, &Records::of(staying.clone()).present());
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
        return Ok(());
    }
    let names: Vec<String> = gone.iter().map(|record| name_of(record).name).collect();
    bail!(
        "{}\n  look:   kubectl addons list\n  accept: kubectl addons uninstall {}, which removes {}",
        lines.join("\n"),
        names.join(" "),
        if names.len() == 2 {
            "both"
        } else {
            "all of them"
        },
    )
}

/// The names of an uninstallation's other records that a record requires: they stay where it stays.
pub fn required_of(
    record: &AddonInstallation,
    gone: &[AddonInstallation],
) -> Vec<InstallationName> {
    let needed = |other: &&AddonInstallation| {
        requirements(record)
            .iter()
            .any(|needed| needed.name == addon(other))
    };
    gone.iter().filter(needed).map(name_of).collect()
}

/// Records with their names spelled out.
struct Records<'a>(Vec<(String, &'a AddonInstallation)>);

impl<'a> Records<'a> {
    fn of(records: impl IntoIterator<Item = &'a AddonInstallation>) -> Self {
        let records = records.into_iter();
        Self(
            records
                .map(|record| (name_of(record).to_string(), record))
                .collect(),
        )
    }

    fn present(&self) -> Vec<Present<'_>> {
        let present = self.0.iter().filter_map(|(installation, record)| {
            let status = record.status.as_ref()?;
            let installed = status.installed.as_ref()?;
            Some(Present {
                installation,
                addon: addon(record),
                version: &installed.version,
                requires: &installed.requires,
                ready: status.phase == Some(Phase::Ready),
            })
        });
        present.collect()
    }
}

fn addon(record: &AddonInstallation) -> &str {
    &record.spec.addon_ref.name
}

fn requirements(record: &AddonInstallation) -> &[Requirement] {
    let status = record.status.as_ref();
    let installed = status.and_then(|status| status.installed.as_ref());
    installed.map_or(&[], |installed| &installed.requires)
}
