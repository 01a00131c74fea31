//! The metrics of a loop, and whether it is ready.

mod installations;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use addons_operation::health::DriftCounts;
use addons_telemetry::metrics::{self, WatchFailures};
use common::api::conditions::{
    COMPATIBLE, CONTESTED, CORE_SET_UNKNOWN, DELETION_BLOCKED, DRIFTED, MANAGED_ELSEWHERE,
    NEEDS_CONFIRMATION, STALLED, UNLISTED, WAITING, find_raised,
};
use common::api::installation::{AddonInstallation, InstallationPhase};
use common::api::names::InstallationName;
use installations::InstallationSeries;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::installation::ReconcileOutcome;

/// Buckets in seconds: an installation that is up to date takes milliseconds, a rollout minutes.
const BUCKETS: [f64; 9] = [0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 30.0, 120.0, 300.0];

/// The label of objects of installations, whose kinds are many, among the watched resources.
pub(crate) const OBJECTS: &str = "objects";
/// The resources that a loop lists and watches.
const RESOURCES: [&str; 6] = [
    "addoncatalogues",
    "addoninstallations",
    "configmaps",
    "leases",
    OBJECTS,
    "secrets",
];
/// The outcomes of reconciling an installation.
const OUTCOMES: [&str; 5] = ["busy", "changed", "failed", "up-to-date", "waiting"];
/// The phase of an installation that was not reconciled yet.
const NO_PHASE: InstallationPhase = InstallationPhase::Pending;
/// The phases of installations.
const PHASES: [InstallationPhase; 6] = [
    InstallationPhase::Pending,
    InstallationPhase::Progressing,
    InstallationPhase::Ready,
    InstallationPhase::Installed,
    InstallationPhase::Failed,
    InstallationPhase::Uninstalling,
];
/// The conditions that tell people about a problem, or that something waits, if they are `True`. Instead of `Compatible`, which is
/// `False` then, it is [`INCOMPATIBLE`].
const PROBLEMS: [&str; 9] = [
    CONTESTED,
    CORE_SET_UNKNOWN,
    DELETION_BLOCKED,
    DRIFTED,
    MANAGED_ELSEWHERE,
    NEEDS_CONFIRMATION,
    STALLED,
    UNLISTED,
    WAITING,
];
const INCOMPATIBLE: &str = "Incompatible";

/// The metrics of one loop.
#[derive(Debug)]
pub struct LoopMetrics {
    registry: Registry,
    /// Reconciled installations.
    pub(crate) reconciles: Family<ReconcileLabels, Counter>,
    /// The time that each installation took.
    pub(crate) seconds: Histogram,
    /// Whether this process leads.
    pub(crate) leader: Gauge,
    /// Failed lists and watches.
    pub(crate) watch_failures: WatchFailures,
    /// The installations that the loop reconciles.
    installations: Family<PhaseLabels, Gauge>,
    /// Those with a problem.
    conditions: Family<ConditionLabels, Gauge>,
    /// Each of them.
    series: InstallationSeries,
    is_ready: AtomicBool,
}

/// Labels of reconciled installations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ReconcileLabels {
    /// One of [`OUTCOMES`].
    pub(crate) outcome: &'static str,
    /// Whether they are core add-ons.
    pub(crate) core: BoolLabel,
}

/// Labels of installations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    /// The phase.
    phase: String,
    /// Whether they are core add-ons.
    core: BoolLabel,
}

/// Labels of installations with a problem.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConditionLabels {
    /// The condition that says so.
    condition: &'static str,
    /// Whether they are core add-ons.
    core: BoolLabel,
}

/// `true` or `false`.
type BoolLabel = &'static str;

/// Returns the value of a label.
pub(crate) fn bool_label(value: bool) -> BoolLabel {
    match value {
        true => "true",
        false => "false",
    }
}

/// What the metrics count of an installation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CountedState {
    phase: Option<InstallationPhase>,
    is_core: bool,
    problems: Vec<&'static str>,
    addon: String,
    /// The installed version; empty if none is installed, or if it has only an id.
    version: String,
    /// Whether it fits its cluster and is listed.
    fit: VersionFit,
    /// When it was installed, in seconds since the epoch.
    installed_at: Option<i64>,
    /// What the last check found that the record does not say.
    pub(crate) found: FoundState,
}

/// Whether an installed version fits its cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum VersionFit {
    #[default]
    Fits,
    Misfit,
    /// Its catalogue no longer lists it, so its constraints are not known.
    Unlisted,
}

