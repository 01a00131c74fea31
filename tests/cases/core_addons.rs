//! The core set: which add-ons are core follows from rules and a list; they are created, restored, held, released and let go
//! (semantics 14).

mod clusters;
mod restored;
mod rolled_back;

use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result, ensure};
use common::api::names::{
    ANNOTATION_RELEASED, CORE_ADDON_RULES, CUSTOM_CORE_ADDONS, FINALIZER_CORE_GUARD,
};
use serde_json::{Value, json};

/// A member of the core group, as the loop is one.
const CORE: [&str; 3] = [
    "--as=loop",
    "--as-group=kubectl-addons:core",
    "--as-group=system:masters",
];

const RULES: &str = r#"
- {name: cilium, when: cni == "cilium", addons: [{name: cilium}]}
- {name: canal, when: cni == "canal", addons: [{name: canal}]}
- {name: everywhere, when: "true", addons: [{name: dns, version: 1.0.0}]}
"#;

/// A user of a cluster of one's own, whose catalogue has five add-ons with a ConfigMap each.
async fn stage() -> Result<Stage> {
    let stage = Stage::alone("core-set").await?;
    let version = |name: &str, version: &str| {
        json!({"version": version, "defaultNamespace": stage.namespace,
            // As most add-ons, each takes template data, where there is some.
            "template": {"method": "go-template"}, "source": {"inline": {"manifest": config_map(name, version)}}})
    };
    let addon = |name: &str| json!({"name": name, "versions": [version(name, "1.0.0"), version(name, "2.0.0")]});
    let addons = ["cilium", "canal", "dns", "extra", "shop"].map(addon);
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "core"},
        "spec": {"class": "Core", "addons": addons},
    });
    stage.apply(&catalogue.to_string()).await?;
    Ok(stage)
}

async fn write(stage: &Stage, name: &str, key: &str, text: &str) -> Result<()> {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: text},
    });
    stage.apply(&object.to_string()).await
}

async fn rules(stage: &Stage, text: &str) -> Result<()> {
    write(stage, CORE_ADDON_RULES, "rules.yaml", text).await
}

/// Lists add-ons for the cluster with the list.
async fn list(stage: &Stage, text: &str) -> Result<()> {
    let text = listed_for(
        &format!("kubernetes.io/metadata.name: {}", stage.namespace),
        text,
    );
    write(stage, CUSTOM_CORE_ADDONS, "addons.yaml", &text).await
}

/// A list whose add-ons are for the namespaces with a label.
pub(crate) fn listed_for(label: &str, text: &str) -> String {
    text.replace("{name: ", &format!("{{clusters: {{{label}}}, name: "))
}

/// States which network plugin the cluster has.
async fn cni(stage: &Stage, name: &str) -> Result<()> {
    let data = format!("Cluster: {{CNIPlugin: {{Type: {name}}}}}");
    write(stage, "addon-template-data", "data.yaml", &data).await
}

/// Runs a verb as a member of the core group.
async fn core(stage: &Stage, line: &str, code: i32) -> Result<addons_tests::plugin::Output> {
    let words = line.split_whitespace().chain(CORE);
    let ran = stage.plugin.run(&words.collect::<Vec<_>>()).await?;
    ran.ended(code)
}

/// The core installations, each with the version that its object is of.
async fn installed(stage: &Stage) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in ["cilium", "canal", "dns", "extra", "shop"] {
        let record = stage.get("addoninstallation", name).await?;
        let object = stage.get("configmap", name).await?;
        match (record, object) {
            (Some(record), Some(object)) => {
                ensure!(is_guarded(&record), "{record}");
                found.push(format!(
                    "{name} {}",
                    object["data"]["key"].as_str().unwrap_or_default()
                ));
            }
            (None, None) => {}
            other => anyhow::bail!("{name}: record and object do not go together: {other:?}"),
        }
    }
    Ok(found)
}

fn is_guarded(record: &Value) -> bool {
    let finalizers = record["metadata"]["finalizers"].as_array();
    let mut finalizers = finalizers.into_iter().flatten();
    record["spec"]["coreAddon"] == true && finalizers.any(|one| one == FINALIZER_CORE_GUARD)
}

/// Picking by cluster, create, update and delete, a malformed list, a blocked deletion, a dropped one, a cluster that is deleted.
#[tokio::test]
async fn core_addons_follow_rules_and_list_until_their_cluster_is_deleted() -> Result<()> {
    let stage = stage().await?;
    let system = format!("--system-namespace={}", stage.namespace);
    let webhook = Webhook::start(&stage.cluster, &[&system]).await?;
    rules_pick_by_facts(&stage).await?;
    what_is_not_known_changes_nothing(&stage).await?;
    clusters::other_namespaces_of_this_cluster_have_no_core_set(&stage).await?;
    clusters::several_are_changed_in_waves_and_released_by_a_person(&stage).await?;
    restored::deleted_records_are_written_again(&stage).await?;
    rolled_back::a_core_addon_comes_from_its_catalogue_only(&stage).await?;
    the_loop_follows_lists_and_restores(&stage).await?;
    what_is_listed_is_held(&stage).await?;
    webhook.stop(&stage.cluster).await?;
    a_marked_cluster_is_let_go(&stage).await
}

