//! What other tools installed is taken over without restarting a pod (semantics 12).

mod coming;
mod found;
mod interrupted;
mod owners;
mod page;
mod reconciled;
mod records;
mod released;
mod releases;
pub mod tools;
mod versions;

use std::collections::BTreeSet;

use addons_tests::stage::{Stage, config_map, deployment, recorded};
use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};

/// How another tool makes objects.
#[derive(Clone, Copy)]
struct Tool {
    /// Arguments of kubectl.
    args: &'static [&'static str],
    /// What it is called in a plan.
    name: &'static str,
    /// What it writes into every object.
    labels: &'static str,
}

const TOOLS: [Tool; 6] = [
    Tool {
        args: &["apply", "-f", "-"],
        name: "kubectl",
        labels: "",
    },
    Tool {
        args: &["apply", "--server-side", "-f", "-"],
        name: "kubectl",
        labels: "",
    },
    Tool {
        args: &["apply", "--server-side", "--field-manager=kops", "-f", "-"],
        name: "kops add-on shop.example",
        labels: "addon.kops.k8s.io/name: shop.example",
    },
    Tool {
        args: &["create", "--field-manager=kapp", "-f", "-"],
        name: "kapp application 17",
        labels: "kapp.k14s.io/app: '17'",
    },
    Tool {
        args: &["apply", "-f", "-"],
        name: "addon-manager",
        labels: "addonmanager.kubernetes.io/mode: Reconcile",
    },
    Tool {
        args: &["create", "--field-manager=robot", "-f", "-"],
        name: "robot",
        labels: "",
    },
];

/// A Deployment and a ConfigMap: as the tool made them, with its labels and a field that our manifest does not have, or as ours.
fn manifest(by: Option<Tool>) -> String {
    let labels = by.map_or("", |tool| tool.labels);
    let dropped = by.map_or("", |_| ", dropped: 'yes'");
    let web = deployment("web", 2, None);
    let web = web.replacen(
        "{name: web}",
        &format!("{{name: web, labels: {{{labels}}}}}"),
        1,
    );
    format!(
        "{web}apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, labels: {{{labels}}}}}\n\
         data: {{key: '1'{dropped}}}\n"
    )
}

/// Installed by the tool and ready, without us.
async fn installed(stage: &Stage, tool: Tool) -> Result<()> {
    let text = manifest(Some(tool));
    let args = [tool.args, &["-n", &stage.namespace]].concat();
    let made = stage.plugin.kubectl_with_input(&args, &text).await?;
    made.done()?;
    ready(stage).await
}

async fn ready(stage: &Stage) -> Result<()> {
    let status = ["rollout", "status", "deployment/web", "--timeout=60s"];
    stage.kubectl(&status).await.map(drop)
}

/// The uids of the pods of `web`.
async fn pods(stage: &Stage) -> Result<BTreeSet<String>> {
    let path = "jsonpath={.items[*].metadata.uid}";
    let found = stage
        .kubectl(&["get", "pods", "-l", "app=web", "-o", path])
        .await?;
    Ok(found.stdout.split_whitespace().map(str::to_owned).collect())
}

/// The managers of an object that hold fields of it, but for its status, for notes of ours, and for what kapp writes beside a manifest.
async fn managers(stage: &Stage, kind: &str, name: &str) -> Result<BTreeSet<String>> {
    let args = ["get", kind, name, "--show-managed-fields", "-o", "json"];
    let object: Value = serde_json::from_str(&stage.kubectl(&args).await?.stdout)?;
    let entries = object["metadata"]["managedFields"].as_array().cloned();
    let entries = entries.unwrap_or_default().into_iter();
    let main = entries.filter(|entry| entry["subresource"].is_null());
    let holds = main.filter(|entry| {
        let labels = &entry["fieldsV1"]["f:metadata"]["f:labels"];
        entry["manager"] != "kubectl-addons" && labels["f:kapp.k14s.io/app"].is_null()
    });
    Ok(holds
        .filter_map(|entry| entry["manager"].as_str().map(str::to_owned))
        .collect())
}

/// The state of everything that the record names.
async fn states(stage: &Stage, name: &str) -> Result<BTreeSet<String>> {
    let record = stage.record(name).await?;
    ensure!(record["status"]["inventory"].is_array(), "no inventory");
    let state = |object: &Value| object["state"].as_str().unwrap_or("owned").to_lowercase();
    Ok(recorded(&record).map(state).collect())
}

/// That the objects are ours, that what the manifest dropped is gone, and that the same pods run.
async fn is_ours(stage: &Stage, before: &BTreeSet<String>) -> Result<()> {
    ready(stage).await?;
    let after = pods(stage).await?;
    ensure!(
        before.len() == 2 && after == *before,
        "other pods: {before:?} {after:?}"
    );
    let map = stage.must("configmap", "settings").await?;
    ensure!(map["data"] == json!({"key": "1"}), "{map}");
    for (kind, name) in [("deployment", "web"), ("configmap", "settings")] {
        let object = stage.must(kind, name).await?;
        let metadata = &object["metadata"];
        ensure!(
            metadata["labels"]["kubectl-addons.dev/owner"].is_string(),
            "{object}"
        );
        let last = "kubectl.kubernetes.io/last-applied-configuration";
        ensure!(metadata["annotations"][last].is_null(), "{object}");
    }
    let states = states(stage, "web").await?;
    ensure!(states == BTreeSet::from(["owned".to_owned()]), "{states:?}");
    Ok(())
}

