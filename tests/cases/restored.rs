//! Records that come from a backup while the cluster has moved on (semantics 13): no verb follows them, and `adopt` records again what
//! is there.

use addons_tests::control_plane::Own;
use addons_tests::stage::{OF_SERVER, Stage, config_map, deployment, recorded};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// A reconciler without a name works on all that namespaces stand for: records of other tests are none of its business.
static CLUSTER: Own = Own::new();

/// Long before anything that a test writes.
const YESTERDAY: &str = "2020-01-02T03:04:05Z";

/// An add-on of which a backup was made in its first version.
struct Shop {
    stage: Stage,
    index: String,
    /// The record of the first version.
    backup: Value,
}

/// `settings` changes with the version, `kept` does not, and `web` has a pod.
fn manifest(value: &str) -> String {
    let web = deployment("web", 1, None);
    format!(
        "{web}{}{}",
        config_map("settings", value),
        config_map("kept", "same")
    )
}

impl Shop {
    /// Version 1.1.0 is installed, and the record is that of 1.0.0.
    async fn restored(what: &str, with_status: bool) -> Result<Self> {
        let shop = Self::new(what).await?;
        shop.restore(with_status).await?;
        Ok(shop)
    }

    async fn new(what: &str) -> Result<Self> {
        let stage = Stage::of_module(&CLUSTER, what).await?;
        let index = stage.index("index.yaml", &[("shop", "1.0.0", &manifest("1"))])?;
        let install = format!("install shop --channel {index} --yes");
        stage.run(&install).await?.done()?;
        let backup = stage.record("shop").await?;
        let more = format!("{}{}", manifest("2"), config_map("more", "new"));
        stage.index("index.yaml", &[("shop", "1.1.0", &more)])?;
        stage.run("upgrade shop --yes").await?.done()?;
        Ok(Self {
            stage,
            index,
            backup,
        })
    }

    /// Deletes the record and creates the one of the backup without its status.
    async fn created_again(&self, verb: &[&str]) -> Result<Value> {
        self.stage.delete("addoninstallation", "shop").await?;
        let mut record = self.backup.clone();
        for field in OF_SERVER {
            if let Some(metadata) = record["metadata"].as_object_mut() {
                metadata.remove(field);
            }
        }
        send(&self.stage, verb, &record).await?;
        Ok(record)
    }

    /// The same, as a backup tool does.
    async fn restore(&self, with_status: bool) -> Result<()> {
        let mut record = self.created_again(&["create"]).await?;
        if with_status {
            let now = self.stage.record("shop").await?;
            record["metadata"] = now["metadata"].clone();
            aged(&mut record["status"]);
            write_status(&self.stage, &record).await?;
        }
        Ok(())
    }

    /// What a wrong step would change.
    async fn objects(&self) -> Result<Vec<Value>> {
        let mut found = Vec::new();
        for (kind, name) in [
            ("configmap", "settings"),
            ("configmap", "kept"),
            ("configmap", "more"),
            ("deployment", "web"),
        ] {
            let object = self.stage.must(kind, name).await?;
            let metadata = &object["metadata"];
            found.push(json!([
                metadata["uid"],
                metadata["generation"],
                object["data"]
            ]));
        }
        Ok(found)
    }

    /// The command is refused with the way out, and writes nothing.
    async fn refused(&self, line: &str) -> Result<()> {
        let before = self.objects().await?;
        let mark = self.stage.cluster.audit().mark()?;
        let said = self.stage.run(line).await?.ended(4)?.stderr;
        let fix = format!(
            "fix:    kubectl addons adopt shop -n {}",
            self.stage.namespace
        );
        ensure!(
            said.contains("is older than the cluster") && said.contains(&fix),
            "{line}: {said}"
        );
        let writes = self.stage.requests(mark)?.writes("kubectl-addons");
        ensure!(writes == 0, "{line}: {writes} writes");
        ensure!(self.objects().await? == before, "{line}: objects changed");
        Ok(())
    }

