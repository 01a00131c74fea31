//! What helm installed.

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, deployment};
use anyhow::{Result, ensure};
use serde_json::json;

use super::{managers, pods, ready};

/// A chart with a password of its own making, and a value that the next version drops.
fn templates(is_dropped: bool) -> [(&'static str, String); 2] {
    let web = deployment("web", 2, None);
    let dropped = if is_dropped { "" } else { ", dropped: 'yes'" };
    let rest = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{key: '1'{dropped}}}\n---\n\
         apiVersion: v1\nkind: Secret\nmetadata: {{name: db}}\nstringData: {{password: {{{{ randAlphaNum 20 }}}}}}\n"
    );
    [("templates/web.yaml", web), ("templates/rest.yaml", rest)]
}

#[tokio::test]
async fn a_release_is_adopted_object_by_object() -> Result<()> {
    let stage = Stage::new("adopt-helm").await?;
    let namespace = stage.namespace.as_str();
    let shelf = Shelf::new()?;
    let chart = |version: &str, is_dropped| {
        let files = templates(is_dropped);
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
        shelf.chart("web", version, &files)
    };
    let (old, new) = (chart("1.0.0", false)?, chart("1.1.0", true)?);
    let old = old.to_string_lossy().into_owned();
    let helm = binaries::helm()?;
    let kubeconfig = stage.plugin.kubeconfig().to_string_lossy().into_owned();
    let flags = ["--namespace", namespace, "--kubeconfig", &kubeconfig];
    let install = [&["install", "web", &old], &flags[..]].concat();
    stage.plugin.program(&helm, &install).await?.done()?;
    ready(&stage).await?;
    let before = pods(&stage).await?;
    let password = stage.must("secret", "db").await?["data"].clone();
    let version = json!({"version": "1.1.0", "template": {"method": "helm"}, "source": {"url": {"manifest": new}}});
    let file = stage.catalogue("web", &version)?;
    let flags = format!("--channel {} --helm-bin {}", file.display(), helm.display());

    let said = stage.run(&format!("install web {flags} --yes")).await?;
    let said = said.ended(4)?.stderr;
    ensure!(
        said.contains(&format!("belongs to Helm release {namespace}/web")),
        "{said}"
    );
    let said = stage
        .run(&format!("install web {flags} --yes --adopt"))
        .await?;
    let said = said.done()?.stderr;
    for words in [
        "3 adopted",
        &format!("{namespace}/ConfigMap settings (from Helm release {namespace}/web)"),
        "generated values stay as they are",
    ] {
        ensure!(said.contains(words), "{words}: {said}");
    }
    ready(&stage).await?;
    ensure!(before == pods(&stage).await?, "other pods");
    let secret = stage.must("secret", "db").await?;
    ensure!(secret["data"] == password, "another password");
    let map = stage.must("configmap", "settings").await?;
    ensure!(map["data"] == json!({"key": "1"}), "{map}");
    let metadata = &map["metadata"];
    ensure!(
        metadata["annotations"]["meta.helm.sh/release-name"].is_null(),
        "{metadata}"
    );
    let left = managers(&stage, "configmap", "settings").await?;
    ensure!(left.len() == 1 && !left.contains("helm"), "{left:?}");
    stage.run("uninstall web --yes").await?.done()?;
    ensure!(!stage.has("configmap", "settings").await?, "it stays");
    Ok(())
}
