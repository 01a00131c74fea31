//! The report of `preflight`: installations, the cluster, and the order of the upgrades.

use addons_advice::preflight::order::{AddonUpgrade, UpgradeOrder};
use addons_advice::preflight::risk::Risk;
use addons_advice::preflight::{PreflightVerdict, UpgradeRemedy, UsedApi};
use common::api::names::InstallationName;
use common::catalogue::select::ClusterVersions;
use serde::Serialize;

use crate::words::preflight as words;

/// The whole report.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreflightReport {
    pub(super) items: Vec<PreflightRow>,
    pub(super) risks: Vec<RiskRow>,
    /// The upgrades, in their order.
    pub(super) order: Vec<UpgradeStep>,
    /// The installations of which no version fits.
    pub(super) blocked: Vec<BlockedInstallation>,
    /// Unmet requirements of the upgrades.
    pub(super) unmet: Vec<UnmetRequirement>,
}

/// An installation.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PreflightRow {
    /// The name of the cluster, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<String>,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) addon: String,
    pub(super) version: String,
    /// `Fits`, `Unknown` or `DoesNotFit`.
    pub(super) verdict: PreflightVerdict,
    pub(super) reasons: Vec<String>,
    /// The version that would fit, and when to install it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<UpgradeRemedy>,
    /// The APIs of its objects that the release does not simply serve.
    pub(super) apis: Vec<UsedApi>,
    /// The same for the versions in which other managers last wrote its objects.
    pub(super) writers: Vec<UsedApi>,
    #[serde(skip)]
    pub(super) fix: Option<String>,
}

/// A risk that affects the upgrade.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RiskRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<String>,
    #[serde(flatten)]
    pub(super) risk: Risk,
    /// Whether it has to be fixed first.
    pub(super) blocks: bool,
    pub(super) why: String,
    pub(super) commands: Vec<String>,
}

/// When a step is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum UpgradePhase {
    /// Before the upgrade of the cluster.
    Before,
    /// The upgrade of the cluster itself.
    Cluster,
    /// After the upgrade of the cluster.
    After,
}

/// A step of the upgrades.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpgradeStep {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<String>,
    pub(super) when: UpgradePhase,
    /// The installation. Absent for the cluster itself.
    #[serde(flatten)]
    pub(super) installation: Option<InstallationName>,
    pub(super) version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<String>,
}

/// An installation of which no version fits.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockedInstallation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<String>,
    #[serde(flatten)]
    pub(super) installation: InstallationName,
}

/// An unmet requirement.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnmetRequirement {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<String>,
    pub(super) message: String,
}

impl PreflightReport {
    /// Makes the report of one cluster, without a name.
    pub(super) fn new(
        items: Vec<PreflightRow>,
        risks: Vec<Risk>,
        order: UpgradeOrder,
        to: &ClusterVersions,
    ) -> Self {
        Self {
            items,
            order: upgrade_steps(&order, &risks, to),
            blocked: order
                .blocked
                .into_iter()
                .map(|installation| BlockedInstallation {
                    cluster: None,
                    installation,
                })
                .collect(),
            unmet: order
                .unmet
                .into_iter()
                .map(|message| UnmetRequirement {
                    cluster: None,
                    message,
                })
                .collect(),
            risks: risks
                .into_iter()
                .map(|risk| RiskRow {
                    cluster: None,
                    blocks: risk.blocks(),
                    why: words::risk::describe_risk(&risk),
                    commands: words::risk::list_commands(&risk),
                    risk,
                })
                .collect(),
        }
    }

    /// Adds the report of a named cluster.
    pub(crate) fn add(&mut self, cluster: &str, other: Self) {
        let cluster = || Some(cluster.to_owned());
        let Self {
            items,
            risks,
            order,
            blocked,
            unmet,
        } = other;
        self.items.extend(items.into_iter().map(|row| PreflightRow {
            cluster: cluster(),
            ..row
        }));
        self.risks.extend(risks.into_iter().map(|row| RiskRow {
            cluster: cluster(),
            ..row
        }));
        self.order.extend(order.into_iter().map(|row| UpgradeStep {
            cluster: cluster(),
            ..row
        }));
        self.blocked
            .extend(blocked.into_iter().map(|row| BlockedInstallation {
                cluster: cluster(),
                ..row
            }));
        self.unmet
            .extend(unmet.into_iter().map(|row| UnmetRequirement {
                cluster: cluster(),
                ..row
            }));
    }

    /// Whether nothing prevents the upgrade.
    pub(super) fn fits(&self) -> bool {
        self.items
            .iter()
            .all(|row| row.verdict == PreflightVerdict::Fits)
            && !self.risks.iter().any(|row| row.blocks)
    }

    /// Formats the steps with their numbers, then installations and requirements without a solution.
    pub(super) fn lines(&self) -> Vec<String> {
        let of = |cluster: &Option<String>| match cluster {
            Some(cluster) => format!("{cluster}: "),
            None => String::new(),
        };
        let mut lines = Vec::new();
        let mut number = 0;
        let mut last: &Option<String> = &None;
        for step in &self.order {
            if step.cluster != *last {
                (number, last) = (0, &step.cluster);
            }
            number += 1;
            let text = words::describe_step(
                step.when == UpgradePhase::Before,
                &step.version,
                step.command.as_deref(),
            );
            lines.push(format!("{}{number}. {text}", of(&step.cluster)));
        }
        let blocked = self.blocked.iter().map(|row| {
            let InstallationName { namespace, name } = &row.installation;
            format!(
                "{}blocked: {name} (namespace {namespace}): no version of it fits",
                of(&row.cluster)
            )
        });
        lines.extend(blocked);
        let unmet = self.unmet.iter();
        lines.extend(unmet.map(|row| format!("{}not met: {}", of(&row.cluster), row.message)));
        lines
    }
}

/// Returns the steps of a cluster. Empty if no add-on has to be upgraded.
fn upgrade_steps(order: &UpgradeOrder, risks: &[Risk], to: &ClusterVersions) -> Vec<UpgradeStep> {
    let step = |when: UpgradePhase, upgrade: &AddonUpgrade| UpgradeStep {
        cluster: None,
        when,
        command: Some(upgrade_command(upgrade, risks)),
        installation: Some(upgrade.installation.clone()),
        version: upgrade.version.clone(),
    };
    if order.before.is_empty() && order.after.is_empty() {
        return Vec::new();
    }
    let version = to.kubernetes.as_ref().map(ToString::to_string);
    let cluster = UpgradeStep {
        cluster: None,
        when: UpgradePhase::Cluster,
        installation: None,
        version: version.unwrap_or_default(),
        command: None,
    };
    let before = order
        .before
        .iter()
        .map(|one| step(UpgradePhase::Before, one));
    let after = order.after.iter().map(|one| step(UpgradePhase::After, one));
    before.chain([cluster]).chain(after).collect()
}

/// Returns the command of an upgrade, with the flag that migrates stored versions if the upgrade drops some.
fn upgrade_command(upgrade: &AddonUpgrade, risks: &[Risk]) -> String {
    let migrates = |risk: &Risk| match risk {
        Risk::StoredVersions(risk) => {
            risk.owner.as_ref() == Some(&upgrade.installation)
                && risk.dropped_by.as_ref() == Some(&upgrade.version)
        }
        _ => false,
    };
    let flag = if risks.iter().any(migrates) {
        " --migrate-stored-versions"
    } else {
        ""
    };
    format!(
        "{}{flag}",
        words::upgrade_command(&upgrade.installation, &upgrade.version)
    )
}
