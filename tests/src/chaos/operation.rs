//! An operation on the add-on of thirty objects that is disturbed, and how it goes when it is not.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::control_plane::ControlPlane;
use crate::stage::Stage;
use crate::tier::full;

use super::addon::{self, NAME};
use super::point::Point;
use super::rig::Rig;
use super::state;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Of the first version.
    Install,
    /// To the second version, which drops objects.
    Upgrade,
    /// Of the first version.
    Uninstall,
}

/// An undisturbed run.
pub struct Undisturbed {
    /// The cluster that it ran in, for the runs that are compared with it.
    cluster: Arc<ControlPlane>,
    /// What it ends in.
    pub state: Value,
    /// Its requests.
    pub points: Vec<Point>,
}

impl Undisturbed {
    /// A new user in its cluster.
    pub async fn rig(&self, what: &str) -> Result<Rig> {
        Rig::of(Stage::on(Arc::clone(&self.cluster), what).await?).await
    }
}

impl Operation {
    /// What is there before it, made by a client that nobody disturbs; returns the command line.
    pub async fn prepare(self, rig: &Rig) -> Result<String> {
        let stage = &rig.stage;
        let namespace = &stage.namespace;
        let first = addon::first(stage)?;
        let target = addon::target(stage);
        let install = format!(
            "install {NAME} --target-namespace {target} --channel {first} --yes --timeout 60s"
        );
        if self == Self::Install {
            return Ok(install);
        }
        stage.run(&install).await?.done()?;
        // Of the add-on's own kind, beside its objects; and in its namespace, where that stays.
        rig.foreign_widget().await?;
        if self == Self::Uninstall {
            return Ok(format!(
                "uninstall {NAME} -n {namespace} --yes --timeout 60s"
            ));
        }
        rig.foreign_config_map(&target).await?;
        let second = addon::second(stage)?;
        Ok(format!(
            "upgrade {NAME} -n {namespace} --channel {second} --yes --timeout 60s"
        ))
    }

    /// A run that nobody disturbs, with one request at a time. The next one has nothing to do.
    pub async fn undisturbed(self) -> Result<Undisturbed> {
        // A namespace stays while a definition in the cluster is not served, and in a whole matrix those of the neighbours never rest.
        let stage = match full() {
            true => Stage::alone("undisturbed").await?,
            false => Stage::new("undisturbed").await?,
        };
        let rig = Rig::of(stage).await?;
        // The definitions are not part of any operation.
        rig.stage.run("init").await?.done()?;
        let line = self.prepare(&rig).await?;
        rig.run(&format!("{line} --concurrency 1")).await?.done()?;
        let points = Point::all(&rig.proxy.requests(), &rig.stage.namespace);
        let mark = rig.stage.cluster.audit().mark()?;
        let again = rig.stage.run(&line).await?;
        let writes = rig.stage.requests(mark)?.writes("kubectl-addons");
        ensure!(writes == 0, "{writes} writes of {again:?}");
        if self != Self::Uninstall {
            again.done()?;
        }
        rig.foreign_is_untouched().await?;
        let state = state::of(&rig.stage, NAME).await?;
        rig.clear().await?;
        let cluster = Arc::clone(&rig.stage.cluster);
        Ok(Undisturbed {
            cluster,
            state,
            points,
        })
    }

    /// Runs it again after it was cut off, by somebody who does not wait for the dead client's lock to expire.
    pub async fn again(self, rig: &Rig, line: &str) -> Result<()> {
        // An uninstallation that came to its end has nothing left that could be named.
        let is_gone = !rig.stage.has("addoninstallation", NAME).await?;
        if is_gone && self == Self::Uninstall {
            return Ok(());
        }
        let line = format!("{line} --steal-lock");
        rig.stage.run(&line).await?.done().map(drop)
    }

    /// That a disturbed run and what followed ended as an undisturbed one does: nothing leaks, nothing foreign goes.
    pub async fn ended_well(self, rig: &Rig, wanted: &Value) -> Result<()> {
        rig.foreign_is_untouched().await?;
        state::nothing_leaks(&rig.stage, NAME).await?;
        let found = state::of(&rig.stage, NAME).await?;
        ensure!(found == *wanted, "{}", state::difference(&found, wanted));
        rig.clear().await
    }
}
