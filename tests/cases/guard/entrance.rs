//! JSON that others wrote: what cannot be read is refused at admission, and where it is stored anyway it is a condition of itself and
//! hides nothing else (semantics 13, 18).

use std::path::Path;

use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::plugin::{Output, Plugin};
use addons_tests::running::Running;
use addons_tests::scene::{catalogue, installation, version};
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Result, ensure};
use common::api::names::SYSTEM_NAMESPACE;
use serde_json::{Value, json};

/// Deeper than what is read, and far less than what an API server stores.
const DEEP: usize = 130;
/// Refused at admission, and still read where it is stored.
const READABLE: usize = 105;
/// The key that serde_json takes for its own.
const KEY: &str = "$serde_json::private::RawValue";
/// Stands in every value.
const CANARY: &str = "c4n4ry-91d2";

/// JSON of so many levels.
fn nested(levels: usize) -> String {
    format!(
        "{}\"{CANARY}\"{}",
        r#"{"a":"#.repeat(levels),
        "}".repeat(levels)
    )
}

/// A map with the key, whose text is JSON.
fn keyed() -> String {
    json!({"a": {KEY: json!({ "smuggled": CANARY }).to_string()}}).to_string()
}

/// A record with these values, as text: it is deeper than tests read.
fn record(name: &str, namespace: &str, index: &str, values: &str) -> String {
    format!(
        r#"{{"apiVersion":"kubectl-addons.dev/v1alpha1","kind":"AddonInstallation",
            "metadata":{{"name":"{name}","namespace":"{namespace}"}},
            "spec":{{"addonRef":{{"name":"set","index":"{index}"}},"targetNamespace":"{namespace}","values":{values}}}}}"#
    )
}

async fn create(user: &Plugin, object: &str) -> Result<Output> {
    user.kubectl_with_input(&["create", "-f", "-"], object)
        .await
}

async fn is_there(stage: &Stage, kind: &str, name: &str) -> Result<bool> {
    let args = ["get", kind, name, "--ignore-not-found", "-o", "name"];
    Ok(!stage.kubectl(&args).await?.stdout.trim().is_empty())
}

/// Commands read all records, say of the unreadable ones what is wrong, and uninstall them.
#[tokio::test]
async fn g10_a_record_that_cannot_be_read_hides_no_other() -> Result<()> {
    let stage = Stage::alone("unreadable-records").await?;
    let index = stage.index("1.yaml", &[("set", "1.0.0", &config_map("settings", "1"))])?;
    let more = stage.index("2.yaml", &[("set", "1.1.0", &config_map("settings", "2"))])?;
    let install = format!("install set --channel {index} --yes");
    stage.run(&install).await?.done()?;
    for (name, values) in [("deep", nested(DEEP)), ("keyed", keyed())] {
        let object = record(name, &stage.namespace, &index, &values);
        create(&stage.plugin, &object).await?.done()?;
    }
    let listed = stage.run("list").await?.done()?.stdout;
    for (name, words) in [("set", "Ready"), ("deep", "Stalled"), ("keyed", "Stalled")] {
        let mut lines = listed.lines();
        let row = lines.find(|line| line.starts_with(name));
        ensure!(
            row.is_some_and(|row| row.contains(words)),
            "{name}: {listed}"
        );
    }
    let status = stage.run("status deep").await?;
    let told = status.stdout + &status.stderr;
    ensure!(told.contains("spec.values: it cannot be read"), "{told}");
    ensure!(told.contains("130 levels deep"), "{told}");
    let status = stage.run("status keyed").await?;
    let told = status.stdout + &status.stderr;
    ensure!(told.contains("reserved"), "{told}");
    ensure!(
        !told.contains(CANARY) && !told.contains("smuggled"),
        "{told}"
    );
    let doctor = stage.run("doctor").await?;
    let told = doctor.stdout + &doctor.stderr;
    for name in ["deep", "keyed"] {
        let object = format!("addoninstallation {}/{name}", stage.namespace);
        ensure!(told.contains(&object), "{object}: {told}");
    }
    ensure!(doctor.code == 1, "{told}");

    stage
        .run(&format!("upgrade set --channel {more} --yes"))
        .await?
        .done()?;
    let refused = stage
        .run(&format!("upgrade deep --channel {more} --yes"))
        .await?;
    ensure!(
        refused.code != 0 && refused.stderr.contains("spec.values: it cannot be read"),
        "{refused:?}"
    );
    stage.run("uninstall deep --yes").await?.done()?;
    mended(&stage, "keyed").await?;
    stage
        .kubectl(&["delete", "addoninstallation", "keyed"])
        .await?;
    for name in ["deep", "keyed"] {
        ensure!(!is_there(&stage, "addoninstallation", name).await?);
    }
    stage.must("configmap", "settings").await?;
    Ok(())
}

