//! Hostile clusters, and a hostile tenant, in one run with honest ones: nothing but the records of the attackers suffers.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use addons_tests::chaos::state::nothing_leaks;
use addons_tests::control_plane::ControlPlane;
use addons_tests::control_plane::pki::{Credentials, write_kubeconfig};
use addons_tests::objects;
use addons_tests::proxy::{Action, Fault, Proxy};
use addons_tests::running::Running;
use addons_tests::servers::http::{Answer, Server};
use addons_tests::stage::{Stage, config_map, tenant};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::clusters::other;

/// The largest answer of another cluster that is read, in bytes.
const LARGEST: usize = 64 << 20;
/// Levels that no parser goes down.
const DEEP: usize = 100_000;
/// What the loop needs at most while two answers of that size come, in bytes.
const MEMORY: u64 = 1 << 30;
/// How long a change of an honest record, or an edit of its object, may take beside all of them.
const SOON: Duration = Duration::from_secs(60);
/// Values that are too deep to be read back.
const NESTED: usize = 130;

/// How the API server of a hostile cluster answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cluster {
    /// Lists without an end, page after page, also where one object is asked for.
    Pages,
    /// An answer that is larger than any that is read.
    Huge,
    /// An object that nests deeper than any parser goes.
    Deep,
    /// Not at all.
    Hanging,
    /// It is another cluster than it was.
    Swapped,
    /// Go elsewhere.
    Redirect,
}

impl Cluster {
    const ALL: [Self; 6] = [
        Self::Pages,
        Self::Huge,
        Self::Deep,
        Self::Hanging,
        Self::Swapped,
        Self::Redirect,
    ];

    /// Its name.
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// What it answers in place of what it was.
    fn fault(self) -> Option<Fault> {
        let say = |text: String| Fault::always(Action::Say(text));
        let maps = |fault: Fault| fault.method("GET").path("/configmaps");
        let list = |metadata: Value| {
            let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata});
            let mut list = list.to_string();
            list.truncate(list.len() - 1);
            list + r#","items":["#
        };
        let fault = match self {
            Self::Pages => maps(say(list(json!({"continue": "more"})) + "]}")),
            Self::Huge => maps(say(list(json!({})) + &" ".repeat(LARGEST) + "]}")),
            Self::Deep => {
                let object = r#"{"metadata":{"name":"web"},"data":"#;
                let nested = "[".repeat(DEEP) + &"]".repeat(DEEP);
                maps(say(format!("{}{object}{nested}}}]}}", list(json!({})))))
            }
            Self::Hanging => Fault::always(Action::Hang { delivered: false }),
            Self::Swapped => {
                let metadata = json!({"name": "kube-system", "uid": "another"});
                let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
                say(object.to_string()).path("/namespaces/kube-system")
            }
            Self::Redirect => return None,
        };
        Some(fault.client(&self.name()))
    }
}

/// The cluster of the records, and one with honest and hostile namespaces.
struct World {
    stage: Stage,
    other: Arc<ControlPlane>,
    /// What the hostile clusters are seen through.
    proxy: Proxy,
}

impl World {
    fn namespace(&self, site: &str) -> String {
        format!("{}-{site}", self.stage.namespace)
    }

