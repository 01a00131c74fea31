//! What was fetched with one credential is not shown to another.

use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::servers::charts::{Charts, Options};
use addons_tests::stage::Stage;
use anyhow::{Result, ensure};
use serde_json::json;

/// trust 6: another cluster has a Secret of the same name.
#[tokio::test]
async fn t06_a_secret_of_the_same_name_opens_nothing_of_another() -> Result<()> {
    let stage = Stage::new("credential").await?;
    stage.run("init").await?.done()?;
    let name = stage.namespace.as_str();
    let shelf = Shelf::new()?;
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: private}\n";
    shelf.chart("web", "1.0.0", &[("templates/a.yaml", template)])?;
    shelf.index(None)?;
    let options = Options {
        basic: Some(("reader", "right".to_owned())),
        ..Options::default()
    };
    let charts = Charts::serve(shelf.path(), &options)?;
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": name},
        "spec": {"addons": [{"name": name, "versions": [{
            "version": "1.0.0", "defaultNamespace": name, "template": {"method": "helm"},
            "source": {"helm": {"url": charts.url(), "chart": "web", "version": "1.0.0",
                "auth": {"secretRef": {"name": "reader"}}}},
        }]}]},
    });
    let file = stage.write("catalogue.json", &catalogue.to_string())?;
    stage
        .run(&format!("catalogue add {}", file.display()))
        .await?
        .done()?;
    let helm = addons_tests::control_plane::binaries::helm()?;
    let render = format!("render {name} --helm-bin {}", helm.display());
    for (password, code) in [("right", 0), ("wrong", 1), ("right", 0)] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth",
            "metadata": {"name": "reader", "annotations": {"kubectl-addons.dev/allowed-hosts": charts.host()}},
            "stringData": {"username": "reader", "password": password}});
        stage.apply(&secret.to_string()).await?;
        let said = stage.run(&render).await?.ended(code)?;
        let is_shown = said.stdout.contains("private");
        ensure!(
            is_shown == (code == 0),
            "{password}: {}{}",
            said.stdout,
            said.stderr
        );
    }
    // The first one is still in the cache.
    ensure!(
        charts
            .seen()
            .iter()
            .filter(|seen| seen.status.starts_with("200"))
            .count()
            == 2
    );
    Ok(())
}
