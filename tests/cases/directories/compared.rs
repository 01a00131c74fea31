//! What a directory would change, field by field, and how its objects stand.

use anyhow::{Result, ensure};
use serde_json::json;

use super::Directory;

/// Semantics 21: what is only created and was there before counts as there.
#[tokio::test]
async fn what_existed_before_is_there() -> Result<()> {
    let directory = Directory::new("preexisting").await?;
    let stage = &directory.stage;
    let theirs = directory.ensured("settings", "theirs");
    stage.apply(theirs.trim_end_matches("---\n")).await?;
    let text = directory.ensured("settings", "1") + &directory.reconciled("dns", "1");
    directory.write("dns.yaml", &text)?;
    stage.run(&directory.line("--yes")).await?.done()?;
    for line in ["status dns", "list"] {
        let said = stage.run(line).await?.done()?;
        ensure!(!said.stdout.contains("is gone"), "{}", said.stdout);
        ensure!(said.stdout.contains("Ready"), "{}", said.stdout);
    }
    stage.delete("configmap", "settings").await?;
    let said = stage.run("status dns").await?;
    ensure!(
        said.stdout.contains("ConfigMap settings is gone"),
        "{}",
        said.stdout
    );
    Ok(())
}

/// Semantics 21: fields are compared before a directory is synced for the first time, and afterwards.
#[tokio::test]
async fn fields_are_compared_before_and_after() -> Result<()> {
    let directory = Directory::new("compared").await?;
    let stage = &directory.stage;
    stage
        .apply(directory.reconciled("dns", "old").trim_end_matches("---\n"))
        .await?;
    let text = directory.reconciled("dns", "new") + &directory.ensured("settings", "1");
    directory.write("dns.yaml", &text)?;
    directory.write("web.yaml", &directory.reconciled("web", "1"))?;
    let compare = directory.line("--dry-run=server");
    let said = stage.run(&compare).await?.done()?;
    let created = format!("+ {}/ConfigMap web", stage.namespace);
    for words in ["data.key", "old → new", created.as_str()] {
        ensure!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
    ensure!(directory.installed().await?.is_empty());
    stage.run(&directory.line("--yes")).await?.done()?;
    let said = stage.run(&compare).await?.done()?;
    ensure!(!said.stderr.contains("data.key"), "{}", said.stderr);
    stage
        .patch("configmap", "dns", &json!({"data": {"key": "edited"}}))
        .await?;
    let said = stage.run(&compare).await?.done()?;
    for words in ["data.key", "edited → new"] {
        ensure!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
    let refused = stage.run("diff dns").await?;
    let look = format!("look:   kubectl addons {compare}");
    ensure!(refused.stderr.contains(&look), "{}", refused.stderr);
    Ok(())
}
