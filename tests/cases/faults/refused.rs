//! An object that exists and is not ours is refused before the first write (semantics 12).

use addons_tests::chaos::operation::Operation;
use addons_tests::chaos::rig::Rig;
use addons_tests::stage::config_map;
use anyhow::{Result, ensure};

#[tokio::test]
async fn what_is_not_ours_is_refused_before_the_first_write() -> Result<()> {
    let rig = Rig::new("refused").await?;
    let stage = &rig.stage;
    stage.run("init").await?.done()?;
    let line = Operation::Install.prepare(&rig).await?;
    // Two of thirty objects, in a namespace and of the cluster.
    stage.apply(&config_map("beside", "theirs")).await?;
    let role = format!("{}-manager", stage.namespace);
    let args = [
        "create",
        "clusterrole",
        &role,
        "--verb=get",
        "--resource=pods",
    ];
    stage.plugin.kubectl(&args).await?.done()?;
    let before = [
        stage.must("configmap", "beside").await?,
        stage.must("clusterrole", &role).await?,
    ];
    let mark = stage.cluster.audit().mark()?;
    let refused = stage.run(&line).await?.ended(4)?;
    for name in ["ConfigMap beside", &format!("ClusterRole {role}")] {
        ensure!(
            refused.stderr.contains(name),
            "{name} is not named: {}",
            refused.stderr
        );
    }
    let writes = stage.requests(mark)?.writes("kubectl-addons");
    ensure!(writes == 0, "{writes} writes");
    let after = [
        stage.must("configmap", "beside").await?,
        stage.must("clusterrole", &role).await?,
    ];
    ensure!(before == after, "{after:#?}");
    Ok(())
}
