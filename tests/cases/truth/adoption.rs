//! What other tools installed: taken over once, whole, and with the tool being told.

use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::adopt::tools::{helm, releases};

/// Ready never: no volume fits it.
const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n\
    spec: {accessModes: [ReadWriteOnce], storageClassName: none-of-them, resources: {requests: {storage: 1Gi}}}\n---\n";

/// A hook that helm runs at an installation, and never at an upgrade.
fn hook(name: &str, when: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, annotations: {{helm.sh/hook: {when}, \
         helm.sh/hook-delete-policy: hook-succeeded}}}}\nspec: {{template: {{spec: {{restartPolicy: Never, \
         containers: [{{name: main, image: 'example.test/job:1'}}]}}}}}}\n---\n"
    )
}

/// `settings` with a value of the chart, and what the test adds.
fn template(more: &str) -> String {
    let map = config_map("settings", "x").replace(
        "\"x\"",
        "'{{ .Values.size }}', version: '{{ .Chart.Version }}'",
    );
    [&map, more].concat()
}

/// A chart of the shelf, and a catalogue that lists its versions.
struct Charts {
    shelf: Shelf,
    template: String,
}

impl Charts {
    fn new(more: &str) -> Result<Self> {
        let charts = Self {
            shelf: Shelf::new()?,
            template: template(more),
        };
        for version in ["1.0.0", "1.1.0"] {
            let files = [
                ("templates/all.yaml", charts.template.as_str()),
                ("values.yaml", "size: small\n"),
            ];
            charts.shelf.chart("web", version, &files)?;
        }
        Ok(charts)
    }

    fn archive(&self, version: &str) -> String {
        let path = self.shelf.path().join(format!("web-{version}.tgz"));
        path.to_string_lossy().into_owned()
    }

    fn catalogue(&self, stage: &Stage, versions: &[&str]) -> Result<String> {
        let versions = versions.iter().map(|version| {
            json!({"version": version, "defaultNamespace": stage.namespace, "template": {"method": "helm"},
                "source": {"url": {"manifest": format!("file://{}", self.archive(version))}}})
        });
        let versions: Vec<Value> = versions.collect();
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "web"},
            "spec": {"addons": [{"name": "web", "versions": versions}]},
        });
        let path = stage.write("web.json", &catalogue.to_string())?;
        Ok(path.to_string_lossy().into_owned())
    }

    async fn install(&self, stage: &Stage, more: &[&str]) -> Result<()> {
        let archive = self.archive("1.0.0");
        let args = [&["install", "web", archive.as_str(), "--no-hooks"], more].concat();
        helm(stage, &args).await?.done().map(drop)
    }
}

fn flags() -> Result<String> {
    let helm = addons_tests::control_plane::binaries::helm()?;
    Ok(format!("--helm-bin {} --yes --timeout 60s", helm.display()))
}

/// The annotations of an object.
async fn annotations(stage: &Stage, kind: &str, name: &str) -> Result<Value> {
    Ok(stage.must(kind, name).await?["metadata"]["annotations"].take())
}

#[tokio::test]
async fn n19_an_adoption_waits_for_nothing_and_runs_no_hook_of_installations() -> Result<()> {
    let stage = Stage::new("n19-hooks").await?;
    let more = [
        CLAIM,
        &hook("initdb", "post-install"),
        &hook("prepare", "pre-install"),
    ]
    .concat();
    let charts = Charts::new(&more)?;
    charts.install(&stage, &[]).await?;
    let catalogue = charts.catalogue(&stage, &["1.0.0"])?;
    let adopt = format!("adopt web --channel {catalogue} {}", flags()?);
    let said = stage
        .run(&format!("{adopt} --dry-run"))
        .await?
        .done()?
        .stderr;
    ensure!(
        !said.contains("initdb") && !said.contains("prepare"),
        "{said}"
    );
    // The claim never gets ready: whoever waits for it ends with 3.
    stage.run(&adopt).await?.done()?;
    ensure!(releases(&stage).await?.is_empty(), "helm finds its release");
    let record = stage.record("web").await?;
    ensure!(
        record["status"]["history"][0]["verb"] == "adopt",
        "{record:#}"
    );
    let upgrade = format!("upgrade web --wait=false {}", flags()?);
    stage.run(&upgrade).await?.done()?;
    for job in ["initdb", "prepare"] {
        ensure!(!stage.has("job", job).await?, "{job} ran on live data");
    }
    Ok(())
}

