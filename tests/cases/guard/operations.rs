//! What guards is there, or is missed and repaired.

use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::plugin::Plugin;
use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::deploy::world::World;

/// Members may change and delete what the policies guard.
const CORE: [&str; 4] = [
    "--as=core",
    "--as-group=system:masters",
    "--as-group=kubectl-addons:core",
    "--as-group=kubectl-addons:break-glass",
];

/// (what others do, what `doctor` names, the part that restores it)
const BROKEN: [(&str, &str, &str); 6] = [
    (
        "delete role addons-webhook -n kubectl-addons",
        "Role addons-webhook",
        "--webhook",
    ),
    (
        "delete rolebinding addons-webhook -n kubectl-addons",
        "RoleBinding addons-webhook",
        "--webhook",
    ),
    (
        "delete clusterrolebinding kubectl-addons:webhook",
        "ClusterRoleBinding kubectl-addons:webhook",
        "--webhook",
    ),
    (
        "patch clusterrole kubectl-addons:webhook-configurations --type=merge -p={\"rules\":[]}",
        "ClusterRole kubectl-addons:webhook-configurations",
        "--webhook",
    ),
    (
        "delete poddisruptionbudget addons-webhook -n kubectl-addons",
        "installation kubectl-addons/addons-webhook",
        "--webhook",
    ),
    (
        "delete validatingadmissionpolicybinding,validatingadmissionpolicy -l app.kubernetes.io/part-of=kubectl-addons",
        "ValidatingAdmissionPolicy kubectl-addons-guards",
        "--policies",
    ),
];

/// The objects that `doctor` calls broken; they are what it exits by.
async fn errors(plugin: &Plugin) -> Result<Vec<String>> {
    let said = plugin.run(&["doctor", "-o", "json"]).await?;
    let found: Value = serde_json::from_str(&said.stdout).with_context(|| said.stderr.clone())?;
    let items = found["items"].as_array().context("no items")?;
    let errors = items.iter().filter(|item| item["severity"] == "error");
    let errors = errors.filter_map(|item| item["object"].as_str().map(str::to_owned));
    let errors: Vec<String> = errors.collect();
    ensure!(
        said.code == i32::from(!errors.is_empty()),
        "{}: {found}",
        said.code
    );
    Ok(errors)
}

/// What `init` installs is compared with the cluster, whatever its record says of it.
#[tokio::test]
async fn g16_what_init_installs_is_missed_and_restored() -> Result<()> {
    let world = World::new().await?;
    let admin = &world.admin;
    let init = ["init", "--webhook", "--policies", "--yes"];
    admin.run(&init).await?.done()?;
    let is_well = async || {
        until("nothing is broken", async || {
            let errors = errors(admin).await?;
            Ok(errors
                .is_empty()
                .then_some(())
                .ok_or_else(|| format!("{errors:?}")))
        })
        .await
    };
    is_well().await?;
    for (by, object, flag) in BROKEN {
        let args: Vec<&str> = by.split(' ').chain(CORE).collect();
        admin.kubectl(&args).await?.done()?;
        let found = errors(admin).await?;
        ensure!(found.iter().any(|found| found == object), "{by}: {found:?}");
        if by.starts_with("delete") {
            let listed = admin.run(&["list"]).await?.done()?.stdout;
            ensure!(listed.contains("Degraded"), "{by}: {listed}");
        }
        let args: Vec<&str> = ["init", flag, "--yes"].into_iter().chain(CORE).collect();
        let said = admin.run(&args).await?.done()?.stderr;
        is_well().await.context(said)?;
    }
    world.denies().await
}

/// A user of a cluster of one's own: `doctor` looks at all of it.
async fn alone(what: &str) -> Result<Stage> {
    Stage::on(definitions::on(ControlPlane::alone().await?).await?, what).await
}

/// Until an object of the stage is there, or is gone.
async fn is_there(stage: &Stage, kind: &str, name: &str, is_wanted: bool) -> Result<()> {
    until(&format!("{kind} {name}: {is_wanted}"), async || {
        let found = stage.get(kind, name).await?;
        let is_so = found.is_some() == is_wanted;
        Ok(is_so.then_some(()).ok_or_else(|| format!("{found:?}")))
    })
    .await
}

/// What a person installed with `--core` is `Once` in its record, and is repaired all the same.
#[tokio::test]
async fn g16_a_core_addon_of_install_is_repaired() -> Result<()> {
    let stage = alone("guarded").await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("map", "1"))])?;
    let install = format!("install web --core --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let installation = format!("installation {}/web", stage.namespace);
    let found = errors(&stage.plugin).await?;
    ensure!(!found.contains(&installation), "{found:?}");
    let edit = json!({"data": {"key": "by hand"}});
    stage.patch("configmap", "map", &edit).await?;
    let found = errors(&stage.plugin).await?;
    ensure!(found.contains(&installation), "edited: {found:?}");
    stage.delete("configmap", "map").await?;
    let found = errors(&stage.plugin).await?;
    ensure!(found.contains(&installation), "deleted: {found:?}");
    // Nothing is due but that.
    stage.run("upgrade web --yes").await?.done()?;
    is_there(&stage, "configmap", "map", true).await?;
    let process = Running::reconcile(&stage, &["--interval", "1h"])?;
    process.says("leads").await?;
    stage.condition("web", "Ready").await?;
    stage.delete("configmap", "map").await?;
    is_there(&stage, "configmap", "map", true)
        .await
        .with_context(|| process.said())
}
