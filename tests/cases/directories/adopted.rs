//! What the addon-manager has installed becomes ours.

use anyhow::{Result, ensure};

use super::Directory;

/// Semantics 21: reconciled objects are adopted and later pruned; what is only created stays as it is; nothing is created again.
#[tokio::test]
async fn what_the_addon_manager_made_is_adopted() -> Result<()> {
    let directory = Directory::new("adopting").await?;
    let stage = &directory.stage;
    let text = directory.reconciled("dns", "1") + &directory.ensured("settings", "1");
    let second = directory.reconciled("old", "1");
    // As the addon-manager does it.
    for manifest in [text.as_str(), second.as_str()] {
        let args = ["apply", "-f", "-"];
        let applied = stage.plugin.kubectl_with_input(&args, manifest).await?;
        applied.done()?;
    }
    let mut uids = Vec::new();
    for name in ["dns", "settings", "old"] {
        uids.push(stage.must("configmap", name).await?["metadata"]["uid"].clone());
    }
    let changed = text.replace("key: \"1\"", "key: \"2\"");
    directory.write("dns.yaml", &(changed.clone() + &second))?;
    let said = stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(said.stderr.contains("adopt"), "{}", said.stderr);
    ensure!(directory.value("dns").await?.as_deref() == Some("2"));
    ensure!(directory.value("settings").await?.as_deref() == Some("1"));
    for (name, uid) in ["dns", "settings", "old"].iter().zip(uids) {
        let live = stage.must("configmap", name).await?;
        ensure!(live["metadata"]["uid"] == uid, "{name} was created again");
    }
    let mark = stage.cluster.audit().mark()?;
    stage.run(&directory.line("--yes")).await?.done()?;
    let requests = stage.requests(mark)?;
    ensure!(
        requests.writes("kubectl-addons") == 0,
        "{:?}",
        requests.by_verb("kubectl-addons")
    );
    directory.write("dns.yaml", &changed)?;
    stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(
        !stage.has("configmap", "old").await?,
        "it is pruned as ours"
    );
    ensure!(stage.has("configmap", "settings").await?);
    Ok(())
}

/// Semantics 21: a warning where the original runs.
#[tokio::test]
async fn the_original_is_warned_of() -> Result<()> {
    let directory = Directory::new("original").await?;
    let stage = &directory.stage;
    directory.write("a.yaml", &directory.reconciled("a", "1"))?;
    let name = format!("kube-addon-manager-{}", stage.namespace);
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: kube-system, labels: {{component: kube-addon-manager}}}}\n\
         spec: {{containers: [{{name: main, image: 'example.test/manager:1'}}]}}\n"
    );
    let args = ["apply", "-f", "-"];
    stage.plugin.kubectl_with_input(&args, &pod).await?.done()?;
    let said = stage.run(&directory.line("--yes")).await?.done()?;
    let args = ["delete", "pod", &name, "-n", "kube-system", "--wait=false"];
    stage.plugin.kubectl(&args).await?.done()?;
    let line = format!(
        "warning: pod kube-system/{name} is running, and applies and prunes the same objects"
    );
    ensure!(said.stderr.contains(&line), "{}", said.stderr);
    Ok(())
}
