//! What a tool applies from Git is not edited besides it, unless that is asked for (semantics 12).

use addons_tests::control_plane::audit::Mark;
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{WAYS, Way, apply, catalogue};

/// The object of the tool that the marks of an installation name.
fn marks(way: Way) -> (Value, &'static str) {
    match way.name {
        "flux" => (
            json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux"}}),
            "Flux Kustomization flux/apps",
        ),
        _ => (
            json!({"annotations": {"argocd.argoproj.io/tracking-id": "shop:kubectl-addons.dev/AddonInstallation:x/web"}}),
            "Argo CD application shop",
        ),
    }
}

/// An installation in version 1.0.0, as Git has it.
fn pinned(name: &str, marks: &Value) -> Value {
    let mut metadata = marks.clone();
    metadata["name"] = json!(name);
    json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation", "metadata": metadata,
        "spec": {"addonRef": {"name": "web", "version": "1.0.0"}, "values": {"name": name, "host": "a"}},
    })
}

async fn writes(stage: &Stage, since: Mark) -> Result<usize> {
    Ok(stage.requests(since)?.writes("kubectl-addons"))
}

#[tokio::test]
async fn what_git_sets_is_changed_there_or_by_force() -> Result<()> {
    let stage = Stage::alone("refused").await?;
    let mut tally = Tally::new("gitops::refused");
    apply(&stage, &catalogue(&stage), &[]).await?;
    for way in WAYS {
        let name = format!("web-{}", way.name);
        let (marks, by) = marks(way);
        let object = pinned(&name, &marks);
        apply(&stage, &object, way.flags).await?;
        // What the record asks for already is not an edit, however it is spelled, with defaults filled in or without.
        for line in [
            "reconcile NAME",
            "upgrade NAME@1.0.0 --yes",
            "upgrade NAME@v1 --set host=a --yes",
        ] {
            stage.run(&line.replace("NAME", &name)).await?.done()?;
            tally.ran();
        }
        let edits = [
            (
                format!("upgrade {name}"),
                "undo the change of spec.addonRef.version",
            ),
            (
                format!("upgrade {name}@1.1.0"),
                "undo the change of spec.addonRef.version",
            ),
            (
                format!("upgrade {name}@1.0.0 --set host=b"),
                "undo the change of spec.values.host",
            ),
            (
                format!("upgrade {name}@1.0.0 --set other=b"),
                "Git does not set spec.values.other",
            ),
            (
                format!("upgrade {name}@1.0.0 --conflicts yield"),
                "Git does not set spec.conflicts",
            ),
            (
                format!("install web@1.1.0 --name {name}"),
                "undo the change of spec.addonRef.version",
            ),
            (
                format!("plan {name}@1.1.0 -o plan.json"),
                "undo the change of spec.addonRef.version",
            ),
            (format!("uninstall {name}"), "would create it again"),
            (format!("uninstall {name} --keep"), "would create it again"),
            (format!("adopt {name} --release"), "would create it again"),
        ];
        for (line, words) in &edits {
            let mark = stage.cluster.audit().mark()?;
            let yes = if line.starts_with("plan") {
                ""
            } else {
                " --yes"
            };
            let said = stage.run(&format!("{line}{yes}")).await?;
            if way.name == "kubectl" {
                // People write by kubectl, and by this plugin.
                break;
            }
            let (code, text) = (said.code, said.stderr);
            ensure!(
                code == 4 && text.contains(words) && text.contains(by),
                "{line}: {code} {text}"
            );
            ensure!(text.contains("use --force"), "{line}: {text}");
            ensure!(writes(&stage, mark).await? == 0, "{line}: it wrote");
            tally.ran();
        }
        let said = stage.run(&format!("diff {name}@1.1.0")).await?;
        ensure!(said.code < 2, "diff changes nothing: {}", said.stderr);
        forced(&stage, &name, way, &object).await?;
        tally.ran();
    }
    Ok(())
}

/// `--force` edits; the next sync undoes it, and what Git asks for is installed again.
async fn forced(stage: &Stage, name: &str, way: Way, object: &Value) -> Result<()> {
    let upgrade = format!("upgrade {name}@1.1.0 --set host=b --force --yes");
    stage.run(&upgrade).await?.done()?;
    let map = stage.must("configmap", name).await?;
    ensure!(
        map["data"]["host"] == "b" && map["data"]["level"] == "high",
        "{map}"
    );
    // As Argo CD and Flux do, which take every field back.
    let force: &[&str] = match way.flags.contains(&"--server-side") {
        true => &["--force-conflicts"],
        false => &[],
    };
    apply(stage, object, &[way.flags, force].concat()).await?;
    let spec = stage.record(name).await?["spec"].clone();
    ensure!(
        spec["addonRef"]["version"] == "1.0.0" && spec["values"]["host"] == "a",
        "{spec}"
    );
    let upgrade = format!("upgrade {name}@1.0.0 --allow-downgrade --yes");
    stage.run(&upgrade).await?.done()?;
    let map = stage.must("configmap", name).await?;
    ensure!(
        map["data"]["host"] == "a" && map["data"]["level"] == "low",
        "{map}"
    );
    stage
        .run(&format!("uninstall {name} --force --yes"))
        .await?
        .done()?;
    ensure!(!stage.has("addoninstallation", name).await?, "it is there");
    Ok(())
}
