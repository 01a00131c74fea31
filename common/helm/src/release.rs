//! `template.helm.mode: release`: helm installs a release of its own, and keeps its own records.
//!
//! Whoever calls this holds the lock of the installation, so a release that is pending was left behind by a helm that is gone:
//! [`Release::recover`] makes it usable again.

mod record;
mod recovery;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use addons_render::chart::overrides;
use addons_render::package::Package;
use common::api::names::LABEL_OWNER;
use common::values::mask::Mask;
use kube::Config;
use serde_json::Value;
use tokio::sync::watch;

use super::kubeconfig::kubeconfig;
use super::process::{Call, flag};
use super::template::set;
use super::workspace::Workspace;
use super::{Helm, HelmError, chart};

pub use record::{Phase, Revision, Status};
pub use recovery::Recovery;

/// For questions.
const ASKING: Duration = Duration::from_secs(30);
/// Beyond the time that helm itself was given for waiting.
const GRACE: Duration = Duration::from_secs(30);
/// Its records hold manifests and values.
const OUTPUT: usize = 64 << 20;

/// One release of a cluster.
#[derive(Debug)]
pub struct Release<'a> {
    helm: &'a Helm,
    name: &'a str,
    namespace: &'a str,
    workspace: Workspace,
    kubeconfig: OsString,
    /// The kubeconfig names a program that provides the credentials.
    ambient: bool,
    /// Helms that write are stopped once this is true.
    stop: watch::Receiver<bool>,
}

/// What is wanted of a release.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The chart, with everything that it is made of.
    pub package: &'a Package,
    /// The merged values, those of the chart included.
    pub values: &'a Value,
    /// See [`TemplateRequest::whole_numbers`](super::template::TemplateRequest::whole_numbers).
    pub whole_numbers: &'a [String],
    /// Hides what comes from Secrets in errors.
    pub mask: &'a Mask,
    /// Hash of the installation, which becomes a label of helm's records: it proves whose release it is.
    pub owner: &'a str,
    /// Whether a missing namespace is made.
    pub create_namespace: bool,
    /// Whether the definitions in `crds/` are left out.
    pub skip_crds: bool,
    /// Whether helm waits until everything is ready.
    pub wait: bool,
    /// Its bound.
    pub timeout: Duration,
    /// Whether fields are taken back that others changed since the last revision. Helm 3 does so by itself.
    pub takes_fields: bool,
}

impl<'a> Release<'a> {
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

    /// Once this is true, a helm that writes is asked to stop, and none begins.
    #[must_use]
    pub fn until(mut self, stop: watch::Receiver<bool>) -> Self {
        self.stop = stop;
        self
    }

    /// How it is; `None` where there is none.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub async fn status(&self) -> Result<Option<Status>, HelmError> {
        let answer = self.ask("status").await?;
        answer.map(|text| record::status(&text)).transpose()
    }

    /// Its revisions, the oldest first; none where there is no release.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub async fn history(&self) -> Result<Vec<Revision>, HelmError> {
        let answer = self.ask("history").await?;
        let history = answer.map(|text| record::history(&text)).transpose()?;
        Ok(history.unwrap_or_default())
    }

    /// Makes a release usable that a helm left behind in the middle of its work; what was done.
    ///
    /// # Errors
    /// Helm's own.
    pub async fn recover(&self, timeout: Duration) -> Result<Option<Recovery>, HelmError> {
        let Some(recovery) = recovery::of(&self.history().await?) else {
            return Ok(None);
        };
        match recovery {
            Recovery::Uninstalled { .. } => {
                self.uninstall(true, timeout).await?;
            }
            Recovery::RolledBack { to, .. } => {
                let args: [OsString; 1] = [to.to_string().into()];
                let call = self.writing("rollback", timeout).args(args);
                self.helm.run(&self.workspace, call).await?;
            }
        }
        Ok(Some(recovery))
    }

    /// Installs or upgrades it.
    ///
    /// # Errors
    /// No chart, or a library; helm's own.
    pub async fn upgrade(&self, wanted: &Wanted<'_>) -> Result<(), HelmError> {
        let chart = chart(wanted.package)?;
        // A folder of its own: one release may be upgraded twice.
        let folder = Workspace::new()?;
        let mut args: Vec<OsString> = vec![
            folder.chart(wanted.package)?.into(),
            "--install".into(),
            // Else values of the last release would stay where none are given.
            "--reset-values".into(),
            flag("values", "-"),
            flag("labels", format!("{LABEL_OWNER}={}", wanted.owner)),
        ];
        args.extend(set(wanted.whole_numbers));
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
            // A release that Helm 3 made is moved to server-side apply with it, which knows conflicts.
            args.extend([flag("server-side", "true"), "--force-conflicts".into()]);
        }
        let values = overrides(&chart.values, wanted.values);
        let call = self
            .writing("upgrade", wanted.timeout)
            .args(args)
            .input(values.to_string().into_bytes())
            .mask(wanted.mask);
        self.helm.run(&self.workspace, call).await?;
        Ok(())
    }

    /// Uninstalls it, with its history; whether there was one.
    ///
    /// # Errors
    /// Helm's own.
    pub async fn uninstall(&self, wait: bool, timeout: Duration) -> Result<bool, HelmError> {
        let mut call = self.writing("uninstall", timeout);
        if wait {
            call = call.args(["--wait"]);
        }
        self.unless_missing(self.helm.run(&self.workspace, call).await)
            .map(|said| said.is_some())
    }

    async fn ask(&self, verb: &'static str) -> Result<Option<String>, HelmError> {
        let call = Call::new(verb, ASKING, OUTPUT)
            .args(self.args(verb))
            .args(["--output=json"])
            .online(self.ambient);
        let said = self.helm.run(&self.workspace, call).await;
        self.unless_missing(said)?
            .map(super::process::Said::text)
            .transpose()
    }

    /// Helm has no other sign of a release that is not there than its words (3.14 to 4).
    fn unless_missing<T>(&self, answer: Result<T, HelmError>) -> Result<Option<T>, HelmError> {
        match answer {
            Err(HelmError::Failed { message, .. }) if message.ends_with("release: not found") => {
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    fn writing(&self, verb: &'static str, timeout: Duration) -> Call<'_> {
        let seconds = format!("{}s", timeout.as_secs().max(1));
        Call::new(verb, timeout.saturating_add(GRACE), OUTPUT)
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
