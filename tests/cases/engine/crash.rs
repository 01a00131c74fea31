//! A client that dies at any request: the next run ends where an undisturbed one would have (semantics 13).

use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::addon;
use super::rig::Rig;
use super::seed;
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

    /// Runs it again, after it was cut off and by somebody who does not wait for the dead client's lock to expire.
    pub async fn again(self, rig: &Rig, line: &str) -> Result<()> {
        let is_gone = !rig.stage.has("addoninstallation", "small").await?;
        if is_gone && matches!(self, Self::Uninstall) {
            return Ok(());
        }
        // Upgrading what is not there yet or not any more is no continuation; nor is this.
        rig.stage
            .run(&format!("{line} --steal-lock"))
            .await?
            .done()
            .map(drop)
    }
}

async fn crash(operation: Operation, name: &'static str, salt: u64) -> Result<()> {
    let mut tally = Tally::new(name);
    let (wanted, requests, reads) = operation.undisturbed().await?;
    for number in seed::choose(requests - reads, 6, salt) {
        let request = reads + number;
        for delivered in seed::both(true, false, number) {
            let case = format!(
                "{operation:?}, stopped at request {request} of {requests}, delivered: {delivered}"
            );
            let rig = Rig::new("crash").await?;
            one(operation, &rig, request, delivered, &wanted)
                .await
                .with_context(|| case)?;
            tally.ran();
        }
    }
    Ok(())
}

async fn one(
    operation: Operation,
    rig: &Rig,
    request: usize,
    delivered: bool,
    wanted: &Value,
) -> Result<()> {
    let line = operation.prepare(rig).await?;
    rig.run_until(&line, request, delivered).await?;
    operation.again(rig, &line).await?;
    let found = state(&rig.stage).await?;
    ensure!(
        found == *wanted,
        "found:\n{found:#}\ninstead of:\n{wanted:#}"
    );
    Ok(())
}

#[tokio::test]
async fn install() -> Result<()> {
    crash(Operation::Install, "engine::crash::install", 1).await
}

#[tokio::test]
async fn upgrade_with_prune() -> Result<()> {
    crash(Operation::Upgrade, "engine::crash::upgrade_with_prune", 2).await
}

#[tokio::test]
async fn uninstall() -> Result<()> {
    crash(Operation::Uninstall, "engine::crash::uninstall", 3).await
}
