//! The loop: catalogues follow where they came from, go to the clusters of namespaces, and what they lose is flagged.

use std::path::Path;
use std::sync::{Arc, Mutex};

use addons_tests::control_plane::ControlPlane;
use addons_tests::objects;
use addons_tests::proxy::{Action, Fault, Proxy, Seen};
use addons_tests::running::Running;
use addons_tests::servers::http::{Answer, Server};
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::api::names::API_VERSION;
use serde_json::{Value, json};

/// A cluster with a catalogue that is behind a URL, and another cluster that it is brought to.
struct Hub {
    stage: Stage,
    there: Arc<ControlPlane>,
    proxy: Proxy,
    text: Arc<Mutex<String>>,
    server: Server,
}

impl Hub {
    async fn new() -> Result<Self> {
        let stage = Stage::on(super::other().await?, "hub").await?;
        stage.run("init").await?.done()?;
        // The administrator of the other cluster installs the definitions.
        let there = Stage::new("spoke").await?;
        there.run("init").await?.done()?;
        let text = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&text);
        let server = Server::start(None, move |_| {
            let text = shown.lock().map(|text| text.clone());
            Answer::ok(text.unwrap_or_default())
        })?;
        Ok(Self {
            stage,
            proxy: Proxy::start(&there.cluster)?,
            there: there.cluster,
            text,
            server,
        })
    }

    /// The versions that the file of the catalogue has from now on.
    fn offer(&self, versions: &[&str]) {
        let versions = versions.iter().map(|version| {
            let manifest = config_map("web", version);
            json!({
                "version": version, "defaultNamespace": self.stage.namespace,
                "constraints": {"k8sVersion": if *version == "1.1.0" { "<1.99.0" } else { "" }},
                "source": {"inline": {"manifest": manifest}},
            })
        });
        let versions: Vec<Value> = versions.collect();
        let catalogue = json!({
            "apiVersion": API_VERSION, "kind": "AddonCatalogue", "metadata": {"name": "platform"},
            "spec": {"addons": [{"name": "web", "versions": versions}]},
        });
        if let Ok(mut text) = self.text.lock() {
            *text = catalogue.to_string();
        }
    }

    fn namespace(&self, site: &str) -> String {
        format!("{}-{site}", self.stage.namespace)
    }

    /// A namespace that is selected, and stands for the cluster of a kubeconfig, or for this one.
    async fn stand(&self, site: &str, kubeconfig: Option<&str>) -> Result<()> {
        let name = self.namespace(site);
        let fleet = &self.stage.namespace;
        let labels = match kubeconfig {
            Some(_) => json!({"fleet": fleet, "kubectl-addons.dev/kubeconfig-secret": "it"}),
            None => json!({"fleet": fleet, "kubectl-addons.dev/cluster": "local"}),
        };
        let mut items = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}),
        ];
        items.extend(kubeconfig.map(|text| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "it", "namespace": name},
                "data": {"value": STANDARD.encode(text)},
            })
        }));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let apply = ["apply", "-f", "-"];
        let plugin = &self.stage.plugin;
        plugin.kubectl_with_input(&apply, &list).await?.done()?;
        Ok(())
    }

    /// Waits until the merged catalogue of a cluster has these versions of `web`, and returns it.
    async fn merged(&self, cluster: &ControlPlane, versions: &[&str]) -> Result<Value> {
        let namespace = &self.stage.namespace;
        let path =
            format!("/apis/{API_VERSION}/namespaces/{namespace}/addoncatalogues/merged-custom");
        let client = cluster.client().await?;
        until(&format!("{versions:?} are merged"), async || {
            let merged = objects::read(&client, &path).await?.unwrap_or_default();
            let listed = merged["spec"]["addons"][0]["versions"].as_array();
            let listed = listed.into_iter().flatten();
            let listed: Vec<_> = listed.filter_map(|one| one["version"].as_str()).collect();
            let is_there = listed == versions;
            Ok(if is_there {
                Ok(merged)
            } else {
                Err(merged.to_string())
            })
        })
        .await
    }

    /// What the loop asked the other cluster since the first requests.
    fn asked(&self, since: usize) -> Vec<Seen> {
        self.proxy.requests().split_off(since)
    }
}

