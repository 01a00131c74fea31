//! The order in which a cluster and its add-ons are upgraded: first versions that fit both releases, then the cluster, then versions that
//! fit only the new release.

use std::collections::BTreeMap;

use serde::Serialize;

use super::risk::name_of;
use super::{PreflightFinding, PreflightVerdict, UpgradeRemedy};
use addons_plan::requires::{self, AddonCandidate, PresentInstallation};
use common::api::catalogue::Requirement;
use common::api::installation::{AddonInstallation, InstallationPhase};
use common::api::names::InstallationName;

/// One add-on that has to be upgraded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddonUpgrade {
    /// Its installation.
    #[serde(flatten)]
    pub installation: InstallationName,
    /// The version to upgrade to, or `id ID` if it has none.
    pub version: String,
}

/// The order of the upgrades.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeOrder {
    /// Upgrades before that of the cluster, in this order.
    pub before: Vec<AddonUpgrade>,
    /// Upgrades after that of the cluster, in this order.
    pub after: Vec<AddonUpgrade>,
    /// Installations without a fitting version: the cluster cannot be upgraded with them.
    pub blocked: Vec<InstallationName>,
    /// Requirements of the upgrades that are not met.
    pub unmet: Vec<String>,
}

/// An upgrade with the data that its order depends on.
struct OrderStep<'a> {
    upgrade: AddonUpgrade,
    /// `NAMESPACE/NAME`.
    installation: String,
    addon: &'a str,
    requires: &'a [Requirement],
}

/// Returns the order of upgrades for these findings. `all`: every installation of the cluster; `system`: the system namespace.
#[must_use]
pub fn upgrade_order(
    found: &[(&AddonInstallation, &PreflightFinding)],
    all: &[&AddonInstallation],
    system: &str,
) -> UpgradeOrder {
    let mut order = UpgradeOrder::default();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (record, finding) in found {
        let installation = name_of(record);
        let (steps, version) = match (&finding.remedy, finding.verdict) {
            (Some(UpgradeRemedy::Before(version)), _) => (&mut before, version),
            (Some(UpgradeRemedy::After(version)), _) => (&mut after, version),
            (None, PreflightVerdict::DoesNotFit) => {
                order.blocked.push(installation);
                continue;
            }
            (None, PreflightVerdict::Fits | PreflightVerdict::Unknown) => continue,
        };
        steps.push(OrderStep {
            installation: installation.to_string(),
            addon: &record.spec.addon_ref.name,
            requires: &finding.requires,
            upgrade: AddonUpgrade {
                installation,
                version: version.clone(),
            },
        });
    }
    let (before, after) = (sort_by_requirements(before), sort_by_requirements(after));
    let present: Vec<_> = all
        .iter()
        .filter_map(|record| installed_with_name(record))
        .collect();
    order.unmet = unmet_requirements(&before, &[], &present, system);
    let later = unmet_requirements(&after, &before, &present, system);
    order.unmet.extend(later);
    let upgrades = |steps: Vec<OrderStep<'_>>| steps.into_iter().map(|step| step.upgrade).collect();
    (order.before, order.after) = (upgrades(before), upgrades(after));
    order
}

/// Sorts each step after those that it requires, and keeps the order otherwise. Cycles keep their order, and are reported as unmet.
fn sort_by_requirements(mut rest: Vec<OrderStep<'_>>) -> Vec<OrderStep<'_>> {
    let mut ordered = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let waits = |step: &OrderStep<'_>| {
            let mut others = rest.iter();
            others.any(|other| {
                other.installation != step.installation
                    && step.requires.iter().any(|one| one.name == other.addon)
            })
        };
        let next = rest.iter().position(|step| !waits(step)).unwrap_or(0);
        ordered.push(rest.remove(next));
    }
    ordered
}

/// Returns the requirements of these steps that neither they, nor earlier steps, nor installed add-ons meet.
fn unmet_requirements(
    steps: &[OrderStep<'_>],
    earlier: &[OrderStep<'_>],
    present: &[(String, &AddonInstallation)],
    system: &str,
) -> Vec<String> {
    let nothing = BTreeMap::new();
    let candidates = earlier.iter().map(|step| (step, &[][..]));
    let candidates = candidates.chain(steps.iter().map(|step| (step, step.requires)));
    let candidates: Vec<AddonCandidate<'_>> = candidates
        .map(|(step, requires)| AddonCandidate {
            installation: &step.installation,
            addon: step.addon,
            version: &step.upgrade.version,
            requires,
        })
        .collect();
    let present: Vec<PresentInstallation<'_>> = present
        .iter()
        .filter_map(|(installation, record)| {
            let status = record.status.as_ref()?;
            let installed = status.installed.as_ref()?;
            Some(PresentInstallation {
                installation,
                addon: &record.spec.addon_ref.name,
                version: &installed.version,
                requires: &installed.requires,
                ready: status.phase == Some(InstallationPhase::Ready),
                is_believed: name_of(record).namespace == system,
            })
        })
        .collect();
    match requires::resolve_order(&candidates, &present, &nothing) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems.iter().map(ToString::to_string).collect(),
    }
}

/// Returns an installed record with its formatted name.
fn installed_with_name<'a>(
    record: &&'a AddonInstallation,
) -> Option<(String, &'a AddonInstallation)> {
    record.installed()?;
    Some((name_of(record).to_string(), record))
}

#[cfg(test)]
mod tests;
