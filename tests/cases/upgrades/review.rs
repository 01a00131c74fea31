//! The review of a real upgrade fits on a screen, and its page into a pull request.

use addons_tests::lifecycle::go_module;
use addons_tests::stage::Stage;
use anyhow::{Context as _, Result, ensure};

const MODULE: &str = "github.com/argoproj/argo-rollouts";
/// The rows of a terminal.
const ROWS: usize = 40;

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: fetches two releases of Argo Rollouts")]
async fn argo_rollouts_is_reviewed_on_one_screen() -> Result<()> {
    let stage = Stage::on(super::cluster().await?, "review").await?;
    let manifest = |version: &str| -> Result<String> {
        let path = go_module(MODULE, version)?.join("manifests/install.yaml");
        std::fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let (old, new) = (manifest("v1.6.6")?, manifest("v1.9.0")?);
    let index = stage.index(
        "rollouts/index.yaml",
        &[
            ("argo-rollouts", "1.6.6", &old),
            ("argo-rollouts", "1.9.0", &new),
        ],
    )?;
    let namespace = &stage.namespace;
    let of = format!("-n {namespace} --channel {index}");
    let line = format!("install argo-rollouts@1.6.6 --wait=false --yes {of}");
    stage.run(&line).await?.done()?;
    let established = ["wait", "--for=condition=established", "crd", "--all"];
    stage.kubectl(&established).await?.done()?;

    let diff = format!("diff argo-rollouts {of}");
    let shown = stage.run(&diff).await?.ended(1)?.stdout;
    ensure!(shown.lines().count() <= ROWS, "{shown}");
    for said in [
        // What the role gains was read off the two manifests.
        "~ ClusterRole argo-rollouts\n    gains get, update, watch on traefikservices.traefik.io",
        "spec.strategy.type                             Recreate → RollingUpdate",
        "~ CustomResourceDefinition rollouts.argoproj.io\n",
        "no live object is affected",
        "  marks     ",
    ] {
        ensure!(shown.contains(said), "{said:?} is not in\n{shown}");
    }
    ensure!(!shown.contains("warning"), "{shown}");
    let full = stage.run(&format!("{diff} --full")).await?.ended(1)?.stdout;
    ensure!(full.lines().count() > 500 && full.contains("spec.strategy.type"));

    // The confirmation decides by the same review.
    let upgrade = format!("upgrade argo-rollouts --dry-run=server {of}");
    let confirmed = stage.run(&upgrade).await?;
    let confirmed = format!("{}{}", confirmed.stdout, confirmed.stderr);
    ensure!(confirmed.lines().count() <= ROWS, "{confirmed}");
    for said in [
        "  rights    ClusterRole argo-rollouts  gains get, update, watch on traefikservices.traefik.io",
        "/Deployment argo-rollouts  + strategy.rollingUpdate, strategy.type Recreate → RollingUpdate",
        "  schemas   5 definitions  ",
        "no live object is affected",
    ] {
        ensure!(confirmed.contains(said), "{said:?} is not in\n{confirmed}");
    }

    let page = stage
        .run(&format!("{diff} -o html"))
        .await?
        .ended(1)?
        .stdout;
    ensure!(page.len() <= 100_000, "{} bytes", page.len());
    let at = |text: &str| page.find(text).with_context(|| text.to_owned());
    ensure!(at("<svg")? < at(">Objects<")? && at("<td>rights</td>")? < at("<svg")?);
    let text = stage
        .run(&format!("{diff} -o markdown"))
        .await?
        .ended(1)?
        .stdout;
    // The limit of a comment on GitHub.
    ensure!(text.chars().count() <= 65_536, "{} bytes", text.len());
    ensure!(text.contains("```diff") && text.contains("kubectl addons diff argo-rollouts"));
    Ok(())
}
