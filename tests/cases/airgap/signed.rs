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

/// What is verified is what the archive gets, also of a chart whose version was read before and has other content by now.
#[tokio::test]
async fn a_chart_that_was_moved_is_verified_again() -> Result<()> {
    let stage = stage("airgap-moved-chart").await?;
    let upstream = Upstream::start(&stage).await?;
    upstream.require(&stage, &Cosign::new()?).await?;
    let archive = exported(&stage, &upstream, "db").await?;
    fs::remove_file(&archive)?;
    upstream.push_other_chart("1.0.0").await?;
    let export = format!("export db {EXPORT} -o {}", archive.display());
    let said = stage.run(&upstream.at_home(&export)).await?.ended(1)?;
    ensure!(said.stderr.contains("is not signed"), "{}", said.stderr);
    ensure!(!archive.exists());
    Ok(())
}

/// A tag that is moved between the two has the archive made of something that no one looked at.
#[tokio::test]
async fn a_chart_that_moves_while_it_is_exported_is_an_error() -> Result<()> {
    let stage = stage("airgap-moving-chart").await?;
    let upstream = Upstream::start(&stage).await?;
    upstream.push_other_chart("other").await?;
    let other = upstream.registry.manifest("charts/db", "other").await?;
    let other = other.context("no other chart")?;
    let front = Front::start(Some(&upstream.registry), move |seen| {
        let is_tag = seen.path.ends_with("/charts/db/manifests/1.0.0");
        (is_tag && seen.before > 0).then(|| Fault::Bytes(other.clone()))
    });
    let front = front.await?;
    upstream.write(&stage, &front.host)?;
    let archive = stage.plugin.home().join("site.tar");
    let export = format!("export db {EXPORT} -o {}", archive.display());
    let said = stage.run(&upstream.at_home(&export)).await?.ended(1)?;
    let words = "/charts/db:1.0.0 was moved during the export: sha256:";
    ensure!(said.stderr.contains(words), "{}", said.stderr);
    ensure!(!archive.exists());
    Ok(())
}
