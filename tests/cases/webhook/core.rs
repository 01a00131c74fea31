//! Core add-ons are installed by the core group, and survive everybody else's deletions (semantics 8, 14).

use addons_tests::control_plane::unique;
use addons_tests::plugin::{Output, Plugin};
use addons_tests::scene::{DENIED, Scene, apply, create, installation, stored};
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use common::api::names::{
    ANNOTATION_CLUSTER_DELETING, BREAK_GLASS_GROUP, CORE_GROUP, LABEL_CLUSTER, LABEL_HOLDS_CORE,
    SYSTEM_NAMESPACE,
};
use serde_json::json;

const DENIED_NAMESPACE: &str =
    r#"admission webhook "namespaces.kubectl-addons.dev" denied the request: "#;

/// A source catalogue with one add-on of one ConfigMap; the name of both.
async fn addon(scene: &Scene, name: &str) -> Result<String> {
    let name = unique(name);
    let manifest = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let version = json!({"version": "1.0.0", "source": {"inline": {"manifest": manifest}}});
    scene
        .source(&name, json!([{"name": name, "versions": [version]}]))
        .await?;
    Ok(name)
}

/// Runs `kubectl LINE`.
async fn kubectl(user: &Plugin, line: &str) -> Result<Output> {
    user.kubectl(&line.split_whitespace().collect::<Vec<_>>())
        .await
}

fn says(said: &Output, code: i32, words: &str) -> Result<()> {
    ensure!(
        said.code == code && said.stderr.contains(words),
        "exit code {} instead of {code}, or not {words:?} in\n{}{}",
        said.code,
        said.stdout,
        said.stderr
    );
    Ok(())
}

#[tokio::test]
async fn core_addons_survive_deletion() -> Result<()> {
    let mut tally = Tally::new("webhook::core deletion");
    let scene = Scene::get().await?;
    let (admin, admin_name) = scene.user("admin", &[])?;
    let (core, _) = scene.user("core", &[CORE_GROUP])?;
    let name = addon(scene, "guarded").await?;

    // The plugin says it first, the webhook says it of what comes past the plugin.
    let mark = scene.cluster.audit().mark()?;
    let install = format!("addons install {name} --core --yes");
    let said = kubectl(&admin, &install).await?;
    let words =
        format!("spec.coreAddon: only group {CORE_GROUP} installs core add-ons; leave it false");
    says(&said, 6, &words)?;
    let writes = scene
        .cluster
        .audit()
        .since(mark)?
        .by(&admin_name)
        .writes("");
    ensure!(writes == 0, "{writes} writes before the refusal");
    tally.ran();
    let spec = json!({"addonRef": {"name": name}, "coreAddon": true});
    let object = installation(&name, SYSTEM_NAMESPACE, spec);
    let (code, message, printed) = scene.refusal(&admin, &object).await?;
    ensure!(
        code == 403 && message == format!("{DENIED}{words}"),
        "{message}"
    );
    ensure!(
        printed.contains("Error from server (Forbidden)") && printed.contains(&message),
        "{printed}"
    );
    tally.ran();
    kubectl(&core, &install).await?.done()?;
    let record = stored(&admin, &name, SYSTEM_NAMESPACE).await?;
    ensure!(record["spec"]["coreAddon"] == true, "{record}");
    tally.ran();
    // The namespace of the records is guarded from then on.
    let delete = format!("delete namespace {SYSTEM_NAMESPACE} --dry-run=server");
    until("the webhook knows the core installation", async || {
        let said = kubectl(&admin, &delete).await?;
        let words = format!("{DENIED_NAMESPACE}namespace {SYSTEM_NAMESPACE} holds ");
        let denied = said.stderr.contains(&words) && said.stderr.contains(&name);
        Ok(denied.then_some(()).ok_or(said.stdout + &said.stderr))
    })
    .await?;
    tally.ran();

    deletions_are_denied(&admin, &core, &name, &mut tally).await?;
    // What carries no mark of being released or going is still there.
    let record = stored(&admin, &name, SYSTEM_NAMESPACE).await?;
    ensure!(
        record["metadata"].get("deletionTimestamp").is_none(),
        "{record}"
    );

    let (glass, _) = scene.user("glass", &[BREAK_GLASS_GROUP])?;
    let said = kubectl(
        &glass,
        &format!("delete addoninstallation {name} -n {SYSTEM_NAMESPACE}"),
    )
    .await?
    .done()?;
    says(&said, 0, "Warning: allowed by break-glass: ")?;
    tally.ran();
    Ok(())
}