async fn rules_pick_by_facts(stage: &Stage) -> Result<()> {
    rules(stage, RULES).await?;
    list(stage, "[]").await?;
    // The fact is not known yet: that is not "no network plugin".
    let said = core(stage, "reconcile", 1).await?;
    ensure!(
        said.stderr.contains("cni of this cluster is not known"),
        "{}",
        said.stderr
    );
    ensure!(installed(stage).await?.is_empty());
    cni(stage, "cilium").await?;
    core(stage, "reconcile", 0).await?;
    ensure!(installed(stage).await? == ["cilium 2.0.0", "dns 1.0.0"]);
    let uid = stage.must("configmap", "dns").await?["metadata"]["uid"].clone();
    // What another fact rules out is installed until a person releases it.
    cni(stage, "canal").await?;
    for released in ["", "core release cilium"] {
        if !released.is_empty() {
            core(stage, released, 0).await?;
        }
        let said = core(stage, "reconcile", 0).await?.stderr;
        let waits = format!("{}/cilium  needs confirmation", stage.namespace);
        ensure!(said.contains(&waits) == released.is_empty(), "{said}");
    }
    let now = installed(stage).await?;
    ensure!(now == ["canal 2.0.0", "dns 1.0.0"], "{now:?}");
    let after = stage.must("configmap", "dns").await?["metadata"]["uid"].clone();
    ensure!(uid == after, "dns was not left alone");
    let said = core(stage, "core explain cilium", 0).await?.stdout;
    ensure!(
        said.contains("rule cilium") && said.contains("false"),
        "{said}"
    );
    let said = core(stage, "core list -o json", 0).await?.stdout;
    let said: Value = serde_json::from_str(&said)?;
    ensure!(
        said["items"][1]["name"] == "dns"
            && said["items"][1]["decision"] == "Listed"
            && said["items"][1]["listedBy"] == json!(["rule everywhere"]),
        "{said}"
    );
    // Upgraded with the list, and nothing is written where nothing changes.
    rules(stage, &RULES.replace("1.0.0", "2.0.0")).await?;
    core(stage, "reconcile", 0).await?;
    ensure!(installed(stage).await? == ["canal 2.0.0", "dns 2.0.0"]);
    let mark = stage.cluster.audit().mark()?;
    core(stage, "reconcile", 0).await?;
    let writes = stage.requests(mark)?.writes("kubectl-addons");
    ensure!(writes == 0, "{writes} writes of an idle pass");
    Ok(())
}

