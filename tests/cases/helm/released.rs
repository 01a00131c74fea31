//! The plugin and a release that helm itself installs: its namespace, its state, and nothing of it that stays behind.

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::servers::charts::{Charts, Options};
use addons_tests::stage::Stage;
use anyhow::{Result, ensure};

/// With `stuck`, its pod fits no node.
const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      {{- if .Values.stuck }}
      nodeSelector: {no: such}
      {{- end }}
      containers: [{name: web, image: 'example.test/web:1'}]
";

/// What helm itself knows of releases in a namespace.
async fn kept(stage: &Stage, namespace: &str) -> Result<String> {
    let args = [
        "get",
        "secrets",
        "-n",
        namespace,
        "-l",
        "owner=helm",
        "-o",
        "name",
    ];
    Ok(stage.plugin.kubectl(&args).await?.done()?.stdout)
}

#[tokio::test]
async fn a_release_leaves_nothing_behind() -> Result<()> {
    let stage = Stage::new("released").await?;
    let shelf = Shelf::new()?;
    shelf.chart("web", "1.0.0", &[("templates/web.yaml", DEPLOYMENT)])?;
    shelf.index(None)?;
    let charts = Charts::serve(shelf.path(), &Options::default())?;
    let name = stage.namespace.as_str();
    let catalogue = format!(
        "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonCatalogue\nmetadata: {{name: released}}\nspec:\n  addons:\n  \
         - name: {name}\n    versions:\n    - version: 1.0.0\n      template: {{method: helm, helm: {{mode: release}}}}\n      \
         source: {{helm: {{url: '{}', chart: web, version: 1.0.0}}}}\n",
        charts.url()
    );
    let file = stage.write("catalogue.yaml", &catalogue)?;
    let (file, helm) = (file.display(), binaries::helm()?);
    let helm = format!("--helm-bin {}", helm.display());
    let install = format!("install {name} --channel {file} {helm} --yes --target-namespace");

    // Helm keeps a release that it could not install.
    let (first, second) = (format!("{name}-first"), format!("{name}-second"));
    let line = format!("{install} {first} --set stuck=true --timeout 5s");
    let failed = stage.run(&line).await?;
    ensure!(failed.code != 0, "{failed:?}");
    ensure!(failed.stderr.contains("✗"), "{failed:?}");
    ensure!(!kept(&stage, &first).await?.is_empty(), "{failed:?}");
    let uninstall = format!("uninstall {name} {helm} --yes");
    stage.run(&uninstall).await?.done()?;
    ensure!(kept(&stage, &first).await?.is_empty());

    let installed = stage.run(&format!("{install} {second}")).await?.done()?;
    for part in [
        format!("create    Namespace {second}"),
        format!("✓ {second}/Release {name}"),
    ] {
        ensure!(installed.stderr.contains(&part), "{}", installed.stderr);
    }
    let status = stage.run(&format!("status {name} {helm}")).await?.done()?;
    ensure!(status.stdout.contains("Deployed, revision 1"), "{status:?}");
    stage.run(&uninstall).await?.done()?;
    ensure!(kept(&stage, &second).await?.is_empty());
    Ok(())
}