/// What the catalogue holds is in the merged ones soon; a new target needs no restart, one that cannot be reached fails alone, and
/// where nothing changed nothing is written. A version that is removed stays installed and is flagged until it is listed again.
#[tokio::test]
async fn the_loop_distributes_and_flags_what_was_removed() -> Result<()> {
    let hub = Hub::new().await?;
    hub.offer(&["1.0.0"]);
    let add = format!("catalogue add {}", hub.server.url("/all.json"));
    hub.stage.run(&add).await?.done()?;
    hub.stage.run("install web@1.0.0 -y").await?.done()?;
    let read = |path: &Path| std::fs::read_to_string(path);
    let dead = read(hub.there.kubeconfig())?.replace(hub.there.server(), "https://127.0.0.1:9");
    hub.stand("dead", Some(&dead)).await?;
    let client = hub.proxy.client("hub", hub.there.admin())?;
    hub.stand("spoke", Some(&read(&client)?)).await?;
    let selector = format!("fleet={}", hub.stage.namespace);
    let args = [
        "--interval",
        "2s",
        "--store-compatible",
        "--push-catalogues",
        &selector,
    ];
    let process = Running::reconcile(&hub.stage, &args)?;
    for (site, words) in [
        ("spoke", "  catalogue merged-custom created"),
        ("dead", ": catalogue merged-custom: "),
    ] {
        let words = format!("{}{words}", hub.namespace(site));
        process.says(&words).await?;
    }
    hub.merged(&hub.there, &["1.0.0"]).await?;

    hub.offer(&["1.0.0", "1.1.0"]);
    hub.merged(&hub.there, &["1.0.0", "1.1.0"]).await?;
    hub.stand("here", None).await?;
    let here = hub.merged(&hub.stage.cluster, &["1.0.0", "1.1.0"]).await?;
    ensure!(here["metadata"]["labels"]["kubectl-addons.dev/derived-from"].is_string());
    stored(&hub).await?;
    is_idle(&hub).await?;

    hub.offer(&["1.1.0"]);
    hub.stage.condition("web", "Unlisted").await?;
    hub.merged(&hub.there, &["1.1.0"]).await?;
    let map = hub.stage.must("configmap", "web").await?;
    ensure!(map["data"]["key"] == "1.0.0", "{map}");
    let unlisted = "Unlisted: catalogue platform no longer has web 1.0.0";
    for line in ["list --outdated", "status web"] {
        let said = hub.stage.run(line).await?.done()?;
        ensure!(said.stdout.contains(unlisted), "{}", said.stdout);
    }
    hub.offer(&["1.0.0", "1.1.0"]);
    until("it is listed again", async || {
        let status = hub.stage.record("web").await?["status"].clone();
        let conditions = status["conditions"].as_array();
        let mut all = conditions.into_iter().flatten();
        let is_listed = all.any(|one| one["type"] == "Unlisted" && one["status"] == "False");
        Ok(is_listed.then_some(()).ok_or_else(|| status.to_string()))
    })
    .await?;

    // One pass without the loop does the same for the catalogue, and flags what is gone.
    drop(process);
    hub.offer(&["1.1.0"]);
    hub.stage.run("reconcile").await?;
    let stored = hub.stage.must("addoncatalogue", "platform").await?;
    let versions = &stored["spec"]["addons"][0]["versions"];
    ensure!(
        versions.as_array().is_some_and(|all| all.len() == 1),
        "{stored}"
    );
    hub.stage.condition("web", "Unlisted").await.map(drop)
}

/// What fits a cluster is stored in its namespace, and follows its upgrade.
async fn stored(hub: &Hub) -> Result<()> {
    let namespace = hub.namespace("spoke");
    let path =
        format!("/apis/{API_VERSION}/namespaces/{namespace}/addoncatalogues/compatible-addons");
    let client = hub.stage.cluster.client().await?;
    let lists = async |versions: &[&str]| {
        until(&format!("{versions:?} fit"), async || {
            let stored = objects::read(&client, &path).await?.unwrap_or_default();
            let addon = &stored["spec"]["addons"][0];
            let all = addon["versions"].as_array();
            let all: Vec<&Value> = all.into_iter().flatten().collect();
            let found: Vec<_> = all
                .iter()
                .filter_map(|one| one["version"].as_str())
                .collect();
            let is_whole = addon["name"] == "web"
                && all.iter().all(|one| {
                    one["manifestHash"].is_string()
                        && one["source"]["catalogue"]["name"] == "platform"
                });
            Ok((found == versions && is_whole)
                .then_some(())
                .ok_or_else(|| stored.to_string()))
        })
        .await
    };
    lists(&["1.0.0", "1.1.0"]).await?;
    let version = json!({"major": "1", "minor": "99", "gitVersion": "v1.99.0"});
    let upgraded = Fault::always(Action::Say(version.to_string()));
    hub.proxy.fault(upgraded.client("hub").path("/version"));
    lists(&["1.0.0"]).await
}

/// In passes in which nothing is due the other cluster is asked for its catalogues and its version alone, and nothing is written here.
async fn is_idle(hub: &Hub) -> Result<()> {
    // What followed the last change comes to its end first.
    for is_counted in [false, true] {
        let (mark, since) = (
            hub.stage.cluster.audit().mark()?,
            hub.proxy.requests().len(),
        );
        until("two passes", async || {
            let passes = hub.asked(since).len();
            Ok((passes >= 4)
                .then_some(())
                .ok_or_else(|| passes.to_string()))
        })
        .await?;
        if !is_counted {
            continue;
        }
        let of_catalogues = |seen: &Seen| {
            seen.uri == "/version"
                || seen.method == "GET"
                    && seen.uri.contains("/addoncatalogues")
                    && !seen.uri.contains("merged")
        };
        let asked = hub.asked(since);
        ensure!(asked.iter().all(of_catalogues), "{asked:?}");
        let requests = hub.stage.requests(mark)?;
        let written = requests.0.iter();
        let mut written = written.filter(|it| it.is_write() && it.object.resource != "leases");
        let first = written.next();
        ensure!(first.is_none(), "{first:?}");
    }
    Ok(())
}
