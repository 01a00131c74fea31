//! A core record that was deleted all the same is written again, with the objects that it had.

use addons_tests::stage::{Stage, recorded};
use anyhow::{Result, ensure};
use serde_json::json;

use super::{core, is_guarded, list, patch};

/// Whoever may delete what is guarded.
const GLASS: [&str; 3] = [
    "--as=glass",
    "--as-group=kubectl-addons:break-glass",
    "--as-group=system:masters",
];

async fn deleted(stage: &Stage, name: &str) -> Result<()> {
    patch(stage, name, &json!({"metadata": {"finalizers": null}})).await?;
    let delete = ["delete", "addoninstallation", name];
    let deleted = stage.kubectl(&[&delete[..], &GLASS].concat()).await?;
    deleted.done().map(drop)
}

async fn refused(stage: &Stage, line: &str, words: &[&str]) -> Result<()> {
    let said = core(stage, line, 1).await?.stderr;
    let is_told = words.iter().all(|word| said.contains(word));
    ensure!(is_told, "{line}: {said}");
    Ok(())
}

/// `dns` is listed; `shop` is what a person installed.
pub(super) async fn deleted_records_are_written_again(stage: &Stage) -> Result<()> {
    core(stage, "install shop@1.0.0 --core --yes", 0).await?;
    refused(
        stage,
        "core restore shop --yes",
        &["as new as the cluster", "kubectl addons status shop"],
    )
    .await?;
    for (name, restore) in [
        ("dns", "core restore dns --yes"),
        ("shop", "core restore shop@1.0.0 --yes"),
    ] {
        let before = stage.must("configmap", name).await?;
        deleted(stage, name).await?;
        let said = stage.run(restore).await?.ended(6)?.stderr;
        ensure!(said.contains("only group kubectl-addons:core"), "{said}");
        if name == "dns" {
            refused(stage, "core restore dns@1.0.0 --yes", &["core explain dns"]).await?;
        }
        let said = core(stage, restore, 0).await?.stderr;
        let does = format!("restoring {name}: only its record changes");
        ensure!(said.contains(&does), "{said}");
        // Not even its labels were written.
        let after = stage.must("configmap", name).await?;
        ensure!(before == after, "{after} instead of {before}");
        let record = stage.record(name).await?;
        let mut objects = recorded(&record);
        ensure!(objects.any(|one| one["name"] == name), "{record}");
        ensure!(record["spec"]["coreAddon"] == true, "{record}");
        ensure!(is_guarded(&record) == (name == "dns"), "{record}");
    }
    // The reconciler was faster: its record knows nothing of the objects, and waits.
    deleted(stage, "dns").await?;
    core(stage, "reconcile", 4).await?;
    core(stage, "core restore dns --yes", 0).await?;
    // Which version is there is not known: the next upgrade applies what differs.
    core(stage, "upgrade dns --yes", 0).await?;
    core(stage, "core release shop", 0).await?;
    core(stage, "uninstall shop --yes", 0).await?;
    refused(
        stage,
        "core restore shop --yes",
        &["no object carries the label", "install shop -n"],
    )
    .await?;
    core(stage, "reconcile", 0).await?;
    keeps_the_listed_version(stage).await
}

/// An upgrade of a restored record stays at the version that is listed, where a newer one is in the catalogue.
async fn keeps_the_listed_version(stage: &Stage) -> Result<()> {
    list(stage, "[{name: extra, version: 1.0.0}]").await?;
    core(stage, "reconcile", 0).await?;
    deleted(stage, "extra").await?;
    core(stage, "core restore extra --yes", 0).await?;
    core(stage, "upgrade extra --yes", 0).await?;
    let record = stage.record("extra").await?;
    let version = &record["status"]["installed"]["version"];
    ensure!(version == "1.0.0", "{record}");
    core(stage, "reconcile", 0).await?;
    list(stage, "[]").await?;
    core(stage, "reconcile", 0).await.map(drop)
}
