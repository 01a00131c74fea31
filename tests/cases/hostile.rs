//! Clients that want the webhook to answer no other client. They come from another address than the API server, as pods do;
//! where a network policy or `--client-ca` keeps them out, they do not get this far.

mod attack;
mod attacker;

use std::net::SocketAddr;
use std::sync::Arc;

use addons_tests::control_plane::{ControlPlane, Options, definitions};
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result, ensure};
use common::api::catalogue::AddonCatalogue;
use common::api::names;
use kube::api::{Api, PostParams};
use serde_json::json;

use self::attack::Attack;
use self::attacker::Attacker;

/// What deploy/base allows the pod, in bytes: it never needs more, whatever comes.
const MEMORY: u64 = 256 << 20;
/// What it may keep when all is over: the allocator does not give back everything.
const KEPT: u64 = 128 << 20;
/// Threads when all is over.
const THREADS: u64 = 64;
/// Reviews of the API server during each attack, on its connection and on a new one; on a busy machine, as many may time out.
const REVIEWS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(full), ignore = "FULL=1: attacks for minutes")]
async fn the_api_server_is_answered_during_each_attack() -> Result<()> {
    let cluster = ControlPlane::start(Options::api_only()).await?;
    definitions::install(&cluster).await?;
    // Few, for each connection costs this test a handshake; half-open ones do not count among them.
    let mut webhook = Webhook::start(&cluster, &["--max-connections=128"]).await?;
    let process = webhook.process().id();
    let attacker = Arc::new(Attacker::new(&webhook)?);
    let api_server = ApiServer::new(&cluster, &webhook).await?;
    println!("before: {} MiB", Memory::of(process)?.now >> 20);
    for attack in Attack::ALL {
        let attacked = attacker.begin(attack).await?;
        let mut misses = 0;
        for _ in 0..REVIEWS {
            misses += api_server.review().await?;
        }
        probe(&webhook).await?;
        let statuses = attacked.end(attack).await?;
        let memory = Memory::of(process)?;
        println!(
            "{attack:?}: {} clients, {misses} misses, answered {statuses:?}, {} MiB, {} MiB at most",
            attack.clients(),
            memory.now >> 20,
            memory.most >> 20
        );
        ensure!(misses <= REVIEWS, "{attack:?}: {misses} misses");
        ensure!(memory.most < MEMORY, "{attack:?}: {memory:?}");
    }
    until("memory and threads are given back", async || {
        let memory = Memory::of(process)?;
        let is_so = memory.now < KEPT && memory.threads < THREADS;
        Ok(is_so.then_some(()).ok_or(format!("{memory:?}")))
    })
    .await?;
    let log = webhook.log();
    ensure!(!log.contains("panicked"), "{log}");
    webhook.stop(&cluster).await
}

/// The one client that counts.
struct ApiServer {
    catalogues: Api<AddonCatalogue>,
    duplicate: AddonCatalogue,
    attacker: Attacker,
}

impl ApiServer {
    async fn new(cluster: &ControlPlane, webhook: &Webhook) -> Result<Self> {
        let version =
            |version: &str| json!({"version": version, "source": {"inline": {"manifest": ""}}});
        let duplicate = serde_json::from_value(json!({
            "apiVersion": names::API_VERSION,
            "kind": "AddonCatalogue",
            "metadata": {"name": "ordinary"},
            "spec": {"addons": [{"name": "web", "versions": [version("1"), version("v1.0.0")]}]},
        }))?;
        Ok(Self {
            catalogues: Api::namespaced(cluster.client().await?, "default"),
            duplicate,
            attacker: Attacker::new(webhook)?.from([127, 0, 0, 1]),
        })
    }

    /// A verdict through the real API server, which may have a connection already, and one on a new connection from its
    /// address. Returns how often it had to ask again.
    async fn review(&self) -> Result<usize> {
        let mut asked = 0;
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        until("a verdict", async || {
            asked += 1;
            let said = self.catalogues.create(&dry_run, &self.duplicate).await;
            Ok(match said {
                Err(kube::Error::Api(status)) if status.message.contains("denied the request") => {
                    Ok(())
                }
                said => Err(format!("{said:?}")),
            })
        })
        .await?;
        until("a verdict on a new connection", async || {
            asked += 1;
            let status = self.attacker.review().await;
            let is_so = matches!(status, Ok(200));
            Ok(is_so.then_some(()).ok_or(format!("{status:?}")))
        })
        .await?;
        Ok(asked - 2)
    }
}

/// `/healthz`, as the kubelet asks it.
async fn probe(webhook: &Webhook) -> Result<()> {
    let url = format!("{}/healthz", webhook.health_url());
    until("/healthz", async || {
        let answer = reqwest::get(&url).await;
        Ok(match answer {
            Ok(answer) if answer.status() == 200 => Ok(()),
            answer => Err(format!("{answer:?}")),
        })
    })
    .await
}

/// What Linux says of a process.
#[derive(Debug)]
struct Memory {
    /// Resident bytes.
    now: u64,
    /// The most that were resident.
    most: u64,
    threads: u64,
}

impl Memory {
    fn of(process: u32) -> Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
        let number = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            Ok(number.with_context(|| format!("no {name}"))?.parse()?)
        };
        Ok(Self {
            now: number("VmRSS:")? << 10,
            most: number("VmHWM:")? << 10,
            threads: number("Threads:")?,
        })
    }
}

/// An address of the webhook.
fn address(url: &str) -> Result<SocketAddr> {
    let (_, address) = url.split_once("://").context("no URL")?;
    Ok(address.parse()?)
}
