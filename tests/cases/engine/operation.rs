//! An operation that is disturbed, and how it goes when it is not.

use anyhow::Result;
use serde_json::Value;

use super::addon;
use super::rig::Rig;
use super::state::state;

/// An operation on the add-on `small`.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// Of the first version.
    Install,
    /// To the second one, with objects that go.
    Upgrade,
    /// Of the first version.
    Uninstall,
}

impl Operation {
    /// What is there before it, made by a client that nobody disturbs; returns the command line.
    pub async fn prepare(self, rig: &Rig) -> Result<String> {
        let first = addon::index(&rig.stage, "1.0.0", &addon::first())?;
        let install = format!("install small --channel {first} --yes");
        match self {
            Self::Install => return Ok(install),
            Self::Upgrade | Self::Uninstall => rig.stage.run(&install).await?.done()?,
        };
        let namespace = &rig.stage.namespace;
        Ok(match self {
            Self::Uninstall => format!("uninstall small -n {namespace} --yes"),
            _ => {
                let second = addon::index(&rig.stage, "2.0.0", &addon::second())?;
                format!("upgrade small -n {namespace} --channel {second} --yes")
            }
        })
    }

    /// An undisturbed run: what it ends in, how many requests it takes, and how many of them come before the first write.
    pub async fn undisturbed(self) -> Result<(Value, usize, usize)> {
        let rig = Rig::new("undisturbed").await?;
        let line = self.prepare(&rig).await?;
        rig.run(&line).await?.done()?;
        let requests = rig.proxy.requests();
        let reads = requests.iter().take_while(|seen| seen.method == "GET");
        Ok((state(&rig.stage).await?, requests.len(), reads.count()))
    }

    /// Runs it again after it was cut off, by somebody who does not wait for the dead client's lock to expire.
    pub async fn again(self, rig: &Rig, line: &str) -> Result<()> {
        // An uninstallation that came to its end has nothing left that could be named.
        let is_gone = !rig.stage.has("addoninstallation", "small").await?;
        if is_gone && matches!(self, Self::Uninstall) {
            return Ok(());
        }
        rig.stage
            .run(&format!("{line} --steal-lock"))
            .await?
            .done()
            .map(drop)
    }
}