    /// What is there is recorded, and the next upgrade goes on from it.
    async fn goes_on(&self) -> Result<()> {
        let before = self.objects().await?;
        let dry = self.stage.run("adopt shop --dry-run").await?.done()?.stderr;
        ensure!(dry.contains("ConfigMap more"), "{dry}");
        let done = self.stage.run("adopt shop --yes").await?.done()?.stderr;
        ensure!(done.contains("shop") && done.contains("recorded"), "{done}");
        ensure!(self.objects().await? == before, "objects changed");
        let names = inventory(&self.stage).await?;
        ensure!(names == ["kept", "more", "settings", "web"], "{names:?}");

        // Nothing goes on by itself: which version is there is not known.
        self.stage.run("reconcile").await?.ended(1)?;
        let last = format!(
            "{}{}",
            deployment("web", 1, None),
            config_map("settings", "3")
        );
        self.stage
            .index("index.yaml", &[("shop", "1.2.0", &last)])?;
        self.stage.run("upgrade shop --yes").await?.done()?;
        let settings = self.stage.must("configmap", "settings").await?;
        ensure!(settings["data"]["key"] == "3", "{settings}");
        let web = self.stage.must("deployment", "web").await?;
        ensure!(web["metadata"]["generation"] == before[3][1], "{web}");
        for gone in ["kept", "more"] {
            ensure!(!self.stage.has("configmap", gone).await?, "{gone} is left");
        }
        let said = self.stage.run("reconcile").await?.done()?.stderr;
        ensure!(said.contains("up to date"), "{said}");
        Ok(())
    }
}

/// Creates an object from its JSON.
async fn create(stage: &Stage, object: &Value) -> Result<()> {
    send(stage, &["create"], object).await
}

/// Writes a status as it stands.
async fn write_status(stage: &Stage, record: &Value) -> Result<()> {
    send(stage, &["replace", "--subresource=status"], record).await
}

async fn send(stage: &Stage, verb: &[&str], object: &Value) -> Result<()> {
    let args = [verb, &["-n", &stage.namespace, "-f", "-"]].concat();
    let text = object.to_string();
    let sent = stage.plugin.kubectl_with_input(&args, &text).await?;
    sent.done().map(drop)
}

/// As if its operations had ended long ago.
fn aged(status: &mut Value) {
    status["installed"]["at"] = json!(YESTERDAY);
    for revision in status["history"].as_array_mut().into_iter().flatten() {
        revision["installed"]["at"] = json!(YESTERDAY);
    }
}

