//! Requests follow the change, not the size of the set.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};

fn set(count: usize, changed: &str) -> String {
    (0..count)
        .map(|i| {
            config_map(
                &format!("object-{i}"),
                if i == 7 { changed } else { "same" },
            )
        })
        .collect()
}

#[tokio::test]
async fn one_changed_object_is_one_patch() -> Result<()> {
    let stage = Stage::new("requests").await?;
    let index = stage.index("index.yaml", &[("set", "1.0.0", &set(60, "before"))])?;
    // The first command on a cluster writes the definitions as well.
    stage.run("init").await?.done()?;
    let mark = stage.cluster.audit().mark()?;
    stage
        .run(&format!("install set --channel {index} --yes"))
        .await?
        .done()?;
    let requests = stage.requests(mark)?;
    // For each object one dry run, and the apply.
    ensure!(
        requests.count("patch", "kubectl-addons") == 120,
        "{:?}",
        requests.by_verb("kubectl-addons")
    );
    ensure!(
        requests.total("kubectl-addons") <= 120 + 15,
        "{:?}",
        requests.by_verb("kubectl-addons")
    );

    stage.index("index.yaml", &[("set", "1.0.1", &set(60, "after"))])?;
    let mark = stage.cluster.audit().mark()?;
    stage
        .run(&format!(
            "upgrade set -n {} --channel {index} --yes",
            stage.namespace
        ))
        .await?
        .done()?;
    let requests = stage.requests(mark)?;
    // One dry run, for which the object is read, and the apply. Of all requests two keep the revision: which numbers are taken, and the
    // new one. One asks who the client is, for the history.
    ensure!(
        requests.count("patch", "kubectl-addons") == 2,
        "{:?}",
        requests.by_verb("kubectl-addons")
    );
    ensure!(
        requests.total("kubectl-addons") <= 15,
        "{:?}",
        requests.by_verb("kubectl-addons")
    );
    Ok(())
}
