//! A private registry: with one setting, nothing but the mirror is asked.

use addons_tests::servers::registry::{Door, Layer, Registry, tar};
use addons_tests::stage::{Stage, deployment};
use anyhow::{Result, ensure};
use serde_json::json;

const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
const IMAGE_CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// `spec.registry` of a catalogue moves the image of a source and every image of its objects. The registries that the catalogue and
/// the manifest name do not exist.
#[tokio::test]
async fn a_run_needs_the_mirror_alone() -> Result<()> {
    let stage = Stage::new("mirrored").await?;
    stage.run("init").await?.done()?;
    let registry = Registry::start(Door::Open).await?;
    let layer = Layer {
        media_type: TAR,
        bytes: tar(&[("web.yaml", deployment("web", 1, None))])?,
        title: None,
    };
    registry
        .push("mirror/team/web", "1.0.0", IMAGE_CONFIG, &[layer])
        .await?;
    let image = "quay.invalid/team/web:1.0.0";
    let source = json!({"docker": {"image": image, "path": "web.yaml", "plainHTTP": true}});
    let version = json!({"version": "1.0.0", "source": source});
    let file = stage.catalogue("web", &version)?;
    let add = format!("catalogue add {}", file.display());
    stage.run(&add).await?.done()?;
    let mirror = format!("{}/mirror", registry.host);
    let setting = json!({"spec": {"registry": mirror}});
    stage.patch("addoncatalogue", "web", &setting).await?;

    let said = stage.run("images web -o name").await?.done()?;
    ensure!(said.stdout.trim_end().ends_with("/web:1"), "{said:?}");
    stage.run("install web -y").await?.done()?;
    let web = stage.must("deployment", "web").await?;
    let image = &web["spec"]["template"]["spec"]["containers"][0]["image"];
    ensure!(
        image.as_str().is_some_and(|it| it.starts_with(&mirror)),
        "{web}"
    );
    Ok(())
}

/// A mirror that moves is rolled out by the next upgrade, and `diff` does not take the difference for edits.
#[tokio::test]
async fn another_mirror_is_rolled_out() -> Result<()> {
    let stage = Stage::new("another-mirror").await?;
    stage.run("init").await?.done()?;
    let manifest = deployment("web", 1, None);
    let inline = json!({"inline": {"manifest": manifest}});
    let version = json!({"version": "1.0.0", "source": inline});
    let file = stage.catalogue("web", &version)?;
    let add = format!("catalogue add {}", file.display());
    stage.run(&add).await?.done()?;
    stage.run("install web -y").await?.done()?;
    for (registry, expected) in [
        (json!("one.test/site"), "one.test/site/web:1"),
        (json!("two.test"), "two.test/web:1"),
        (json!(null), "example.test/web:1"),
    ] {
        let setting = json!({"spec": {"registry": registry}});
        stage.patch("addoncatalogue", "web", &setting).await?;
        let outdated = stage.run("list --outdated").await?.done()?.stdout;
        ensure!(
            outdated.contains("1.0.0 (changed)"),
            "{expected}: {outdated}"
        );
        let diff = stage.run("diff web").await?.ended(1)?;
        let said = format!("{}{}", diff.stdout, diff.stderr);
        ensure!(said.contains("image"), "{expected}: {said}");
        ensure!(!said.contains("other clients"), "{expected}: {said}");
        stage.run("upgrade web -y").await?.done()?;
        let web = stage.must("deployment", "web").await?;
        let image = &web["spec"]["template"]["spec"]["containers"][0]["image"];
        ensure!(*image == expected, "{expected}: {web}");
        let recorded = &stage.record("web").await?["status"]["installed"]["registry"];
        ensure!(*recorded == registry, "{recorded}");
        let again = stage.run("upgrade web -y").await?.done()?;
        ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    }
    Ok(())
}
