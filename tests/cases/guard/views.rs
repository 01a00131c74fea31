//! Decisions from what was seen before: a list that is old, an event that never came, a cache that is behind (the classes of faults of
//! Sieve, OSDI 2022). In each of them the API server is the real one, and a proxy in front of it shows a client the past.
//!
//! `crate::views` repeats them at random places, with random states.

use std::time::Duration;

use addons_tests::chaos::state::nothing_leaks;
use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::plugin::Plugin;
use addons_tests::proxy::{Action, Fault, Proxy, Seen};
use addons_tests::running::Running;
use addons_tests::scene::{catalogue, create, installation, version};
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result, ensure};
use common::api::names::{
    ANNOTATION_RELEASED, CORE_ADDON_RULES, CORE_GROUP, CUSTOM_CORE_ADDONS, SYSTEM_NAMESPACE,
};
use serde_json::json;

use crate::core_addons::listed_for;
use tokio::time::timeout;

use super::is_there;

/// How long it may take until a request comes.
const COMES: Duration = Duration::from_secs(60);
/// The path of the record of `set`.
const RECORD: &str = "/addoninstallations/set";
/// A list of core add-ons.
const LISTED: &str = "[{name: dns, version: 1.0.0}]";
/// One pass of the loop.
const RECONCILE: [&str; 4] = [
    "reconcile",
    "--as=loop",
    "--as-group=kubectl-addons:core",
    "--as-group=system:masters",
];

/// The loop, behind a proxy.
fn through(stage: &Stage, proxy: &Proxy) -> Result<Running> {
    let args = ["reconcile", "--watch", "--interval", "1h"];
    Running::with(stage, proxy.kubeconfig(), &args)
}

/// Waits until the proxy has seen a request like this since `from`, and says how many have come by then.
async fn comes(
    proxy: &Proxy,
    from: usize,
    what: &str,
    is_it: impl Fn(&Seen) -> bool,
) -> Result<usize> {
    until(what, async || {
        let all = proxy.requests();
        let is_there = all.iter().skip(from).any(&is_it);
        Ok(is_there.then_some(all.len()).ok_or_else(String::new))
    })
    .await
}

/// Waits until `set` is installed as its record says.
async fn is_ready(stage: &Stage, process: &Running) -> Result<()> {
    until("it is ready", async || {
        let record = stage.record("set").await?;
        let status = &record["status"];
        let is_observed = status["observedGeneration"] == record["metadata"]["generation"];
        let is_ready = status["phase"] == "Ready" && status["operation"].is_null() && is_observed;
        Ok(is_ready
            .then_some(())
            .ok_or_else(|| format!("{status}\n{}", process.said())))
    })
    .await
}

