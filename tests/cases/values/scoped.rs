//! `--set ADDON:PATH=VALUE`: a value for one of the add-ons that a command names.

use addons_tests::stage::Stage;
use anyhow::{Result, ensure};
use serde_json::json;

#[tokio::test]
async fn a_value_goes_to_the_add_on_before_the_colon() -> Result<()> {
    let stage = Stage::new("scoped").await?;
    stage.run("init").await?.done()?;
    let [web, dns] = ["web", "dns"].map(|name| format!("{}-{name}", stage.namespace));
    for name in [&web, &dns] {
        let manifest = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{key: '{{{{ .Variables.replicas }}}}'}}\n"
        );
        let version = json!({"version": "1.0.0", "template": {"method": "go-template"},
            "values": {"replicas": 0}, "source": {"inline": {"manifest": manifest}}});
        let file = stage.catalogue(name, &version)?;
        let add = format!("catalogue add {}", file.display());
        stage.run(&add).await?.done()?;
    }
    let holds = async |expected: [&str; 2]| -> Result<()> {
        for (name, expected) in [&web, &dns].into_iter().zip(expected) {
            let object = stage.must("configmap", name).await?;
            ensure!(object["data"]["key"] == expected, "{object}");
        }
        Ok(())
    };
    let set = format!("--set replicas=2 --set {dns}:replicas=3");
    stage
        .run(&format!("install {web} {dns} --yes {set}"))
        .await?
        .done()?;
    holds(["2", "3"]).await?;
    let set = format!("--set-json {web}:replicas=4");
    let said = stage
        .run(&format!("diff {web} {dns} {set}"))
        .await?
        .ended(1)?;
    ensure!(said.stdout.contains("2 → 4"), "{}", said.stdout);
    stage
        .run(&format!("upgrade {web} {dns} --yes {set}"))
        .await?
        .done()?;
    holds(["4", "3"]).await?;

    let refused = stage
        .run(&format!("upgrade {web} {dns} --yes --set other:replicas=5"))
        .await?
        .ended(2)?;
    ensure!(
        refused.stderr.contains("the command names no add-on other"),
        "{}",
        refused.stderr
    );
    holds(["4", "3"]).await
}