/// Names of what the record holds, sorted.
async fn inventory(stage: &Stage) -> Result<Vec<String>> {
    let record = stage.record("shop").await?;
    ensure!(record["status"]["inventory"].is_array(), "no inventory");
    let names = recorded(&record).filter_map(|object| object["name"].as_str().map(str::to_owned));
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

#[tokio::test]
async fn no_verb_follows_a_record_that_is_older_than_the_cluster() -> Result<()> {
    let shop = Shop::restored("restored", true).await?;
    let index = &shop.index;
    for line in [
        "upgrade shop --yes",
        "upgrade shop@1.1.0 --yes",
        "uninstall shop --yes",
        "adopt --release shop --yes",
        "diff shop",
        &format!("install shop --channel {index} --yes"),
        &format!("channel apply {index} --yes"),
    ] {
        shop.refused(line).await?;
    }
    for line in ["status shop", "list"] {
        let shown = shop.stage.run(line).await?.done()?.stdout;
        ensure!(shown.contains("RecordOlderThanCluster"), "{line}: {shown}");
    }
    shop.goes_on().await
}

#[tokio::test]
async fn a_record_that_was_restored_without_its_status_is_not_followed() -> Result<()> {
    let shop = Shop::restored("restored-blank", false).await?;
    for line in ["upgrade shop --yes", "reconcile"] {
        let before = shop.objects().await?;
        let said = shop.stage.run(line).await?.ended(4)?.stderr;
        ensure!(said.contains("is older than the cluster"), "{line}: {said}");
        ensure!(shop.objects().await? == before, "{line}: objects changed");
    }
    shop.goes_on().await
}

#[tokio::test]
async fn an_installation_that_only_created_its_record_is_continued() -> Result<()> {
    let shop = Shop::new("restored-begun").await?;
    // As our client does, which is killed then.
    shop.created_again(&["create", "--field-manager=kubectl-addons"])
        .await?;
    let install = format!("install shop --channel {} --yes", shop.index);
    shop.stage.run(&install).await?.done()?;
    ensure!(inventory(&shop.stage).await?.len() == 4);
    Ok(())
}

#[tokio::test]
async fn a_reconciler_asks_once_and_writes_nothing_more() -> Result<()> {
    let shop = Shop::restored("restored-loop", true).await?;
    let before = shop.objects().await?;
    shop.stage.run("reconcile").await?.ended(4)?;
    let asked = shop.stage.condition("shop", "NeedsConfirmation").await?;
    ensure!(asked["reason"] == "RecordOlderThanCluster", "{asked}");
    let message = asked["message"].as_str().unwrap_or_default();
    ensure!(message.contains("kubectl addons adopt shop"), "{message}");
    let mark = shop.stage.cluster.audit().mark()?;
    shop.stage.run("reconcile").await?.ended(4)?;
    let writes = shop.stage.requests(mark)?.writes("kubectl-addons");
    ensure!(writes == 0, "{writes} writes");
    ensure!(shop.objects().await? == before, "objects changed");
    shop.goes_on().await
}

#[tokio::test]
async fn a_record_that_is_as_new_as_the_cluster_is_followed() -> Result<()> {
    let mut shop = Shop::new("restored-current").await?;
    shop.backup = shop.stage.record("shop").await?;
    shop.stage.delete("addoninstallation", "shop").await?;
    // Installing again under the same name takes the objects back.
    let install = format!("install shop --channel {} --yes", shop.index);
    shop.stage.run(&install).await?.done()?;
    ensure!(inventory(&shop.stage).await?.len() == 4);
    // What a killed client left behind is its own, however old the record is.
    let mut record = shop.stage.record("shop").await?;
    aged(&mut record["status"]);
    write_status(&shop.stage, &record).await?;
    shop.stage.lock("shop", "dead", 3600).await?;
    shop.stage
        .index("index.yaml", &[("shop", "1.2.0", &manifest("3"))])?;
    shop.stage.run("upgrade shop --yes").await?.done()?;
    ensure!(!shop.stage.has("configmap", "more").await?, "more is left");
    Ok(())
}

#[tokio::test]
async fn a_directory_does_not_follow_a_record_that_is_older_than_the_cluster() -> Result<()> {
    let stage = Stage::new("restored-sync").await?;
    let of = |value: &str| {
        config_map("settings", value).replace("{name: settings}", &format!(
        "{{name: settings, namespace: {}, labels: {{addonmanager.kubernetes.io/mode: Reconcile}}}}",
        stage.namespace
    ))
    };
    stage.write("dir/shop.yaml", &of("1"))?;
    let dir = stage.plugin.home().join("dir");
    let sync = format!("sync {} --yes", dir.display());
    stage.run(&sync).await?.done()?;
    let mut record = stage.record("shop").await?;
    aged(&mut record["status"]);
    write_status(&stage, &record).await?;
    stage.write("dir/shop.yaml", &of("2"))?;
    let said = stage.run(&sync).await?.ended(4)?.stderr;
    ensure!(said.contains("is older than the cluster"), "{said}");
    let settings = stage.must("configmap", "settings").await?;
    ensure!(settings["data"]["key"] == "1", "{settings}");
    stage.run("adopt shop --yes").await?.done()?;
    stage.run(&sync).await?.done()?;
    let settings = stage.must("configmap", "settings").await?;
    ensure!(settings["data"]["key"] == "2", "{settings}");
    Ok(())
}

/// Writes another cluster into the record, as if it had been restored from there.
async fn from_elsewhere(stage: &Stage) -> Result<()> {
    let mut record = stage.record("shop").await?;
    record["status"]["cluster"]["kubeSystemUid"] = json!("another");
    write_status(stage, &record).await
}

/// Deletes an object and creates it with the same content: it has another uid, as in another cluster.
async fn recreated(stage: &Stage, kind: &str, name: &str) -> Result<()> {
    let mut object = stage.must(kind, name).await?;
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| {
            ["name", "namespace", "labels", "annotations"].contains(&field.as_str())
        });
    }
    stage.kubectl(&["delete", kind, name]).await?;
    create(stage, &object).await
}

