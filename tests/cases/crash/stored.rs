//! A client that dies while objects are written again because a definition drops their stored version (trust 23).

use addons_tests::chaos::matrix;
use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use anyhow::{Context as _, Result, ensure};

use crate::trust::stored::{brought, ended, line, plural, policies, revision};

/// A request of the migration.
#[derive(Clone, Copy, Debug)]
enum At {
    /// The transitional definition.
    Begin,
    /// This object is written again.
    Object(usize),
    /// The version leaves the status.
    Leave,
    /// The last definition.
    End,
}

impl At {
    fn fault(self, stop: Action) -> Fault {
        match self {
            Self::Begin => Fault::at(1, stop)
                .method("PATCH")
                .path("/policies.")
                .writes(),
            Self::Object(number) => Fault::at(number, stop).method("PUT").path("/policies/"),
            Self::Leave => Fault::at(1, stop).method("PATCH").path("/status").writes(),
            // Behind the first one and the status.
            Self::End => Fault::at(3, stop)
                .method("PATCH")
                .path("/policies.")
                .writes(),
        }
    }
}

/// Each step before and behind it. What was accepted once is continued without being accepted again.
#[tokio::test]
async fn every_step_of_a_migration_is_continued() -> Result<()> {
    let steps = [At::Begin, At::Object(1), At::Object(2), At::Leave, At::End];
    let deaths: Vec<(At, bool)> = steps
        .into_iter()
        .flat_map(|at| [(at, false), (at, true)])
        .collect();
    let name = "crash::every_step_of_a_migration_is_continued";
    matrix::run(name, deaths, async |&(at, delivered)| {
        let rig = Rig::new("crash-stored").await?;
        let stage = &rig.stage;
        brought(stage, &[&["v1alpha1"]]).await?;
        policies(stage, "v1alpha1", &["a", "b"]).await?;
        let line = line(stage, "2.0.0", &["v1"])?;
        let accepted = format!("{line} --migrate-stored-versions --yes --concurrency 1");
        let stop = at.fault(Action::Stop { delivered });
        let is_stopped = rig.run_until(&accepted, stop).await?;
        ensure!(is_stopped, "it was not stopped");
        let again = match (at, delivered) {
            // Nothing in the cluster says yet that it was accepted.
            (At::Begin, false) => format!("{accepted} --steal-lock"),
            _ => format!("{line} --yes --steal-lock"),
        };
        stage.run(&again).await?.done()?;
        for name in ["a", "b"] {
            revision(stage, name).await?;
        }
        ended(stage, &line).await.context("the end")?;
        let definition = ["delete", "customresourcedefinition", &plural(stage)];
        stage.kubectl(&definition).await?;
        Ok(is_stopped)
    })
    .await
}
