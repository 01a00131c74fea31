//! The webhook does not hear of some core add-ons, or hears nothing for a while: no entry is removed that one of them uses.

use addons_tests::chaos::seed::Chance;
use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::plugin::{Output, Plugin};
use addons_tests::proxy::Proxy;
use addons_tests::scene::{catalogue, create, installation, version};
use addons_tests::tally::Tally;
use addons_tests::webhook::Webhook;
use anyhow::{Result, ensure};
use common::api::names::{ANNOTATION_RELEASED, CORE_GROUP, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

/// Steps of the test.
const STEPS: usize = 24;
/// Names of add-ons, each of one version.
const ADDONS: [&str; 3] = ["dns", "cni", "csi"];

/// Who asks, and what there is.
struct World {
    admin: Plugin,
    core: Plugin,
    /// The add-ons that have a core record.
    used: Vec<&'static str>,
    /// Those that the catalogue lists.
    listed: Vec<&'static str>,
}

fn addons(listed: &[&str]) -> Value {
    let addon = |name: &&str| json!({"name": name, "versions": [version("1.0.0", json!({}))]});
    listed.iter().map(addon).collect()
}

impl World {
    async fn patch(&self, listed: &[&str]) -> Result<Output> {
        let patch = json!({"spec": {"addons": addons(listed)}}).to_string();
        let args = [
            "patch",
            "addoncatalogue",
            "platform",
            "-n",
            SYSTEM_NAMESPACE,
        ];
        let args = [&args[..], &["--type=merge", "-p", &patch]].concat();
        self.admin.kubectl(&args).await
    }

    /// Uses an add-on that is listed, as the core group does.
    async fn install(&mut self, name: &'static str) -> Result<()> {
        let reference = json!({"name": name, "version": "1.0.0"});
        let spec = json!({"addonRef": reference, "coreAddon": true});
        let record = installation(name, SYSTEM_NAMESPACE, spec);
        create(&self.core, &record, &[]).await?.done()?;
        self.used.push(name);
        Ok(())
    }

    /// Releases it again.
    async fn release(&mut self, name: &str) -> Result<()> {
        let on = ["addoninstallation", name, "-n", SYSTEM_NAMESPACE];
        let mark = format!("{ANNOTATION_RELEASED}=true");
        let args = [&["annotate"][..], &on, &[mark.as_str()]].concat();
        self.core.kubectl(&args).await?.done()?;
        self.core
            .kubectl(&[&["delete"][..], &on].concat())
            .await?
            .done()?;
        self.used.retain(|used| *used != name);
        Ok(())
    }

    /// Removes an add-on from the catalogue, or tries to.
    async fn remove(&mut self, name: &str) -> Result<()> {
        let mut left = self.listed.clone();
        left.retain(|listed| *listed != name);
        let said = self.patch(&left).await?;
        if self.used.contains(&name) {
            ensure!(said.code != 0, "{name} is used: {}", said.stdout);
        } else if said.code == 0 {
            self.listed = left;
        }
        Ok(())
    }

    /// Lists all of them again.
    async fn relist(&mut self) -> Result<()> {
        self.patch(&ADDONS).await?.done()?;
        self.listed = ADDONS.to_vec();
        Ok(())
    }
}

/// Semantics 14, 18.
#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: random reviews for a minute")]
async fn no_entry_of_a_core_addon_is_removed_whatever_is_heard() -> Result<()> {
    let mut tally = Tally::new("views::judged");
    let mut chance = Chance::new();
    tally.note(format!("SEED={}", chance.seed));
    let cluster = ControlPlane::alone_api_only().await?;
    definitions::install(&cluster).await?;
    let core = cluster.user("views-core", &["system:masters", CORE_GROUP])?;
    let mut world = World {
        admin: Plugin::admin(&cluster)?,
        core: Plugin::new(&cluster, &core.kubeconfig)?,
        used: Vec::new(),
        listed: ADDONS.to_vec(),
    };
    let namespace = ["create", "namespace", SYSTEM_NAMESPACE];
    world.admin.kubectl(&namespace).await?.done()?;
    let platform = catalogue("platform", SYSTEM_NAMESPACE, addons(&ADDONS));
    create(&world.admin, &platform, &[]).await?.done()?;
    let proxy = Proxy::start(&cluster)?;
    let webhook = Webhook::with(&cluster, proxy.kubeconfig(), &[]).await?;
    for _ in 0..STEPS {
        let name = *chance.one_of(&ADDONS);
        // What is shown of the next step; the watches count as fresh for 90 s.
        match chance.below(3) {
            0 => proxy.hide("/addoninstallations", &["ADDED", "MODIFIED"], name),
            1 => proxy.stall("watch=true"),
            _ => {}
        }
        let (is_used, is_listed) = (world.used.contains(&name), world.listed.contains(&name));
        match chance.below(4) {
            0 if is_used => world.release(name).await?,
            0 | 1 if is_listed && !is_used => world.install(name).await?,
            _ if is_listed => world.remove(name).await?,
            _ => {
                proxy.heal();
                world.relist().await?;
            }
        }
        if chance.below(2) == 0 {
            proxy.heal();
        }
        tally.ran();
    }
    webhook.stop(&cluster).await
}
