//! What is applied is what was reviewed: a hash that verifies nothing is an error, never a promise.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};

const MD5: &str = "098f6bcd4621d373cade4e832627b4f6";

/// trust 17.
#[tokio::test]
async fn t17_a_hash_that_is_not_one_is_refused() -> Result<()> {
    let stage = Stage::new("no-hash").await?;
    stage.run("init").await?.done()?;
    stage.write("map.yaml", &config_map("no-hash-map", "1"))?;
    let index = |name: &str, hash: &str| {
        let text = format!(
            "kind: Addons\nmetadata: {{name: hashes}}\nspec:\n  addons:\n  - name: web\n    version: 1.0.0\n    \
             namespace: {}\n    manifest: map.yaml\n    manifestHash: {hash}\n",
            stage.namespace
        );
        stage.write(name, &text)
    };
    index("latest.yaml", "latest")?;
    index("md5.yaml", MD5)?;
    for (file, words) in [
        (
            "latest.yaml",
            "is neither a sha256 (64 hex digits) nor a sha1",
        ),
        ("md5.yaml", "is an md5, which is not verified"),
    ] {
        for line in [
            format!("catalogue validate {file}"),
            format!("catalogue add {file}"),
            format!("install web --channel {file} --yes"),
            format!("install web --channel {file} --dry-run=server"),
            format!("plan web --channel {file}"),
            format!("render web --channel {file}"),
        ] {
            let said = stage.run(&line).await?.ended(1)?;
            ensure!(said.stderr.contains(words), "{line}: {}", said.stderr);
        }
    }
    ensure!(
        !stage.has("configmap", "no-hash-map").await?,
        "something was written"
    );

    // kops wrote md5 once: with its rules they are taken, and the content decides what is due.
    let install = "install web --channel md5.yaml --rules channels --yes";
    let said = stage.run(install).await?.done()?;
    ensure!(said.stderr.contains("was not verified"), "{}", said.stderr);
    let again = stage.run(install).await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    stage.write("map.yaml", &config_map("no-hash-map", "2"))?;
    stage.run(install).await?.done()?;
    let map = stage.must("configmap", "no-hash-map").await?;
    ensure!(map["data"]["key"] == "2", "{map}");
    let said = stage
        .run("catalogue add md5.yaml --rules channels")
        .await?
        .done()?;
    ensure!(said.stderr.contains("was not verified"), "{}", said.stderr);
    Ok(())
}
