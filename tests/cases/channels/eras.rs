//! A cluster that kops 1.30 has set up, and the index that kops writes today: every entry without a version, other hashes.

use std::fs;
use std::path::Path;

use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use common::api::names::LABEL_OWNER;
use serde_json::Value;

use crate::main_job::many_addons::{copy, corpus, nodes};

/// What `needsPKI` makes.
fn authority(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}-ca, namespace: kube-system}}\ntype: kubernetes.io/tls\n\
         stringData: {{tls.crt: '', tls.key: ''}}\n---\n\
         apiVersion: cert-manager.io/v1\nkind: Issuer\nmetadata: {{name: {name}, namespace: kube-system}}\nspec: {{ca: \
         {{secretName: {name}-ca}}}}\n"
    )
}

/// What kops' own tool does: every object by server-side apply, then the annotation.
async fn set_up_by_kops(stage: &Stage, folder: &Path, channel: &str) -> Result<()> {
    let index = fs::read_to_string(folder.join("bootstrap-channel.yaml"))?;
    let index: Value = serde_saphyr::from_str(&index)?;
    let entries = index["spec"]["addons"].as_array().context("addons")?;
    // Custom resources of one add-on need the definitions of another: what fails at first succeeds in the next pass.
    for is_last in [false, true] {
        for entry in entries {
            let manifest = folder.join(entry["manifest"].as_str().context("manifest")?);
            if fs::read_to_string(&manifest)?.trim().is_empty() {
                continue;
            }
            let file = manifest.to_string_lossy();
            let args = [
                "apply",
                "--server-side",
                "--force-conflicts",
                "--field-manager=kops",
                "-f",
                &file,
            ];
            let applied = stage.plugin.kubectl(&args).await?;
            if is_last {
                applied.done()?;
            }
        }
    }
    for entry in entries {
        let text = |field: &str| entry[field].as_str().unwrap_or_default();
        let id = Some(text("id")).filter(|id| !id.is_empty());
        let id = id.map(|id| format!(r#""id":"{id}","#)).unwrap_or_default();
        if entry["needsPKI"] == true {
            let args = ["apply", "-f", "-"];
            let objects = authority(text("name"));
            stage
                .plugin
                .kubectl_with_input(&args, &objects)
                .await?
                .done()?;
        }
        let annotation = format!(
            r#"addons.k8s.io/{}={{"channel":"{channel}",{id}"manifestHash":"{}","systemGeneration":1}}"#,
            text("name"),
            text("manifestHash"),
        );
        let args = [
            "annotate",
            "namespace",
            "kube-system",
            "--overwrite",
            &annotation,
        ];
        stage.plugin.kubectl(&args).await?.done()?;
    }
    Ok(())
}

/// Objects of these kinds with the value of our label, as `Kind namespace/name value`.
async fn labels(stage: &Stage) -> Result<Vec<String>> {
    let kinds = "configmaps,serviceaccounts,services,deployments,daemonsets,poddisruptionbudgets";
    let label = LABEL_OWNER.replace('.', "\\.");
    let template = format!(
        "jsonpath={{range .items[*]}}{{.kind}} {{.metadata.name}} {{.metadata.labels.{label}}}{{\"\\n\"}}{{end}}"
    );
    let args = ["get", kinds, "-n", "kube-system", "-o", &template];
    let output = stage.plugin.kubectl(&args).await?.done()?;
    Ok(output.stdout.lines().map(str::to_owned).collect())
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: real add-ons of kops")]
async fn a_cluster_of_an_older_kops_is_upgraded_in_place() -> Result<()> {
    let mut tally = Tally::new("channels::eras");
    let Some((old, new)) = corpus(&mut tally) else {
        return Ok(());
    };
    // kube-system is of this test alone.
    let cluster = ControlPlane::start(Options::default()).await?;
    let stage = Stage::on(cluster, "kops-eras").await?;
    nodes(&stage.cluster, &stage.plugin).await?;
    let (from, to) = (
        stage.plugin.home().join("old"),
        stage.plugin.home().join("new"),
    );
    copy(&old, &from, &mut tally)?;
    let names = copy(&new, &to, &mut tally)?;
    let channel = format!("file://{}", to.join("bootstrap-channel.yaml").display());
    set_up_by_kops(&stage, &from, &channel).await?;
    let before = stage
        .plugin
        .kubectl(&["get", "deployments", "-n", "kube-system", "-o", "name"])
        .await?
        .done()?;
    ensure!(before.stdout.lines().count() > 5, "{}", before.stdout);

    // What kops has installed is installed: of the older index nothing is due.
    let same = format!("file://{}", from.join("bootstrap-channel.yaml").display());
    let shown = stage.run(&format!("channel apply {same}")).await?.done()?;
    ensure!(
        shown.stderr.contains("No update required"),
        "{}",
        shown.stderr
    );

    let apply = format!("channel apply {channel} --yes --timeout 60s");
    let done = stage.run(&apply).await?.done()?;
    let after = stage
        .plugin
        .kubectl(&["get", "deployments", "-n", "kube-system", "-o", "name"])
        .await?
        .done()?;
    ensure!(
        after.stdout == before.stdout,
        "{}\n{}",
        before.stdout,
        after.stdout
    );
    let owned = labels(&stage).await?;
    let strangers: Vec<&String> = owned
        .iter()
        .filter(|line| line.split(' ').nth(2).unwrap_or_default().is_empty())
        .filter(|line| {
            // What Kubernetes itself has in kube-system.
            ![
                "kube-root-ca.crt",
                "extension-apiserver-authentication",
                "ServiceAccount ",
                "kube-apiserver-legacy-service-account-token-tracking",
            ]
            .iter()
            .any(|known| line.contains(known))
        })
        .collect();
    ensure!(strangers.is_empty(), "{strangers:?}\n{}", done.stderr);
    let again = stage.run(&apply).await?.done()?;
    ensure!(
        again.stderr.contains("No update required"),
        "{}",
        again.stderr
    );
    for _ in names {
        tally.ran();
    }
    Ok(())
}
