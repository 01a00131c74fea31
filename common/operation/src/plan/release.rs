//! Releases that helm itself installs and uninstalls (`template.helm.mode: release`), as work that the engine does under the lock of the
//! record.

use addons_engine::release::{ReleaseOwner, owner, records};
use addons_engine::{FailureCause, OutsideFailure, OwnedOutside};
use addons_helm::release::{ReleaseClient, ReleaseRequest, ReleaseStatus};
use addons_helm::{Helm, HelmError};
use addons_plan::release_records::ReleaseRecords;
use common::api::catalogue::HelmMode;
use common::api::installation::{AddonInstallationStatus, ConflictPolicy, HelmRelease};
use common::api::names::{InstallationName, owner_hash};
use common::foreign::ForeignText;
use futures::future::BoxFuture;
use kube::Config;

use super::PlannedInstallation;
use crate::context::{Context, EventSink};
use crate::error::{ChangedRelease, ForeignRelease, ModeError, OperationError};
use crate::event::{Finding, OperationEvent};
use crate::execute::RunOptions;
use crate::execute::interruption::Interruption;
use crate::render::chart::CompleteChart;

/// What helm does for one installation.
#[derive(Clone)]
pub(crate) struct ReleaseWork {
    events: EventSink,
    helm: Helm,
    config: Config,
    release: HelmRelease,
    /// The owner label that marks the release.
    owner: String,
    /// The chart; `None` if the release is uninstalled.
    chart: Option<CompleteChart>,
    /// Whether to recover a pending release.
    recovers: bool,
    run: RunOptions,
    conflicts: ConflictPolicy,
    interruption: Interruption,
}

impl ReleaseWork {
    /// Returns the work of helm for a plan as the engine runs it, or `None` if helm is not involved.
    pub(crate) async fn prepare(
        ctx: &Context,
        planned: &PlannedInstallation,
        run: &RunOptions,
        interruption: &Interruption,
    ) -> Result<Option<OwnedOutside>, OperationError> {
        let Some((release, records)) = planned.plan.helm_release() else {
            return Ok(None);
        };
        let chart = planned.release.clone();
        if chart.is_none() && !planned.plan.verb.ends_installation() {
            return Ok(None);
        }
        let installation = &planned.plan.installation;
        let work = Self {
            events: ctx.events(),
            helm: ctx.helm().await?.clone(),
            config: config(ctx).await?.clone(),
            release: release.clone(),
            owner: owner_hash(&installation.namespace, &installation.name),
            chart,
            recovers: records.recovers,
            run: run.clone(),
            conflicts: planned.plan.wanted.spec.conflicts,
            interruption: interruption.clone(),
        };
        Ok(Some(Box::new(move || work.clone().run())))
    }

    /// Runs helm, and returns helm's message if it fails.
    fn run(self) -> BoxFuture<'static, Result<(), OutsideFailure>> {
        Box::pin(async move {
            let _runs = self.interruption.hold_helm().await;
            let done = self.run_helm().await;
            done.map_err(|error| {
                let words = ForeignText::new(&error.to_string());
                let cause = if error.is_conflict() {
                    FailureCause::Conflict
                } else {
                    FailureCause::Other
                };
                let message = match self.conflicts {
                    ConflictPolicy::Yield if error.is_conflict() => format!(
                        "{words}; spec.conflicts is Yield, and helm cannot leave fields to others: leave them out of the values, or set Take"
                    ),
                    ConflictPolicy::Fail if error.is_conflict() => {
                        format!("{words}; spec.conflicts is Fail: nothing is taken back")
                    }
                    _ => words.into(),
                };
                OutsideFailure { message, cause }
            })
        })
    }

    async fn run_helm(&self) -> Result<(), HelmError> {
        let HelmRelease { name, namespace } = &self.release;
        let timeout = self.run.timeout;
        let release = ReleaseClient::new(&self.helm, &self.config, name, namespace)?
            .with_stop(self.interruption.subscribe());
        let Some(chart) = &self.chart else {
            release.uninstall(self.run.wait, timeout).await?;
            return Ok(());
        };
        // The process that began the pending release has ended, because the record is locked by us.
        if self.recovers
            && let Some(recovery) = release.recover(timeout).await?
        {
            (self.events)(OperationEvent::Finding(Finding::ReleaseRecovered {
                release: name.clone(),
                recovery: recovery.to_string(),
            }));
        }
        let wanted = ReleaseRequest {
            package: &chart.package,
            values: &chart.values,
            whole_numbers: &chart.whole_numbers,
            mask: &chart.mask,
            owner: &self.owner,
            create_namespace: false,
            skip_crds: chart.skips_crds,
            wait: self.run.wait,
            timeout,
            takes_fields: self.conflicts == ConflictPolicy::Take,
        };
        release.upgrade(&wanted).await
    }
}