    /// Writes objects as their names say where they are.
    async fn apply(&self, items: &[Value]) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let args = ["apply", "-f", "-"];
        let applied = self.stage.plugin.kubectl_with_input(&args, &list).await?;
        applied.done().map(drop)
    }

    /// Makes a namespace stand for the cluster of a kubeconfig, with the record of `web` in it.
    async fn stand(&self, site: &str, kubeconfig: &Path) -> Result<()> {
        let name = self.namespace(site);
        let labels = json!({"kubectl-addons.dev/kubeconfig-secret": "other"});
        let kubeconfig = std::fs::read_to_string(kubeconfig)?;
        self.apply(&[
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": name},
                "stringData": {"value": kubeconfig}}),
            self.record(&name, json!({})),
        ])
        .await
    }

    /// The record of `web` in a namespace, with more fields.
    fn record(&self, namespace: &str, more: Value) -> Value {
        let mut spec = json!({
            "addonRef": {"name": "web", "catalogue": "web"}, "targetNamespace": namespace, "reconcile": "Ensure",
        });
        json_patch::merge(&mut spec, &more);
        json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "web", "namespace": namespace}, "spec": spec,
        })
    }

    /// The version that the catalogue offers from now on.
    async fn offer(&self, version: &str, value: &str) -> Result<()> {
        let source = json!({"inline": {"manifest": config_map("web", value)}});
        let version = json!({"version": version, "source": source});
        let file = self.stage.catalogue("web", &version)?;
        let add = format!("catalogue add {}", file.display());
        self.stage.run(&add).await?.done().map(drop)
    }

    async fn stored(&self, namespace: &str) -> Result<Option<Value>> {
        let path = objects::path("addoninstallation", namespace, "web").context("known")?;
        objects::read(&self.stage.cluster.client().await?, &path).await
    }

    /// The ConfigMap of a namespace, here or in the other cluster.
    async fn map(&self, cluster: &ControlPlane, namespace: &str) -> Result<Value> {
        let path = objects::path("configmap", namespace, "web").context("known")?;
        let found = objects::read(&cluster.client().await?, &path).await?;
        Ok(found.unwrap_or_default())
    }

    /// Edits it, as another manager.
    async fn edit(&self, cluster: &ControlPlane, namespace: &str) -> Result<()> {
        let path = objects::path("configmap", namespace, "web").context("known")?;
        let edit = json!({"data": {"key": "edited"}});
        objects::patch(&cluster.client().await?, &path, &edit).await
    }

    /// Waits until an honest installation is as it is asked for, and says how long that took.
    async fn is(
        &self,
        process: &Running,
        cluster: &ControlPlane,
        namespace: &str,
        value: &str,
    ) -> Result<Duration> {
        let begun = Instant::now();
        until(&format!("{namespace} has {value}"), async || {
            let (map, record) = (
                self.map(cluster, namespace).await?,
                self.stored(namespace).await?.unwrap_or_default(),
            );
            let is_so = map["data"]["key"] == value && record["status"]["phase"] == "Ready";
            Ok(is_so
                .then_some(())
                .ok_or_else(|| format!("{map} {}\n{}", record["status"], process.said())))
        })
        .await?;
        Ok(begun.elapsed())
    }

    /// What a tenant writes in a namespace of this cluster.
    async fn tenant(&self) -> Result<()> {
        let team = self.namespace("tenant");
        self.apply(&tenant(&team)).await?;
        let index = |name: &str, index: &str| {
            let spec = json!({
                "addonRef": {"name": "web", "index": index}, "targetNamespace": team, "serviceAccountName": "deployer",
            });
            json!({
                "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
                "metadata": {"name": name, "namespace": team}, "spec": spec,
            })
        };
        let nested = r#"{"a":"#.repeat(NESTED) + "1" + &"}".repeat(NESTED);
        let mut deep = index("deep", "https://index.example.test");
        deep["spec"]["values"] = json!("VALUES");
        let deep = deep.to_string().replace(r#""VALUES""#, &nested);
        let mut keyed = index("keyed", "https://index.example.test");
        keyed["spec"]["values"] = json!({"$serde_json::private::RawValue": "{}"});
        let inside = index("inside", "http://169.254.169.254/latest/meta-data");
        for object in [deep, keyed.to_string(), inside.to_string()] {
            let create = ["create", "-f", "-"];
            let created = self
                .stage
                .plugin
                .kubectl_with_input(&create, &object)
                .await?;
            created.done()?;
        }
        self.forge(&team).await
    }

    /// A record that claims the objects of an honest one, and is deleted with them.
    async fn forge(&self, team: &str) -> Result<()> {
        let honest = self
            .stored(&self.stage.namespace)
            .await?
            .context("honest")?;
        let more = json!({"suspend": true, "serviceAccountName": "deployer"});
        let mut forged = self.record(team, more);
        forged["metadata"]["finalizers"] = json!(["kubectl-addons.dev/uninstall"]);
        self.apply(&[forged]).await?;
        let path = objects::path("addoninstallation", team, "web").context("known")?;
        let client = self.stage.cluster.client().await?;
        let status = json!({"status": {"inventory": honest["status"]["inventory"]}});
        objects::patch(&client, &format!("{path}/status"), &status).await?;
        let delete = ["delete", "addoninstallation", "web", "--wait=false"];
        let delete = [&delete[..], &["-n", team]].concat();
        self.stage.plugin.kubectl(&delete).await?.done()?;
        objects::patch(&client, &path, &json!({"spec": {"suspend": false}})).await
    }
}

/// The most memory that a process has had, in bytes.
fn most_memory(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no VmHWM")?.parse::<u64>()? << 10)
}

