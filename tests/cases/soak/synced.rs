//! `sync --watch`: one process, and files that change.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use addons_tests::running::Running;
use anyhow::Result;

use super::api::ApiFault;
use super::world::{Addon, World};
use super::{Subject, converge};

/// What is done to the cluster, to the directory, or to the process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Delete,
    Edit,
    Change,
    /// A file is removed, and written again once its objects are gone.
    Remove,
    /// A file is not a manifest for a while.
    Spoil,
    /// The process is killed while it has something to do, and started again.
    Kill,
    /// Requests go wrong while it has something to do.
    Api(ApiFault),
}

/// The cluster, the directory, and who works.
pub(crate) struct Synced {
    world: World,
    directory: PathBuf,
    running: Running,
}

impl Synced {
    pub(crate) async fn start() -> Result<Self> {
        let world = World::new("soak-sync").await?;
        let directory = world.stage.plugin.home().join("addons");
        fs::create_dir_all(&directory)?;
        for addon in &world.addons {
            fs::write(
                file(&directory, addon),
                addon.manifest(&world.stage.namespace),
            )?;
        }
        let running = process(&world, &directory)?;
        Ok(Self {
            world,
            directory,
            running,
        })
    }

    fn write(&self, addon: &Addon) -> Result<()> {
        let manifest = addon.manifest(&self.world.stage.namespace);
        Ok(fs::write(file(&self.directory, addon), manifest)?)
    }

    fn rewrite(&mut self) -> Result<()> {
        let index = self.world.change();
        self.write(&self.world.addons[index])
    }

    /// Removes a file, and writes it again once what it installed is gone.
    async fn remove(&mut self) -> Result<()> {
        let index = self.world.any();
        let addon = self.world.addons.remove(index);
        fs::remove_file(file(&self.directory, &addon))?;
        converge(self, "a file is gone").await?;
        self.write(&addon)?;
        self.world.addons.insert(index, addon);
        Ok(())
    }

    /// Writes what is not a manifest, and then what is one. Meanwhile objects are repaired, and nothing is deleted.
    async fn spoil(&mut self) -> Result<()> {
        let index = self.world.any();
        let addon = self.world.addons[index].clone();
        let path = file(&self.directory, &addon);
        fs::write(&path, "kind: [")?;
        self.running.says(&path.to_string_lossy()).await?;
        self.world.edit().await?;
        self.write(&addon)
    }

    /// Kills the process at a moment that chance decides, and starts another one.
    async fn kill(&mut self) -> Result<()> {
        self.rewrite()?;
        let pause = 100 * u64::try_from(self.world.chance.below(25))?;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        self.running.process.kill()?;
        self.world.edit().await?;
        self.running = process(&self.world, &self.directory)?;
        Ok(())
    }
}

impl Subject for Synced {
    type Event = Event;

    fn events() -> Vec<Event> {
        use Event::{Api, Change, Delete, Edit, Kill, Remove, Spoil};
        let api = ApiFault::ALL.into_iter().map(Api);
        let others = [Delete, Edit, Change, Remove, Spoil, Kill];
        others.into_iter().chain(api).collect()
    }

    async fn happen(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Delete => self.world.delete().await,
            Event::Edit => self.world.edit().await,
            Event::Change => self.rewrite(),
            Event::Remove => self.remove().await,
            Event::Spoil => self.spoil().await,
            Event::Kill => self.kill().await,
            Event::Api(fault) => {
                let fault = fault.fault(&mut self.world.chance);
                self.world.proxy.fault(fault);
                self.rewrite()?;
                self.world.edit().await
            }
        }
    }

    async fn change(&mut self) -> Result<()> {
        self.rewrite()
    }

    fn restart(&mut self) -> Result<()> {
        self.running.process.kill()?;
        self.running = process(&self.world, &self.directory)?;
        Ok(())
    }

    fn world(&mut self) -> &mut World {
        &mut self.world
    }

    fn processes(&self) -> Vec<&Running> {
        vec![&self.running]
    }
}

fn process(world: &World, directory: &Path) -> Result<Running> {
    let directory = directory.to_string_lossy();
    let args = ["sync", &*directory, "--watch", "--yes", "--interval", "1s"];
    Running::with(&world.stage, world.proxy.kubeconfig(), &args)
}

fn file(directory: &Path, addon: &Addon) -> PathBuf {
    directory.join(format!("{}.yaml", addon.name))
}

/// Semantics 13, 21.
#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: random faults for minutes")]
async fn a_synced_directory_converges_after_whatever_happens() -> Result<()> {
    super::run("soak::synced", Synced::start().await?).await
}
