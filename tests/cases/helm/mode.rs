//! `template.helm.mode: release` with the whole program: helm has the release, we have the record and its lock.

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::Stage;
use anyhow::{Result, ensure};
use serde_json::json;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-map}\n\
                   data: {size: {{ .Values.size | quote }}, version: {{ .Values.templateData.Cluster.Version | quote }}}\n";
const BROKEN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ required \"size is needed\" .Values.gone }}}\n";

/// The catalogue with that mode, in the user's home.
fn catalogue(stage: &Stage, mode: &str) -> Result<String> {
    let shelf = Shelf::new()?;
    let mut versions = Vec::new();
    for (version, template) in [("1.0.0", MAP), ("1.1.0", MAP), ("2.0.0", BROKEN)] {
        let files = [
            ("values.yaml", "size: 1\n"),
            ("templates/map.yaml", template),
        ];
        let archive = std::fs::read(shelf.chart("web", version, &files)?)?;
        let file = stage.plugin.home().join(format!("web-{version}.tgz"));
        std::fs::write(&file, archive)?;
        versions.push(json!({
            "version": version, "defaultNamespace": stage.namespace,
            "template": {"method": "helm", "helm": {"mode": mode}},
            "source": {"url": {"manifest": file.display().to_string()}},
        }));
    }
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "mode"},
        "spec": {"addons": [{"name": stage.namespace, "versions": versions}]},
    });
    let file = stage.write("catalogue.json", &catalogue.to_string())?;
    Ok(file.display().to_string())
}

#[tokio::test]
async fn the_program_leaves_a_release_to_helm() -> Result<()> {
    let stage = Stage::new("mode").await?;
    let name = stage.namespace.as_str();
    let file = catalogue(&stage, "release")?;
    let helm = binaries::helm()?;
    let flags = format!("--helm-bin {} --yes --timeout 60s", helm.display());
    let map = format!("{name}-map");

    let line = format!("install {name}@1.0.0 --channel {file} --target-namespace {name} {flags}");
    let said = stage.run(&line).await?.done()?.stderr;
    let announced = format!("Release {name}/{name}: helm installs it");
    ensure!(said.contains(&announced), "{said}");
    let object = stage.get("configmap", &map).await?.unwrap_or_default();
    let data = json!({"size": "1", "version": "1.36.3"});
    ensure!(object["data"] == data, "{object}");
    let record = stage.record(name).await?;
    let status = &record["status"];
    let release = json!({"name": name, "namespace": name});
    ensure!(status["installed"]["helmRelease"] == release, "{status}");
    ensure!(
        status["inventory"].is_null() && status["operation"].is_null(),
        "{status}"
    );
    ensure!(status["phase"] == "Ready", "{status}");

    let line = format!("upgrade {name}@1.0.0 {flags}");
    let said = stage.run(&line).await?.done()?.stderr;
    ensure!(said.contains("nothing to do"), "{said}");
    let line = format!("upgrade {name}@1.1.0 --set size=5 {flags}");
    stage.run(&line).await?.done()?;
    let object = stage.get("configmap", &map).await?.unwrap_or_default();
    ensure!(object["data"]["size"] == "5", "{object}");
    let line = format!("status {name} --helm-bin {}", helm.display());
    let said = stage.run(&line).await?.done()?.stdout;
    let state = format!("Release {name}/{name}   Deployed, revision 2");
    ensure!(said.contains(&state), "{said}");

    // Helm's own words, and the record says that it failed; what ran still runs.
    let line = format!("upgrade {name} {flags}");
    let said = stage.run(&line).await?.ended(1)?.stderr;
    ensure!(said.contains("size is needed"), "{said}");
    let status = stage.record(name).await?["status"].clone();
    ensure!(status["phase"] == "Failed", "{status}");
    ensure!(status["installed"]["version"] == "1.1.0", "{status}");

    // It goes back as helm's next revision of what ran before.
    let said = stage
        .run(&format!("upgrade {name} --atomic {flags}"))
        .await?;
    let said = said.ended(1)?.stderr;
    let back = format!("{name} went back to 1.1.0");
    ensure!(said.contains(&back), "{said}");
    let object = stage.must("configmap", &map).await?;
    ensure!(object["data"]["size"] == "5", "{object}");
    let status = stage.record(name).await?["status"].clone();
    ensure!(status["phase"] == "Ready", "{status}");

    // Neither takes over what the other one made.
    catalogue(&stage, "objects")?;
    let line = format!("upgrade {name}@1.1.0 {flags}");
    let said = stage.run(&line).await?.ended(1)?.stderr;
    ensure!(said.contains("changed template.helm.mode"), "{said}");
    ensure!(stage.get("configmap", &map).await?.is_some());

    let line = format!("uninstall {name} {flags}");
    stage.run(&line).await?.done()?;
    ensure!(stage.get("configmap", &map).await?.is_none());
    ensure!(stage.get("ainst", name).await?.is_none());
    Ok(())
}
