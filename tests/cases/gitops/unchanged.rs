//! What lies in Git shows no difference after it was installed, and applying it again changes nothing.

use addons_tests::chaos::seed::choose;
use addons_tests::running::Running;
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{WAYS, Way, apply, catalogue, full, minimal, secret, spelled, webhook};

/// Both ways to compare, whatever it was applied with.
const COMPARED: [&[&str]; 2] = [
    &[],
    &["--server-side", "--field-manager=kustomize-controller"],
];

#[tokio::test]
async fn what_lies_in_git_shows_no_difference() -> Result<()> {
    let stage = Stage::alone("in-git").await?;
    let mut tally = Tally::new("gitops::unchanged");
    for way in WAYS {
        let catalogue = catalogue(&stage);
        apply(&stage, &catalogue, way.flags).await?;
        is_as_in_git(&stage, &catalogue, way)
            .await
            .with_context(|| way.name)?;
        tally.ran();
    }
    secret(&stage).await?;
    let mut installed = Vec::new();
    for judged in [false, true] {
        let _webhook = match judged {
            true => Some(webhook(&stage).await?),
            false => None,
        };
        for way in WAYS {
            for object in objects(&stage, &format!("{}-{judged}", way.name)) {
                apply(&stage, &object, way.flags).await?;
                let name = name(&object);
                let upgrade = format!("upgrade {name} --yes");
                stage.run(&upgrade).await?.done().context(name.to_owned())?;
                is_as_in_git(&stage, &object, way)
                    .await
                    .with_context(|| format!("{name} after upgrade"))?;
                tally.ran();
                installed.push((object, way));
            }
        }
        let process = Running::reconcile(&stage, &[])?;
        process.says("leads").await?;
        for way in WAYS {
            for object in objects(&stage, &format!("loop-{}-{judged}", way.name)) {
                apply(&stage, &object, way.flags).await?;
                installed.push((object, way));
            }
        }
        for (object, way) in &installed {
            let name = name(object);
            is_reconciled(&stage, name).await?;
            is_as_in_git(&stage, object, *way)
                .await
                .with_context(|| format!("{name} in the loop"))?;
            tally.ran();
        }
    }
    Ok(())
}

/// What people write; one of them for each way without `FULL=1`.
fn objects(stage: &Stage, name: &str) -> Vec<Value> {
    let all = vec![
        minimal(&format!("minimal-{name}")),
        spelled(&format!("spelled-{name}")),
        full(stage, &format!("full-{name}")),
    ];
    choose(all, 1, name)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Waits until the loop has looked at it, and has nothing more to write.
async fn is_reconciled(stage: &Stage, name: &str) -> Result<()> {
    until(&format!("{name} is reconciled"), async || {
        let record = stage.record(name).await?;
        let (metadata, status) = (&record["metadata"], &record["status"]);
        let is_done = status["phase"] == "Ready"
            && status["operation"].is_null()
            && status["observedGeneration"] == metadata["generation"]
            && metadata["finalizers"].is_array();
        Ok(is_done.then_some(()).ok_or_else(|| record.to_string()))
    })
    .await
}

/// Compared with what is stored there is no difference, and another apply writes nothing.
async fn is_as_in_git(stage: &Stage, object: &Value, way: Way) -> Result<()> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let before = stage.must(kind, name(object)).await?;
    for flags in COMPARED {
        let args = [&["diff", "-f", "-", "-n", &stage.namespace][..], flags].concat();
        let text = object.to_string();
        let said = stage.plugin.kubectl_with_input(&args, &text).await?;
        ensure!(
            said.code == 0,
            "{flags:?}: {}{}\n{before}",
            said.stdout,
            said.stderr
        );
    }
    apply(stage, object, way.flags).await?;
    let after = stage.must(kind, name(object)).await?;
    ensure!(
        after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"],
        "it was written:\n{before}\n{after}"
    );
    Ok(())
}
