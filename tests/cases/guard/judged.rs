//! What policies of administrators judge cannot be changed from the side, and whoever wrote a record is known when it is carried out
//! (semantics 19). The labels of namespaces, and the annotation without the webhook, are in the table of `bypass`.

use addons_tests::control_plane::{ControlPlane, definitions, unique};
use addons_tests::plugin::{Output, Plugin};
use addons_tests::scene::{Scene, create, installation, stored, version, with_form};
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use common::api::names::{
    ANNOTATION_WRITTEN_BY, API_VERSION, LABEL_KUBECONFIG_SECRET, LABEL_NAMESPACE_NAME,
    SYSTEM_NAMESPACE,
};
use serde_json::{Value, json};

/// The lines of the annotation that says who wrote a record.
fn writer(record: &Value) -> Result<Vec<String>> {
    let text = record["metadata"]["annotations"][ANNOTATION_WRITTEN_BY].as_str();
    let text = text.with_context(|| format!("no one wrote it: {record}"))?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": "AddonPolicy", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn g07_the_loop_asks_who_wrote_what_it_carries_out() -> Result<()> {
    let cluster = definitions::on(ControlPlane::alone_api_only().await?).await?;
    let stage = Stage::on(cluster, "judged-writers").await?;
    let own = &stage.namespace;
    stage.run("init").await?.done()?;
    for name in ["web", "own"] {
        let source = json!({"inline": {"manifest": config_map(name, "1")}});
        let file = stage.catalogue(name, &json!({"version": "1.0.0", "source": source}))?;
        let add = format!("catalogue add {}", file.display());
        stage.run(&add).await?.done()?;
    }
    let installers = json!({"users": [own], "groups": ["ops"]});
    let spec = json!({"action": "Enforce", "installers": installers});
    stage.apply(&policy("writers", &spec).to_string()).await?;

    let spec = json!({"addonRef": {"name": "web"}, "targetNamespace": own});
    let record = installation("web", own, spec);
    stage.apply(&record.to_string()).await?;
    let named = async |text: &str| {
        let annotations = json!({ANNOTATION_WRITTEN_BY: text});
        let patch = json!({"metadata": {"annotations": annotations}});
        stage.patch("addoninstallation", "web", &patch).await
    };
    let of = "is not allowed by AddonPolicy writers (spec.installers)";
    for (text, words) in [
        (None, "an unknown writer"),
        (Some("jane\ndevs"), "as jane"),
        (Some("ops"), "as ops"),
    ] {
        if let Some(text) = text {
            named(text).await?;
        }
        stage.run("reconcile").await?.ended(6)?;
        let stalled = stage.condition("web", "Stalled").await?;
        let message = stalled["message"].as_str().unwrap_or_default();
        ensure!(stalled["reason"] == "Denied", "{stalled}");
        ensure!(message.contains(&format!("{words} {of}")), "{stalled}");
        ensure!(!stage.has("configmap", "web").await?, "{stalled}");
    }
    named("jane\ndevs\nops").await?;
    stage.run("reconcile").await?.done()?;
    ensure!(stage.has("configmap", "web").await?);

    // Where no webhook records it, the plugin does.
    stage.run("install own --yes").await?.done()?;
    let lines = writer(&stage.record("own").await?)?;
    ensure!(lines.first() == Some(own), "{lines:?}");
    stage.run("reconcile").await?.done()?;
    Ok(())
}