async fn what_is_not_known_changes_nothing(stage: &Stage) -> Result<()> {
    for (text, problem) in [
        (
            "[{name: extra, version: 1.10}]",
            "data[addons.yaml][0]: invalid type",
        ),
        ("", "data[addons.yaml]: it is missing or empty"),
    ] {
        list(stage, text).await?;
        let said = core(stage, "reconcile", 1).await?;
        ensure!(said.stderr.contains(problem), "{}", said.stderr);
        ensure!(installed(stage).await? == ["canal 2.0.0", "dns 2.0.0"]);
        let unknown = stage.condition("dns", "CoreSetUnknown").await?;
        let message = unknown["message"].as_str().context("no message")?;
        ensure!(message.contains(problem), "{message}");
    }
    list(stage, "[]").await?;
    core(stage, "reconcile", 0).await?;
    let record = stage.record("dns").await?["status"]["conditions"].to_string();
    ensure!(
        !record.contains(r#""status":"True","type":"CoreSetUnknown""#),
        "{record}"
    );
    Ok(())
}

/// Changes a record as a member of the core group.
async fn patch(stage: &Stage, name: &str, patch: &Value) -> Result<()> {
    let patch = patch.to_string();
    let args = [
        "patch",
        "addoninstallation",
        name,
        "--type=merge",
        "-p",
        &patch,
    ];
    let patched = stage.kubectl(&[&args[..], &CORE[..]].concat()).await?;
    patched.done().map(drop)
}

/// The loop looks at once: nothing here waits for its interval.
async fn the_loop_follows_lists_and_restores(stage: &Stage) -> Result<()> {
    let process = Running::reconcile(stage, &[&CORE[..], &["--interval=1h"]].concat())?;
    process.says("leads").await?;
    list(stage, "[{name: extra, version: 1.0.0}]").await?;
    is(stage, &["canal 2.0.0", "dns 2.0.0", "extra 1.0.0"]).await?;
    // As a member of the core group may do by hand.
    let take = json!({"metadata": {"finalizers": null}});
    patch(stage, "dns", &take).await?;
    until("the guard is back", async || {
        let record = stage.record("dns").await?;
        Ok(is_guarded(&record)
            .then_some(())
            .ok_or_else(|| record.to_string()))
    })
    .await?;
    let edit = json!({"spec": {"addonRef": {"version": "1.0.0"}}});
    patch(stage, "dns", &edit).await?;
    until("the version is back", async || {
        let record = stage.record("dns").await?;
        let is_back = record["spec"]["addonRef"]["version"] == "2.0.0";
        Ok(is_back
            .then_some(())
            .ok_or_else(|| record["spec"].to_string()))
    })
    .await?;
    list(stage, "[{name: extra, version: 2.0.0}]").await?;
    is(stage, &["canal 2.0.0", "dns 2.0.0", "extra 2.0.0"]).await?;
    list(stage, "[{name: extra, version: [}]").await?;
    until("an Event says what is wrong", async || {
        let events = stage
            .kubectl(&["get", "events", "-o", "json"])
            .await?
            .stdout;
        let says = events.contains("CoreSetUnknown") && events.contains("line 1");
        Ok(says.then_some(()).ok_or(events))
    })
    .await?;
    list(stage, "[]").await?;
    is(stage, &["canal 2.0.0", "dns 2.0.0"]).await?;
    a_release_is_news(stage).await
}

/// A deletion that is held goes on when the record is released, although nothing else of it changes. While the set is not known, nothing
/// else of a core record does.
async fn a_release_is_news(stage: &Stage) -> Result<()> {
    list(stage, "[{name: extra, version: [}]").await?;
    stage.condition("dns", "CoreSetUnknown").await?;
    let delete = [
        "delete",
        "addoninstallation",
        "dns",
        "--wait=false",
        "--as=breaker",
        "--as-group=kubectl-addons:break-glass",
        "--as-group=system:masters",
    ];
    stage.kubectl(&delete).await?;
    let edit = json!({"data": {"key": "edited"}});
    stage.patch("configmap", "dns", &edit).await?;
    until("what is held is repaired", async || {
        let live = stage.must("configmap", "dns").await?;
        let is_back = live["data"]["key"] == "2.0.0";
        Ok(is_back.then_some(()).ok_or_else(|| live.to_string()))
    })
    .await?;
    core(stage, "core release dns", 0).await?;
    until("the deletion goes on", async || {
        let record = stage.get("addoninstallation", "dns").await?;
        Ok(record.map_or(Ok(()), |record| Err(record["metadata"].to_string())))
    })
    .await?;
    list(stage, "[]").await?;
    is(stage, &["canal 2.0.0", "dns 2.0.0"]).await
}

async fn is(stage: &Stage, expected: &[&str]) -> Result<()> {
    until("the core set", async || {
        let now = installed(stage).await;
        let now = now.unwrap_or_else(|error| vec![format!("{error:#}")]);
        Ok((now == expected)
            .then_some(())
            .ok_or_else(|| now.join(", ")))
    })
    .await
}

async fn what_is_listed_is_held(stage: &Stage) -> Result<()> {
    let delete = [
        "delete",
        "addoninstallation",
        "dns",
        "--wait=false",
        "-n",
        &stage.namespace,
    ];
    let said = stage.plugin.kubectl(&delete).await?;
    ensure!(
        said.code == 1 && said.stderr.contains("dns is a core add-on of this cluster"),
        "{}",
        said.stderr
    );
    let said = stage.run("core release dns").await?.ended(6)?;
    ensure!(
        said.stderr
            .contains("only group kubectl-addons:core releases"),
        "{}",
        said.stderr
    );
    // It dropped out, and the deletion is allowed: the guard holds the record until its objects are deleted.
    rules(stage, "[]").await?;
    core(stage, "core release dns", 0).await?;
    stage.plugin.kubectl(&delete).await?.done()?;
    let record = stage.record("dns").await?;
    ensure!(
        is_guarded(&record) && record["metadata"]["annotations"][ANNOTATION_RELEASED] == "true",
        "{record}"
    );
    core(stage, "reconcile", 0).await?;
    ensure!(installed(stage).await?.is_empty());
    Ok(())
}

/// Neither the webhook nor a loop runs any more.
async fn a_marked_cluster_is_let_go(stage: &Stage) -> Result<()> {
    rules(stage, RULES).await?;
    core(stage, "reconcile", 0).await?;
    ensure!(installed(stage).await? == ["canal 2.0.0", "dns 1.0.0"]);
    let namespace = &stage.namespace;
    let delete = ["delete", "namespace", namespace, "--wait=false"];
    stage.plugin.kubectl(&delete).await?.done()?;
    until("everything but what is held is gone", async || {
        let gone = !stage.has("configmap", CORE_ADDON_RULES).await?;
        let record = stage.record("dns").await?;
        let is_held = gone && record["metadata"]["deletionTimestamp"].is_string();
        Ok(is_held.then_some(()).ok_or_else(|| record.to_string()))
    })
    .await?;
    stage
        .run("core release --cluster-deleting")
        .await?
        .ended(6)?;
    let said = core(stage, "core release --cluster-deleting", 0).await?;
    ensure!(
        said.stderr.contains("finalizers removed from 2 records"),
        "{}",
        said.stderr
    );
    let gone = ["wait", "--for=delete", "--timeout=30s"];
    let namespace = format!("namespace/{namespace}");
    let args = [&gone[..], &[&namespace]].concat();
    stage.plugin.kubectl(&args).await?.done().map(drop)
}