#[tokio::test]
async fn a_record_of_another_cluster_is_followed_by_no_verb() -> Result<()> {
    let shop = Shop::new("restored-elsewhere").await?;
    let stage = &shop.stage;
    let args = [
        "get",
        "namespace",
        "kube-system",
        "-o",
        "jsonpath={.metadata.uid}",
    ];
    let here = stage.plugin.kubectl(&args).await?.done()?.stdout;
    let pinned = stage.record("shop").await?["status"]["cluster"]["kubeSystemUid"].clone();
    ensure!(pinned == json!(here), "{pinned} instead of {here}");

    from_elsewhere(stage).await?;
    recreated(stage, "configmap", "more").await?;
    recreated(stage, "configmap", "settings").await?;
    let before = shop.objects().await?;
    let accept = format!(
        "accept: kubectl addons adopt shop -n {} --new-cluster",
        stage.namespace
    );
    for line in [
        "upgrade shop --repair --yes",
        &format!("channel apply {} --yes", shop.index),
        "uninstall shop --yes",
        "adopt shop --yes",
        "adopt --release shop --yes",
    ] {
        let mark = stage.cluster.audit().mark()?;
        let said = stage.run(line).await?.ended(4)?.stderr;
        let is_told = [&here, "another", &accept]
            .iter()
            .all(|part| said.contains(*part));
        ensure!(is_told, "{line}: {said}");
        let writes = stage.requests(mark)?.writes("kubectl-addons");
        ensure!(writes == 0, "{line}: {writes} writes");
    }
    stage.run("reconcile shop").await?.ended(4)?;
    let asked = stage.condition("shop", "NeedsConfirmation").await?;
    ensure!(asked["reason"] == "OtherCluster", "{asked}");
    let shown = stage.run("status shop").await?.done()?.stdout;
    ensure!(shown.contains("OtherCluster"), "{shown}");
    ensure!(shop.objects().await? == before, "objects changed");

    let said = stage
        .run("adopt shop --new-cluster --yes")
        .await?
        .done()?
        .stderr;
    ensure!(said.contains(&here) && said.contains("another"), "{said}");
    ensure!(shop.objects().await? == before, "objects changed");
    let pinned = stage.record("shop").await?["status"]["cluster"]["kubeSystemUid"].clone();
    ensure!(pinned == json!(here), "{pinned} instead of {here}");
    let again = stage.run("adopt shop --new-cluster --yes").await?;
    ensure!(again.code == 1, "{}", again.stderr);

    // What was recorded by another uid is deleted by the one that it has now.
    stage.index("index.yaml", &[("shop", "1.2.0", &manifest("3"))])?;
    stage.run("upgrade shop --yes").await?.done()?;
    ensure!(!stage.has("configmap", "more").await?, "more is left");
    let settings = stage.must("configmap", "settings").await?;
    ensure!(settings["data"]["key"] == "3", "{settings}");
    stage.run("uninstall shop --yes").await?.done()?;
    ensure!(!stage.has("configmap", "settings").await?, "it is left");
    Ok(())
}