#[tokio::test]
async fn what_a_tool_applied_is_adopted() -> Result<()> {
    try_join_all(TOOLS.map(|tool| async move {
        let adopted = adopted(tool).await;
        adopted.with_context(|| format!("kubectl {}", tool.args.join(" ")))
    }))
    .await
    .map(drop)
}

async fn adopted(tool: Tool) -> Result<()> {
    let stage = Stage::new("adopt").await?;
    let namespace = stage.namespace.clone();
    stage.run("init").await?.done()?;
    installed(&stage, tool).await?;
    let before = pods(&stage).await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(None))])?;
    let line = format!("install web --channel {index} --yes");

    let refused = stage.run(&line).await?.ended(4)?.stderr;
    ensure!(
        refused.contains("accept: --adopt, which takes over what exists")
            && refused.contains(&format!("-n {namespace} --show-managed-fields")),
        "{refused}"
    );
    let dry = format!("{line} --adopt --dry-run=server");
    let dry = stage.run(&dry).await?.done()?.stderr;
    for object in ["Deployment web", "ConfigMap settings"] {
        let told = format!("{namespace}/{object} (from {})", tool.name);
        ensure!(dry.contains(&format!("adopt     {told}")), "{told}: {dry}");
    }
    ensure!(!stage.has("addoninstallation", "web").await?, "it was made");

    let done = stage.run(&format!("{line} --adopt")).await?.done()?.stderr;
    ensure!(done.contains("web 1.0.0 installed: 2 adopted"), "{done}");
    if tool.name == "robot" {
        // Who is not known as a tool that writes whole objects keeps its fields, too.
        let left = managers(&stage, "configmap", "settings").await?;
        ensure!(left.contains("robot"), "{left:?}");
        let dropped = json!({"data": {"dropped": null}});
        stage.patch("configmap", "settings", &dropped).await?;
    } else {
        let left = managers(&stage, "configmap", "settings").await?;
        ensure!(left.len() == 1, "{left:?}");
    }
    is_ours(&stage, &before).await?;

    let mark = stage.cluster.audit().mark()?;
    stage.run("upgrade web").await?.done()?;
    let writes = stage.requests(mark)?.writes("kubectl-addons");
    ensure!(writes == 0, "{writes} writes although nothing changed");
    stage.run("uninstall web --yes").await?.done()?;
    for (kind, name) in [("deployment", "web"), ("configmap", "settings")] {
        ensure!(!stage.has(kind, name).await?, "{kind} {name} stays");
    }
    Ok(())
}

/// A plan file says that objects are adopted, and holds as long as they are the same.
#[tokio::test]
async fn a_plan_file_adopts_what_it_was_made_for() -> Result<()> {
    let stage = Stage::new("adopt-plan").await?;
    let map = |value: &str| config_map("settings", value);
    stage.apply(&map("1")).await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &map("2"))])?;
    let plan = async |file: &str| {
        let line = format!("plan web --channel {index} --adopt -o {file}");
        stage.run(&line).await?.done()
    };
    plan("first.json").await?;
    let text = std::fs::read_to_string(stage.plugin.home().join("first.json"))?;
    let file: Value = serde_json::from_str(&text)?;
    let step = &file["installations"][0]["steps"][0];
    ensure!(
        file["choices"]["adopt"] == true
            && step["action"] == "adopt"
            && step["policy"]["adopted"]["from"] == "kubectl",
        "{step}"
    );

    // Another object of that name, and one that another installation took meanwhile.
    stage.delete("configmap", "settings").await?;
    stage.apply(&map("1")).await?;
    let said = stage.run("apply first.json --yes").await?.ended(4)?.stderr;
    ensure!(said.contains("ConfigMap settings: "), "{said}");
    plan("second.json").await?;
    let other = stage.index("other.yaml", &[("other", "1.0.0", &map("3"))])?;
    let install = format!("install other --channel {other} --adopt --yes");
    stage.run(&install).await?.done()?;
    let said = stage.run("apply second.json --yes").await?.ended(4)?.stderr;
    ensure!(said.contains("belongs to"), "{said}");
    let install = format!("install web --channel {index} --adopt --yes");
    let said = stage.run(&install).await?.ended(4)?.stderr;
    ensure!(said.contains("the installation"), "{said}");
    ensure!(!said.contains("accept:"), "{said}");

    stage.run("uninstall other --yes").await?.done()?;
    stage.apply(&map("1")).await?;
    plan("third.json").await?;
    let said = stage.run("apply third.json --yes").await?.done()?.stderr;
    ensure!(said.contains("1 adopted"), "{said}");
    let map = stage.must("configmap", "settings").await?;
    ensure!(map["data"]["key"] == "2", "{map}");
    Ok(())
}

/// Claims hold data: they are adopted, and stay when the add-on is uninstalled (semantics 7).
#[tokio::test]
async fn what_holds_data_is_adopted_and_retained() -> Result<()> {
    let stage = Stage::new("adopt-data").await?;
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  \
                 accessModes: [ReadWriteOnce]\n  storageClassName: none\n  resources: {requests: {storage: 1Gi}}\n---\n";
    let text = [claim, &config_map("settings", "1")].concat();
    stage.apply(&text).await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &text)])?;
    let line = format!("install web --channel {index} --adopt --yes --wait=false");
    let said = stage.run(&line).await?.done()?.stderr;
    ensure!(said.contains("2 adopted"), "{said}");
    stage.run("uninstall web --yes").await?.done()?;
    ensure!(
        stage.has("persistentvolumeclaim", "data").await?,
        "it is gone"
    );
    ensure!(!stage.has("configmap", "settings").await?, "it stays");
    Ok(())
}
