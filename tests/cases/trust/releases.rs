//! Releases that helm itself installs: ours are proven by a label of helm's records, never by a status.

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::servers::charts::{Charts, Options};
use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::json;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-map}\ndata: {who: ours}\n";

/// trust 3.
#[tokio::test]
async fn t03_a_release_of_others_is_neither_replaced_nor_removed() -> Result<()> {
    let stage = Stage::new("foreign-release").await?;
    let shelf = Shelf::new()?;
    shelf.chart("web", "1.0.0", &[("templates/map.yaml", MAP)])?;
    shelf.index(None)?;
    let charts = Charts::serve(shelf.path(), &Options::default())?;
    let catalogue = |name: &str| {
        format!(
            "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonCatalogue\nmetadata: {{name: web}}\nspec:\n  addons:\n  \
             - name: {name}\n    versions:\n    - version: 1.0.0\n      defaultNamespace: {}\n      \
             template: {{method: helm, helm: {{mode: release, releaseName: web}}}}\n      \
             source: {{helm: {{url: '{}', chart: web, version: 1.0.0}}}}\n",
            stage.namespace,
            charts.url()
        )
    };
    stage.write("web.yaml", &catalogue("web"))?;
    stage.write("other.yaml", &catalogue("other"))?;
    let helm = binaries::helm()?;
    let flag = format!("--helm-bin {}", helm.display());

    // Installed by hand, from another chart.
    let about = "apiVersion: v2\nname: theirs\nversion: 0.1.0\n";
    stage.write("theirs/Chart.yaml", about)?;
    stage.write(
        "theirs/templates/map.yaml",
        &config_map("web-map", "theirs"),
    )?;
    let theirs = stage.plugin.home().join("theirs");
    let kubeconfig = stage.plugin.kubeconfig().to_string_lossy().into_owned();
    let by_hand = async |args: &[&str]| -> Result<String> {
        let args = [
            args,
            &["--namespace", &stage.namespace, "--kubeconfig", &kubeconfig],
        ]
        .concat();
        Ok(stage.plugin.program(&helm, &args).await?.done()?.stdout)
    };
    by_hand(&["install", "web", &theirs.to_string_lossy()]).await?;

    let install = format!("install web --channel web.yaml {flag} --yes");
    refused_at_install(&stage, &install, &flag).await?;
    refused_at_uninstall(&stage, &flag).await?;
    ensure!(
        by_hand(&["history", "web"]).await?.lines().count() == 2,
        "the release of others changed"
    );
    by_hand(&["uninstall", "web"]).await?;
    ours_alone(&stage, &install, &flag).await
}

async fn refused_at_install(stage: &Stage, install: &str, flag: &str) -> Result<()> {
    for line in [
        install,
        &format!("{install} --dry-run=server"),
        &format!("plan web --channel web.yaml {flag}"),
    ] {
        let said = stage.run(line).await?.ended(4)?;
        ensure!(
            said.stderr.contains("it was not installed by this tool")
                && said.stderr.contains("look:   helm history web"),
            "{line}: {}",
            said.stderr
        );
    }
    let map = stage.must("configmap", "web-map").await?;
    ensure!(map["data"]["key"] == "theirs", "{map}");
    Ok(())
}

/// A status that claims the release does not prove it: it can be written by whoever may write installations.
async fn refused_at_uninstall(stage: &Stage, flag: &str) -> Result<()> {
    stage
        .apply(&format!(
            "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonInstallation\nmetadata: {{name: claims}}\n\
             spec: {{addonRef: {{name: web, index: 'file://{}'}}, targetNamespace: {}}}\n",
            stage.plugin.home().join("web.yaml").display(),
            stage.namespace
        ))
        .await?;
    let installed = json!({"version": "1.0.0", "manifestHash": "", "valuesHash": "",
        "helmRelease": {"name": "web", "namespace": stage.namespace}});
    let status = json!({"installed": installed});
    stage
        .patch_status("addoninstallation", "claims", &status)
        .await?;
    let said = stage
        .run(&format!("uninstall claims {flag} --yes"))
        .await?
        .ended(4)?;
    ensure!(
        said.stderr.contains("it was not installed by this tool"),
        "{}",
        said.stderr
    );
    Ok(())
}

/// What we install is that of one installation.
async fn ours_alone(stage: &Stage, install: &str, flag: &str) -> Result<()> {
    stage.run(install).await?.done()?;
    let said = stage
        .run(&format!("install other --channel other.yaml {flag} --yes"))
        .await?
        .ended(4)?;
    ensure!(
        said.stderr.contains("another installation created it"),
        "{}",
        said.stderr
    );
    stage
        .run(&format!("uninstall web {flag} --yes"))
        .await?
        .done()?;
    ensure!(
        !stage.has("configmap", "web-map").await?,
        "our release stays"
    );
    Ok(())
}
