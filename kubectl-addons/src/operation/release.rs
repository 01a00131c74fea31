//! Releases that helm itself installs and removes (`template.helm.mode: release`), as work that the engine does under the lock
//! of the record.

use std::time::Duration;

use anyhow::{Result, bail};
use common::api::installation::{AddonInstallationStatus, HelmRelease};
use common::plan::Verb;
use futures::future::BoxFuture;
use kube::Config;

use crate::cli::operation::Run;
use crate::output;
use crate::session::Session;
use crate::settings;
use addons_helm::release::{Release, Status, Wanted};
use addons_helm::{Helm, HelmError};

use super::chart::Ready;
use super::interruption::Interruption;
use super::prepare::Prepared;

/// What helm does for one installation.
#[derive(Clone, Debug)]
pub struct Work {
    helm: Helm,
    config: Config,
    release: HelmRelease,
    /// The chart; none where the release goes.
    ready: Option<Ready>,
    wait: bool,
    timeout: Duration,
    interruption: Interruption,
}

impl Work {
    /// What helm does for a plan; `None` where it has no part in it.
    ///
    /// # Errors
    /// There is no helm; the kubeconfig cannot be read.
    pub async fn of(
        session: &Session,
        prepared: &Prepared,
        run: &Run,
        interruption: &Interruption,
    ) -> Result<Option<Self>> {
        let Some(release) = &prepared.plan.helm_release else {
            return Ok(None);
        };
        let ready = prepared.release.clone();
        if ready.is_none() && prepared.plan.verb != Verb::Uninstall {
            return Ok(None);
        }
        Ok(Some(Self {
            helm: session.helm().await?.clone(),
            config: settings::config(session.global()).await?,
            release: release.clone(),
            ready,
            wait: run.wait,
            timeout: run.timeout,
            interruption: interruption.clone(),
        }))
    }

    /// Does it; why it failed, in helm's words.
    pub fn run(&self) -> BoxFuture<'static, Result<(), String>> {
        let work = self.clone();
        Box::pin(async move {
            let _runs = work.interruption.helm_runs().await;
            let done = work.done().await;
            done.map_err(|error| one_line(&error.to_string()))
        })
    }

    async fn done(&self) -> Result<(), HelmError> {
        let HelmRelease { name, namespace } = &self.release;
        let release = Release::new(&self.helm, &self.config, name, namespace)?;
        let Some(ready) = &self.ready else {
            release.uninstall(self.wait, self.timeout).await?;
            return Ok(());
        };
        // Whoever began it is gone: the lock of the record is ours.
        if let Some(recovery) = release.recover(self.timeout).await? {
            output::note(&format!("careful: {name}: {recovery}"));
        }
        let wanted = Wanted {
            package: &ready.package,
            values: &ready.values,
            secrets: &ready.secrets,
            create_namespace: false,
            wait: self.wait,
            timeout: self.timeout,
        };
        release.upgrade(&wanted).await
    }
}

/// The words of helm, which come in lines, as progress, reports and conditions take them.
pub fn one_line(words: &str) -> String {
    let lines: Vec<&str> = words.lines().map(str::trim).collect();
    lines.join("; ")
}

/// The release that a record stands for: what is installed, what an operation was installing when it was cut off, or what
/// could not be installed: helm keeps a release that failed.
pub fn recorded(status: &AddonInstallationStatus) -> Option<&HelmRelease> {
    let operation = status.operation.as_ref();
    let target = operation.and_then(|operation| operation.target.as_ref());
    let tried = status.history.first().map(|revision| &revision.installed);
    let installed = status.installed.as_ref().or(target).or(tried);
    installed?.helm_release.as_ref()
}

/// Objects of ours and a release of helm's cannot follow each other: helm refuses objects that it did not make, and what it
/// made is not ours to prune.
///
/// # Errors
/// The mode changed.
pub fn check_mode(
    name: &str,
    status: Option<&AddonInstallationStatus>,
    wanted: Option<&HelmRelease>,
) -> Result<()> {
    let Some(status) = status else { return Ok(()) };
    let recorded = recorded(status);
    let mode = match (recorded, wanted) {
        (Some(_), None) => "objects",
        (None, Some(_)) if !status.inventory.is_empty() => "release",
        (Some(recorded), Some(wanted)) if recorded != wanted => {
            bail!(
                "{name} is the Helm release {}/{}, and would become {}/{}\n  accept: kubectl addons uninstall {name}, then install it again",
                recorded.namespace,
                recorded.name,
                wanted.namespace,
                wanted.name
            );
        }
        _ => return Ok(()),
    };
    bail!(
        "the catalogue changed template.helm.mode of {name} to {mode}: neither helm nor this tool takes over what the other one made\n  \
         look:   kubectl addons status {name}\n  accept: kubectl addons uninstall {name}, then install it again"
    );
}

/// How helm says that a release is.
///
/// # Errors
/// There is no helm; it cannot ask the cluster.
pub async fn status(session: &Session, release: &HelmRelease) -> Result<Option<Status>> {
    let config = settings::config(session.global()).await?;
    let helm = session.helm().await?;
    let release = Release::new(helm, &config, &release.name, &release.namespace)?;
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
            assert_eq!(recorded(&read).is_some(), expected, "{status}");
        }
    }

    #[test]
    fn helm_is_quoted_in_one_line() {
        let said = "resource web not ready\n  context deadline exceeded\n";
        assert_eq!(
            one_line(said),
            "resource web not ready; context deadline exceeded"
        );
    }
}
