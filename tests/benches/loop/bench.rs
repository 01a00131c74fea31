//! The two loops, each on a control plane of its own: idle first, then with Deployments deleted, and a leader killed.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use addons_tests::control_plane::audit::Request;
use addons_tests::control_plane::{ControlPlane, Options, definitions};
use addons_tests::guard::Guarded;
use addons_tests::running::Running;
use addons_tests::stage::Stage;
use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, DeleteParams, WatchEvent, WatchParams};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::addons::{self, ADDONS, OBJECTS};
use super::{process, say};

/// How many Deployments are deleted, one after the other.
const DELETIONS: usize = 9;
/// How many leaders are killed, one after the other.
const KILLS: usize = 3;
/// Between two looks at the memory of a process.
const SAMPLE: Duration = Duration::from_secs(1);
/// Without a request but for watches and the Lease for so long, a loop is idle.
const QUIET: Duration = Duration::from_secs(5);
/// How often that is waited for.
const LONGEST_SETTLING: usize = 60;
/// How long anything may take.
const LONGEST: Duration = Duration::from_secs(60);

/// What was measured of one loop.
pub(crate) struct Row {
    pub(crate) command: &'static str,
    /// Resident bytes in the idle window, one figure a [`SAMPLE`].
    pub(crate) memory: Vec<u64>,
    /// The most resident bytes since the start.
    pub(crate) peak: u64,
    /// The processor's time in the idle window.
    pub(crate) cpu: Duration,
    /// Requests in the idle window, by verb; those about the Lease are `lease`.
    pub(crate) requests: BTreeMap<String, usize>,
    /// Writes in the idle window, but those of the Lease.
    pub(crate) writes: usize,
    /// How long each deleted Deployment was away.
    pub(crate) away: Vec<Duration>,
    /// How long each killed leader was not replaced.
    pub(crate) replaced: Vec<Duration>,
}

/// `reconcile --watch`: records with `reconcile: Ensure`.
pub(crate) async fn reconcile(window: Duration) -> Result<Row> {
    say("reconcile --watch: installing …");
    let stage = stage().await?;
    let namespace = stage.namespace.clone();
    let manifests: Vec<_> = (0..ADDONS)
        .map(|index| (addons::name(index), addons::manifest(index, &namespace)))
        .collect();
    let entries: Vec<_> = manifests
        .iter()
        .map(|(name, manifest)| (name.as_str(), "1.0.0", manifest.as_str()))
        .collect();
    let location = stage.index("index.yaml", &entries)?;
    let records = (0..ADDONS).map(|index| addons::record(index, &namespace, &location));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": records.collect::<Vec<_>>()});
    stage.apply(&list.to_string()).await?;
    stage.run("reconcile").await?.done()?;
    let mut leader = Running::reconcile(&stage, &[])?;
    leader.says("leads").await?;
    let mut row = measure("reconcile --watch", &stage, &leader.process, window).await?;
    for _ in 0..KILLS {
        let next = Running::reconcile(&stage, &[])?;
        // It has to have seen the Lease of the other one: only then it waits for its end.
        sleep(QUIET).await;
        let killed = Instant::now();
        leader.process.kill()?;
        next.says("leads").await?;
        row.replaced.push(killed.elapsed());
        leader = next;
    }
    Ok(row)
}

/// `sync --watch`: a directory.
pub(crate) async fn sync(window: Duration) -> Result<Row> {
    say("sync --watch: installing …");
    let stage = stage().await?;
    let directory = stage.plugin.home().join("addons");
    fs::create_dir_all(&directory)?;
    for index in 0..ADDONS {
        let file = directory.join(format!("{}.yaml", addons::name(index)));
        fs::write(file, addons::manifest(index, &stage.namespace))?;
    }
    let directory = directory.to_string_lossy();
    stage
        .run(&format!("sync {directory} --yes"))
        .await?
        .done()?;
    let running = Running::start(&stage, &["sync", &directory, "--watch", "--yes"])?;
    measure("sync --watch", &stage, &running.process, window).await
}

/// A user of a control plane that no other loop works on.
async fn stage() -> Result<Stage> {
    let cluster = ControlPlane::start(Options::default()).await?;
    definitions::install(&cluster).await?;
    // The watchdog of the harness ends it with this process.
    Stage::on(cluster, "bench").await
}

