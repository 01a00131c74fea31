//! What is wrong with installations (semantics 4, 7, 10).

use addons_tests::control_plane::unique;
use addons_tests::scene::{DENIED, Scene, installation, version, with_form};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use common::api::names::SYSTEM_NAMESPACE;
use serde_json::json;

#[tokio::test]
async fn references_and_values_are_judged() -> Result<()> {
    let mut tally = Tally::new("webhook::installations");
    let scene = Scene::get().await?;
    let (user, _) = scene.user("installations", &[])?;
    let source = unique("references");
    let (form, plain) = (unique("formed"), unique("plain"));
    scene
        .source(
            &source,
            json!([
                {"name": form, "versions": [with_form("1.0.0")]},
                {"name": plain, "versions": [
                    version("1.0.0", json!({"constraints": {"k8sVersion": "<1.30.0"}})),
                    version("2.0.0", json!({})),
                ]},
            ]),
        )
        .await?;
    let secret = "hunter2-hunter2";
    let cases = [
        (
            json!({"addonRef": {"name": plain, "catalogue": format!("{source}x")}}),
            format!("spec.addonRef.catalogue: no catalogue named {source}x; did you mean {source}?"),
        ),
        (
            json!({"addonRef": {"name": format!("{plain}x")}}),
            format!("spec.addonRef.name: no add-on named {plain}x; did you mean {plain} (catalogue {source})?"),
        ),
        (
            json!({"addonRef": {"name": plain, "version": "3.0.0", "catalogue": source}}),
            format!("spec.addonRef.version: {plain} has no version 3.0.0; it has 2.0.0, 1.0.0"),
        ),
        (
            json!({"addonRef": {"name": plain, "version": "1.0.0"}}),
            format!("spec.addonRef: {plain} 1.0.0 does not fit this cluster (1.0.0: "),
        ),
        (
            json!({"addonRef": {"name": plain, "version": "2.0.0"}, "values": {"a": secret}}),
            format!("spec.values: {plain} is a plain manifest and takes no values"),
        ),
        (
            json!({"addonRef": {"name": form}, "values": {"spec": {"host": "a", "replicas": secret}}}),
            "spec.values.spec.replicas: a number is expected".to_owned(),
        ),
        (
            json!({"addonRef": {"name": form}, "values": {"spec": {"replicas": true}}}),
            "2 problems: spec.values.spec.replicas: a number is expected, this is a boolean (Replicas); \
             spec.values.spec.host: a value is required"
                .to_owned(),
        ),
    ];
    for (spec, words) in cases {
        let object = installation(&unique("wrong"), SYSTEM_NAMESPACE, spec);
        let (code, message, printed) = scene.refusal(&user, &object).await?;
        ensure!(code == 422, "{code}: {message}");
        ensure!(
            message.starts_with(&format!("{DENIED}{words}")),
            "{words}\n{message}"
        );
        ensure!(printed.contains(&message), "{message}\n{printed}");
        ensure!(!printed.contains(secret), "{printed}");
        tally.ran();
    }
    let mut object = installation(
        "",
        SYSTEM_NAMESPACE,
        json!({"addonRef": {"name": plain, "version": "2.0.0"}}),
    );
    object["metadata"] = json!({"generateName": "a-", "namespace": SYSTEM_NAMESPACE});
    let (code, message, _) = scene.refusal(&user, &object).await?;
    ensure!(
        code == 422 && message.contains("metadata.generateName: "),
        "{message}"
    );
    tally.ran();
    Ok(())
}
