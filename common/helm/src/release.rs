//! `template.helm.mode: release`: helm installs a release and keeps its own records.
//!
//! The caller holds the lock of the installation, so a pending release was left by a helm that has ended; [`ReleaseClient::recover`] makes it
//! usable again.

mod record;
mod recovery;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use addons_render::chart::overrides;
use addons_render::package::Package;
use common::api::names::LABEL_OWNER;
use common::values::mask::SecretMask;
use kube::Config;
use serde_json::Value;
use tokio::sync::watch;

use super::kubeconfig::kubeconfig;
use super::process::{HelmCall, flag};
use super::template::set_flags;
use super::workspace::Workspace;
use super::{Helm, HelmError, read_chart};

pub use record::{ReleasePhase, ReleaseRevision, ReleaseStatus};
pub use recovery::ReleaseRecovery;

/// Time limit for commands that only read.
const ASKING: Duration = Duration::from_secs(30);
/// Additional time beyond helm's own `--timeout`.
const GRACE: Duration = Duration::from_secs(30);
/// Output limit in bytes: helm's records contain manifests and values.
const OUTPUT: usize = 64 << 20;

/// A release of Helm in a cluster.
#[derive(Debug)]
pub struct ReleaseClient<'a> {
    helm: &'a Helm,
    name: &'a str,
    namespace: &'a str,
    workspace: Workspace,
    kubeconfig: OsString,
    /// Whether the kubeconfig names a program that provides the credentials.
    ambient: bool,
    /// Runs of helm that write are stopped when this becomes true.
    stop: watch::Receiver<bool>,
}

/// The input for installing or upgrading a release.
#[derive(Clone, Debug)]
pub struct ReleaseRequest<'a> {
    /// The chart, with all its dependencies.
    pub package: &'a Package,
    /// The merged values, including those of the chart.
    pub values: &'a Value,
    /// See [`TemplateRequest::whole_numbers`](super::template::TemplateRequest::whole_numbers).
    pub whole_numbers: &'a [String],
    /// Hides values of Secrets in errors.
    pub mask: &'a SecretMask,
    /// Hash of the installation. It becomes a label of helm's records, and proves which installation owns the release.
    pub owner: &'a str,
    /// Whether helm creates a missing namespace.
    pub create_namespace: bool,
    /// Whether helm leaves out the definitions in `crds/`.
    pub skip_crds: bool,
    /// Whether helm waits until all objects are ready.
    pub wait: bool,
    /// Time limit.
    pub timeout: Duration,
    /// Whether helm takes back fields that others changed since the last revision. Helm 3 always does.
    pub takes_fields: bool,
}

impl<'a> ReleaseClient<'a> {
    /// A release by its name; nothing is asked. `config` is the connection of this program.
    ///
    /// # Errors
    /// No private folder can be made.
    pub fn new(
        helm: &'a Helm,
        config: &Config,
        name: &'a str,
        namespace: &'a str,
    ) -> Result<Self, HelmError> {
        let workspace = Workspace::new()?;
        let bytes = kubeconfig(config).map_err(|error| HelmError::Workspace {
            what: "kubeconfig".to_owned(),
            source: error.into(),
        })?;
        let kubeconfig = workspace.write(Path::new("kubeconfig"), &bytes)?.into();
        let user = &config.auth_info;
        Ok(Self {
            helm,
            name,
            namespace,
            workspace,
            kubeconfig,
            ambient: user.exec.is_some() || user.auth_provider.is_some(),
            stop: watch::channel(false).1,
        })
    }

    /// Sets the stop flag: when it becomes true, a run that writes is asked to stop, and none is started.
    #[must_use]
    pub fn with_stop(mut self, stop: watch::Receiver<bool>) -> Self {
        self.stop = stop;
        self
    }