async fn measure(
    command: &'static str,
    stage: &Stage,
    process: &Guarded,
    window: Duration,
) -> Result<Row> {
    complete(stage).await?;
    settle(stage).await?;
    say(&format!("{command}: idle for {} s …", window.as_secs()));
    let mark = stage.cluster.audit().mark()?;
    let (begun, cpu) = (Instant::now(), process::cpu(process.id())?);
    let mut memory = Vec::new();
    while begun.elapsed() < window {
        memory.push(process::memory(process.id())?.0);
        sleep(SAMPLE).await;
    }
    let cpu = process::cpu(process.id())?.saturating_sub(cpu);
    let requests = stage.cluster.audit().since(mark)?.by(&stage.namespace);
    let is_lease = |request: &Request| request.object.resource == "leases";
    let mut by_verb = BTreeMap::new();
    for request in &requests.0 {
        let verb = if is_lease(request) {
            "lease"
        } else {
            &request.verb
        };
        *by_verb.entry(verb.to_owned()).or_default() += 1;
    }
    let others = requests.0.iter().filter(|request| !is_lease(request));
    let writes = others.filter(|request| request.is_write()).count();
    say(&format!("{command}: {DELETIONS} Deployments are deleted …"));
    let away = deletions(stage).await?;
    Ok(Row {
        command,
        memory,
        peak: process::memory(process.id())?.1,
        cpu,
        requests: by_verb,
        writes,
        away,
        replaced: Vec::new(),
    })
}

/// That all objects are there.
async fn complete(stage: &Stage) -> Result<()> {
    let args = ["get", "addoninstallations", "-o", "json"];
    let records: serde_json::Value = serde_json::from_str(&stage.kubectl(&args).await?.stdout)?;
    let records = records["items"].as_array().context("no list")?;
    let groups = records
        .iter()
        .filter_map(|record| record["status"]["inventory"].as_array())
        .flatten();
    let objects: usize = groups
        .filter_map(|group| Some(group["objects"].as_array()?.len()))
        .sum();
    ensure!(
        (records.len(), objects) == (ADDONS, OBJECTS),
        "{} add-ons with {objects} objects",
        records.len()
    );
    Ok(())
}

/// Waits until nothing but watches and the Lease is asked for.
async fn settle(stage: &Stage) -> Result<()> {
    for _ in 0..LONGEST_SETTLING {
        let mark = stage.cluster.audit().mark()?;
        sleep(QUIET).await;
        let requests = stage.cluster.audit().since(mark)?.by(&stage.namespace);
        let is_idle =
            |request: &Request| request.verb == "watch" || request.object.resource == "leases";
        if requests.0.iter().all(is_idle) {
            return Ok(());
        }
    }
    anyhow::bail!("the loop does not come to rest")
}

/// Deletes Deployments of several add-ons; how long each was away.
async fn deletions(stage: &Stage) -> Result<Vec<Duration>> {
    let client = stage.cluster.client().await?;
    let all = Api::<Deployment>::namespaced(client, &stage.namespace);
    let mut away = Vec::new();
    for number in 0..DELETIONS {
        let name = addons::name(number * 4 % ADDONS);
        let uid = all.get(&name).await?.metadata.uid;
        let only = WatchParams::default().fields(&format!("metadata.name={name}"));
        let mut events = all.watch(&only, "0").await?.boxed();
        all.delete(&name, &DeleteParams::default()).await?;
        let begun = Instant::now();
        let back = async {
            while let Some(event) = events.try_next().await? {
                if let WatchEvent::Added(found) = event
                    && found.metadata.uid != uid
                {
                    return Ok(begun.elapsed());
                }
            }
            anyhow::bail!("the watch of {name} ended")
        };
        let back = timeout(LONGEST, back).await;
        let back = back.with_context(|| format!("{name} does not come back"))??;
        say(&format!("{name} was back after {back:?}"));
        away.push(back);
        // The next deletion meets a loop that has ended its work, but not one that forgot the last repair.
        settle(stage).await?;
    }
    Ok(away)
}
