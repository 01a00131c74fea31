//! The namespaces of a core add-on carry the label by which their deletion is guarded, however it became core (semantics 14).

use addons_tests::control_plane::unique;
use addons_tests::plugin::Plugin;
use addons_tests::scene::{Scene, apply, catalogue, create, installation, version};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use common::api::names::{
    ANNOTATION_RELEASED, CORE_GROUP, LABEL_CLUSTER, LABEL_HOLDS_CORE, SYSTEM_NAMESPACE,
};
use serde_json::{Value, json};

/// Runs `kubectl LINE`, which must succeed; what it prints.
async fn run(user: &Plugin, line: &str) -> Result<String> {
    let args: Vec<_> = line.split_whitespace().collect();
    Ok(user.kubectl(&args).await?.done()?.stdout)
}

async fn is_marked(user: &Plugin, namespace: &str) -> Result<bool> {
    let text = run(user, &format!("get namespace {namespace} -o json")).await?;
    let object: Value = serde_json::from_str(&text)?;
    Ok(object["metadata"]["labels"].get(LABEL_HOLDS_CORE).is_some())
}

/// A source catalogue with two add-ons of one ConfigMap each.
async fn addons(scene: &Scene) -> Result<[String; 2]> {
    let names = [unique("later-core"), unique("gitops-core")];
    let addons: Vec<Value> = names
        .iter()
        .map(|name| {
            let manifest = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
            let version = version(
                "1.0.0",
                json!({"source": {"inline": {"manifest": manifest}}}),
            );
            json!({"name": name, "versions": [version]})
        })
        .collect();
    scene.source(&names[0], json!(addons)).await?;
    Ok(names)
}

#[tokio::test]
async fn namespaces_are_marked_however_an_addon_became_core() -> Result<()> {
    let scene = Scene::get().await?;
    let (admin, _) = scene.user("admin", &[])?;
    let (core, _) = scene.user("core", &[CORE_GROUP])?;
    let [later, gitops] = addons(scene).await?;
    let ns = scene.cluster.namespace("marked").await?;
    run(
        &admin,
        &format!("label namespace {ns} {LABEL_CLUSTER}=local"),
    )
    .await?;

    // First it is not core.
    until("the webhook knows the namespace", async || {
        let line = format!("addons install {later} -n {ns} --yes");
        let args: Vec<_> = line.split_whitespace().collect();
        let said = admin.kubectl(&args).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await?;
    ensure!(!is_marked(&admin, &ns).await? && !is_marked(&admin, &later).await?);
    run(
        &core,
        &format!("addons install {later} --core -n {ns} --yes"),
    )
    .await?;
    ensure!(is_marked(&admin, &ns).await?, "the namespace of the record");
    ensure!(is_marked(&admin, &later).await?, "the target namespace");

    // The record is there before anything of ours is run.
    run(&core, &format!("label namespace {ns} {LABEL_HOLDS_CORE}-")).await?;
    let reference = json!({"name": gitops, "version": "1.0.0"});
    let spec = json!({"addonRef": reference, "coreAddon": true, "targetNamespace": gitops});
    create(&core, &installation(&gitops, &ns, spec), &[])
        .await?
        .done()?;
    run(&core, &format!("addons upgrade {gitops} -n {ns} --yes")).await?;
    ensure!(is_marked(&admin, &ns).await?, "the namespace of the record");
    ensure!(is_marked(&admin, &gitops).await?, "the target namespace");

    // What was created for it goes with it, mark or not.
    for name in [&later, &gitops] {
        let line = format!("annotate addoninstallation {name} -n {ns} {ANNOTATION_RELEASED}=true");
        run(&core, &line).await?;
        run(&core, &format!("addons uninstall {name} -n {ns} --yes")).await?;
        let line = format!("wait --for=delete namespace/{name} --timeout=60s");
        run(&admin, &line).await?;
    }
    Ok(())
}

/// A template that shows a value, whose default comes from the catalogue.
fn template(name: &str, text: &str, level: &str) -> Value {
    let manifest = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{level: '{{{{ .Variables.level }}}}'}}\n"
    );
    let source = json!({"inline": {"manifest": manifest}});
    let values = json!({"level": level});
    let template = json!({"method": "go-template"});
    version(
        text,
        json!({"source": source, "values": values, "template": template}),
    )
}

#[tokio::test]
async fn others_operate_core_addons_but_change_nothing_of_their_specs() -> Result<()> {
    let scene = Scene::get().await?;
    let (admin, _) = scene.user("admin", &[])?;
    let (core, _) = scene.user("core", &[CORE_GROUP])?;
    let name = unique("operated");
    let both = |level: &str| {
        let versions = ["1.0.0", "2.0.0"].map(|text| template(&name, text, level));
        json!([{"name": name, "versions": versions}])
    };
    scene.source(&name, both("a")).await?;
    run(&core, &format!("addons install {name}@1.0.0 --core --yes")).await?;
    run(
        &admin,
        &format!("addons upgrade {name}@1.0.0 --repair --yes"),
    )
    .await?;
    let line = format!("addons upgrade {name}@2.0.0 --yes");
    let args: Vec<_> = line.split_whitespace().collect();
    let said = admin.kubectl(&args).await?.ended(6)?;
    let words = format!("spec: only group {CORE_GROUP} changes core add-ons");
    ensure!(said.stderr.contains(&words), "{}", said.stderr);

    // New defaults come when the core group accepts them.
    let changed = catalogue(&name, SYSTEM_NAMESPACE, both("b"));
    apply(&admin, &changed, &[]).await?.done()?;
    let line = format!("addons reconcile {name}");
    let args: Vec<_> = line.split_whitespace().collect();
    let said = admin.kubectl(&args).await?.ended(4)?;
    let words = "an upgrade of a core add-on accepts the entry as it is now";
    ensure!(said.stderr.contains(words), "{}", said.stderr);
    let line = format!("get configmap {name} -n {name} -o jsonpath={{.data.level}}");
    let level = run(&admin, &line).await?;
    ensure!(level == "a", "{level}");
    run(&core, &format!("addons upgrade {name}@2.0.0 --yes")).await?;
    let level = run(&admin, &line).await?;
    ensure!(level == "b", "{level}");
    Ok(())
}
