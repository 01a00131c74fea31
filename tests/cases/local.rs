//! Add-ons of folders and archives of this machine, and the catalogues that are made of them.

use addons_tests::control_plane::binaries;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};

/// The value in a ConfigMap.
async fn value(stage: &Stage, name: &str) -> Result<String> {
    let object = stage.must("configmap", name).await?;
    Ok(object["data"]["key"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

#[tokio::test]
async fn a_folder_is_installed_and_upgraded_by_its_path() -> Result<()> {
    let stage = Stage::new("local-folder").await?;
    stage.write("web/a.yaml", &config_map("a", "1"))?;
    stage.write("web/more/b.yaml", &config_map("b", "1"))?;
    stage.write("web/README.md", "# Not a manifest\n")?;
    let into = format!("--target-namespace {} --yes", stage.namespace);
    stage.run(&format!("install ./web {into}")).await?.done()?;
    ensure!(value(&stage, "a").await? == "1" && stage.has("configmap", "b").await?);
    let record = stage.record("web").await?;
    let index = record["spec"]["addonRef"]["index"].as_str();
    ensure!(
        index.is_some_and(|it| it.starts_with("file://") && it.ends_with("/web")),
        "{record}"
    );

    let again = stage.run("upgrade web --yes").await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    stage.write("web/a.yaml", &config_map("a", "2"))?;
    stage.run("upgrade web --yes").await?.done()?;
    ensure!(value(&stage, "a").await? == "2");

    for (line, words) in [
        ("install ./web other", "goes without other names"),
        ("install ./none", "none"),
    ] {
        let said = stage.run(line).await?;
        ensure!(
            said.code != 0 && said.stderr.contains(words),
            "{line}: {}",
            said.stderr
        );
    }
    stage.write("kustom/kustomization.yaml", "resources: [a.yaml]\n")?;
    let said = stage.run("install ./kustom --yes").await?.ended(1)?;
    ensure!(said.stderr.contains("kubectl kustomize"), "{}", said.stderr);
    Ok(())
}

/// A chart is one add-on with the name and the version that it has, and the real helm renders it.
#[tokio::test]
async fn a_chart_is_installed_and_upgraded_by_its_path() -> Result<()> {
    let stage = Stage::new("local-chart").await?;
    let chart = |version: &str| {
        let text = format!("apiVersion: v2\nname: shop\nversion: {version}\n");
        stage.write("folder/Chart.yaml", &text)
    };
    chart("3.1.0")?;
    stage.write("folder/values.yaml", "size: one\n")?;
    stage.write(
        "folder/templates/c.yaml",
        &config_map("c", "{{ .Values.size }}-{{ .Chart.Version }}"),
    )?;
    let flags = format!("--helm-bin {} --yes", binaries::helm()?.display());
    let into = format!("--target-namespace {}", stage.namespace);
    stage
        .run(&format!("install ./folder --set size=two {into} {flags}"))
        .await?
        .done()?;
    ensure!(value(&stage, "c").await? == "two-3.1.0");
    let record = stage.record("shop").await?;
    let installed = &record["status"]["installed"]["version"];
    ensure!(installed == "3.1.0", "{record}");

    let again = stage.run(&format!("upgrade shop {flags}")).await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    chart("3.2.0")?;
    stage.run(&format!("upgrade shop {flags}")).await?.done()?;
    ensure!(value(&stage, "c").await? == "two-3.2.0");
    Ok(())
}

#[tokio::test]
async fn sources_of_a_catalogue_on_disk_may_be_folders_and_archives() -> Result<()> {
    let stage = Stage::new("local-sources").await?;
    stage.write("web/a.yaml", &config_map("a", "1"))?;
    stage.write("shop/b.yaml", &config_map("b", "{{ .Cluster.Name }}-x"))?;
    let home = stage.plugin.home().to_owned();
    let archive = |options: &[&str]| -> Result<()> {
        let status = std::process::Command::new("tar")
            .args(options)
            .current_dir(&home)
            .status()?;
        ensure!(status.success(), "tar {options:?}");
        Ok(())
    };
    archive(&["-czf", "shop.tgz", "-C", "shop", "."])?;
    let folder = home.join("web");
    let (folder, namespace) = (folder.display(), &stage.namespace);
    let catalogue = format!(
        "apiVersion: kubectl-addons.dev/v1alpha1
kind: AddonCatalogue
metadata: {{name: {namespace}}}
spec:
  addons:
  - name: relative
    versions:
    - {{version: 1.0.0, defaultNamespace: {namespace}, source: {{url: {{manifest: web/}}}}}}
  - name: absolute
    versions:
    - {{version: 1.0.0, defaultNamespace: {namespace}, source: {{url: {{manifest: 'file://{folder}'}}}}}}
  - name: archive
    versions:
    - version: 1.0.0
      defaultNamespace: {namespace}
      template: {{method: go-template}}
      source: {{url: {{manifest: shop.tgz}}}}
"
    );
    stage.write("catalogue.yaml", &catalogue)?;
    stage.run("catalogue validate .").await?.done()?;
    stage
        .run("install relative archive --channel . --yes")
        .await?
        .done()?;
    ensure!(value(&stage, "a").await? == "1");
    ensure!(value(&stage, "b").await?.ends_with("-x"));
    // Another user of the cluster has no such folder (semantics 16).
    let said = stage.run("catalogue add catalogue.yaml").await?.ended(1)?;
    ensure!(
        said.stderr.contains("is on this machine"),
        "{}",
        said.stderr
    );
    let diff = stage.run("diff absolute --channel .").await?;
    ensure!(diff.code != 0, "{}", diff.stdout);
    Ok(())
}

#[tokio::test]
async fn what_is_created_is_valid_and_can_be_installed() -> Result<()> {
    let stage = Stage::new("local-create").await?;
    let manifest = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: {}, labels: {{app.kubernetes.io/version: 1.4.0}}}}\n",
        stage.namespace
    );
    stage.write("files/shipper.yaml", &manifest)?;
    stage.write("more-2.0.0/b.yaml", &config_map("b", "1"))?;
    stage.write(
        "chart/Chart.yaml",
        "apiVersion: v2\nname: shop\nversion: 3.1.0\n",
    )?;
    stage.write("chart/templates/c.yaml", &config_map("c", "1"))?;
    let create = format!(
        "catalogue create {} --from files/shipper.yaml --from more-2.0.0 --from chart",
        stage.namespace
    );
    let said = stage.run(&create).await?.done()?;
    for words in [
        "- name: shipper",
        "version: \"1.4.0\"",
        "- name: more",
        "version: \"2.0.0\"",
        "- name: shop",
        "template: {method: helm}",
    ] {
        ensure!(said.stdout.contains(words), "{words}: {}", said.stdout);
    }
    stage.write("catalogue.yaml", &said.stdout)?;
    stage
        .run("catalogue validate catalogue.yaml")
        .await?
        .done()?;
    let into = format!("--target-namespace {} --yes", stage.namespace);
    stage
        .run(&format!(
            "install shipper more --channel catalogue.yaml {into}"
        ))
        .await?
        .done()?;
    ensure!(stage.has("configmap", "a").await? && stage.has("configmap", "b").await?);

    // The hash is that of what was there.
    stage.write("more-2.0.0/b.yaml", &config_map("b", "2"))?;
    let said = stage
        .run("catalogue validate catalogue.yaml")
        .await?
        .ended(1)?;
    ensure!(
        said.stderr.contains("versions[0].manifestHash: is "),
        "{}",
        said.stderr
    );
    let said = stage
        .run("catalogue create c --from chart/templates")
        .await?
        .ended(1)?;
    ensure!(said.stderr.contains("--version"), "{}", said.stderr);
    Ok(())
}
