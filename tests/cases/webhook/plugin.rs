//! The plugin says what the webhook says, in the same words, before it writes anything: so nothing differs where none is
//! installed (semantics 10).

use addons_tests::control_plane::unique;
use addons_tests::plugin::Plugin;
use addons_tests::scene::{DENIED, Scene, catalogue, installation, version, with_form};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use common::api::names::SYSTEM_NAMESPACE;
use serde_json::{Value, json};

#[tokio::test]
async fn the_plugin_refuses_in_the_webhooks_words() -> Result<()> {
    let mut tally = Tally::new("webhook::plugin");
    let scene = Scene::get().await?;
    let (user, name) = scene.user("parity", &[])?;
    let source = unique("parity");
    let (form, plain) = (unique("parity-form"), unique("parity-plain"));
    scene
        .source(
            &source,
            json!([
                {"name": plain, "versions": [version("1.0.0", json!({}))]},
                {"name": form, "versions": [with_form("1.0.0")]},
            ]),
        )
        .await?;
    let one = |addon: &str, versions: Value| json!([{"name": addon, "versions": versions}]);
    let broken = json!({"template": {"method": "go-template", "formSpec": [{"internalName": "a", "type": "boolean", "default": 1}]}});
    let broken_range = json!({"constraints": {"k8sVersion": ">=1.30 <"}});
    let catalogues = [
        one(
            "inside",
            json!([version("1.0.0", json!({})), version("v1.0.0", json!({}))]),
        ),
        one(&plain, json!([version("v1", json!({}))])),
        one("form", json!([version("1.0.0", broken)])),
        one(
            &plain,
            json!([version("2.0.0", broken_range), version("v1", json!({}))]),
        ),
    ];
    refused_catalogues(scene, &user, &name, &catalogues, &mut tally).await?;

    let values = json!({"spec": {"replicas": "many", "host": "a"}});
    let object = installation(
        &form,
        SYSTEM_NAMESPACE,
        json!({"addonRef": {"name": form}, "values": values}),
    );
    let (_, message, _) = scene.refusal(&user, &object).await?;
    let words = message.strip_prefix(DENIED).context(message.clone())?;
    let install = [
        "install",
        &form,
        "--set",
        "spec.replicas=many",
        "--set",
        "spec.host=a",
        "--yes",
    ];
    let said = user.run(&install).await?.ended(6)?;
    ensure!(said.stderr.contains(words), "{words}\n{}", said.stderr);
    tally.ran();

    // An add-on that is not there has no object to judge: the same words without the field.
    let wrong = format!("{plain}x");
    let object = installation(
        &wrong,
        SYSTEM_NAMESPACE,
        json!({"addonRef": {"name": wrong}}),
    );
    let (_, message, _) = scene.refusal(&user, &object).await?;
    let words = message
        .strip_prefix(&format!("{DENIED}spec.addonRef.name: "))
        .context(message.clone())?;
    let said = user.run(&["install", &wrong, "--yes"]).await?.ended(1)?;
    ensure!(said.stderr.contains(words), "{words}\n{}", said.stderr);
    tally.ran();
    Ok(())
}

/// The webhook denies each of them, and the plugin in the same words before it writes anything.
async fn refused_catalogues(
    scene: &Scene,
    user: &Plugin,
    name: &str,
    catalogues: &[Value],
    tally: &mut Tally,
) -> Result<()> {
    for addons in catalogues {
        let object = catalogue(&unique("parity"), SYSTEM_NAMESPACE, addons.clone());
        let (_, message, _) = scene.refusal(user, &object).await?;
        let words = message.strip_prefix(DENIED).context(message.clone())?;
        std::fs::write(user.home().join("catalogue.json"), object.to_string())?;
        let mark = scene.cluster.audit().mark()?;
        let said = user
            .run(&["catalogue", "add", "catalogue.json"])
            .await?
            .ended(6)?;
        ensure!(said.stderr.contains(words), "{words}\n{}", said.stderr);
        let writes = scene.cluster.audit().since(mark)?.by(name).writes("");
        ensure!(writes == 0, "{writes} writes before the refusal");
        tally.ran();
    }
    Ok(())
}