    /// Returns the status of the release, or `None` if it does not exist.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub async fn status(&self) -> Result<Option<ReleaseStatus>, HelmError> {
        let answer = self.read_json("status").await?;
        answer.map(|text| record::parse_status(&text)).transpose()
    }

    /// Returns the revisions of the release, oldest first; none if it does not exist.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub async fn history(&self) -> Result<Vec<ReleaseRevision>, HelmError> {
        let answer = self.read_json("history").await?;
        let history = answer
            .map(|text| record::parse_history(&text))
            .transpose()?;
        Ok(history.unwrap_or_default())
    }

    /// Makes a pending release usable again that helm left unfinished. Returns what was done.
    ///
    /// # Errors
    /// Helm fails.
    pub async fn recover(&self, timeout: Duration) -> Result<Option<ReleaseRecovery>, HelmError> {
        let Some(recovery) = recovery::find_recovery(&self.history().await?) else {
            return Ok(None);
        };
        match recovery {
            ReleaseRecovery::Uninstalled { .. } => {
                self.uninstall(true, timeout).await?;
            }
            ReleaseRecovery::RolledBack { to, .. } => {
                let args: [OsString; 1] = [to.to_string().into()];
                let call = self.write_call("rollback", timeout).args(args);
                self.helm.run(&self.workspace, call).await?;
            }
        }
        Ok(Some(recovery))
    }

    /// Installs or upgrades the release.
    ///
    /// # Errors
    /// The package is not a chart or is a library chart, or helm fails.
    pub async fn upgrade(&self, wanted: &ReleaseRequest<'_>) -> Result<(), HelmError> {
        let chart = read_chart(wanted.package)?;
        // A separate folder, because one release may be upgraded twice.
        let folder = Workspace::new()?;
        let mut args: Vec<OsString> = vec![
            folder.write_chart(wanted.package)?.into(),
            "--install".into(),
            // Otherwise values of the last release would stay if no new ones are given.
            "--reset-values".into(),
            flag("values", "-"),
            flag("labels", format!("{LABEL_OWNER}={}", wanted.owner)),
        ];
        args.extend(set_flags(wanted.whole_numbers));
        if wanted.create_namespace {
            args.push("--create-namespace".into());
        }
        if wanted.skip_crds {
            args.push("--skip-crds".into());
        }
        if wanted.wait {
            args.extend(["--wait".into(), "--wait-for-jobs".into()]);
        }
        if wanted.takes_fields && self.helm.finds_conflicts() {
            // Moves a release that Helm 3 created to server-side apply, which detects conflicts.
            args.extend([flag("server-side", "true"), "--force-conflicts".into()]);
        }
        let values = overrides(&chart.values, wanted.values);
        let call = self
            .write_call("upgrade", wanted.timeout)
            .args(args)
            .input(values.to_string().into_bytes())
            .mask(wanted.mask);
        self.helm.run(&self.workspace, call).await?;
        Ok(())
    }

    /// Uninstalls the release with its history. Returns whether it existed.
    ///
    /// # Errors
    /// Helm fails.
    pub async fn uninstall(&self, wait: bool, timeout: Duration) -> Result<bool, HelmError> {
        let mut call = self.write_call("uninstall", timeout);
        if wait {
            call = call.args(["--wait"]);
        }
        self.none_if_missing(self.helm.run(&self.workspace, call).await)
            .map(|said| said.is_some())
    }

    async fn read_json(&self, verb: &'static str) -> Result<Option<String>, HelmError> {
        let call = HelmCall::new(verb, ASKING, OUTPUT)
            .args(self.args(verb))
            .args(["--output=json"])
            .online(self.ambient);
        let said = self.helm.run(&self.workspace, call).await;
        self.none_if_missing(said)?
            .map(super::process::HelmOutput::text)
            .transpose()
    }

    /// Turns the error of a missing release into `None`. Only the message shows it (helm 3.14 to 4).
    fn none_if_missing<T>(&self, answer: Result<T, HelmError>) -> Result<Option<T>, HelmError> {
        match answer {
            Err(HelmError::Failed { message, .. }) if message.ends_with("release: not found") => {
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    fn write_call(&self, verb: &'static str, timeout: Duration) -> HelmCall<'_> {
        let seconds = format!("{}s", timeout.as_secs().max(1));
        HelmCall::new(verb, timeout.saturating_add(GRACE), OUTPUT)
            .args(self.args(verb))
            .args([flag("timeout", seconds)])
            .online(self.ambient)
            .writes(self.stop.clone())
    }

    fn args(&self, verb: &'static str) -> [OsString; 4] {
        [
            verb.into(),
            self.name.into(),
            flag("namespace", self.namespace),
            flag("kubeconfig", &self.kubeconfig),
        ]
    }
}
