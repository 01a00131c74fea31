//! `reconcile --watch`: two processes, of which one leads.

use std::time::Duration;

use addons_tests::running::Running;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use common::api::names::API_VERSION;
use serde_json::json;

use super::Subject;
use super::api::ApiFault;
use super::world::{Addon, World};

const CATALOGUE: &str = "soak";

/// What is done to the cluster, or to the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Delete,
    Edit,
    /// The catalogue gets another version.
    Upgrade,
    /// The record is deleted, and created again once its objects are gone.
    Remove,
    /// The leader is killed while it has something to do.
    Kill,
    /// Requests go wrong while it has something to do.
    Api(ApiFault),
}

/// The cluster, and who works.
pub(crate) struct Looped {
    world: World,
    processes: Vec<Running>,
    /// How often it looks at everything.
    interval: &'static str,
}

impl Looped {
    pub(crate) async fn start(interval: &'static str) -> Result<Self> {
        let mut looped = Self {
            world: World::new("soak-loop").await?,
            processes: Vec::new(),
            interval,
        };
        looped.publish().await?;
        for addon in &looped.world.addons {
            looped.record(addon).await?;
        }
        for _ in 0..2 {
            let process = looped.process()?;
            looped.processes.push(process);
        }
        Ok(looped)
    }

    /// Another process of the loop, behind the proxy.
    fn process(&self) -> Result<Running> {
        let args = ["reconcile", "--watch", "--interval", self.interval];
        Running::with(&self.world.stage, self.world.proxy.kubeconfig(), &args)
    }

    /// Writes the catalogue as the add-ons are asked for.
    async fn publish(&self) -> Result<()> {
        let namespace = &self.world.stage.namespace;
        let entries = self.world.addons.iter().map(|addon| {
            json!({"name": addon.name, "versions": [{
                "version": addon.version(),
                "source": {"inline": {"manifest": addon.manifest(namespace)}},
            }]})
        });
        let catalogue = json!({
            "apiVersion": API_VERSION, "kind": "AddonCatalogue", "metadata": {"name": CATALOGUE},
            "spec": {"addons": entries.collect::<Vec<_>>()},
        });
        self.world.stage.apply(&catalogue.to_string()).await
    }

    async fn record(&self, addon: &Addon) -> Result<()> {
        let record = json!({
            "apiVersion": API_VERSION, "kind": "AddonInstallation", "metadata": {"name": addon.name},
            "spec": {
                "addonRef": {"name": addon.name, "catalogue": CATALOGUE},
                "targetNamespace": self.world.stage.namespace,
                "reconcile": "Ensure",
            },
        });
        self.world.stage.apply(&record.to_string()).await
    }

    async fn upgrade(&mut self) -> Result<()> {
        self.world.change();
        self.publish().await
    }

    /// Deletes a record, whose objects the loop deletes first, and creates it again.
    async fn remove(&mut self) -> Result<()> {
        let index = self.world.any();
        let addon = self.world.addons[index].clone();
        let stage = &self.world.stage;
        let delete = ["delete", "addoninstallation", &addon.name];
        stage.kubectl(&delete).await?;
        for object in addon.objects(&stage.namespace) {
            let name = object["metadata"]["name"].as_str().context("no name")?;
            let kind = object["kind"].as_str().context("no kind")?;
            ensure!(!stage.has(kind, name).await?, "{kind} {name} was left");
        }
        self.record(&addon).await
    }

    /// Kills the leader at a moment that chance decides, and starts another process.
    async fn kill(&mut self) -> Result<()> {
        let leader = self.leader().await?;
        self.upgrade().await?;
        let pause = 20 * u64::try_from(self.world.chance.below(25))?;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        self.processes[leader].process.kill()?;
        self.world.edit().await?;
        self.processes[leader] = self.process()?;
        Ok(())
    }

    /// Which process leads: the Lease names it by its process id.
    async fn leader(&self) -> Result<usize> {
        until("one process leads", async || {
            let lease = self.world.stage.get("lease", "addons-reconciler").await?;
            let lease = lease.unwrap_or_default();
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            let numbers: Vec<&str> = holder
                .split(|letter: char| !letter.is_ascii_digit())
                .collect();
            let is_named = |running: &Running| {
                let id = running.process.id().to_string();
                numbers.contains(&id.as_str())
            };
            let found = self.processes.iter().position(is_named);
            Ok(found.ok_or_else(|| lease.to_string()))
        })
        .await
    }
}

impl Subject for Looped {
    type Event = Event;

    fn events() -> Vec<Event> {
        use Event::{Api, Delete, Edit, Kill, Remove, Upgrade};
        let api = ApiFault::ALL.into_iter().map(Api);
        let others = [Delete, Delete, Edit, Edit, Upgrade, Remove, Kill];
        others.into_iter().chain(api).collect()
    }

    async fn happen(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Delete => self.world.delete().await,
            Event::Edit => self.world.edit().await,
            Event::Upgrade => self.upgrade().await,
            Event::Remove => self.remove().await,
            Event::Kill => self.kill().await,
            Event::Api(fault) => {
                let fault = fault.fault(&mut self.world.chance);
                self.world.proxy.fault(fault);
                self.upgrade().await?;
                self.world.edit().await
            }
        }
    }

    async fn change(&mut self) -> Result<()> {
        self.upgrade().await
    }

    fn restart(&mut self) -> Result<()> {
        for index in 0..self.processes.len() {
            self.processes[index].process.kill()?;
            self.processes[index] = self.process()?;
        }
        Ok(())
    }

    fn world(&mut self) -> &mut World {
        &mut self.world
    }

    fn processes(&self) -> Vec<&Running> {
        self.processes.iter().collect()
    }
}

/// Semantics 13, 15, 20.
#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: random faults for minutes")]
async fn the_loop_converges_after_whatever_happens() -> Result<()> {
    super::run("soak::looped", Looped::start("10m").await?).await
}
