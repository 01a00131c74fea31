//! A manifest that lost its namespace or its label, as a file that is only half written does.

use anyhow::{Result, ensure};

use super::Directory;

/// Semantics 21: the live object of the same kind and name is not pruned at once.
#[tokio::test]
async fn a_lost_namespace_or_label_prunes_nothing_at_once() -> Result<()> {
    let directory = Directory::new("lost").await?;
    let stage = &directory.stage;
    let whole = directory.reconciled("dns", "1") + &directory.reconciled("other", "1");
    directory.write("dns.yaml", &whole)?;
    let line = directory.line("--yes");
    stage.run(&line).await?.done()?;
    let namespace = format!(", namespace: {}", stage.namespace);
    let label = ", labels: {addonmanager.kubernetes.io/mode: Reconcile}";
    // Both are lost: it is ignored, and stays as long as it is.
    let name = format!("dns-{}", stage.namespace);
    let written = directory.reconciled(&name, "1");
    directory.write("dns.yaml", &(whole.clone() + &written))?;
    stage.run(&line).await?.done()?;
    let bare = written.replace(&namespace, "").replace(label, "");
    for _ in 0..2 {
        directory.write("dns.yaml", &(whole.clone() + &bare))?;
        stage.run(&line).await?.done()?;
        ensure!(stage.has("configmap", &name).await?, "it was pruned");
    }
    // Only the namespace is lost: the object moves, and the former one is pruned by the next pass.
    let moved = written.replace(&namespace, "");
    directory.write("dns.yaml", &(whole.clone() + &moved))?;
    let said = stage.run(&line).await?.done()?;
    ensure!(stage.has("configmap", &name).await?, "{}", said.stderr);
    directory.write("dns.yaml", &(whole.clone() + &written))?;
    stage.run(&line).await?.done()?;
    ensure!(stage.has("configmap", &name).await?, "it is back");
    directory.write("dns.yaml", &(whole.clone() + &moved))?;
    for _ in 0..2 {
        stage.run(&line).await?.done()?;
    }
    ensure!(!stage.has("configmap", &name).await?, "it moved for good");
    Ok(())
}
