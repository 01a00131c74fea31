//! Add-ons of folders and archives of this machine, and the catalogues that are made of them.

use std::fs;

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::servers::charts::{self, Charts};
use addons_tests::servers::http::{Answer, Server};
use addons_tests::servers::registry::{Door, Layer, Registry};
use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Context as _, Result, ensure};

/// Media types of a chart in a registry.
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const CHART_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";

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
    stage.write("v0.9.0/a.yaml", &config_map("a", "1"))?;
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
        ("install ./web other", "cannot be combined with other names"),
        ("install ./none", "none"),
        (
            "install ./web/a.yaml",
            "catalogue create NAME --from ./web/a.yaml",
        ),
        (
            "install ./v0.9.0 --yes",
            "fix:    add --target-namespace NAMESPACE",
        ),
        (
            "adopt ./web",
            "fix:    name the add-on instead, with --channel ./web",
        ),
    ] {
        let said = stage.run(line).await?;
        ensure!(
            said.code != 0 && said.stderr.contains(words),
            "{line}: {}",
            said.stderr
        );
    }
    Ok(())
}

/// An overlay of a base that lies beside it.
fn kustomization(stage: &Stage, value: &str) -> Result<()> {
    stage.write("base/a.yaml", &config_map("a", value))?;
    stage.write("base/kustomization.yaml", "resources: [a.yaml]\n")?;
    stage.write(
        "prod/kustomization.yaml",
        "resources: [../base]\nnamePrefix: prod-\nlabels: [{pairs: {tier: prod}}]\n",
    )?;
    Ok(())
}

/// The real kubectl builds it: for people, and never for the loop.
#[tokio::test]
async fn a_kustomization_is_built_installed_and_upgraded_by_its_path() -> Result<()> {
    let stage = Stage::new("local-kustomize").await?;
    kustomization(&stage, "1")?;
    let into = format!("--target-namespace {} --yes", stage.namespace);
    stage.run(&format!("install ./prod {into}")).await?.done()?;
    let object = stage.must("configmap", "prod-a").await?;
    ensure!(
        object["data"]["key"] == "1" && object["metadata"]["labels"]["tier"] == "prod",
        "{object}"
    );
    ensure!(!stage.has("configmap", "a").await?);
    let again = stage.run("upgrade prod --yes").await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    // What changes in its base is due.
    kustomization(&stage, "2")?;
    stage.run("upgrade prod --yes").await?.done()?;
    ensure!(value(&stage, "prod-a").await? == "2");
    for line in [
        "render prod --channel ./prod",
        "render --dir prod --method manifest",
    ] {
        let said = stage.run(&format!("{line} --k8s 1.36.3")).await?.done()?;
        ensure!(
            said.stdout.contains("name: prod-a"),
            "{line}: {}",
            said.stdout
        );
    }
    // No one watches the loop: it leaves the record to the command.
    kustomization(&stage, "3")?;
    stage.run("reconcile prod").await?.done()?;
    stage.condition("prod", "ManagedElsewhere").await?;
    ensure!(value(&stage, "prod-a").await? == "2");

    // No restriction of kustomize is lifted, and its own words say so.
    stage.write("outside.yaml", &config_map("b", "1"))?;
    for (resources, words) in [
        ("[../outside.yaml]", "is not in or below"),
        ("[none.yaml]", "none.yaml"),
    ] {
        stage.write(
            "bad/kustomization.yaml",
            &format!("resources: {resources}\n"),
        )?;
        let said = stage
            .run(&format!("install ./bad {into}"))
            .await?
            .ended(1)?;
        ensure!(
            said.stderr.contains("kubectl kustomize ") && said.stderr.contains(words),
            "{}",
            said.stderr
        );
    }
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
        said.stderr.contains("on this machine, where"),
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

/// As an upstream project publishes them: one manifest for a release, and charts in a registry and in a repository.
#[tokio::test]
async fn what_a_project_publishes_is_listed_and_valid() -> Result<()> {
    let stage = Stage::new("local-published").await?;
    let release = format!(
        "{}{}",
        config_map("a", "1"),
        deployment("published", 1, None)
    );
    let web = Server::start(None, move |request| match request.uri.as_str() {
        "/v1.4.0/install.yaml" => Answer::ok(release.clone()),
        _ => Answer::status(404),
    })?;
    let shelf = Shelf::new()?;
    let template = [(
        "templates/c.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
    )];
    let bytes = fs::read(shelf.chart("shop", "1.2.3", &template)?)?;
    shelf.chart("shop", "1.3.0", &template)?;
    shelf.index(None)?;
    let charts = Charts::serve(shelf.path(), &charts::Options::default())?;
    let registry = Registry::start(Door::Open).await?;
    let layer = Layer {
        media_type: CHART,
        bytes,
        title: None,
    };
    registry
        .push("charts/shop", "1.2.3", CHART_CONFIG, &[layer])
        .await?;
    let manifest = web.url("/v1.4.0/install.yaml");
    let (oci, repository) = (format!("oci://{}/charts", registry.host), charts.url());
    let cases = [
        (
            format!("--from {manifest} --version 1.4.0"),
            vec!["- name: install", "# - example.test/published:1"],
        ),
        (
            format!("--from {oci}/shop:1.2.3 --plain-http"),
            vec!["- name: shop", "chart: shop", "plainHTTP: true"],
        ),
        (
            format!("--from {repository} --chart shop --version 1.2.3"),
            vec!["- version: \"1.2.3\"", "chart: shop"],
        ),
        (
            format!("--from {repository} --chart shop"),
            vec!["- version: \"1.3.0\"", "version: \"1.3.0\""],
        ),
    ];
    for (from, words) in cases {
        let create = format!("catalogue create {} {from}", stage.namespace);
        let said = stage.run(&create).await?.done()?;
        for words in words.into_iter().chain(["manifestHash:", "# constraints:"]) {
            ensure!(said.stdout.contains(words), "{words}: {}", said.stdout);
        }
        stage.write("published.yaml", &said.stdout)?;
        let validate = "catalogue validate published.yaml --fetch";
        stage.run(validate).await?.done()?;
        // The hash is what makes it valid.
        let hash = said.stdout.split("manifestHash: ").nth(1);
        let hash = hash.and_then(|rest| rest.lines().next());
        let hash = hash.context("no hash")?.trim_matches('"');
        let wrong = said.stdout.replace(hash, &"a".repeat(hash.len()));
        stage.write("published.yaml", &wrong)?;
        let said = stage.run(validate).await?.ended(1)?;
        ensure!(said.stderr.contains("manifestHash"), "{}", said.stderr);
    }
    what_is_not_there(&stage, &oci, repository).await
}

/// What is not there is named.
async fn what_is_not_there(stage: &Stage, oci: &str, repository: &str) -> Result<()> {
    for (from, words) in [
        (format!("{oci}/none:1.0.0 --plain-http"), "none"),
        (format!("{oci}/shop:9.9.9 --plain-http"), "9.9.9"),
        (format!("{repository} --chart none"), "none"),
        (
            "a.yaml --from b.yaml --chart shop".to_owned(),
            "--chart can only be used with a single --from",
        ),
    ] {
        let create = format!("catalogue create c --from {from}");
        let said = stage.run(&create).await?;
        ensure!(
            said.code != 0 && said.stderr.contains(words),
            "{from}: {}",
            said.stderr
        );
    }
    Ok(())
}
