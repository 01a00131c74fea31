//! What a catalogue says of signatures, at the site.

use addons_tests::servers::registry::front::{Fault, Front};
use addons_tests::servers::registry::signing::Cosign;
use serde_json::json;

use super::*;

/// Without its signature the chart is refused there as it would be here; what was an index's manifest has its hash.
#[tokio::test]
async fn a_site_goes_on_requiring_signatures() -> Result<()> {
    let stage = stage("airgap-signed").await?;
    let upstream = Upstream::start(&stage).await?;
    let cosign = Cosign::new()?;
    upstream.require(&stage, &cosign).await?;
    let archive = exported(&stage, &upstream, "web db").await?;
    drop(upstream);

    let site = Site::start().await?;
    let import = format!("import {} --registry {}", archive.display(), site.path());
    let install = stage.run(&import).await?.done()?.stdout;
    let unsigned = Front::start(Some(&site.registry), |seen| {
        let is_list = seen.path.contains("/charts/db/manifests/sha256-");
        is_list.then_some(Fault::Status(404))
    });
    let unsigned = unsigned.await?;
    let elsewhere = install.replace(&site.front.host, &unsigned.host);
    let said = stage.run(&offline(&stage, elsewhere.trim())).await?;
    let said = said.ended(1)?;
    ensure!(
        said.stderr.contains("is not signed") && said.stderr.contains("spec.signature"),
        "{}",
        said.stderr
    );
    ensure!(!stage.has("deployment", "db").await?);

    stage.run(&offline(&stage, install.trim())).await?.done()?;
    let record = stage.record("db").await?;
    let method = &record["status"]["installed"]["signature"]["method"];
    ensure!(*method == json!("key"), "{record}");
    ensure!(stage.has("deployment", "web").await?);
    Ok(())
}
