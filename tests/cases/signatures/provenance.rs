//! Provenance files of charts, made and verified by the real helm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::{Charts, Options};
use addons_tests::servers::registry::{Door, Layer, Registry};
use addons_tests::stage::Stage;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// The owner of the key that helm's own tests sign with.
const OWNER: &str = "Helm Testing";

/// The keys of helm's own tests, in its module.
fn keys() -> Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("control-plane/helm");
    let output = Command::new("go")
        .args(["list", "-m", "-f", "{{.Dir}}", "helm.sh/helm/v4"])
        .current_dir(source)
        .output()
        .context("cannot start go list")?;
    let module = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    Ok(module.join("pkg/cmd/testdata"))
}

/// Packs and signs a chart; the folder that holds it.
fn package(stage: &Stage, name: &str, keys: &Path) -> Result<PathBuf> {
    let about = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    let chart = stage.write(&format!("charts/{name}/Chart.yaml"), &about)?;
    let packed = stage.plugin.home().join("packed");
    fs::create_dir_all(&packed)?;
    let output = Command::new(binaries::helm()?)
        .args(["package", "--sign", "--key", OWNER, "--keyring"])
        .arg(keys.join("helm-test-key.secret"))
        .arg("-d")
        .arg(&packed)
        .arg(chart.parent().context("no folder")?)
        .output()?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "helm package: {words}");
    Ok(packed)
}

#[tokio::test]
async fn charts_are_verified_with_their_provenance_files() -> Result<()> {
    let stage = Stage::new("provenance").await?;
    let keys = keys()?;
    let packed = package(&stage, "web", &keys)?;
    package(&stage, "api", &keys)?;
    let file = |name: &str| fs::read(packed.join(name));
    let (archive, signed) = (file("web-1.0.0.tgz")?, file("web-1.0.0.tgz.prov")?);
    let registry = Registry::start(Door::Open).await?;
    let layer = |media_type, bytes: &[u8]| Layer {
        media_type,
        bytes: bytes.to_vec(),
        title: None,
    };
    let both = [layer(CHART, &archive), layer(PROVENANCE, &signed)];
    registry.push("charts/web", "1.0.0", CONFIG, &both).await?;
    registry
        .push("bare/web", "1.0.0", CONFIG, &both[..1])
        .await?;
    let other = file("api-1.0.0.tgz.prov")?;
    let both = [layer(CHART, &archive), layer(PROVENANCE, &other)];
    registry.push("other/web", "1.0.0", CONFIG, &both).await?;

    let flags = format!(
        "--plain-http --helm-bin {} --keyring {}",
        binaries::helm()?.display(),
        keys.join("helm-test-key.pub").display()
    );
    let host = &registry.host;
    let line = format!("verify oci://{host}/charts/web:1.0.0 {flags} -o json");
    let said = stage.run(&line).await?.done()?;
    let items: Value = serde_json::from_str(&said.stdout)?;
    let found = &items["items"][0];
    ensure!(found["method"] == json!("provenance"), "{found}");
    let signer = found["signer"].as_str();
    ensure!(
        signer.is_some_and(|signer| signer.starts_with(OWNER)),
        "{found}"
    );
    let line = format!("verify oci://{host}/bare/web:1.0.0 {flags}");
    let said = stage.run(&line).await?.ended(1)?;
    ensure!(
        said.stderr.contains("has no provenance file"),
        "{}",
        said.stderr
    );
    let line = format!("verify oci://{host}/other/web:1.0.0 {flags}");
    let said = stage.run(&line).await?.ended(1)?;
    ensure!(said.stderr.contains("helm verify:"), "{}", said.stderr);

    let output = Command::new(binaries::helm()?)
        .args(["repo", "index", "."])
        .current_dir(&packed)
        .output()?;
    ensure!(output.status.success());
    let charts = Charts::serve(&packed, &Options::default())?;
    let source = json!({"helm": {"url": charts.url(), "chart": "web", "version": "1.0.0"}});
    let version = json!({"version": "1.0.0", "source": source, "template": {"method": "helm"}});
    let catalogue = stage.catalogue("web", &version)?;
    let line = format!("catalogue add {}", catalogue.display());
    stage.run(&line).await?.done()?;
    let said = stage.run(&format!("verify web {flags}")).await?.done()?;
    ensure!(said.stdout.contains(OWNER), "{}", said.stdout);
    let line = "verify web";
    let said = stage.run(line).await?;
    ensure!(
        said.code == 2 && said.stderr.contains("does not say who signs"),
        "{}",
        said.stderr
    );
    Ok(())
}
