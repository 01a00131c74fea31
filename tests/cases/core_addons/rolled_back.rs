//! A core add-on goes back to an earlier revision only where its catalogue lists that: revisions are guarded by nothing.

use addons_tests::stage::Stage;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{CORE, core};

/// Where `shop` stands in the catalogue.
const VERSIONS: &str = "/spec/addons/4/versions/0";

async fn catalogue(stage: &Stage, change: &Value) -> Result<()> {
    let change = json!([change]).to_string();
    let patch = ["patch", "addoncatalogue", "core", "--type=json", "--patch"];
    let args = [&patch[..], &[&change], &CORE[..]].concat();
    let patched = stage.kubectl(&args).await?;
    patched.done().map(drop)
}

pub(super) async fn a_core_addon_comes_from_its_catalogue_only(stage: &Stage) -> Result<()> {
    core(stage, "install shop@1.0.0 --core --yes", 0).await?;
    core(stage, "upgrade shop@2.0.0 --yes", 0).await?;
    let mut listed = stage.must("addoncatalogue", "core").await?;
    let before = listed
        .pointer_mut(VERSIONS)
        .map(Value::take)
        .unwrap_or_default();
    ensure!(before["version"] == "1.0.0", "{listed}");
    catalogue(stage, &json!({"op": "remove", "path": VERSIONS})).await?;
    let said = core(stage, "rollback shop --yes", 1).await?.stderr;
    for words in [
        // Revisions of a former installation of the name may be there still.
        " (1.0.0) is that of a core add-on, which is taken from its catalogue only",
        "add the version to",
    ] {
        ensure!(said.contains(words), "{words}: {said}");
    }
    let change = json!({"op": "add", "path": VERSIONS, "value": before});
    catalogue(stage, &change).await?;
    core(stage, "rollback shop --yes", 0).await?;
    let object = stage.must("configmap", "shop").await?;
    ensure!(object["data"]["key"] == "1.0.0", "{object}");
    core(stage, "core release shop", 0).await?;
    core(stage, "uninstall shop --yes", 0).await?;
    core(stage, "reconcile", 0).await.map(drop)
}