/// Stale: a loop that was restarted reads records and objects as they were before. What was deleted and created again since, it does
/// not delete.
#[tokio::test]
async fn g19_a_loop_with_an_old_list_deletes_nothing_newer() -> Result<()> {
    let stage = Stage::alone("views-stale").await?;
    let kept = config_map("kept", "1");
    let both = kept.clone() + &config_map("dropped", "1");
    let entries = [("set", "1.0.0", &*both), ("set", "2.0.0", &*kept)];
    let index = stage.index("index.yaml", &entries)?;
    let install = format!("install set@1.0.0 --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let ensures = json!({"spec": {"reconcile": "Ensure"}});
    stage.patch("addoninstallation", "set", &ensures).await?;
    let proxy = Proxy::start(&stage.cluster)?;
    let mut process = through(&stage, &proxy)?;
    process.says("leads").await?;
    // Then it has looked at it, and written what it has to say of it.
    stage.delete("configmap", "kept").await?;
    is_there(&stage, &process, "kept").await?;
    is_ready(&stage, &process).await?;

    // It has read that `dropped` is to be pruned, and is stopped before it begins.
    proxy.remember(true);
    let stop = Action::Stop { delivered: false };
    let lock = Fault::at(1, stop).method("PUT");
    proxy.fault(lock.path(&format!("{RECORD}/status")));
    let wanted = |version: &str| json!({"spec": {"addonRef": {"version": version}}});
    stage
        .patch("addoninstallation", "set", &wanted("2.0.0"))
        .await?;
    let stopped = timeout(COMES, proxy.stopped("default")).await;
    stopped.context("it did not begin")?;
    process.process.kill()?;
    proxy.remember(false);
    stage
        .patch("addoninstallation", "set", &wanted("1.0.0"))
        .await?;
    stage.delete("configmap", "dropped").await?;
    stage.run("reconcile set").await?.done()?;
    let newer = stage.must("configmap", "dropped").await?;

    proxy.heal();
    for path in ["/addoninstallations", "/configmaps"] {
        proxy.fault(Fault::always(Action::Replay).method("GET").path(path));
    }
    let from = proxy.requests().len();
    // The Lease of the first one has not expired, and is given to the second.
    let freed = json!({"spec": {"holderIdentity": ""}});
    stage.patch("lease", "addons-reconciler", &freed).await?;
    let process = through(&stage, &proxy)?;
    let is_refused =
        |seen: &Seen| seen.method == "PUT" && seen.uri.contains(RECORD) && seen.status == Some(409);
    comes(&proxy, from, "what it read is refused", is_refused).await?;
    let now = stage.must("configmap", "dropped").await?;
    ensure!(now == newer, "{now:#}\n{}", process.said());
    nothing_leaks(&stage, "set").await
}

/// Unobserved: the loop does not hear that a record was deleted. Neither the record nor its objects come back, and another record of that
/// name is installed.
#[tokio::test]
async fn g19_a_record_whose_deletion_was_not_heard_does_not_come_back() -> Result<()> {
    let stage = Stage::alone("views-hidden").await?;
    let index = stage.index("index.yaml", &[("set", "1.0.0", &config_map("map", "1"))])?;
    let install = format!("install set --channel {index} --yes");
    stage.run(&install).await?.done()?;
    // The loop repairs it, and does not hold its deletion.
    let spec = json!({"spec": {"reconcile": "Ensure", "deletionPolicy": "Orphan"}});
    stage.patch("addoninstallation", "set", &spec).await?;
    let proxy = Proxy::start(&stage.cluster)?;
    let process = through(&stage, &proxy)?;
    process.says("leads").await?;
    is_ready(&stage, &process).await?;
    stage.delete("configmap", "map").await?;
    is_there(&stage, &process, "map").await?;
    is_ready(&stage, &process).await?;

    proxy.hide("/addoninstallations", &["DELETED"], "set");
    stage.delete("addoninstallation", "set").await?;
    until("it is hidden", async || {
        let is_hidden = proxy.hits() > 0;
        Ok(is_hidden.then_some(()).ok_or_else(String::new))
    })
    .await?;
    let from = proxy.requests().len();
    stage.delete("configmap", "map").await?;
    // It hears that, and looks.
    let is_list =
        |seen: &Seen| seen.uri.contains("/addoninstallations?") && !seen.uri.contains("watch=");
    let looked = comes(&proxy, from, "it looks", is_list).await?;
    let record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation", "metadata": {"name": "other"},
        "spec": {"addonRef": {"name": "set", "index": index}, "targetNamespace": stage.namespace, "suspend": true},
    });
    // A record that it only looks at is behind that in its queue.
    stage.apply(&record.to_string()).await?;
    comes(&proxy, looked, "it looks again", is_list).await?;
    ensure!(!stage.has("addoninstallation", "set").await?);
    ensure!(!stage.has("configmap", "map").await?);

    let mut again = record;
    again["metadata"]["name"] = json!("set");
    again["spec"]["suspend"] = json!(false);
    stage.apply(&again.to_string()).await?;
    is_there(&stage, &process, "map").await?;
    is_ready(&stage, &process).await?;
    nothing_leaks(&stage, "set").await
}

