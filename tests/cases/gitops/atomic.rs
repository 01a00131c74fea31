//! An upgrade that could not go back, because Git has the record, is not begun (semantics 12).

use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{WAYS, apply, catalogue, minimal};

/// The catalogue with the first of its versions alone.
fn first(stage: &Stage) -> Value {
    let mut catalogue = catalogue(stage);
    let versions = &mut catalogue["spec"]["addons"][0]["versions"];
    *versions = json!([versions[0].clone()]);
    catalogue
}

async fn installed(stage: &Stage, name: &str) -> Result<Value> {
    Ok(stage.record(name).await?["status"]["installed"]["version"].clone())
}

#[tokio::test]
async fn what_could_not_go_back_is_not_begun() -> Result<()> {
    let stage = Stage::alone("git-atomic").await?;
    let mut tally = Tally::new("gitops::atomic");
    apply(&stage, &first(&stage), &[]).await?;
    for way in WAYS {
        let name = format!("web-{}", way.name);
        apply(&stage, &minimal(&name), way.flags).await?;
        let upgrade = format!("upgrade {name} --yes");
        stage.run(&upgrade).await?.done()?;
    }
    apply(&stage, &catalogue(&stage), &[]).await?;
    for way in WAYS {
        let name = format!("web-{}", way.name);
        let line = format!("upgrade {name} --atomic");
        let told = "if it fails, it goes back to 1.0.0";
        if way.name == "kubectl" {
            // People write by kubectl, and by this plugin.
            let said = stage.run(&format!("{line} --yes")).await?.done()?;
            ensure!(said.stderr.contains(told), "{}", said.stderr);
            tally.ran();
            continue;
        }
        for mode in ["--dry-run", "--yes"] {
            let mark = stage.cluster.audit().mark()?;
            let said = stage.run(&format!("{line} {mode}")).await?.ended(4)?.stderr;
            for text in ["spec.addonRef.version", "use --force"] {
                ensure!(said.contains(text), "{way:?} {mode}: {text:?}: {said}");
            }
            ensure!(!said.contains(told), "{way:?} {mode}: {said}");
            let requests = stage.requests(mark)?;
            ensure!(requests.writes("kubectl-addons") == 0, "{requests:?}");
            tally.ran();
        }
        ensure!(installed(&stage, &name).await? == "1.0.0");
        let said = stage.run(&format!("{line} --force --yes")).await?.done()?;
        ensure!(said.stderr.contains(told), "{}", said.stderr);
        ensure!(installed(&stage, &name).await? == "1.1.0");
        tally.ran();
    }
    Ok(())
}
