//! Clusters for tests that need one for themselves: a few, used by turns and emptied in between, for a start takes as much processor
//! time as a dozen tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::{ControlPlane, Options};

/// How long it may take until a cluster is empty; it takes a second.
const DEADLINE: Duration = Duration::from_secs(30);
/// Requests at the same time.
const REQUESTS: usize = 8;

/// What nobody has to remove: it comes and goes by itself.
const PASSING: [&str; 2] = ["events", "leases"];

/// Clusters with one set of components.
struct Pool {
    options: fn() -> Options,
    /// How many there are at most. A test that finds all of them in use waits for one.
    most: usize,
    /// What there is; the error of a start, for the next one would fail as slowly.
    all: Mutex<Result<Vec<Pooled>, String>>,
}

struct Pooled {
    cluster: Arc<ControlPlane>,
    /// What was there when it had started.
    began: State,
    /// How often it was taken.
    taken: usize,
}

/// etcd and the API server.
static API_ONLY: Pool = Pool::new(Options::api_only, 2);
/// All components, and one node. Two tests that need two of them each find them, where they share the second.
static WHOLE: Pool = Pool::new(Options::default, 3);

impl ControlPlane {
    /// A cluster that no other test uses until the caller drops it. Only a test that changes what Kubernetes itself creates, as nodes,
    /// or that needs flags, starts one.
    ///
    /// # Errors
    /// Of [`ControlPlane::start`].
    pub async fn alone() -> Result<Arc<Self>> {
        Ok(Box::pin(WHOLE.take()).await?.0)
    }

    /// The same with etcd and the API server alone, for tests in which no controller matters.
    ///
    /// # Errors
    /// As [`ControlPlane::alone`].
    pub async fn alone_api_only() -> Result<Arc<Self>> {
        Ok(Box::pin(API_ONLY.take()).await?.0)
    }
}

/// A cluster that the tests of one module share as long as one of them runs.
pub struct Own {
    pool: &'static Pool,
    /// The cluster, and the time that it was taken for them.
    last: Mutex<(Weak<ControlPlane>, usize)>,
}

impl Own {
    /// One with all components.
    #[must_use]
    pub const fn new() -> Self {
        Self::of(&WHOLE)
    }

    /// One with etcd and the API server alone.
    #[must_use]
    pub const fn api_only() -> Self {
        Self::of(&API_ONLY)
    }

    const fn of(pool: &'static Pool) -> Self {
        Self {
            pool,
            last: Mutex::const_new((Weak::new(), 0)),
        }
    }

    /// The cluster that another test of the module uses now, or one that nobody uses.
    ///
    /// # Errors
    /// Of [`ControlPlane::start`].
    pub async fn get(&self) -> Result<Arc<ControlPlane>> {
        let mut last = self.last.lock().await;
        if let Some(cluster) = self.pool.in_use(&last.0, last.1).await {
            return Ok(cluster);
        }
        let (cluster, taken) = self.pool.take().await?;
        *last = (Arc::downgrade(&cluster), taken);
        Ok(cluster)
    }
}

impl Default for Own {
    fn default() -> Self {
        Self::new()
    }
}

impl Pool {
    const fn new(options: fn() -> Options, most: usize) -> Self {
        Self {
            options,
            most,
            all: Mutex::const_new(Ok(Vec::new())),
        }
    }

    /// One that nobody uses, as it was when it had started, and how often it was taken. It is free again when the last user drops it.
    async fn take(&self) -> Result<(Arc<ControlPlane>, usize)> {
        loop {
            let mut all = self.all.lock().await;
            let known = all.as_mut().map_err(|error| anyhow!("{error}"))?;
            // The pool has one reference itself, and nobody else gets another without its lock.
            let free = known
                .iter()
                .position(|one| Arc::strong_count(&one.cluster) == 1);
            if let Some(free) = free {
                let mut pooled = known.swap_remove(free);
                // What cannot be emptied is ended, and another one started.
                if let Ok(()) = empty(&pooled.cluster, &pooled.began).await {
                    pooled.taken += 1;
                    let taken = (Arc::clone(&pooled.cluster), pooled.taken);
                    known.push(pooled);
                    return Ok(taken);
                }
            } else if known.len() == self.most {
                drop(all);
                sleep(Duration::from_millis(100)).await;
                continue;
            }
            return match self.start().await {
                Ok(pooled) => {
                    let taken = (Arc::clone(&pooled.cluster), pooled.taken);
                    known.push(pooled);
                    Ok(taken)
                }
                Err(error) => {
                    *all = Err(format!("{error:#}"));
                    Err(error)
                }
            };
        }
    }

    async fn start(&self) -> Result<Pooled> {
        let cluster = ControlPlane::start((self.options)()).await?;
        Ok(Pooled {
            began: State::of(&cluster.client().await?).await?,
            cluster: Arc::new(cluster),
            taken: 0,
        })
    }

    /// The cluster, where whoever took it that time still uses it.
    async fn in_use(
        &self,
        cluster: &Weak<ControlPlane>,
        taken: usize,
    ) -> Option<Arc<ControlPlane>> {
        let all = self.all.lock().await;
        let mut known = all.as_ref().ok()?.iter();
        let pooled = known.find(|one| std::ptr::eq(Arc::as_ptr(&one.cluster), cluster.as_ptr()))?;
        let is_used = Arc::strong_count(&pooled.cluster) > 1 && pooled.taken == taken;
        is_used.then(|| Arc::clone(&pooled.cluster))
    }
}

/// The objects of a cluster: the path of each, with its labels.
struct State(BTreeMap<String, Value>);