/// Stale: what a look at clusters began with is not what the list says any more. What is listed again is not released.
#[tokio::test]
async fn g19_a_core_addon_that_is_listed_again_is_not_released() -> Result<()> {
    let stage = Stage::alone("views-core").await?;
    let entry = json!({
        "version": "1.0.0", "defaultNamespace": stage.namespace,
        "source": {"inline": {"manifest": config_map("dns", "1")}},
    });
    let addons = json!([{"name": "dns", "versions": [entry]}]);
    let mut core = catalogue("core", &stage.namespace, addons);
    core["spec"]["class"] = json!("Core");
    stage.apply(&core.to_string()).await?;
    let write = async |name: &str, key: &str, text: &str| {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: text},
        });
        stage.apply(&object.to_string()).await
    };
    let here = format!("kubernetes.io/metadata.name: {}", stage.namespace);
    let list = async |text: &str| {
        let text = listed_for(&here, text);
        write(CUSTOM_CORE_ADDONS, "addons.yaml", &text).await
    };
    write(CORE_ADDON_RULES, "rules.yaml", "[]").await?;
    list(LISTED).await?;
    stage.plugin.run(&RECONCILE).await?.done()?;
    let before = stage.must("configmap", "dns").await?;

    list("[]").await?;
    let proxy = Proxy::start(&stage.cluster)?;
    let plugin = Running::home(&stage, proxy.kubeconfig())?;
    // What is read after the list.
    proxy.fault(Fault::at(1, Action::Hold).path("kubeconfig-secret"));
    let relist = async {
        until("a look has begun", async || {
            let is_held = proxy.hits() == 1;
            Ok(is_held.then_some(()).ok_or_else(String::new))
        })
        .await?;
        let all = proxy.requests();
        let is_read = all
            .iter()
            .any(|seen| seen.uri.contains(CUSTOM_CORE_ADDONS) && seen.status == Some(200));
        ensure!(is_read, "the list was not read before: {all:?}");
        list(LISTED).await?;
        proxy.flow();
        anyhow::Ok(())
    };
    let (said, relisted) = tokio::join!(plugin.run(&RECONCILE), relist);
    relisted?;
    let said = said?.done()?;
    let record = stage.record("dns").await?;
    let metadata = &record["metadata"];
    let released = &metadata["annotations"][ANNOTATION_RELEASED];
    ensure!(
        metadata["deletionTimestamp"].is_null() && released.is_null(),
        "{}\n{record:#}",
        said.stderr
    );
    ensure!(record["status"]["phase"] == "Ready", "{record:#}");
    let now = stage.must("configmap", "dns").await?;
    ensure!(now == before, "{now:#}");
    nothing_leaks(&stage, "dns").await
}

/// Stale: the webhook has not heard of a core add-on. The entry that this one uses is not removed, nor the catalogue.
#[tokio::test]
async fn g19_an_entry_of_a_core_addon_stays_also_where_that_was_not_heard_of() -> Result<()> {
    let cluster = ControlPlane::alone_api_only().await?;
    definitions::install(&cluster).await?;
    let admin = Plugin::admin(&cluster)?;
    let core = cluster.user("views-core", &["system:masters", CORE_GROUP])?;
    let core = Plugin::new(&cluster, &core.kubeconfig)?;
    let namespace = ["create", "namespace", SYSTEM_NAMESPACE];
    admin.kubectl(&namespace).await?.done()?;
    let addon = |name: &str| json!({"name": name, "versions": [version("1.0.0", json!({}))]});
    let addons = json!([addon("dns"), addon("web")]);
    let platform = catalogue("platform", SYSTEM_NAMESPACE, addons);
    create(&admin, &platform, &[]).await?.done()?;
    let proxy = Proxy::start(&cluster)?;
    let webhook = Webhook::with(&cluster, proxy.kubeconfig(), &[]).await?;
    let remove = async |addons: &str| {
        let patch = format!(r#"{{"spec":{{"addons":{addons}}}}}"#);
        let patching = ["--type=merge", "-p", &patch];
        let (verb, more) = match addons {
            "" => ("delete", &[][..]),
            _ => ("patch", &patching[..]),
        };
        let args = [verb, "addoncatalogue", "platform", "-n", SYSTEM_NAMESPACE];
        let all = [&args[..], more, &["--dry-run=server"]].concat();
        admin.kubectl(&all).await
    };
    remove("").await?.done()?;

    proxy.hide("/addoninstallations", &["ADDED", "MODIFIED"], "dns");
    let reference = json!({"name": "dns", "version": "1.0.0"});
    let spec = json!({"addonRef": reference, "coreAddon": true});
    let record = installation("dns", SYSTEM_NAMESPACE, spec);
    create(&core, &record, &[]).await?.done()?;
    until("it is hidden", async || {
        let is_hidden = proxy.hits() > 0;
        Ok(is_hidden.then_some(()).ok_or_else(String::new))
    })
    .await?;
    let only = |name: &str| json!([addon(name)]).to_string();
    for addons in [String::new(), only("web")] {
        let said = remove(&addons).await?;
        let words = "is in use by the core installation kubectl-addons/dns";
        ensure!(
            said.code != 0 && said.stderr.contains(words),
            "{addons}: {}{}",
            said.stdout,
            said.stderr
        );
    }
    remove(&only("dns")).await?.done()?;
    webhook.stop(&cluster).await
}