/// As a client leaves it that is killed once the objects are ours, and before the record says so.
async fn forget_the_end(stage: &Stage) -> Result<()> {
    let failed = json!({"status": {"installed": null, "phase": "Failed", "history": [
        {"verb": "adopt", "installed": {"version": "1.0.0", "manifestHash": "", "valuesHash": ""}, "outcome": "interrupted"}]}});
    let failed = failed.to_string();
    let args = [
        "patch",
        "addoninstallation",
        "web",
        "--subresource=status",
        "--type=merge",
        "-p",
        &failed,
    ];
    stage.kubectl(&args).await.map(drop)
}

#[tokio::test]
async fn n19_what_did_not_end_is_shown_whole_and_ends() -> Result<()> {
    let stage = Stage::new("n19-resume").await?;
    let charts = Charts::new(&hook("initdb", "post-install"))?;
    charts.install(&stage, &["--set", "size=large"]).await?;
    let catalogue = charts.catalogue(&stage, &["1.0.0"])?;
    let flags_of_adoption = format!("--channel {catalogue} --reset-values {}", flags()?);
    let adopt = format!("adopt web@1.0.0 {flags_of_adoption}");
    stage.run(&adopt).await?.done()?;
    forget_the_end(&stage).await?;
    let said = stage
        .run(&format!("{adopt} --dry-run"))
        .await?
        .done()?
        .stderr;
    ensure!(
        said.contains("large") && said.contains("small"),
        "nothing would change: {said}"
    );
    // The command that the tool prints, and what continues it otherwise.
    stage.run(&adopt).await?.done()?;
    let record = stage.record("web").await?;
    ensure!(
        record["status"]["installed"]["adopted"] == true,
        "{record:#}"
    );
    forget_the_end(&stage).await?;
    stage
        .run(&format!("upgrade web {}", flags()?))
        .await?
        .done()?;
    ensure!(
        !stage.has("job", "initdb").await?,
        "a hook of installations ran"
    );
    Ok(())
}

#[tokio::test]
async fn n19_an_installation_that_adopts_says_what_it_applies() -> Result<()> {
    let stage = Stage::new("n19-install").await?;
    let charts = Charts::new(&hook("initdb", "post-install"))?;
    charts
        .install(&stage, &["--set", "size=large,image.tag=2"])
        .await?;
    let catalogue = charts.catalogue(&stage, &["1.0.0", "1.1.0"])?;
    let line = format!("install web --channel {catalogue} --adopt {}", flags()?);
    let said = stage.run(&line).await?.done()?.stderr;
    for told in [
        "was given values for image.tag, size, which are not recorded here: give them with -f, or this command applies defaults",
        "is of web 1.0.0: this command applies 1.1.0; to keep the version, name web@1.0.0",
    ] {
        ensure!(said.contains(told), "{told}: {said}");
    }
    ensure!(
        !stage.has("job", "initdb").await?,
        "a hook of installations ran on live data"
    );
    Ok(())
}