/// What a check of an installation found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundState {
    /// The objects that are not restored.
    drift: DriftCounts,
    /// When the maintenance window opens in which the due change begins, in seconds since the epoch.
    window: Option<i64>,
}

impl CountedState {
    /// Returns the state in a record.
    pub(crate) fn from_record(record: &AddonInstallation) -> Self {
        let status = record.status.as_ref();
        let conditions = status.map_or(&[][..], |status| &status.conditions);
        let is_raised = |problem: &&str| find_raised(conditions, problem).is_some();
        let mut problems: Vec<_> = PROBLEMS.into_iter().filter(is_raised).collect();
        let mut all = conditions.iter();
        let mut fit = VersionFit::Fits;
        if all.any(|one| one.r#type == COMPATIBLE && one.status == "False") {
            problems.push(INCOMPATIBLE);
            fit = VersionFit::Misfit;
        } else if problems.contains(&UNLISTED) {
            fit = VersionFit::Unlisted;
        }
        let installed = record.installed();
        let at = installed.and_then(|installed| installed.at.as_ref());
        Self {
            phase: status.and_then(|status| status.phase),
            is_core: record.spec.core_addon,
            problems,
            addon: record.spec.addon_ref.name.clone(),
            version: installed.map_or_else(String::new, |installed| installed.version.clone()),
            fit,
            installed_at: at.map(|at| at.0.as_second()),
            found: FoundState::default(),
        }
    }

    /// Remembers what a check found. An outcome that says nothing about it keeps what was found before.
    pub(crate) fn set_outcome(&mut self, outcome: &ReconcileOutcome) {
        match outcome {
            ReconcileOutcome::Drifted(drift) => {
                self.found = FoundState {
                    drift: *drift,
                    window: None,
                }
            }
            ReconcileOutcome::OutsideWindow(outside) => {
                self.found.window = outside.window.next.map(|next| next.as_second());
            }
            ReconcileOutcome::UpToDate | ReconcileOutcome::Executed(..) => {
                self.found = FoundState::default();
            }
            _ => {}
        }
    }

    /// Remembers whether the record carries the guard of core add-ons.
    pub(crate) fn add_guard(&mut self, is_guarded: bool) {
        self.is_core |= is_guarded;
    }

    /// Whether it is a core add-on.
    pub(crate) fn is_core(&self) -> bool {
        self.is_core
    }
}

impl Default for LoopMetrics {
    fn default() -> Self {
        let mut registry = metrics::registry("addons_reconciler");
        let reconciles = Family::<ReconcileLabels, Counter>::default();
        for outcome in OUTCOMES {
            for core in [true, false].map(bool_label) {
                // The first of them has to count as an increase.
                let _ = reconciles.get_or_create(&ReconcileLabels { outcome, core });
            }
        }
        let (seconds, leader) = (Histogram::new(BUCKETS), Gauge::default());
        let (installations, conditions) = (Family::default(), Family::default());
        registry.register("reconciles", "Reconciled installations", reconciles.clone());
        registry.register(
            "duration_seconds",
            "Time to reconcile one installation",
            seconds.clone(),
        );
        registry.register("leader", "Whether this process leads", leader.clone());
        registry.register(
            "installations",
            "Installations that this process reconciles, by phase",
            installations.clone(),
        );
        registry.register(
            "conditions",
            "Installations with a problem or a change that waits, by the condition that says so",
            conditions.clone(),
        );
        let series = InstallationSeries::default();
        registry.register_collector(Box::new(series.clone()));
        let metrics = Self {
            watch_failures: WatchFailures::register(&mut registry, RESOURCES),
            registry,
            reconciles,
            seconds,
            leader,
            installations,
            conditions,
            series,
            is_ready: AtomicBool::new(false),
        };
        metrics.count_installations(std::iter::empty());
        metrics
    }
}