#[tokio::test]
async fn g07_the_webhook_records_who_wrote_an_installation() -> Result<()> {
    let scene = Scene::get().await?;
    let (first, first_name) = scene.user("first", &["devs"])?;
    let (second, second_name) = scene.user("second", &[])?;
    let name = unique("written");
    let reference = json!({"name": name, "index": "https://example.test/index.yaml"});
    let mut object = installation(&name, SYSTEM_NAMESPACE, json!({"addonRef": reference}));
    object["metadata"]["annotations"] = json!({ANNOTATION_WRITTEN_BY: "jane\nops"});
    create(&first, &object, &[]).await?.done()?;
    let lines = writer(&stored(&first, &name, SYSTEM_NAMESPACE).await?)?;
    ensure!(lines.first() == Some(&first_name), "{lines:?}");
    ensure!(lines.iter().any(|line| line == "devs"), "{lines:?}");
    ensure!(!lines.iter().any(|line| line == "ops"), "{lines:?}");

    let forged = json!({"metadata": {"annotations": {ANNOTATION_WRITTEN_BY: "jane"}}});
    for (user, patch, expected) in [
        (
            &second,
            json!({"metadata": {"labels": {"a": "b"}}}),
            &first_name,
        ),
        (&second, json!({"spec": {"suspend": true}}), &first_name),
        (
            &second,
            json!({"spec": {"deletionPolicy": "Orphan"}}),
            &first_name,
        ),
        (
            &second,
            json!({"spec": {"registry": "registry.example.test"}}),
            &second_name,
        ),
        (&first, json!({"spec": {"suspend": false}}), &first_name),
        (&second, forged, &second_name),
        (
            &first,
            json!({"spec": {"serviceAccountName": "other"}}),
            &first_name,
        ),
    ] {
        let patch = patch.to_string();
        let args = ["patch", "addoninstallation", &name, "-n", SYSTEM_NAMESPACE];
        let args = [&args[..], &["--type=merge", "-p", &patch]].concat();
        user.kubectl(&args).await?.done()?;
        let lines = writer(&stored(user, &name, SYSTEM_NAMESPACE).await?)?;
        ensure!(lines.first() == Some(expected), "{patch}: {lines:?}");
    }
    Ok(())
}

/// Tries an installation of an add-on in a namespace, without a version.
async fn attempt(user: &Plugin, namespace: &str, addon: &str, values: &Value) -> Result<Output> {
    let spec = json!({"addonRef": {"name": addon}, "values": values});
    let object = installation("tried", namespace, spec);
    create(user, &object, &["--dry-run=server"]).await
}

/// The version of another cluster is not known: what none of the versions allows is denied, and what one of them allows is not.
#[tokio::test]
async fn g07_a_reference_that_several_versions_fit_is_judged() -> Result<()> {
    let scene = Scene::get().await?;
    let (user, _) = scene.user("several", &[])?;
    let (form, mixed) = (unique("several-form"), unique("several-mixed"));
    scene
        .source(
            &unique("several"),
            json!([
                {"name": form, "support": "Customer", "versions": [with_form("1.0.0"), with_form("2.0.0")]},
                {"name": mixed, "support": "Optional", "versions": [version("1.0.0", json!({})), with_form("2.0.0")]},
            ]),
        )
        .await?;
    let team = scene.cluster.namespace("several").await?;
    let label = format!("{LABEL_KUBECONFIG_SECRET}=other");
    let args = ["label", "namespace", &team, &label];
    user.kubectl(&args).await?.done()?;
    let good = json!({"spec": {"host": "a.example.test"}});
    let wrong = json!({"spec": {"host": "a.example.test", "replicas": "many"}});
    until("the webhook knows the namespace", async || {
        let said = attempt(&user, &team, &form, &good).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await?;
    let a_number = "spec.values.spec.replicas: a number is expected";
    for (addon, values, words) in [
        (&form, &wrong, Some(a_number)),
        (&mixed, &wrong, Some(a_number)),
        (&mixed, &good, None),
        // The plain manifest of the other version takes no values, and needs none.
        (&mixed, &json!({}), None),
    ] {
        let said = attempt(&user, &team, addon, values).await?;
        ensure!((said.code == 0) == words.is_none(), "{addon}: {said:?}");
        let words = words.unwrap_or_default();
        ensure!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }

    let selector = json!({"matchLabels": {LABEL_NAMESPACE_NAME: team}});
    let allowed = json!({"supportClasses": ["Optional"]});
    let spec = json!({"action": "Enforce", "namespaceSelector": selector, "allowed": allowed});
    create(&user, &policy(&team, &spec), &[]).await?.done()?;
    let words = format!("is not allowed by AddonPolicy {team} (spec.allowed.supportClasses)");
    until("the policy judges every version", async || {
        let said = attempt(&user, &team, &form, &good).await?;
        let is_denied = said.code != 0 && said.stderr.contains(&words);
        Ok(is_denied.then_some(()).ok_or(said.stdout + &said.stderr))
    })
    .await?;
    attempt(&user, &team, &mixed, &good).await?.done()?;
    Ok(())
}