/// Whether anything is said to be wrong with a record.
fn is_blamed(record: &Value) -> bool {
    let bad = ["Stalled", "NeedsConfirmation", "Contested"];
    let conditions = record["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["status"] == "True" && bad.iter().any(|bad| one["type"] == *bad))
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: hostile clusters for minutes")]
async fn g12_nothing_but_the_attackers_records_suffers() -> Result<()> {
    let other = other().await?;
    let world = World {
        stage: Stage::alone("hostile").await?,
        proxy: Proxy::start(&other)?,
        other,
    };
    let stage = &world.stage;
    let (home, site) = (stage.namespace.clone(), world.namespace("honest"));
    let both = [(&*stage.cluster, &home), (&*world.other, &site)];
    world.offer("1.0.0", "1").await?;
    world.apply(&[world.record(&home, json!({}))]).await?;
    world.stand("honest", world.other.kubeconfig()).await?;
    let args = [
        "reconcile",
        "--watch",
        "--interval",
        "3s",
        "--request-timeout",
        "5s",
    ];
    let mut process = Running::start(stage, &args)?;
    process.says("leads").await?;
    for (cluster, namespace) in both {
        world.is(&process, cluster, namespace, "1").await?;
    }
    let before = world.map(&stage.cluster, &home).await?;

    // What a redirect leads to.
    let bait = Server::start(None, |_| Answer::ok("{}"))?;
    let to = bait.url("/api/v1/secrets");
    let authority = stage.cluster.authority();
    let pair = authority.serving("redirect", &["127.0.0.1"])?;
    let redirect = Server::start(Some(&pair), move |_| Answer::moved(to.clone()))?;
    for hostile in Cluster::ALL {
        let name = hostile.name();
        let kubeconfig = match hostile {
            Cluster::Redirect => {
                let path = stage.plugin.home().join("redirect.kubeconfig");
                let (url, token) = (redirect.url(""), Credentials::Token("token"));
                write_kubeconfig(&path, &url, &authority.certificate, &token)?;
                path
            }
            _ => world.proxy.client(&name, world.other.admin())?,
        };
        // What is swapped is honest at first.
        let fault = hostile.fault().filter(|_| hostile != Cluster::Swapped);
        if let Some(fault) = fault {
            world.proxy.fault(fault);
        }
        world.stand(&name, &kubeconfig).await?;
    }
    let swapped = world.namespace(&Cluster::Swapped.name());
    world.is(&process, &world.other, &swapped, "1").await?;
    let fault = Cluster::Swapped.fault().context("a fault")?;
    world.proxy.fault(fault);
    world.tenant().await?;

    // While all of them are at it.
    for (round, version) in [("2", "2.0.0"), ("3", "3.0.0")] {
        world.edit(&stage.cluster, &home).await?;
        let repaired = world
            .is(&process, &stage.cluster, &home, &previous(round))
            .await?;
        world.offer(version, round).await?;
        let mut took = vec![repaired];
        for (cluster, namespace) in both {
            took.push(world.is(&process, cluster, namespace, round).await?);
        }
        println!("guard::hostile: repaired and upgraded after {took:?}");
        ensure!(took.iter().all(|took| *took < SOON), "{took:?}");
    }
    let after = world.map(&stage.cluster, &home).await?;
    let uid = |map: &Value| map["metadata"]["uid"].clone();
    ensure!(uid(&before) == uid(&after), "{before} {after}");
    for (_, namespace) in both {
        let record = world.stored(namespace).await?.context("no record")?;
        ensure!(!is_blamed(&record), "{record:#}");
    }
    nothing_leaks(stage, "web").await?;
    for hostile in Cluster::ALL {
        let namespace = world.namespace(&hostile.name());
        until(&format!("{hostile:?} is told of"), async || {
            let record = world.stored(&namespace).await?.context("it is gone")?;
            let is_told =
                is_blamed(&record) || process.said().contains(&format!("{namespace}/web"));
            Ok(is_told
                .then_some(())
                .ok_or_else(|| record["status"].to_string()))
        })
        .await?;
    }
    // Where it led before, nothing was touched after it was swapped.
    let there = world.map(&world.other, &swapped).await?;
    ensure!(there["data"]["key"] == "1", "{there}");
    ensure!(bait.requests().is_empty(), "{:?}", bait.requests());
    let most = most_memory(process.process.id())?;
    println!("guard::hostile: at most {} MiB", most >> 20);
    ensure!(most < MEMORY, "{most}");
    ensure!(process.process.try_wait()?.is_none(), "{}", process.said());
    process.ends(0)
}

/// The value before this one.
fn previous(value: &str) -> String {
    value
        .parse::<u32>()
        .map_or_else(|_| String::new(), |value| (value - 1).to_string())
}
