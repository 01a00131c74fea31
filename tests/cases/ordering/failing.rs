//! What one object that fails stops, and what objects that wait for each other do: nothing.

use addons_tests::chaos::rig::Rig;
use addons_tests::denial::{When, allow, deny};
use addons_tests::stage::Stage;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::sent::Sent;
use super::{annotated, config_map, deployment, manifest};

const PLUGIN: &str = "kubectl-addons";

#[tokio::test]
async fn what_waits_for_a_failed_object_is_skipped_and_nothing_else() -> Result<()> {
    let rig = Rig::new("failing").await?;
    let (stage, namespace) = (&rig.stage, rig.stage.namespace.clone());
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {
        "containers": [{"name": "main", "image": "example.test/app:1"}],
        "volumes": [{"name": "broken", "configMap": {"name": "broken"}}]}});
    let behind = annotated(
        config_map("behind"),
        "config.kubernetes.io/depends-on",
        &format!("/namespaces/{namespace}/Pod/x"),
    );
    let set = |given: Value| {
        manifest(&[
            given,
            pod.clone(),
            behind.clone(),
            config_map("fine"),
            deployment("fine", &["fine"]),
        ])
    };
    let first = manifest(&[config_map("old")]);
    let first = stage.index("1/index.yaml", &[("some", "1.0.0", &first)])?;
    let install = format!("install some --channel {first} --yes");
    rig.run(&install).await?.done()?;

    let set = set(config_map("broken"));
    let second = stage.index("2/index.yaml", &[("some", "2.0.0", &set)])?;
    // A plan does not know of it.
    deny(stage, When::Executed, &["CREATE"], "broken", "it is broken").await?;
    let before = rig.proxy.requests().len();
    let upgrade = format!("upgrade some -n {namespace} --yes --timeout 60s --channel");
    let said = rig.run(&format!("{upgrade} {second}")).await?.ended(6)?;
    let said = said.stderr;
    for words in [
        format!("failed    {namespace}/ConfigMap broken: "),
        format!(
            "skipped   {namespace}/Pod x: {namespace}/ConfigMap broken failed, and it waits for that (reference)"
        ),
        format!(
            "skipped   {namespace}/ConfigMap behind: {namespace}/ConfigMap broken failed, and it waits for that (depends-on)"
        ),
        format!("skipped   {namespace}/ConfigMap old: {namespace}/ConfigMap broken failed"),
        "2 created, 1 failed, 3 skipped".to_owned(),
    ] {
        ensure!(said.contains(&words), "not said: {words}\n{said}");
    }
    let sent = Sent::after(&rig, before);
    ensure!(
        sent.has("configmaps/fine") && sent.has("deployments/fine") && sent.objects().len() == 3,
        "{sent:?}"
    );
    ensure!(stage.has("configmap", "old").await?, "pruned");

    allow(stage).await?;
    let third = stage.index("3/index.yaml", &[("some", "2.0.1", &set)])?;
    let before = rig.proxy.requests().len();
    rig.run(&format!("{upgrade} {third}")).await?.done()?;
    let sent = Sent::after(&rig, before);
    sent.ensure("configmaps/broken", "pods/x")?;
    sent.ensure("pods/x", "configmaps/behind")?;
    ensure!(!stage.has("configmap", "old").await?, "not pruned");
    Ok(())
}

#[tokio::test]
async fn objects_that_wait_for_each_other_are_named_before_anything_is_written() -> Result<()> {
    let stage = Stage::new("cycle").await?;
    let namespace = &stage.namespace;
    let after = |name: &str, other: &str| {
        let other = format!("/namespaces/{namespace}/ConfigMap/{other}");
        annotated(config_map(name), "config.kubernetes.io/depends-on", &other)
    };
    let set = manifest(&[after("a", "b"), after("b", "a"), config_map("c")]);
    let index = stage.index("index.yaml", &[("ring", "1.0.0", &set)])?;
    let expected = format!(
        "error: these wait for each other: {namespace}/ConfigMap a → (depends-on) → {namespace}/ConfigMap b → (depends-on) → \
         {namespace}/ConfigMap a; change annotation config.kubernetes.io/depends-on of {namespace}/ConfigMap a or \
         {namespace}/ConfigMap b\n"
    );
    for line in [
        "install ring --yes",
        "install ring --dry-run=client",
        "install ring --dry-run=server",
        "plan ring",
        "plan ring -o dot",
        "plan ring -o plan.json",
    ] {
        let mark = stage.cluster.audit().mark()?;
        let said = stage.run(&format!("{line} --channel {index}")).await?;
        let said = said.ended(1)?;
        ensure!(
            said.stderr.matches(&expected).count() == 1 && said.stdout.is_empty(),
            "{line}: {}{}",
            said.stdout,
            said.stderr
        );
        let writes = stage.requests(mark)?.writes(PLUGIN);
        ensure!(writes == 0, "{line}: {writes} writes");
    }
    Ok(())
}
