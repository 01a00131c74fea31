//! The network policy, as the page of the webhook says to install it.

use addons_tests::scene::Scene;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::reconcile::deployed::relative;

const PAGE: &str = include_str!("../../../webhook/README.md");
const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy");

#[tokio::test]
async fn the_api_server_takes_the_policy_of_the_page() -> Result<()> {
    let (user, _) = Scene::get().await?.user("network", &[])?;
    let begin = "cat > overlay/kustomization.yaml <<EOF\n";
    let (_, overlay) = PAGE.split_once(begin).context("no overlay on the page")?;
    let (overlay, _) = overlay.split_once("EOF").context("no end")?;
    let folder = user.home().join("overlay");
    std::fs::create_dir(&folder)?;
    let overlay = overlay.replace("../deploy", &relative(DEPLOY, &folder)?);
    std::fs::write(folder.join("kustomization.yaml"), overlay)?;
    let folder = folder.display().to_string();
    let built = user.kubectl(&["kustomize", &folder]).await?.done()?.stdout;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&built)?;
    let policy = objects
        .iter()
        .find(|object| object["kind"] == "NetworkPolicy")
        .with_context(|| built.clone())?;
    let admitted = &policy["spec"]["ingress"][0]["from"];
    ensure!(admitted[0]["ipBlock"]["cidr"] == "10.0.0.0/24", "{policy}");
    let create = ["create", "-f", "-", "--dry-run=server"];
    user.kubectl_with_input(&create, &policy.to_string())
        .await?
        .done()?;
    Ok(())
}