impl State {
    async fn of(client: &Client) -> Result<Self> {
        let lists = resources(client).await?;
        let lists = stream::iter(lists.iter().map(|list| objects(client, list)));
        let all: Vec<_> = lists.buffered(REQUESTS).try_collect().await?;
        Ok(Self(all.into_iter().flatten().collect()))
    }
}

/// Removes everything that was not there in the beginning.
///
/// # Errors
/// Something does not go; something of the beginning is missing or has other labels.
async fn empty(cluster: &ControlPlane, began: &State) -> Result<()> {
    cluster.end_added_nodes();
    let client = cluster.client().await?;
    let deadline = Instant::now() + DEADLINE;
    loop {
        let now = State::of(&client).await?;
        if let Some((path, _)) = began
            .0
            .iter()
            .find(|(path, labels)| now.0.get(*path) != Some(labels))
        {
            bail!("{path} is not as it was");
        }
        let more = now
            .0
            .iter()
            .filter(|(path, _)| !began.0.contains_key(*path));
        let more: BTreeSet<_> = more.map(|(path, _)| path.as_str()).collect();
        if more.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("still there: {more:?}");
        }
        for stage in STAGES {
            let these = more.iter().filter(|path| stage(path));
            let removed = stream::iter(these.map(|path| remove(&client, path)));
            removed
                .buffer_unordered(REQUESTS)
                .collect::<Vec<()>>()
                .await;
        }
    }
}

/// In which order objects go: first what could refuse the rest; then namespaces, so that nothing new comes into them; definitions after
/// what they define.
const STAGES: [fn(&str) -> bool; 4] = [
    is_admission,
    is_namespace,
    |path| !is_admission(path) && !is_namespace(path) && !is_definition(path),
    |path| is_namespace(path) || is_definition(path),
];

fn is_admission(path: &str) -> bool {
    path.starts_with("/apis/admissionregistration.k8s.io/")
}

fn is_namespace(path: &str) -> bool {
    path.strip_prefix("/api/v1/namespaces/")
        .is_some_and(|name| !name.contains('/'))
}

fn is_definition(path: &str) -> bool {
    path.starts_with("/apis/apiextensions.k8s.io/")
}

/// Asks for its deletion without waiting for anybody's consent. A failure shows in the next look at what is there.
async fn remove(client: &Client, path: &str) {
    let send = async |request: http::request::Builder, body: Value| {
        if let Ok(request) = request.body(body.to_string().into_bytes()) {
            let _ = client.request::<Value>(request).await;
        }
    };
    let patch = http::Request::patch(path).header("Content-Type", "application/merge-patch+json");
    if !is_definition(path) {
        send(patch, json!({"metadata": {"finalizers": null}})).await;
    }
    let delete = http::Request::delete(path).header("Content-Type", "application/json");
    let now = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
    send(delete, now).await;
    if let Some(name) = path.strip_prefix("/api/v1/namespaces/")
        && is_namespace(path)
    {
        let finalized = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}});
        let put = http::Request::put(format!("{path}/finalize"))
            .header("Content-Type", "application/json");
        send(put, finalized).await;
    }
}

/// A resource that can be listed and deleted: the path of its API, as `/apis/apps/v1`, its name in the plural, and whether its objects
/// are in namespaces.
struct Resource {
    api: String,
    name: String,
    is_namespaced: bool,
}

/// Everything that can be listed and deleted, once: in the preferred version of its group.
async fn resources(client: &Client) -> Result<Vec<Resource>> {
    let groups = get(client, "/apis").await?;
    let groups = groups["groups"].as_array();
    let groups = groups.into_iter().flatten();
    let versions = groups.filter_map(|group| group["preferredVersion"]["groupVersion"].as_str());
    let apis = versions.map(|version| format!("/apis/{version}"));
    let mut all = Vec::new();
    for api in ["/api/v1".to_owned()].into_iter().chain(apis) {
        // Nothing answers for an aggregated API whose server a test has ended.
        let Ok(found) = get(client, &api).await else {
            continue;
        };
        for resource in found["resources"].as_array().into_iter().flatten() {
            let name = resource["name"].as_str().unwrap_or_default();
            let verbs = resource["verbs"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            let can = |verb: &str| verbs.iter().any(|one| one == verb);
            if can("list") && can("delete") && !PASSING.contains(&name) {
                all.push(Resource {
                    api: api.clone(),
                    name: name.to_owned(),
                    is_namespaced: resource["namespaced"] == true,
                });
            }
        }
    }
    Ok(all)
}

/// The paths of the objects of a list, each with its labels.
async fn objects(client: &Client, list: &Resource) -> Result<Vec<(String, Value)>> {
    let Resource {
        api,
        name,
        is_namespaced,
    } = list;
    let asked = http::Request::get(format!("{api}/{name}"))
        .header(
            "Accept",
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        )
        .body(Vec::new())?;
    let found = match client.request::<Value>(asked).await {
        // A definition that went in between.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        found => found?,
    };
    let items = found["items"].as_array();
    let items = items.into_iter().flatten().map(|item| {
        let metadata = &item["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let path = match is_namespaced {
            true => format!(
                "{api}/namespaces/{}/{name}/{}",
                text("namespace"),
                text("name")
            ),
            false => format!("{api}/{name}/{}", text("name")),
        };
        (path, metadata["labels"].clone())
    });
    Ok(items.collect())
}

async fn get(client: &Client, path: &str) -> Result<Value> {
    let asked = http::Request::get(path).body(Vec::new())?;
    Ok(client.request(asked).await?)
}
