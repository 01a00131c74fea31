//! A command of the plugin that goes on until it is ended: `reconcile --watch`, `sync --watch`.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::guard::Guarded;
use crate::plugin::Plugin;
use crate::stage::Stage;
use crate::until::until;

/// A process of the plugin, in a home of its own; dropped, it is killed.
pub struct Running {
    /// The process.
    pub process: Guarded,
    /// Whose it is.
    pub plugin: Plugin,
}

impl Running {
    /// As the user of the stage.
    ///
    /// # Errors
    /// As [`Plugin::run`].
    pub fn start(stage: &Stage, args: &[&str]) -> Result<Self> {
        Self::with(stage, stage.plugin.kubeconfig(), args)
    }

    /// `reconcile --watch` as the user of the stage, with more flags.
    ///
    /// # Errors
    /// As [`Plugin::run`].
    pub fn reconcile(stage: &Stage, more: &[&str]) -> Result<Self> {
        Self::start(stage, &[&["reconcile", "--watch"], more].concat())
    }

    /// With another kubeconfig than the stage's, for the same system namespace.
    ///
    /// # Errors
    /// As [`Plugin::run`].
    pub fn with(stage: &Stage, kubeconfig: &Path, args: &[&str]) -> Result<Self> {
        Self::of(Self::home(stage, kubeconfig)?, args)
    }

    /// A home for a process that finds something there.
    ///
    /// # Errors
    /// As [`Plugin::new`].
    pub fn home(stage: &Stage, kubeconfig: &Path) -> Result<Plugin> {
        let plugin = Plugin::new(&stage.cluster, kubeconfig)?;
        Ok(plugin.system_namespace(&stage.namespace))
    }

    /// In a home that is there already.
    ///
    /// # Errors
    /// As [`Plugin::run`].
    pub fn of(plugin: Plugin, args: &[&str]) -> Result<Self> {
        let process = plugin.start(args)?;
        Ok(Self { process, plugin })
    }

    /// Ends it by SIGTERM: with this exit code.
    ///
    /// # Errors
    /// As [`Guarded::terminate`] and [`Guarded::wait`]; where it is another one.
    pub fn ends(&mut self, code: i32) -> Result<()> {
        self.process.terminate()?;
        let ended = self.process.wait()?;
        ensure!(ended.code() == Some(code), "{ended:?} {}", self.said());
        Ok(())
    }

    /// What it has said on stderr.
    #[must_use]
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.plugin.home().join("stderr")).unwrap_or_default()
    }

    /// Waits until it has said this.
    ///
    /// # Errors
    /// Where it does not within the deadline of [`until`].
    pub async fn says(&self, words: &str) -> Result<()> {
        until(&format!("the process says {words}"), async || {
            let said = self.said();
            Ok(said.contains(words).then_some(()).ok_or(said))
        })
        .await
    }
}