#[tokio::test]
async fn n19_nothing_to_adopt_names_the_release() -> Result<()> {
    let stage = Stage::new("n19-nothing").await?;
    let charts = Charts::new("")?;
    let other = template("").replace("name: settings", "name: '{{ .Values.name }}'");
    let files = [
        ("templates/all.yaml", other.as_str()),
        ("values.yaml", "size: small\nname: settings\n"),
    ];
    charts.shelf.chart("web", "1.0.0", &files)?;
    charts.install(&stage, &["--set", "name=other"]).await?;
    let catalogue = charts.catalogue(&stage, &["1.0.0"])?;
    let line = format!(
        "adopt web --channel {catalogue} --reset-values {}",
        flags()?
    );
    let said = stage.run(&line).await?.ended(1)?.stderr;
    let told = format!(
        "Helm release {}/web exists, and was given values for name: give them with -f",
        stage.namespace
    );
    ensure!(
        said.contains(&told) && !said.contains("kubectl addons install"),
        "{said}"
    );
    Ok(())
}

#[tokio::test]
async fn n20_helm_does_not_install_an_adopted_release_again() -> Result<()> {
    let stage = Stage::new("n20-pruned").await?;
    let charts = Charts::new("")?;
    charts.install(&stage, &[]).await?;
    let archive = charts.archive("1.0.0");
    for _ in 0..3 {
        helm(&stage, &["upgrade", "web", &archive, "--history-max", "2"])
            .await?
            .done()?;
    }
    let catalogue = charts.catalogue(&stage, &["1.0.0"])?;
    stage
        .run(&format!("adopt web --channel {catalogue} {}", flags()?))
        .await?
        .done()?;
    let marks = annotations(&stage, "configmap", "settings").await?;
    ensure!(marks["meta.helm.sh/release-name"].is_null(), "{marks:#}");
    let again = helm(&stage, &["upgrade", "--install", "web", &archive]).await?;
    ensure!(again.code != 0, "helm has installed it again: {again:?}");
    ensure!(stage.has("configmap", "settings").await?, "it is gone");

    // With the flag that takes what is not its own, helm has it again: that is told, and can be undone.
    let take = ["upgrade", "--install", "web", &archive, "--take-ownership"];
    helm(&stage, &take).await?.done()?;
    let at = &stage.namespace;
    let held = format!("Helm release {at}/web");
    for (line, code) in [
        ("status web", 0),
        ("doctor", 1),
        ("upgrade web --repair --dry-run", 0),
    ] {
        let line = match line.starts_with("upgrade") {
            true => format!("{line} {}", flags()?),
            false => line.to_owned(),
        };
        let said = stage.run(&line).await?;
        let text = format!("{}{}", said.stdout, said.stderr);
        ensure!(text.contains(&held), "{line} ({code}): {text}");
    }
    stage
        .run(&format!("upgrade web --adopt {}", flags()?))
        .await?
        .done()?;
    ensure!(releases(&stage).await?.is_empty(), "helm finds it");
    let marks = annotations(&stage, "configmap", "settings").await?;
    ensure!(marks["meta.helm.sh/release-name"].is_null(), "{marks:#}");
    Ok(())
}

#[tokio::test]
async fn n20_a_release_goes_and_returns_twice() -> Result<()> {
    let stage = Stage::new("n20-twice").await?;
    let charts = Charts::new(&annotated_hook())?;
    let archive = charts.archive("1.0.0");
    helm(&stage, &["install", "web", &archive]).await?.done()?;
    let catalogue = charts.catalogue(&stage, &["1.0.0"])?;
    for round in 0..2 {
        stage
            .run(&format!("adopt web --channel {catalogue} {}", flags()?))
            .await?
            .done()?;
        stage
            .run(&format!("upgrade web@1.0.0 {}", flags()?))
            .await?
            .done()?;
        stage.run("adopt --release web --yes").await?.done()?;
        let marks = annotations(&stage, "configmap", "settings").await?;
        ensure!(
            marks["meta.helm.sh/release-name"] == "web",
            "round {round}: {marks:#}"
        );
        let marks = annotations(&stage, "serviceaccount", "once").await?;
        ensure!(
            marks["meta.helm.sh/release-name"].is_null(),
            "a hook got a mark: {marks:#}"
        );
        let set = format!("size=round{round}");
        helm(&stage, &["upgrade", "web", &archive, "--set", &set])
            .await?
            .done()?;
        let live = stage.must("configmap", "settings").await?;
        ensure!(live["data"]["key"] == format!("round{round}"), "{live:#}");
    }
    Ok(())
}

