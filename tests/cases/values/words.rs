//! `formOnly`, types and what is required: the webhook and the plugin refuse in the same words, and repeat no value.

use addons_tests::control_plane::unique;
use addons_tests::scene::{DENIED, Scene, create, installation, stored, with_form};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use common::api::names::SYSTEM_NAMESPACE;
use serde_json::{Value, json};

#[tokio::test]
async fn values_are_refused_in_the_same_words() -> Result<()> {
    let mut tally = Tally::new("values::words");
    let scene = Scene::get().await?;
    let (user, name) = scene.user("values", &[])?;
    let addon = unique("form-only");
    scene
        .source(
            &unique("values"),
            json!([{"name": addon, "versions": [form_only()]}]),
        )
        .await?;
    for (values, flags, words) in refused() {
        let spec = json!({"addonRef": {"name": addon}, "values": values});
        let object = installation(&addon, SYSTEM_NAMESPACE, spec);
        let (code, message, printed) = scene.refusal(&user, &object).await?;
        ensure!(
            code == 422 && !printed.contains("s3cret"),
            "{code} {printed}"
        );
        let said_by_webhook = message.strip_prefix(DENIED).context(message.clone())?;
        for words in &words {
            ensure!(
                said_by_webhook.contains(words),
                "{words}\n{said_by_webhook}"
            );
        }
        let mut install = vec!["install", &addon, "--yes"];
        install.extend(flags.iter().flat_map(|flag| ["--set", flag]));
        let mark = scene.cluster.audit().mark()?;
        let said = user.run(&install).await?.ended(6)?;
        ensure!(
            said.stderr.contains(said_by_webhook),
            "{said_by_webhook}\n{}",
            said.stderr
        );
        ensure!(!said.stderr.contains("s3cret"), "{}", said.stderr);
        let writes = scene.cluster.audit().since(mark)?.by(&name).writes("");
        ensure!(writes == 0, "{writes} writes before the refusal");
        if values == json!({}) {
            let accept = format!("look:   kubectl addons show {addon}\n");
            ensure!(said.stderr.contains(&accept), "{}", said.stderr);
            ensure!(
                said.stderr.contains("fix:    --set spec.host=VALUE"),
                "{}",
                said.stderr
            );
        }
        tally.ran();
    }

    // What is filled in stands beside it, and is judged neither now nor when something else changes.
    let spec = json!({"addonRef": {"name": addon}, "values": {"spec": {"host": "h"}}});
    create(&user, &installation(&addon, SYSTEM_NAMESPACE, spec), &[])
        .await?
        .done()?;
    let values = |object: &Value| object["spec"]["values"].clone();
    let before = stored(&user, &addon, SYSTEM_NAMESPACE).await?;
    ensure!(
        values(&before)["image"]["registry"] == "registry.example.test",
        "{before}"
    );
    let patch = r#"{"spec": {"values": {"spec": {"replicas": 3}}}}"#;
    let patch = [
        "patch",
        "ainst",
        &addon,
        "-n",
        SYSTEM_NAMESPACE,
        "--type=merge",
        "-p",
        patch,
    ];
    user.kubectl(&patch).await?.done()?;
    let after = stored(&user, &addon, SYSTEM_NAMESPACE).await?;
    ensure!(values(&after)["spec"]["replicas"] == 3, "{after}");
    tally.ran();
    Ok(())
}

/// A version that takes the values of its form only.
fn form_only() -> Value {
    let mut version = with_form("1.0.0");
    version["template"]["formOnly"] = json!(true);
    if let Some(form) = version["template"]["formSpec"].as_array_mut() {
        form.push(
            json!({"displayName": "Size", "internalName": "spec.size", "enum": ["small", "large"]}),
        );
        form.push(json!({"internalName": "spec.path", "pattern": "^/[a-z/]*$"}));
    }
    version
}

/// Values, the flags that say the same, and why they are refused.
fn refused() -> Vec<(Value, &'static [&'static str], Vec<String>)> {
    let unknown = "the form has no such field, and the add-on takes no other values";
    vec![
        (
            json!({"spec": {"host": "h"}, "other": "s3cret"}),
            &["spec.host=h", "other=s3cret"],
            vec![format!("spec.values.other: {unknown}")],
        ),
        // What the catalogue says is the admin's.
        (
            json!({"spec": {"host": "h"}, "image": {"registry": "s3cret"}}),
            &["spec.host=h", "image.registry=s3cret"],
            vec![format!("spec.values.image: {unknown}")],
        ),
        (
            json!({"spec": {"hosts": "s3cret"}}),
            &["spec.hosts=s3cret"],
            vec![
                "spec.values.spec.host: a value is required".to_owned(),
                format!("spec.values.spec.hosts: {unknown}; did you mean spec.host?"),
            ],
        ),
        (
            json!({"spec": {"host": {"nested": "s3cret"}, "replicas": "7"}}),
            &["spec.host.nested=s3cret", "spec.replicas=\"7\""],
            vec![
                "spec.values.spec.host: text is expected, this is a map".to_owned(),
                "spec.values.spec.replicas: a number is expected, this is text (Replicas)"
                    .to_owned(),
            ],
        ),
        (
            json!({"spec": {"host": "h", "size": "s3cret", "path": "s3cret"}}),
            &["spec.host=h", "spec.size=s3cret", "spec.path=s3cret"],
            vec![
                "spec.values.spec.size: must be one of small, large (Size)".to_owned(),
                "spec.values.spec.path: must match the pattern ^/[a-z/]*$".to_owned(),
            ],
        ),
        (
            json!({}),
            &[],
            vec!["spec.values.spec.host: a value is required".to_owned()],
        ),
    ]
}
