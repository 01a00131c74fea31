//! Several add-ons of one command: one order over all of them, and otherwise each for itself.

use std::time::Duration;

use addons_tests::chaos::rig::Rig;
use addons_tests::denial::{When, deny};
use addons_tests::proxy::{Action, Fault};
use addons_tests::stage::Stage;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::sent::Sent;
use super::{annotated, config_map, manifest};

/// A definition, and an object of its kind.
fn definition(stage: &Stage) -> [Value; 2] {
    let group = format!("{}.example.test", stage.namespace);
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("tills.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "tills", "singular": "till", "kind": "Till"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    });
    let till =
        json!({"apiVersion": format!("{group}/v1"), "kind": "Till", "metadata": {"name": "till"}});
    [definition, till]
}

/// Add-ons `a-other`, `objects` of the kind that `kinds` defines, and `kinds` itself.
fn index(stage: &Stage) -> Result<String> {
    let [definition, till] = definition(stage);
    let kinds = manifest(&[definition, config_map("kinds")]);
    let objects = manifest(&[till, config_map("objects")]);
    let other = manifest(&[config_map("other")]);
    stage.index(
        "index.yaml",
        &[
            ("a-other", "1.0.0", &other),
            ("objects", "1.0.0", &objects),
            ("kinds", "1.0.0", &kinds),
        ],
    )
}

#[tokio::test]
async fn the_order_holds_across_add_ons() -> Result<()> {
    let rig = Rig::new("across").await?;
    let stage = &rig.stage;
    let index = index(stage)?;
    let crd = format!(
        "customresourcedefinitions/tills.{}.example.test",
        stage.namespace
    );
    let delay = Action::Delay(Duration::from_secs(2));
    rig.proxy
        .fault(Fault::always(delay).method("PATCH").path(&crd));
    let install = format!("install objects kinds a-other --channel {index} --yes --timeout 60s");
    rig.run(&install).await?.done()?;
    let sent = Sent::after(&rig, 0);
    sent.ensure(&crd, "tills/till")?;
    for beside in ["configmaps/kinds", "configmaps/objects", "configmaps/other"] {
        ensure!(
            !sent.is_before(&crd, beside)?,
            "{beside} waited for what it does not need: {sent:?}"
        );
    }
    ensure!(
        stage.record("objects").await?["status"]["phase"] == "Ready",
        "not ready"
    );
    Ok(())
}

#[tokio::test]
async fn who_cannot_lock_stops_only_what_needs_it() -> Result<()> {
    let rig = Rig::new("locked-out").await?;
    let (stage, namespace) = (&rig.stage, rig.stage.namespace.clone());
    let before = stage.index(
        "0/index.yaml",
        &[("kinds", "0.9.0", &manifest(&[config_map("kinds")]))],
    )?;
    let line = format!("install kinds --channel {before} --yes");
    rig.run(&line).await?.done()?;
    stage.lock("kinds", "jane@laptop (test)", 0).await?;
    let index = index(stage)?;
    let from = rig.proxy.requests().len();
    let line = format!(
        "install kinds objects a-other --channel {index} --yes --no-wait-lock --timeout 60s"
    );
    let said = rig.run(&line).await?.ended(4)?.stderr;
    for words in [
        "jane@laptop (test)".to_owned(),
        format!("skipped   {namespace}/Till till: kinds was given up ("),
        "a-other 1.0.0 installed: 1 created".to_owned(),
        "objects 1.0.0 is not done".to_owned(),
    ] {
        ensure!(said.contains(&words), "not said: {words}\n{said}");
    }
    let sent = Sent::after(&rig, from);
    let mut objects = sent.objects();
    objects.sort_unstable();
    ensure!(
        objects == ["configmaps/objects", "configmaps/other"],
        "{sent:?}"
    );

    let line = format!("{line} --steal-lock");
    rig.run(&line).await?.done()?;
    ensure!(
        stage.record("objects").await?["status"]["phase"] == "Ready",
        "not ready"
    );
    Ok(())
}

#[tokio::test]
async fn what_failed_decides_the_exit_code_also_where_others_were_skipped() -> Result<()> {
    let stage = Stage::new("exit").await?;
    let namespace = &stage.namespace;
    deny(
        &stage,
        When::Executed,
        &["CREATE"],
        "broken",
        "it is broken",
    )
    .await?;
    let broken = config_map("broken");
    let waiting = annotated(
        config_map("waiting"),
        "config.kubernetes.io/depends-on",
        &format!("/namespaces/{namespace}/ConfigMap/broken"),
    );
    let index = stage.index(
        "index.yaml",
        &[
            ("bad", "1.0.0", &manifest(&[broken])),
            ("good", "1.0.0", &manifest(&[waiting, config_map("good")])),
        ],
    )?;
    let line = format!("install bad good --channel {index} --yes --timeout 60s");
    let said = stage.run(&line).await?.ended(6)?.stderr;
    let words = format!(
        "skipped   {namespace}/ConfigMap waiting: {namespace}/ConfigMap broken failed, and it waits for that (depends-on)"
    );
    ensure!(said.contains(&words), "{said}");
    ensure!(stage.has("configmap", "good").await?, "not applied");
    let record = stage.record("good").await?;
    ensure!(record["status"]["phase"] == "Failed", "{record:#}");
    ensure!(
        !record["status"]["conditions"]
            .to_string()
            .contains("TimedOut"),
        "nothing timed out: {record:#}"
    );
    Ok(())
}