/// A core add-on cannot be deleted as other objects are, by any user.
async fn deletions_are_denied(
    admin: &Plugin,
    core: &Plugin,
    name: &str,
    tally: &mut Tally,
) -> Result<()> {
    let words = format!(
        "{DENIED}{name} is a core add-on of this cluster (coreAddon in namespace {SYSTEM_NAMESPACE}); \
         a member of the core group releases it first: \
         kubectl addons core release {name} -n {SYSTEM_NAMESPACE}"
    );
    for who in [admin, core] {
        for line in [
            format!("delete addoninstallation {name} -n {SYSTEM_NAMESPACE}"),
            format!("delete addoninstallation {name} -n {SYSTEM_NAMESPACE} --dry-run=server"),
            format!("delete addoninstallation {name} -n {SYSTEM_NAMESPACE} --cascade=orphan --now"),
        ] {
            says(&kubectl(who, &line).await?, 1, &words)?;
            tally.ran();
        }
    }
    let said = kubectl(admin, &format!("addons uninstall {name} --yes")).await?;
    says(
        &said,
        6,
        &format!("{name} is a core add-on of this cluster"),
    )?;
    tally.ran();
    // The schema's rule, before the webhook's.
    let patch = format!("patch addoninstallation {name} -n {SYSTEM_NAMESPACE} --type=merge -p");
    let args: Vec<_> = patch
        .split_whitespace()
        .chain([r#"{"spec":{"coreAddon":false}}"#])
        .collect();
    says(
        &core.kubectl(&args).await?,
        1,
        "coreAddon never goes back from true to false",
    )?;
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn an_installation_that_is_not_core_is_deleted_with_a_warning() -> Result<()> {
    let mut tally = Tally::new("webhook::core not core");
    let scene = Scene::get().await?;
    let (admin, _) = scene.user("admin", &[])?;
    let name = addon(scene, "plain").await?;
    kubectl(&admin, &format!("addons install {name} --yes"))
        .await?
        .done()?;
    let delete = format!("delete addoninstallation {name} -n {SYSTEM_NAMESPACE}");
    let warning = format!("Warning: only the record of {name} is deleted, its objects stay");
    says(
        &kubectl(&admin, &format!("{delete} --dry-run=server")).await?,
        0,
        &warning,
    )?;
    says(
        &kubectl(&admin, &delete).await?,
        0,
        &format!("kubectl addons uninstall {name}"),
    )?;
    kubectl(&admin, &format!("get configmap {name} -n {name}"))
        .await?
        .done()?;
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn a_namespace_that_holds_core_is_deleted_only_with_its_cluster() -> Result<()> {
    let mut tally = Tally::new("webhook::core namespace");
    let scene = Scene::get().await?;
    let (admin, _) = scene.user("admin", &[])?;
    let (core, _) = scene.user("core", &[CORE_GROUP])?;
    let name = addon(scene, "held").await?;
    let ns = scene.cluster.namespace("holds-core").await?;
    kubectl(
        &admin,
        &format!("label namespace {ns} {LABEL_CLUSTER}=local {LABEL_HOLDS_CORE}=true"),
    )
    .await?
    .done()?;
    let plain = unique("not-core");
    for (name, spec) in [
        (
            &name,
            json!({"addonRef": {"name": name}, "coreAddon": true}),
        ),
        (
            &plain,
            json!({"addonRef": {"name": name}, "targetNamespace": "elsewhere"}),
        ),
    ] {
        create(&core, &installation(name, &ns, spec), &[])
            .await?
            .done()?;
    }
    let words = format!(
        "{DENIED_NAMESPACE}namespace {ns} holds a core add-on of this cluster ({name}); \
         a member of the core group releases them first: \
         kubectl addons core release {name} -n {ns}"
    );
    // The webhook's watch may be a moment behind; a dry run deletes nothing meanwhile.
    let delete = format!("delete namespace {ns}");
    until("the webhook knows the core installation", async || {
        let said = kubectl(&admin, &format!("{delete} --dry-run=server")).await?;
        Ok(match said.stderr.contains(&words) {
            true => Ok(()),
            false => Err(said.stdout + &said.stderr),
        })
    })
    .await?;
    says(&kubectl(&admin, &delete).await?, 1, &words)?;
    tally.ran();
    let said = kubectl(&admin, &format!("label namespace {ns} {LABEL_HOLDS_CORE}-")).await?;
    says(
        &said,
        1,
        &format!("the namespace holds core add-ons ({name}); the label stays"),
    )?;
    tally.ran();

    collections_are_denied(&admin, &name, &ns, &mut tally).await?;

    // A namespace without core add-ons never waits for the webhook, whatever is in it.
    let other = scene.cluster.namespace("holds-nothing").await?;
    kubectl(&admin, &format!("delete namespace {other} --wait=false"))
        .await?
        .done()?;
    tally.ran();

    // The cluster goes, and everything of it; nothing wedges the namespace.
    kubectl(
        &core,
        &format!("annotate namespace {ns} {ANNOTATION_CLUSTER_DELETING}=true"),
    )
    .await?
    .done()?;
    kubectl(&admin, &format!("{delete} --timeout=60s"))
        .await?
        .done()?;
    tally.ran();
    Ok(())
}

/// Many at once: what is not core may be deleted, what is core stays.
async fn collections_are_denied(
    admin: &Plugin,
    name: &str,
    ns: &str,
    tally: &mut Tally,
) -> Result<()> {
    let all = format!("delete addoninstallations --all -n {ns}");
    let denied = format!("{DENIED}{name} is a core add-on of this cluster");
    says(
        &kubectl(admin, &format!("{all} --dry-run=server")).await?,
        1,
        &denied,
    )?;
    tally.ran();
    let collection = format!(
        "delete --raw /apis/kubectl-addons.dev/v1alpha1/namespaces/{ns}/addoninstallations"
    );
    says(&kubectl(admin, &collection).await?, 1, &denied)?;
    tally.ran();
    says(&kubectl(admin, &all).await?, 1, &denied)?;
    stored(admin, name, ns).await?;
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn break_glass_deletes_a_namespace_that_holds_core() -> Result<()> {
    let mut tally = Tally::new("webhook::core break-glass");
    let scene = Scene::get().await?;
    let (core, _) = scene.user("core", &[CORE_GROUP])?;
    let (glass, _) = scene.user("glass", &[BREAK_GLASS_GROUP])?;
    let name = addon(scene, "emergency").await?;
    let ns = scene.cluster.namespace("emergency").await?;
    kubectl(
        &core,
        &format!("label namespace {ns} {LABEL_CLUSTER}=local {LABEL_HOLDS_CORE}=true"),
    )
    .await?
    .done()?;
    let spec = json!({"addonRef": {"name": name}, "coreAddon": true});
    apply(&core, &installation(&name, &ns, spec), &[])
        .await?
        .done()?;
    let delete = format!("delete namespace {ns} --timeout=60s");
    until("the webhook knows the core installation", async || {
        let said = kubectl(&core, &format!("{delete} --dry-run=server")).await?;
        Ok(match said.code {
            0 => Err(said.stdout),
            _ => Ok(()),
        })
    })
    .await?;
    let said = kubectl(&glass, &delete).await?.done()?;
    says(
        &said,
        0,
        &format!("Warning: allowed by break-glass: namespace {ns} holds"),
    )?;
    tally.ran();
    Ok(())
}
