//! What is wrong with catalogues (semantics 2, 3, 9).

use addons_tests::control_plane::unique;
use addons_tests::scene::{DENIED, Scene, catalogue, create, version};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use common::api::names::SYSTEM_NAMESPACE;
use serde_json::{Value, json};

/// The duplicate of `cargo demo`.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/demo/duplicate.yaml");

fn constraint(field: &str, text: &str) -> Value {
    json!({"constraints": {field: text}})
}

#[tokio::test]
async fn what_is_wrong_with_a_catalogue_stands_in_one_denial() -> Result<()> {
    let mut tally = Tally::new("webhook::catalogues");
    let scene = Scene::get().await?;
    let (user, _) = scene.user("catalogues", &[])?;
    for (addons, words) in mistakes() {
        let object = catalogue(&unique("wrong"), SYSTEM_NAMESPACE, addons);
        let (code, message, printed) = scene.refusal(&user, &object).await?;
        ensure!(code == 422, "{code}: {message}");
        ensure!(
            message.starts_with(&format!("{DENIED}{words}")),
            "{message}"
        );
        // kubectl says who denied it, and all that is wrong.
        ensure!(printed.contains(&message), "{message}\n{printed}");
        tally.ran();
    }
    // What the demo shows, in the words that it looks for.
    let apply = ["apply", "--filename", DEMO];
    let said = user.kubectl(&apply).await?.ended(1)?;
    let words = format!(
        "{DENIED}spec.addons[0].versions[1]: log-shipper v1.0.0 is already at spec.addons[0].versions[0] (1.0.0)"
    );
    ensure!(said.stderr.contains(&words), "{}", said.stderr);
    tally.ran();
    // The same version in the same words is the schema's to refuse.
    let twice = json!([version("1.0.0", json!({})), version("1.0.0", json!({}))]);
    let object = catalogue(&unique("wrong"), SYSTEM_NAMESPACE, web(twice));
    let (code, message, printed) = scene.refusal(&user, &object).await?;
    ensure!(code == 422, "{code}: {message}");
    ensure!(
        printed.contains("Duplicate value") && !printed.contains("admission webhook"),
        "{printed}"
    );
    tally.ran();
    Ok(())
}

/// The add-on `inside`.
fn web(versions: Value) -> Value {
    json!([{"name": "inside", "versions": versions}])
}

/// The add-ons of a catalogue, and what is wrong with them.
fn mistakes() -> Vec<(Value, &'static str)> {
    let form = |fields: Value| json!({"template": {"method": "go-template", "formSpec": fields}});
    vec![
        (
            web(json!([
                version("1.0.0", json!({})),
                version("v1.0.0", json!({}))
            ])),
            "spec.addons[0].versions[1]: inside v1.0.0 is already at spec.addons[0].versions[0] (1.0.0)",
        ),
        // Build metadata is ignored, and one id is not enough to tell two entries apart.
        (
            web(json!([
                version("2", json!({})),
                version("2.0.0+a", json!({"id": "x"}))
            ])),
            "spec.addons[0].versions[1]: inside 2.0.0+a is already at spec.addons[0].versions[0] (2)",
        ),
        (
            web(json!([version(
                "1.0.0",
                constraint("k8sVersion", ">=1.30 <")
            )])),
            "spec.addons[0].versions[0].constraints.k8sVersion: ",
        ),
        (
            web(json!([version(
                "1.0.0",
                constraint("kubernetesVersion", "^1.30")
            )])),
            "spec.addons[0].versions[0].constraints.kubernetesVersion: ",
        ),
        (
            web(json!([version(
                "1.0.0",
                json!({"requires": [{"name": "a", "version": ">>1"}]})
            )])),
            "spec.addons[0].versions[0].requires[0].version: ",
        ),
        (
            web(json!([version("one", json!({}))])),
            "spec.addons[0].versions[0].version: ",
        ),
        (
            web(json!([version("1.0.0", json!({"values": {"a": 1}}))])),
            "spec.addons[0].versions[0].values: method manifest takes no values",
        ),
        (
            web(json!([version(
                "1.0.0",
                form(json!([{"internalName": "a", "type": "number", "default": "one"}]))
            )])),
            "spec.addons[0].versions[0].template.formSpec: a: default: a number is expected",
        ),
        (
            json!([{"name": "inside", "support": "Core", "versions": []}]),
            "spec.addons[0].support: inside is Core in a catalogue of class Custom",
        ),
        (
            web(json!([
                version("1.0.0", constraint("k8sVersion", ">=1.30 <")),
                version("v1", json!({})),
            ])),
            "2 problems: spec.addons[0].versions[0].constraints.k8sVersion: ",
        ),
    ]
}

#[tokio::test]
async fn duplicates_across_catalogues_name_both_places() -> Result<()> {
    let mut tally = Tally::new("webhook::catalogues across");
    let scene = Scene::get().await?;
    let (user, _) = scene.user("across", &[])?;
    let first = unique("first");
    let addon = unique("across");
    let one = |text: &str, more: Value| json!([{"name": addon, "versions": [version(text, more)]}]);
    scene
        .source(
            &first,
            json!([{"name": addon, "versions": [version("0.9.0", json!({})), version("1.0.0", json!({})), version("2.0.0", json!({"id": "a"}))]}]),
        )
        .await?;

    let second = unique("second");
    let object = catalogue(&second, SYSTEM_NAMESPACE, one("v1.0.0", json!({})));
    let (code, message, printed) = scene.refusal(&user, &object).await?;
    let words = format!(
        "{DENIED}spec.addons[0].versions[0]: {addon} v1.0.0 is already in catalogue {first} at spec.addons[0].versions[1] (1.0.0)"
    );
    ensure!(
        (code, message.as_str()) == (422, words.as_str()),
        "{message}"
    );
    ensure!(printed.contains(&words), "{printed}");
    tally.ran();

    // Another version, another id where both have one, and a catalogue that is no source.
    for (namespace, addons) in [
        (SYSTEM_NAMESPACE, one("1.0.1", json!({}))),
        (SYSTEM_NAMESPACE, one("v2", json!({"id": "b"}))),
        ("default", one("v1.0.0", json!({}))),
    ] {
        let object = catalogue(&second, namespace, addons);
        create(&user, &object, &["--dry-run=server"])
            .await?
            .done()?;
        tally.ran();
    }
    // Its own entries are no duplicates when it changes.
    let label = [
        "label",
        "addoncatalogue",
        &first,
        "-n",
        SYSTEM_NAMESPACE,
        "a=b",
    ];
    user.kubectl(&label).await?.done()?;
    let patch = r#"{"spec":{"baseURL":"https://example.test/"}}"#;
    let patch = [
        "patch",
        "addoncatalogue",
        &first,
        "-n",
        SYSTEM_NAMESPACE,
        "--type=merge",
        "-p",
        patch,
    ];
    user.kubectl(&patch).await?.done()?;
    tally.ran();
    Ok(())
}