/// A hook that stays, which helm marks as no object of a release.
fn annotated_hook() -> String {
    "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: once, annotations: {helm.sh/hook: 'pre-install,pre-upgrade', \
     helm.sh/hook-delete-policy: before-hook-creation}}\n---\n"
        .to_owned()
}

#[tokio::test]
async fn n20_a_release_that_helm_is_changing_is_not_taken() -> Result<()> {
    let stage = Stage::new("n20-pending").await?;
    let charts = Charts::new("")?;
    charts.install(&stage, &[]).await?;
    let pending = [
        "label",
        "secret",
        "sh.helm.release.v1.web.v1",
        "status=pending-upgrade",
        "--overwrite",
    ];
    stage.kubectl(&pending).await?;
    let catalogue = charts.catalogue(&stage, &["1.0.0"])?;
    let line = format!("adopt web --channel {catalogue} {}", flags()?);
    let said = stage.run(&line).await?.ended(4)?.stderr;
    ensure!(
        said.contains("is pending-upgrade") && said.contains("helm rollback web"),
        "{said}"
    );
    ensure!(
        !stage.has("addoninstallation", "web").await?,
        "it was recorded"
    );
    Ok(())
}

#[tokio::test]
async fn n20_a_label_of_charts_is_not_argo_cds() -> Result<()> {
    let stage = Stage::new("n20-label").await?;
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: applications.argoproj.io}\nspec:\n  \
        group: argoproj.io\n  scope: Namespaced\n  names: {kind: Application, plural: applications, singular: application}\n  \
        versions:\n  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n";
    stage.apply(definition).await?;
    stage
        .kubectl(&[
            "wait",
            "--for=condition=Established",
            "crd/applications.argoproj.io",
        ])
        .await?;
    stage
        .apply("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\n")
        .await?;
    let charts = Charts::new("")?;
    let labelled = template("").replace(
        "name: settings",
        "name: settings, labels: {app.kubernetes.io/instance: '{{ .Release.Name }}'}",
    );
    let files = [
        ("templates/all.yaml", labelled.as_str()),
        ("values.yaml", "size: small\n"),
    ];
    charts.shelf.chart("web", "1.0.0", &files)?;
    charts.install(&stage, &[]).await?;
    let catalogue = charts.catalogue(&stage, &["1.0.0"])?;
    stage
        .run(&format!("adopt web --channel {catalogue} {}", flags()?))
        .await?
        .done()?;
    Ok(())
}

#[tokio::test]
async fn n20_an_umbrella_is_not_one_of_its_parts() -> Result<()> {
    let stage = Stage::new("n20-umbrella").await?;
    let shelf = Shelf::new()?;
    let part = |name: &str| {
        config_map(name, "1").replace(
            &format!("{{name: {name}}}"),
            &format!("{{name: {name}, labels: {{helm.sh/chart: {name}-2.0.0}}}}"),
        )
    };
    let platform = [part("web"), config_map("own", "1")].concat();
    let archive = shelf.chart("platform", "1.0.0", &[("templates/all.yaml", &platform)])?;
    helm(
        &stage,
        &["install", "everything", &archive.to_string_lossy()],
    )
    .await?
    .done()?;
    let index = stage.index("index.yaml", &[("web", "2.0.0", &part("web"))])?;
    let listed = stage
        .run(&format!("adopt --channel {index} -o json"))
        .await?
        .done()?
        .stdout;
    let listed: Value = serde_json::from_str(&listed)?;
    let items = listed["items"].as_array().context("no items")?;
    let found = items
        .iter()
        .find(|one| one["name"] == "everything" && one["namespace"] == stage.namespace.as_str());
    let found = found.context("it is not listed")?;
    ensure!(
        found["chart"] == "platform" && found["version"] == "1.0.0" && found["adopt"].is_null(),
        "{found:#}"
    );
    Ok(())
}
