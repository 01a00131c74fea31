//! What is filled in, and that it is filled in once (semantics 7, 8, 10).

use addons_tests::control_plane::unique;
use addons_tests::plugin::Plugin;
use addons_tests::scene::{Scene, apply, installation, stored, version, with_form};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use common::api::names::{ANNOTATION_DEFAULTED, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

#[tokio::test]
async fn defaults_are_filled_in_once_and_follow_the_version() -> Result<()> {
    let mut tally = Tally::new("webhook::defaults");
    let scene = Scene::get().await?;
    let (user, _) = scene.user("defaults", &[])?;
    let (form, plain) = (unique("filled"), unique("bare"));
    scene
        .source(
            &unique("defaults"),
            json!([
                {"name": form, "versions": [with_form("1.0.0"), with_form("2.0.0")]},
                {"name": plain, "versions": [version("1.0.0", json!({}))]},
            ]),
        )
        .await?;

    // Server-side too: the second apply must not fight about what was filled in.
    for (i, how) in [&[][..], &["--server-side"]].into_iter().enumerate() {
        let name = format!("{form}-{i}");
        let own = json!({"spec": {"host": "a.example.test"}, "unknown": {"deep": [1, {"a": "b"}]}});
        let mut object = installation(
            &name,
            SYSTEM_NAMESPACE,
            json!({"addonRef": {"name": form, "version": "1.0.0"}, "values": own}),
        );
        apply(&user, &object, how).await?.done()?;
        let first = stored(&user, &name, SYSTEM_NAMESPACE).await?;
        filled_in(&first)?;
        tally.ran();

        apply(&user, &object, how).await?.done()?;
        let second = stored(&user, &name, SYSTEM_NAMESPACE).await?;
        ensure!(
            first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"],
            "{first}\n{second}"
        );
        tally.ran();

        // What was filled in follows the new version, what the user changed does not.
        object["spec"]["addonRef"]["version"] = json!("2.0.0");
        object["spec"]["values"]["spec"]["replicas"] = json!(3);
        apply(&user, &object, how).await?.done()?;
        let third = stored(&user, &name, SYSTEM_NAMESPACE).await?;
        let values = &third["spec"]["values"];
        ensure!(
            (&values["level"], &values["spec"]["replicas"]) == (&json!("2.0.0"), &json!(3)),
            "{third}"
        );
        ensure!(
            recorded(&third)? == ["/image/registry", "/level"],
            "{third}"
        );
        tally.ran();
    }

    let reference = json!({"addonRef": {"name": plain}});
    apply(
        &user,
        &installation(&plain, SYSTEM_NAMESPACE, reference),
        &[],
    )
    .await?
    .done()?;
    let bare = stored(&user, &plain, SYSTEM_NAMESPACE).await?;
    ensure!(bare["spec"]["targetNamespace"] == plain.as_str(), "{bare}");
    ensure!(bare["spec"].get("values").is_none(), "{bare}");
    tally.ran();

    nulls_stay(&user, &form, &mut tally).await?;

    an_index_is_left_alone(&user).await?;
    tally.ran();
    Ok(())
}

/// Of an index only the plugin knows the entry.
async fn an_index_is_left_alone(user: &Plugin) -> Result<()> {
    let reference = json!({"addonRef": {"name": "any", "index": "https://example.test/index.yaml"}, "createNamespace": false});
    let name = unique("index");
    apply(user, &installation(&name, SYSTEM_NAMESPACE, reference), &[])
        .await?
        .done()?;
    let spec = stored(user, &name, SYSTEM_NAMESPACE).await?["spec"].clone();
    ensure!(
        spec.get("targetNamespace").is_none() && spec["createNamespace"] == false,
        "{spec}"
    );
    Ok(())
}

/// The defaults of the API, and those of version 1.0.0.
fn filled_in(first: &Value) -> Result<()> {
    let spec = &first["spec"];
    ensure!(
        (
            &spec["coreAddon"],
            &spec["createNamespace"],
            &spec["targetNamespace"]
        ) == (&json!(false), &json!(true), &json!("forms")),
        "{spec}"
    );
    ensure!(
        spec["values"]
            == json!({
                "image": {"registry": "registry.example.test"},
                "level": "1.0.0",
                "spec": {"host": "a.example.test", "replicas": 1},
                "unknown": {"deep": [1, {"a": "b"}]},
            }),
        "{spec}"
    );
    ensure!(
        recorded(first)? == ["/image/registry", "/level", "/spec/replicas"],
        "{first}"
    );
    Ok(())
}

/// A null deletes (semantics 9), so it is the user's own and stays; client-side apply drops nulls before they are sent.
async fn nulls_stay(user: &Plugin, form: &str, tally: &mut Tally) -> Result<()> {
    let nulls = json!({"spec": {"host": "a"}, "level": null, "list": [{"deep": null}]});
    for how in ["create", "apply --server-side"] {
        let name = unique("nulls");
        let spec = json!({"addonRef": {"name": form}, "values": nulls});
        let object = installation(&name, SYSTEM_NAMESPACE, spec).to_string();
        let args: Vec<_> = how.split(' ').chain(["-f", "-"]).collect();
        user.kubectl_with_input(&args, &object).await?.done()?;
        let values = stored(user, &name, SYSTEM_NAMESPACE).await?["spec"]["values"].clone();
        ensure!(
            values.get("level") == Some(&Value::Null) && values["list"] == nulls["list"],
            "{values}"
        );
        tally.ran();
    }
    Ok(())
}

/// The JSON pointers of what was filled in.
fn recorded(object: &Value) -> Result<Vec<String>> {
    let text = object["metadata"]["annotations"][ANNOTATION_DEFAULTED].as_str();
    let record: Value = serde_json::from_str(text.context("nothing is recorded")?)?;
    let record = record.as_object().context("the record is no object")?;
    Ok(record.keys().cloned().collect())
}