/// Returns the Secrets of a release that helm may continue from. Refuses a release that the installation did not create, and one whose
/// Secrets are not those in `status`: the label says who created it, but only the record proves its content (semantics 13.8). With
/// `accepts`, the release is accepted as it is.
pub(crate) async fn check(
    ctx: &Context,
    installation: &InstallationName,
    release: &HelmRelease,
    status: Option<&AddonInstallationStatus>,
    accepts: bool,
) -> Result<ReleaseRecords, OperationError> {
    let cluster = ctx.cluster().await?;
    let HelmRelease { name, namespace } = release;
    let ours = owner_hash(&installation.namespace, &installation.name);
    let other = match owner(cluster, release).await? {
        ReleaseOwner::Missing => return Ok(ReleaseRecords::default()),
        ReleaseOwner::Installation(owner) if owner == ours => None,
        ReleaseOwner::Installation(_) => Some(true),
        ReleaseOwner::Foreign => Some(false),
    };
    if let Some(other) = other {
        return Err(ForeignRelease {
            installation: installation.clone(),
            namespace: namespace.clone(),
            release: name.clone(),
            other,
        }
        .into());
    }
    let known = status.map_or(&[][..], |status| &status.helm_records);
    let found = records(cluster, release, known).await?;
    if accepts {
        return Ok(ReleaseRecords::accepted(found));
    }
    let is_interrupted = status.is_some_and(|status| status.operation.is_some());
    ReleaseRecords::compare(known, found, is_interrupted).map_err(|changed| {
        ChangedRelease {
            installation: installation.clone(),
            release: release.clone(),
            changed,
        }
        .into()
    })
}

/// Returns the connection settings for helm.
async fn config(ctx: &Context) -> Result<&Config, OperationError> {
    let config = ctx.cluster().await?.config();
    config.ok_or(OperationError::NoCluster)
}

/// Returns the release of a record: the installed one, the one that an interrupted operation was installing, or the one that could not be
/// installed, because helm keeps a failed release.
#[must_use]
pub fn recorded_release(status: &AddonInstallationStatus) -> Option<&HelmRelease> {
    let operation = status.operation.as_ref();
    let target = operation.and_then(|operation| operation.target.as_ref());
    let tried = status.history.first().map(|revision| &revision.installed);
    let installed = status.installed.as_ref().or(target).or(tried);
    installed?.helm_release.as_ref()
}

/// Checks whether the wanted mode is possible after the recorded one.
pub(crate) fn check_mode(
    name: &str,
    status: Option<&AddonInstallationStatus>,
    wanted: Option<&HelmRelease>,
) -> Result<(), ModeError> {
    let Some(status) = status else { return Ok(()) };
    let name = name.to_owned();
    let full = |release: &HelmRelease| format!("{}/{}", release.namespace, release.name);
    match (recorded_release(status), wanted) {
        (Some(_), None) => Err(ModeError::OtherMode {
            name,
            mode: HelmMode::Objects,
        }),
        (None, Some(_)) if !status.inventory.is_empty() => Err(ModeError::OtherMode {
            name,
            mode: HelmMode::Release,
        }),
        (Some(recorded), Some(wanted)) if recorded != wanted => Err(ModeError::OtherRelease {
            name,
            recorded: full(recorded),
            wanted: full(wanted),
        }),
        _ => Ok(()),
    }
}

/// Returns the status of a release as helm reports it.
///
/// # Errors
/// There is no helm, or it cannot reach the cluster.
pub async fn status(
    ctx: &Context,
    release: &HelmRelease,
) -> Result<Option<ReleaseStatus>, OperationError> {
    let config = config(ctx).await?;
    let release = ReleaseClient::new(ctx.helm().await?, config, &release.name, &release.namespace)?;
    Ok(release.status().await?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_release_that_failed_is_still_there() {
        let release = json!({"name": "web", "namespace": "shop"});
        let is =
            json!({"version": "1", "manifestHash": "", "valuesHash": "", "helmRelease": release});
        let objects = json!({"version": "1", "manifestHash": "", "valuesHash": ""});
        let tried =
            json!([{"verb": "install", "outcome": "helm upgrade: not ready", "installed": is}]);
        for (status, expected) in [
            (json!({}), false),
            (json!({"installed": is}), true),
            (json!({"history": tried}), true),
            (json!({"installed": objects, "history": tried}), false),
        ] {
            let read: AddonInstallationStatus = serde_json::from_value(status.clone()).unwrap();
            assert_eq!(recorded_release(&read).is_some(), expected, "{status}");
        }
    }
}