impl LoopMetrics {
    /// Returns whether the API server answered the last attempt to lead, so that this process can work or take over.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    pub(crate) fn set_ready(&self, is_ready: bool) {
        self.is_ready.store(is_ready, Ordering::Relaxed);
    }

    /// Counts the installations that this process reconciles.
    pub(crate) fn count_installations<'a>(
        &self,
        all: impl Iterator<Item = (&'a InstallationName, &'a CountedState)>,
    ) {
        let all: Vec<_> = all.collect();
        self.series.update(&all);
        let mut phases: BTreeMap<(String, bool), i64> = BTreeMap::new();
        let mut problems: BTreeMap<(&'static str, bool), i64> = BTreeMap::new();
        for is_core in [true, false] {
            for phase in PHASES {
                phases.insert((format!("{phase:?}"), is_core), 0);
            }
            for problem in PROBLEMS.into_iter().chain([INCOMPATIBLE]) {
                problems.insert((problem, is_core), 0);
            }
        }
        for (_, one) in all {
            let phase = format!("{:?}", one.phase.unwrap_or(NO_PHASE));
            *phases.entry((phase, one.is_core)).or_default() += 1;
            for problem in &one.problems {
                *problems.entry((problem, one.is_core)).or_default() += 1;
            }
        }
        for ((phase, is_core), count) in phases {
            let core = bool_label(is_core);
            let gauge = self
                .installations
                .get_or_create(&PhaseLabels { phase, core });
            gauge.set(count);
        }
        for ((condition, is_core), count) in problems {
            let core = bool_label(is_core);
            let labels = ConditionLabels { condition, core };
            self.conditions.get_or_create(&labels).set(count);
        }
    }

    /// Returns the OpenMetrics text.
    ///
    /// # Errors
    /// None are known: the text is written into memory.
    pub fn encode_text(&self) -> Result<String, std::fmt::Error> {
        metrics::encode_text(&self.registry)
    }
}

#[cfg(test)]
mod tests {
    use common::api::installation::{AddonInstallationSpec, AddonInstallationStatus};
    use serde_json::json;

    use super::*;

    #[test]
    fn installations_are_counted_by_phase_and_problem() {
        let record = |is_core, phase, conditions: serde_json::Value| {
            let spec = AddonInstallationSpec {
                core_addon: is_core,
                ..AddonInstallationSpec::default()
            };
            let mut record = AddonInstallation::new("web", spec);
            record.spec.addon_ref.name = "web".to_owned();
            record.status = Some(AddonInstallationStatus {
                phase,
                conditions: serde_json::from_value(conditions).unwrap(),
                ..AddonInstallationStatus::default()
            });
            CountedState::from_record(&record)
        };
        let condition = |r#type: &str, status: &str| {
            let at = "2026-01-01T00:00:00Z";
            json!({"type": r#type, "status": status, "reason": "X", "message": "", "lastTransitionTime": at})
        };
        let stalled = json!([
            condition("Stalled", "True"),
            condition("Compatible", "False")
        ]);
        let well = json!([condition("Stalled", "False"), condition("Ready", "True")]);
        let metrics = LoopMetrics::default();
        let drift = DriftCounts {
            edited: 2,
            missing: 1,
        };
        let mut all = [
            record(true, Some(InstallationPhase::Failed), stalled),
            record(false, Some(InstallationPhase::Ready), well),
            record(false, None, json!([])),
        ];
        all[1].set_outcome(&ReconcileOutcome::Drifted(drift));
        let names = ["a", "b", "c"].map(|name| InstallationName {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        });
        metrics.count_installations(names.iter().zip(all.iter()));
        let text = metrics.encode_text().unwrap();
        for line in [
            "addons_reconciler_installations{phase=\"Failed\",core=\"true\"} 1\n",
            "addons_reconciler_installations{phase=\"Ready\",core=\"false\"} 1\n",
            "addons_reconciler_installations{phase=\"Pending\",core=\"false\"} 1\n",
            "addons_reconciler_conditions{condition=\"Stalled\",core=\"true\"} 1\n",
            "addons_reconciler_conditions{condition=\"Incompatible\",core=\"true\"} 1\n",
            "addons_reconciler_conditions{condition=\"Stalled\",core=\"false\"} 0\n",
            "addons_reconciler_reconciles_total{outcome=\"failed\",core=\"true\"} 0\n",
            "addons_reconciler_watch_failures_total{resource=\"leases\"} 0\n",
            "addons_reconciler_installation_info{namespace=\"shop\",name=\"a\",addon=\"web\",version=\"\",fit=\"false\",core=\"true\"} 1\n",
            "addons_reconciler_installation_info{namespace=\"shop\",name=\"b\",addon=\"web\",version=\"\",fit=\"true\",core=\"false\"} 1\n",
            "addons_reconciler_installation_drifted_objects{namespace=\"shop\",name=\"b\",differs=\"edited\"} 2\n",
            "addons_reconciler_installation_drifted_objects{namespace=\"shop\",name=\"b\",differs=\"missing\"} 1\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        metrics.count_installations(std::iter::empty());
        let text = metrics.encode_text().unwrap();
        let mut lines = text.lines();
        let is_left = lines.any(|line| line.contains("core=") && !line.ends_with(" 0"));
        assert!(!is_left, "{text}");
    }
}
