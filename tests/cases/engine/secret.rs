//! What a Secret holds is nowhere but in the Secret, and what changed it is taken back when something is due (semantics 13).

use addons_tests::plugin::Output;
use addons_tests::small::{self, PASSWORD};
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// No trace of the password, plain or encoded.
fn quiet(output: &Output) -> Result<()> {
    let said = format!("{}{}", output.stdout, output.stderr);
    leaks_nothing(&said)
}

fn leaks_nothing(text: &str) -> Result<()> {
    let encoded = BASE64_STANDARD.encode(PASSWORD);
    ensure!(!text.contains(PASSWORD), "the password is in: {text}");
    ensure!(
        !text.contains(encoded.trim_end_matches('=')),
        "the encoded password is in: {text}"
    );
    Ok(())
}

fn recorded(record: &Value) -> Result<Value> {
    let groups = record["status"]["inventory"].as_array();
    let group = groups
        .into_iter()
        .flatten()
        .find(|group| group["kind"] == "Secret");
    Ok(group.context("no Secret is recorded")?["objects"][0].clone())
}

#[tokio::test]
async fn no_digest_no_output_and_refreshed_when_due() -> Result<()> {
    let stage = Stage::new("secret").await?;
    let namespace = stage.namespace.clone();
    let first = [small::secret("token"), config_map("kept", "1")].concat();
    let index = stage.index("index.yaml", &[("vault", "1.0.0", &first)])?;
    let line = format!("diff vault --channel {index}");
    quiet(&stage.run(&line).await?.ended(1)?)?;
    let line = format!("install vault --channel {index} --yes");
    quiet(&stage.run(&line).await?.done()?)?;
    let record = stage.record("vault").await?;
    let object = recorded(&record)?;
    ensure!(
        object["digest"].is_null() && object["uid"].is_string(),
        "{object:#}"
    );
    leaks_nothing(&record.to_string())?;
    let config_maps = record["status"]["inventory"].to_string();
    ensure!(config_maps.contains("\"digest\""), "{config_maps}");

    // The manifest of the Secret is the same; it is applied because a version is due.
    let edit = json!({"stringData": {"password": "another-horse"}});
    stage.patch("secret", "token", &edit).await?;
    let second = [small::secret("token"), config_map("kept", "2")].concat();
    let index = stage.index("index.yaml", &[("vault", "2.0.0", &second)])?;
    let shown = stage
        .run(&format!("diff vault -n {namespace} --channel {index}"))
        .await?
        .ended(1)?;
    quiet(&shown)?;
    ensure!(
        shown.stdout.contains("Secret token") && !shown.stdout.contains("another-horse"),
        "{}",
        shown.stdout
    );
    let encoded = BASE64_STANDARD.encode("another-horse");
    ensure!(!shown.stdout.contains(&encoded), "{}", shown.stdout);
    let line = format!("upgrade vault -n {namespace} --channel {index} --yes");
    quiet(&stage.run(&line).await?.done()?)?;
    let live = stage.must("secret", "token").await?;
    ensure!(
        live["data"]["password"] == BASE64_STANDARD.encode(PASSWORD),
        "not refreshed"
    );
    Ok(())
}

#[tokio::test]
async fn a_refused_secret_is_not_quoted() -> Result<()> {
    let stage = Stage::new("secret-refused").await?;
    let manifest = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: token}}\ntype: kubernetes.io/dockerconfigjson\nstringData: \
         {{.dockerconfigjson: {PASSWORD}, '{PASSWORD} key': x}}\n"
    );
    let index = stage.index("index.yaml", &[("safe", "1.0.0", &manifest)])?;
    let line = format!("install safe --channel {index} --yes");
    let refused = stage.run(&line).await?.ended(1)?;
    quiet(&refused)?;
    ensure!(
        refused.stderr.contains("Secret token"),
        "{}",
        refused.stderr
    );
    Ok(())
}
