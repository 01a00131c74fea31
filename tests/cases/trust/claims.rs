//! What one installation deletes is never what another one lives in.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};

/// trust 7.
#[tokio::test]
async fn t07_a_namespace_that_others_live_in_is_not_deleted() -> Result<()> {
    let stage = Stage::new("housing").await?;
    let house = format!("{}-house", stage.namespace);
    let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {house}}}\n---\n");
    let lodger = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: lodger, namespace: {house}}}\ndata: {{of: b}}\n"
    );
    let index = stage.index(
        "index.yaml",
        &[
            (
                "landlord",
                "1.0.0",
                &format!("{namespace}{}", config_map("deed", "a")),
            ),
            ("lodger", "1.0.0", &lodger),
            ("landlord-without", "1.0.0", &config_map("deed", "b")),
        ],
    )?;
    for name in ["landlord", "lodger"] {
        stage
            .run(&format!("install {name} --channel {index} --yes"))
            .await?
            .done()?;
    }
    let said = stage
        .run("uninstall landlord --delete-namespaces --yes")
        .await?
        .done()?;
    let why = format!(
        "Namespace {house} is retained: {}/lodger is installed into it",
        stage.namespace
    );
    ensure!(said.stderr.contains(&why), "{}", said.stderr);
    let args = ["get", "configmap", "lodger", "-n", &house, "-o", "name"];
    stage.plugin.kubectl(&args).await?.done()?;
    Ok(())
}