/// The fix that `doctor` names opens an editor: without the values, the record can be read.
async fn mended(stage: &Stage, name: &str) -> Result<()> {
    let fix = format!(
        "kubectl edit addoninstallation {name} -n {}",
        stage.namespace
    );
    let told = stage.run("doctor").await?.stdout;
    ensure!(told.contains(&fix), "{fix}: {told}");
    let line = format!("KUBE_EDITOR=\"sed -i '/^  values:/,/^[^ ]/{{/^ /d}}'\" {fix}");
    let args = ["-c", line.as_str()];
    let edited = stage.plugin.program(Path::new("sh"), &args).await?;
    edited.done()?;
    let told = stage.run("doctor").await?.stdout;
    ensure!(!told.contains(&fix), "{told}");
    Ok(())
}

/// The loop reconciles all others, says in the record what cannot be read, and uninstalls it when it is deleted.
#[tokio::test]
async fn g10_the_loop_goes_on_beside_a_record_that_cannot_be_read() -> Result<()> {
    let stage = Stage::alone("unreadable-beside").await?;
    let index = stage.index(
        "1.yaml",
        &[
            ("set", "1.0.0", &config_map("settings", "1")),
            ("other", "1.0.0", &config_map("others", "1")),
        ],
    )?;
    let install = format!("install set --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let process = Running::reconcile(&stage, &["--interval", "2s"])?;
    process.says("leads").await?;
    let finalizers = ["get", "addoninstallation", "set", "-o"];
    let finalizers = [&finalizers[..], &["jsonpath={.metadata.finalizers}"]].concat();
    until("the loop holds the record", async || {
        let said = stage.kubectl(&finalizers).await?.stdout;
        Ok(said.contains("uninstall").then_some(()).ok_or(said))
    })
    .await?;

    let patch = format!(r#"{{"spec":{{"values":{}}}}}"#, nested(DEEP));
    let args = ["patch", "addoninstallation", "set", "--type=merge", "-p"];
    stage.kubectl(&[&args[..], &[&patch]].concat()).await?;
    let conditions = ["get", "addoninstallation", "set", "-o"];
    let path = r#"jsonpath={.status.conditions[?(@.type=="Stalled")]}"#;
    let conditions = [&conditions[..], &[path]].concat();
    until("what cannot be read is a condition", async || {
        let said = stage.kubectl(&conditions).await?.stdout;
        let is_said = said.contains("True") && said.contains("spec.values: it cannot be read");
        Ok(is_said.then_some(()).ok_or_else(|| said + &process.said()))
    })
    .await?;
    let other = record("other", &stage.namespace, &index, "{}").replace(
        r#""addonRef":{"name":"set""#,
        r#""addonRef":{"name":"other""#,
    );
    create(&stage.plugin, &other).await?.done()?;
    until("another installation is reconciled", async || {
        let is_done = is_there(&stage, "configmap", "others").await?;
        Ok(is_done.then_some(()).ok_or_else(|| process.said()))
    })
    .await?;
    ensure!(!process.said().contains(CANARY), "{}", process.said());

    let delete = ["delete", "addoninstallation", "set", "--wait=false"];
    stage.kubectl(&delete).await?;
    until("it is uninstalled", async || {
        let is_left = is_there(&stage, "addoninstallation", "set").await?
            || is_there(&stage, "configmap", "settings").await?;
        Ok((!is_left).then_some(()).ok_or_else(|| process.said()))
    })
    .await
}

/// What of a catalogue cannot be read is known by name, and no other catalogue suffers.
#[tokio::test]
async fn g10_a_catalogue_that_cannot_be_read_hides_no_other() -> Result<()> {
    let stage = Stage::alone("unreadable-catalogues").await?;
    let source = json!({"source": {"inline": {"manifest": config_map("settings", "1")}}});
    let addons = json!([{"name": "web", "versions": [version("1.0.0", source)]}]);
    let good = catalogue("good", &stage.namespace, addons).to_string();
    create(&stage.plugin, &good).await?.done()?;
    let bad = catalogue_with(&stage.namespace, "bad", &nested(DEEP));
    create(&stage.plugin, &bad).await?.done()?;
    let listed = stage.run("catalogue list").await?.done()?.stdout;
    ensure!(
        listed.contains("good") && listed.contains("bad"),
        "{listed}"
    );
    let found = stage.run("search").await?.done()?;
    ensure!(found.stdout.contains("web"), "{}", found.stdout);
    ensure!(
        found
            .stderr
            .contains("catalogue bad: spec: it cannot be read"),
        "{}",
        found.stderr
    );
    ensure!(!found.stderr.contains(CANARY), "{}", found.stderr);
    let refused = stage.run("install deep --yes").await?;
    ensure!(
        refused.code != 0 && refused.stderr.contains("catalogue bad"),
        "{refused:?}"
    );
    let install = format!("install web --target-namespace {} --yes", stage.namespace);
    stage.run(&install).await?.done()?;
    stage.run("list").await?.done()?;
    stage.run("catalogue remove bad --yes").await?.done()?;
    ensure!(!is_there(&stage, "addoncatalogue", "bad").await?);
    Ok(())
}

/// A catalogue with an entry `deep` that has these values, as text.
fn catalogue_with(namespace: &str, name: &str, values: &str) -> String {
    let entry = version(
        "1.0.0",
        json!({"values": {"VALUES": 1}, "template": {"method": "go-template"}}),
    );
    let addons = json!([{"name": "deep", "versions": [entry]}]);
    let object = catalogue(name, namespace, addons).to_string();
    object.replace(r#"{"VALUES":1}"#, values)
}

/// The webhook starts beside what was stored before it, refuses more of it, and lets it be mended and deleted.
#[tokio::test]
async fn g10_the_webhook_refuses_what_cannot_be_read_and_lets_it_go() -> Result<()> {
    let cluster = ControlPlane::alone_api_only().await?;
    definitions::install(&cluster).await?;
    let admin = Plugin::admin(&cluster)?;
    let namespace = ["create", "namespace", SYSTEM_NAMESPACE];
    admin.kubectl(&namespace).await?.done()?;
    let index = "https://example.test/index.yaml";
    let of = |name: &str, values: &str| record(name, SYSTEM_NAMESPACE, index, values);
    for (name, values) in [
        ("old", nested(DEEP)),
        ("older", nested(DEEP)),
        ("key", keyed()),
    ] {
        create(&admin, &of(name, &values)).await?.done()?;
    }
    let bad = catalogue_with(SYSTEM_NAMESPACE, "bad", &nested(DEEP));
    create(&admin, &bad).await?.done()?;
    let webhook = Webhook::start(&cluster, &[]).await?;
    let good = of("good", r#"{"a":1}"#);
    until("a verdict", async || {
        let said = create(&admin, &good).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await?;

    for (object, words) in [
        (
            of("new", &nested(DEEP)),
            "spec.values: it cannot be read: lists and maps nest 130 levels deep, and 100 are allowed",
        ),
        (
            of("new", &nested(READABLE)),
            "spec.values: lists and maps nest 105 levels deep, and 100 are allowed",
        ),
        (
            of("new", &keyed()),
            "spec.values: it cannot be read: a key begins with $serde_json::private::",
        ),
        (
            catalogue_with(SYSTEM_NAMESPACE, "new", &nested(119)),
            "spec: lists and maps nest",
        ),
        (
            catalogue_with(SYSTEM_NAMESPACE, "new", &keyed()),
            "spec: a key begins with",
        ),
    ] {
        let refused = create(&admin, &object).await?;
        ensure!(
            refused.code != 0 && refused.stderr.contains(words),
            "{words}: {}",
            refused.stderr
        );
        ensure!(!refused.stderr.contains(CANARY), "{}", refused.stderr);
    }
    // Its metadata can be changed, it can be mended, and it can be deleted.
    let on = |verb: &'static str, name: &'static str, more: &'static [&'static str]| {
        let args = [verb, "addoninstallation", name, "-n", SYSTEM_NAMESPACE];
        [&args[..], more].concat()
    };
    admin.kubectl(&on("label", "old", &["a=b"])).await?.done()?;
    let patch = ["--type=merge", r#"-p={"spec":{"values":null}}"#];
    let mended = [&on("patch", "older", &[])[..], &patch].concat();
    admin.kubectl(&mended).await?.done()?;
    for name in ["old", "older", "key"] {
        admin.kubectl(&on("delete", name, &[])).await?.done()?;
    }
    let catalogues = ["delete", "addoncatalogue", "bad", "-n", SYSTEM_NAMESPACE];
    admin.kubectl(&catalogues).await?.done()?;
    webhook.stop(&cluster).await
}

/// Without the webhook, the policies refuse the key, and let what has it already go.
#[tokio::test]
async fn g10_a_policy_refuses_the_key() -> Result<()> {
    let stage = Stage::alone("refused-keys").await?;
    let index = "https://example.test/index.yaml";
    let of = |name: &str, values: &str| record(name, &stage.namespace, index, values);
    create(&stage.plugin, &of("old", &keyed())).await?.done()?;
    stage
        .apply(include_str!("../../../deploy/policies/keys.yaml"))
        .await?;
    let words = "a key begins with $serde_json::private::";
    until("the key is refused", async || {
        let dry = ["create", "-f", "-", "--dry-run=server"];
        let object = of("new", &keyed());
        let said = stage.plugin.kubectl_with_input(&dry, &object).await?;
        let is_refused = said.code != 0 && said.stderr.contains(words);
        Ok(is_refused.then_some(()).ok_or(said.stdout + &said.stderr))
    })
    .await?;
    let bad = catalogue_with(&stage.namespace, "bad", &keyed());
    let refused = create(&stage.plugin, &bad).await?;
    ensure!(
        refused.code != 0 && refused.stderr.contains(words),
        "{refused:?}"
    );
    // As a text it is nothing special.
    let text = json!({"a": KEY, "b": format!("\"{KEY}\":")}).to_string();
    create(&stage.plugin, &of("text", &text)).await?.done()?;
    let label = ["label", "addoninstallation", "old", "a=b"];
    stage.kubectl(&label).await?;
    let mended = ["patch", "addoninstallation", "old", "--type=merge"];
    let patch = ["-p", r#"{"spec":{"values":null}}"#];
    stage.kubectl(&[&mended[..], &patch].concat()).await?;
    stage
        .kubectl(&["delete", "addoninstallation", "old"])
        .await?;
    Ok(())
}

/// The log names what cannot be read, and holds nothing of it nor of what is beside it.
#[tokio::test]
async fn g15_the_log_names_what_cannot_be_read_and_no_values() -> Result<()> {
    let cluster = ControlPlane::alone_api_only().await?;
    definitions::install(&cluster).await?;
    let admin = Plugin::admin(&cluster)?;
    let namespace = ["create", "namespace", SYSTEM_NAMESPACE];
    admin.kubectl(&namespace).await?.done()?;
    let beside = json!({"addonRef": {"name": "web", "index": "https://example.test/i.yaml"}, "values": {"password": CANARY}});
    let beside: Value = installation("beside", SYSTEM_NAMESPACE, beside);
    create(&admin, &beside.to_string()).await?.done()?;
    let index = "https://example.test/index.yaml";
    let deep = record("deep", SYSTEM_NAMESPACE, index, &nested(DEEP));
    create(&admin, &deep).await?.done()?;
    let bad = catalogue_with(SYSTEM_NAMESPACE, "bad", &nested(DEEP));
    create(&admin, &bad).await?.done()?;
    let webhook = Webhook::start(&cluster, &[]).await?;
    until("the log names them", async || {
        let log = webhook.log();
        let names = ["kubectl-addons/deep", "kubectl-addons/bad"];
        let are_named = names.iter().all(|name| log.contains(name));
        Ok(are_named.then_some(()).ok_or(log))
    })
    .await?;
    // One more comes by the watch.
    let later = record("later", SYSTEM_NAMESPACE, index, &keyed());
    let user = cluster.user("system:addon-manager", &["system:masters"])?;
    let unjudged = Plugin::new(&cluster, &user.kubeconfig)?;
    create(&unjudged, &later).await?;
    let ready = reqwest::get(format!("{}/readyz", webhook.health_url())).await?;
    ensure!(ready.status().as_u16() == 200, "{}", ready.text().await?);
    let log = webhook.log();
    ensure!(!log.contains(CANARY), "{log}");
    webhook.stop(&cluster).await
}
