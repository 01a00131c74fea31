//! Two records that lead to the same objects: an object has one owner, wherever that is recorded (semantics 5 and 6).

use addons_tests::control_plane::Own;
use addons_tests::objects;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Pair, read, secret};

/// A cluster with records of its own, which other records lead to as well.
static TARGET: Own = Own::new();

/// Makes a namespace of `stage` stand for the cluster of a kubeconfig.
async fn stand(stage: &Stage, namespace: &str, kubeconfig: &str) -> Result<()> {
    let labels = json!({"kubectl-addons.dev/kubeconfig-secret": "other"});
    let items = [
        json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels},
        }),
        secret(namespace, "other", "Opaque", "value", kubeconfig),
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let args = ["apply", "-f", "-"];
    let applied = stage.plugin.kubectl_with_input(&args, &list).await?;
    applied.done().map(drop)
}

fn owner(object: &Value) -> &Value {
    &object["metadata"]["annotations"]["kubectl-addons.dev/installation"]
}

/// semantics 6: a kubeconfig that leads back to the cluster of the records is refused, with what to do instead; then the objects still
/// have their owner.
#[tokio::test]
async fn a_namespace_does_not_stand_for_its_own_cluster() -> Result<()> {
    let pair = Pair::new("itself").await?;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    pair.stage.run("install web -y").await?.done()?;
    let kubeconfig = std::fs::read_to_string(pair.stage.cluster.kubeconfig())?;
    stand(&pair.stage, &pair.team, &kubeconfig).await?;
    for line in ["install web -y", "plan web", "install web --name own -y"] {
        let said = pair.run(line).await?;
        let fix = format!(
            "kubectl label namespace {} kubectl-addons.dev/cluster=local kubectl-addons.dev/kubeconfig-secret-",
            pair.team
        );
        ensure!(
            said.code != 0
                && said.stderr.contains("leads to this one")
                && said.stderr.contains(&fix),
            "{line}: {}",
            said.stderr
        );
    }
    ensure!(
        read(&pair.stage.cluster, "addoninstallation", &pair.team, "web")
            .await?
            .is_none()
    );
    let labels = [
        "kubectl-addons.dev/cluster=local",
        "kubectl-addons.dev/kubeconfig-secret-",
    ];
    let args = ["label", "namespace", &pair.team, labels[0], labels[1]];
    pair.stage.plugin.kubectl(&args).await?.done()?;
    let said = pair.run("install web -y").await?;
    let owned = format!("belongs to the installation {}/web", pair.stage.namespace);
    ensure!(
        said.code != 0 && said.stderr.contains(&owned),
        "{}",
        said.stderr
    );
    ensure!(pair.here("configmap", "web").await?.is_some());
    Ok(())
}

/// semantics 7: two namespaces of records lead to one cluster. What one of them owns is not taken over by the other as long as it
/// exists.
#[tokio::test]
async fn an_owner_in_another_namespace_is_not_gone() -> Result<()> {
    let pair = Pair::new("shared").await?;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    pair.stand().await?;
    let second = format!("{}-second", pair.stage.namespace);
    stand(&pair.stage, &second, &pair.kubeconfig()?).await?;
    pair.run("install web -y").await?.done()?;
    let install = format!("install web -y -n {second}");
    let first = format!("{}/web", pair.team);
    for line in [&install, &format!("adopt web -y -n {second}")] {
        let said = pair.stage.run(line).await?;
        let names = said
            .stderr
            .contains(&format!("add-on installation {first}"));
        ensure!(said.code == 4 && names, "{line}: {}", said.stderr);
    }
    let map = pair.there("configmap", "web").await?.context("deleted")?;
    ensure!(owner(&map) == &first, "{map}");
    // Once it is gone, its objects are taken over.
    let args = ["delete", "addoninstallation", "web", "-n", &pair.team];
    let patch = json!([{"op": "add", "path": "/spec/deletionPolicy", "value": "Orphan"}]);
    let patch = patch.to_string();
    let orphan = [
        "patch",
        "addoninstallation",
        "web",
        "-n",
        &pair.team,
        "--type=json",
        "-p",
        &patch,
    ];
    pair.stage.plugin.kubectl(&orphan).await?.done()?;
    pair.stage.plugin.kubectl(&args).await?.done()?;
    let said = pair.stage.run(&install).await?.done()?;
    let taken = format!("is taken over from add-on installation {first}, which is gone");
    ensure!(said.stderr.contains(&taken), "{}", said.stderr);
    Ok(())
}

/// The same where the cluster of the objects has records of its own.
#[tokio::test]
async fn an_owner_in_the_cluster_of_the_objects_is_not_gone() -> Result<()> {
    let target = Stage::of_module(&TARGET, "target").await?;
    let web = |stage: &Stage, namespace: &str| {
        let version = json!({
            "version": "1.0.0", "defaultNamespace": namespace,
            "source": {"inline": {"manifest": config_map("web", "1")}},
        });
        stage.catalogue("web", &version)
    };
    let namespace = format!("{}-web", target.namespace);
    let file = web(&target, &namespace)?;
    target.run("init").await?.done()?;
    target
        .run(&format!("catalogue add {}", file.display()))
        .await?
        .done()?;
    target.run("install web -y").await?.done()?;
    let home = Stage::new("records").await?;
    home.run("init").await?.done()?;
    let file = web(&home, &namespace)?;
    home.run(&format!("catalogue add {}", file.display()))
        .await?
        .done()?;
    let team = format!("{}-team", home.namespace);
    let kubeconfig = std::fs::read_to_string(target.cluster.kubeconfig())?;
    stand(&home, &team, &kubeconfig).await?;
    let said = home.run(&format!("install web -y -n {team}")).await?;
    let named = format!("add-on installation {}/web", target.namespace);
    ensure!(
        said.code == 4 && said.stderr.contains(&named),
        "{}",
        said.stderr
    );
    let path = objects::path("configmap", &namespace, "web").context("an unknown kind")?;
    let map = objects::read(&target.cluster.client().await?, &path)
        .await?
        .context("deleted")?;
    ensure!(owner(&map) == &format!("{}/web", target.namespace), "{map}");
    Ok(())
}
