//! Nothing answers for the webhook, as in a cluster whose network is down: `sync` and the loop write their records all the same, and
//! still do nothing that the webhook would deny (semantics 18).

use std::path::Path;

use addons_tests::control_plane::ControlPlane;
use addons_tests::plugin::Plugin;
use addons_tests::scene::{create, installation, stored};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use common::api::names::{FINALIZER_UNINSTALL, SYSTEM_NAMESPACE};
use serde_json::json;

use crate::reconcile::deployed::{COMPONENTS, OVERLAY, account, record};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy");
const FAILED: &str = "failed calling webhook \"validate.kubectl-addons.dev\"";

/// One scenario on one cluster, which has nothing of ours at first but the webhook's configuration.
#[tokio::test]
async fn the_loop_and_sync_write_while_nothing_answers() -> Result<()> {
    let cluster = ControlPlane::alone_api_only().await?;
    let admin = Plugin::admin(&cluster)?;
    register(&admin).await?;
    let rights = format!("{DEPLOY}/sync/rbac.yaml");
    admin.kubectl(&["apply", "-f", &rights]).await?.done()?;
    let user = cluster.user("system:addon-manager", &[])?;
    let sync = Plugin::new(&cluster, &user.kubeconfig)?;
    let folder = sync.home().join("addons");
    std::fs::create_dir(&folder)?;
    for name in ["cni", "dns", "extra"] {
        write(&folder, name)?;
    }
    sync.run(&["sync", "addons", "--yes"]).await?.done()?;
    nothing_answers(&admin).await?;
    write(&folder, "more")?;
    sync.run(&["sync", "addons", "--yes"]).await?.done()?;
    ensure!(has(&admin, "more").await?);
    refused(&admin, &sync, &folder).await?;
    looped(&cluster, &admin).await
}

/// The configuration of the webhook, without a webhook.
async fn register(admin: &Plugin) -> Result<()> {
    let file = format!("{DEPLOY}/base/webhooks.yaml");
    admin.kubectl(&["apply", "-f", &file]).await?.done()?;
    Ok(())
}

/// Waits until writes of others are refused for want of an answer.
async fn nothing_answers(admin: &Plugin) -> Result<()> {
    let spec = json!({"addonRef": {"name": "probe", "directory": "/probe"}});
    let object = installation("probe", SYSTEM_NAMESPACE, spec);
    until("failurePolicy Fail", async || {
        let said = create(admin, &object, &["--dry-run=server"]).await?;
        let is_failed = said.stderr.contains(FAILED);
        Ok(is_failed.then_some(()).ok_or(said.stdout + &said.stderr))
    })
    .await
}

/// A manifest with a ConfigMap of this name.
fn write(folder: &Path, name: &str) -> Result<()> {
    let manifest = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: kube-system\n  \
         labels: {{addonmanager.kubernetes.io/mode: Reconcile}}\n"
    );
    Ok(std::fs::write(
        folder.join(format!("{name}.yaml")),
        manifest,
    )?)
}

async fn has(admin: &Plugin, name: &str) -> Result<bool> {
    let args = ["get", "configmap", name, "-n", "kube-system"];
    Ok(admin.kubectl(&args).await?.code == 0)
}

/// What the webhook denies is denied by the program, and what is not exempt is refused for want of an answer.
async fn refused(admin: &Plugin, sync: &Plugin, folder: &Path) -> Result<()> {
    // While nothing is registered, an administrator makes one of them core.
    let configuration = "validatingwebhookconfiguration";
    let delete = ["delete", configuration, "kubectl-addons"];
    admin.kubectl(&delete).await?.done()?;
    let core = |is_core: bool| json!({"spec": {"coreAddon": is_core}}).to_string();
    let patch = async |plugin: &Plugin, name: &str, patch: &str| {
        let args = ["patch", "addoninstallation", name, "-n", SYSTEM_NAMESPACE];
        let args = [&args[..], &["--type=merge", "-p", patch]].concat();
        plugin.kubectl(&args).await
    };
    until("it is core", async || {
        let said = patch(admin, "cni", &core(true)).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await?;
    record(admin).await?;
    register(admin).await?;
    nothing_answers(admin).await?;

    std::fs::remove_file(folder.join("cni.yaml"))?;
    let said = sync.run(&["sync", "addons", "--yes"]).await?.ended(6)?;
    ensure!(said.stderr.contains("core add-on"), "{}", said.stderr);
    stored(admin, "cni", SYSTEM_NAMESPACE).await?;
    ensure!(has(admin, "cni").await?, "its object is gone");

    let said = sync
        .run(&["sync", "addons", "-n", "default", "--yes"])
        .await?;
    ensure!(said.code != 0, "{}", said.stderr);
    let said = patch(sync, "dns", &core(true)).await?;
    ensure!(said.stderr.contains(FAILED), "{}", said.stderr);
    let args = ["delete", "addoninstallation", "dns", "-n", SYSTEM_NAMESPACE];
    let said = sync.kubectl(&args).await?;
    ensure!(said.stderr.contains(FAILED), "{}", said.stderr);
    // The rules of the schema need no webhook.
    let renamed = json!({"spec": {"addonRef": {"name": "other"}}}).to_string();
    let said = patch(sync, "dns", &renamed).await?;
    ensure!(said.code == 1, "{}", said.stdout);
    Ok(())
}

/// The deployed loop installs a record, and holds it with its finalizer.
async fn looped(cluster: &ControlPlane, admin: &Plugin) -> Result<()> {
    let binding = format!("{COMPONENTS}/reconciler-admin/binding.yaml");
    let rights = format!("{OVERLAY}/rbac.yaml");
    for file in [rights, binding] {
        admin.kubectl(&["apply", "-f", &file]).await?.done()?;
    }
    let plugin = account(cluster, admin).await?;
    let _process = plugin.start(&["reconcile", "--watch", "--service-account=addons-admin"])?;
    until("the record is installed and held", async || {
        let record = stored(admin, "web", SYSTEM_NAMESPACE).await?;
        let finalizers = record["metadata"]["finalizers"].to_string();
        let is_done =
            record["status"]["phase"] == "Ready" && finalizers.contains(FINALIZER_UNINSTALL);
        let log = std::fs::read_to_string(plugin.home().join("stderr"))?;
        Ok(is_done
            .then_some(())
            .ok_or_else(|| format!("{record}\n{log}")))
    })
    .await
}
