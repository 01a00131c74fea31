//! The report of `preflight`: installations, the cluster, and the order of the upgrades.

use addons_advice::preflight::order::{Order, Upgrade};
use addons_advice::preflight::risk::Risk;
use addons_advice::preflight::{Remedy, Used, Verdict};
use common::api::names::InstallationName;
use common::catalogue::select::ClusterFacts;
use serde::Serialize;

use crate::words::preflight as words;

/// The whole report.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) items: Vec<Row>,
    pub(super) risks: Vec<RiskRow>,
    /// The upgrades, in their order.
    pub(super) order: Vec<Step>,
    /// The installations of which no version fits.
    pub(super) blocked: Vec<Blocked>,
    /// Unmet requirements of the upgrades.
    pub(super) unmet: Vec<Unmet>,
}

/// An installation.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    /// The name of the cluster, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<String>,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) addon: String,
    pub(super) version: String,
    /// `Fits`, `Unknown` or `DoesNotFit`.
    pub(super) verdict: Verdict,
    pub(super) reasons: Vec<String>,
    /// The version that would fit, and when to install it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<Remedy>,
    /// The APIs of its objects that the release does not simply serve.
    pub(super) apis: Vec<Used>,
    /// The same for the versions in which other managers last wrote its objects.
    pub(super) writers: Vec<Used>,
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
pub(super) enum When {
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
pub(super) struct Step {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<String>,
    pub(super) when: When,
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
pub(super) struct Blocked {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<String>,
    #[serde(flatten)]
    pub(super) installation: InstallationName,
}

/// An unmet requirement.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Unmet {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<String>,
    pub(super) message: String,
}

impl Report {
    /// Makes the report of one cluster, without a name.
    pub(super) fn of(items: Vec<Row>, risks: Vec<Risk>, order: Order, to: &ClusterFacts) -> Self {
        Self {
            items,
            order: steps(&order, &risks, to),
            blocked: order
                .blocked
                .into_iter()
                .map(|installation| Blocked {
                    cluster: None,
                    installation,
                })
                .collect(),
            unmet: order
                .unmet
                .into_iter()
                .map(|message| Unmet {
                    cluster: None,
                    message,
                })
                .collect(),
            risks: risks
                .into_iter()
                .map(|risk| RiskRow {
                    cluster: None,
                    blocks: risk.blocks(),
                    why: words::risk::why(&risk),
                    commands: words::risk::commands(&risk),
                    risk,
                })
                .collect(),
        }
    }

    /// Adds the report of a named cluster.
    pub(super) fn add(&mut self, cluster: &str, other: Self) {
        let cluster = || Some(cluster.to_owned());
        let Self {
            items,
            risks,
            order,
            blocked,
            unmet,
        } = other;
        self.items.extend(items.into_iter().map(|row| Row {
            cluster: cluster(),
            ..row
        }));
        self.risks.extend(risks.into_iter().map(|row| RiskRow {
            cluster: cluster(),
            ..row
        }));
        self.order.extend(order.into_iter().map(|row| Step {
            cluster: cluster(),
            ..row
        }));
        self.blocked.extend(blocked.into_iter().map(|row| Blocked {
            cluster: cluster(),
            ..row
        }));
        self.unmet.extend(unmet.into_iter().map(|row| Unmet {
            cluster: cluster(),
            ..row
        }));
    }

    /// Whether nothing prevents the upgrade.
    pub(super) fn fits(&self) -> bool {
        self.items.iter().all(|row| row.verdict == Verdict::Fits)
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
            let text = words::step(
                step.when == When::Before,
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
fn steps(order: &Order, risks: &[Risk], to: &ClusterFacts) -> Vec<Step> {
    let step = |when: When, upgrade: &Upgrade| Step {
        cluster: None,
        when,
        command: Some(command(upgrade, risks)),
        installation: Some(upgrade.installation.clone()),
        version: upgrade.version.clone(),
    };
    if order.before.is_empty() && order.after.is_empty() {
        return Vec::new();
    }
    let version = to.kubernetes.as_ref().map(ToString::to_string);
    let cluster = Step {
        cluster: None,
        when: When::Cluster,
        installation: None,
        version: version.unwrap_or_default(),
        command: None,
    };
    let before = order.before.iter().map(|one| step(When::Before, one));
    let after = order.after.iter().map(|one| step(When::After, one));
    before.chain([cluster]).chain(after).collect()
}

/// Returns the command of an upgrade, with the flag that migrates stored versions if the upgrade drops some.
fn command(upgrade: &Upgrade, risks: &[Risk]) -> String {
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
        words::upgrade(&upgrade.installation, &upgrade.version)
    )
}
