//! The two servers, one round beside the other, and what each took.

use std::fs;
use std::time::Duration;

use addons_tests::control_plane::{ControlPlane, Options, definitions};
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result};
use common::api::catalogue::AddonCatalogue;
use common::api::names::{API_VERSION, SYSTEM_NAMESPACE};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use url::Url;

use super::bodies::{self, ADDON, Size};
use super::echo::Echo;
use super::load::{self, Answers};
use super::{process, say};

/// Of each server in turn, so that what else runs on the machine hits both alike.
const ROUNDS: usize = 4;
/// How long one is.
pub(crate) const ROUND: Duration = Duration::from_millis(1_000);
/// Connections.
pub(crate) const CONNECTIONS: [usize; 3] = [1, 8, 64];

/// What is measured beside the echo.
pub(crate) struct Server {
    /// Its paths with their URLs; one without a name where it was given.
    paths: Vec<(&'static str, Url)>,
    /// Its process, where it is one of ours.
    id: Option<u32>,
}

impl Server {
    /// The server at a URL.
    pub(crate) fn peer(url: Url) -> Self {
        Self {
            paths: vec![("--url", url)],
            id: None,
        }
    }
}

/// A cluster with the webhook, which knows an add-on.
pub(crate) struct Stage {
    pub(crate) cluster: ControlPlane,
    webhook: Webhook,
}

impl Stage {
    pub(crate) async fn start() -> Result<Self> {
        say("starting a control plane and the webhook …");
        let cluster = definitions::cluster(Options::api_only()).await?;
        let (client, params) = (cluster.client().await?, PostParams::default());
        let namespace: Namespace =
            serde_json::from_value(json!({"metadata": {"name": SYSTEM_NAMESPACE}}))?;
        Api::all(client.clone()).create(&params, &namespace).await?;
        let version = json!({"version": "1.0.0", "source": {"inline": {"manifest": ""}}});
        let source: AddonCatalogue = serde_json::from_value(json!({
            "apiVersion": API_VERSION, "kind": "AddonCatalogue", "metadata": {"name": "platform"},
            "spec": {"addons": [{"name": ADDON, "versions": [version]}]},
        }))?;
        let catalogues = Api::namespaced(client, SYSTEM_NAMESPACE);
        catalogues.create(&params, &source).await?;
        let webhook = Webhook::start(&cluster, &[]).await?;
        Ok(Self { cluster, webhook })
    }

    pub(crate) fn server(&mut self) -> Result<Server> {
        let url = self.webhook.url();
        let at = |path: &'static str| -> Result<(&'static str, Url)> {
            Ok((path, Url::parse(&format!("{url}{path}"))?))
        };
        Ok(Server {
            paths: vec![at("/validate")?, at("/mutate")?],
            id: Some(self.webhook.process().id()),
        })
    }
}

/// What one server answered, and the processor's time that it took for it.
#[derive(Default)]
pub(crate) struct Side {
    pub(crate) answers: Answers,
    pub(crate) cpu: Option<Duration>,
}

/// One path, body and number of connections.
pub(crate) struct Row {
    pub(crate) path: &'static str,
    /// Of the review.
    pub(crate) bytes: usize,
    pub(crate) connections: usize,
    pub(crate) echo: Side,
    pub(crate) ours: Side,
}

/// The most resident bytes after the reviews of a size, and all smaller ones.
pub(crate) struct Memory {
    pub(crate) size: Size,
    pub(crate) echo: u64,
    pub(crate) ours: Option<u64>,
}

/// Everything about the servers.
pub(crate) struct Measured {
    pub(crate) rows: Vec<Row>,
    pub(crate) memory: Vec<Memory>,
    /// The share of the processors' time that neither the servers nor this client took.
    pub(crate) others: f64,
}

pub(crate) async fn run(server: Server) -> Result<Measured> {
    let echo = Echo::start().await?;
    let at = Url::parse(&format!("https://{}/", echo.address))?;
    let (mut rows, mut memory) = (Vec::new(), Vec::new());
    let mut sides = Duration::ZERO;
    let begun = busy()?;
    let ours_begun = process::cpu("self")?;
    for size in Size::ALL {
        for (path, url) in &server.paths {
            let body = match *path {
                "/mutate" => bodies::installation(size),
                _ => bodies::validated(size),
            };
            for connections in CONNECTIONS {
                say(&format!(
                    "{path}, {} bytes, {connections} connections …",
                    body.len()
                ));
                let mut row = Row {
                    path,
                    bytes: body.len(),
                    connections,
                    echo: Side::default(),
                    ours: Side::default(),
                };
                for _ in 0..ROUNDS {
                    let servers = [
                        (&mut row.echo, &at, Some(echo.process.id())),
                        (&mut row.ours, url, server.id),
                    ];
                    for (side, url, id) in servers {
                        side.measure(url, &body, connections, id).await?;
                    }
                }
                sides += row.echo.cpu.unwrap_or_default() + row.ours.cpu.unwrap_or_default();
                rows.push(row);
            }
        }
        memory.push(Memory {
            size,
            echo: process::memory(echo.process.id())?.1,
            ours: match server.id {
                Some(id) => Some(process::memory(id)?.1),
                None => None,
            },
        });
    }
    let (total, used) = busy()?;
    let (total, used) = (total.saturating_sub(begun.0), used.saturating_sub(begun.1));
    let known = sides + process::cpu("self")?.saturating_sub(ours_begun);
    let others = used.saturating_sub(known);
    Ok(Measured {
        rows,
        memory,
        others: others.as_secs_f64() / total.as_secs_f64(),
    })
}

impl Side {
    async fn measure(
        &mut self,
        url: &Url,
        body: &[u8],
        connections: usize,
        id: Option<u32>,
    ) -> Result<()> {
        let before = id.map(process::cpu).transpose()?;
        let round = load::round(url, body, connections, ROUND).await;
        self.answers.add(round.with_context(|| url.to_string())?);
        if let (Some(id), Some(before)) = (id, before) {
            let taken = process::cpu(id)?.saturating_sub(before);
            *self.cpu.get_or_insert_default() += taken;
        }
        Ok(())
    }
}

/// The time of all processors since the start of the machine, and how much of it they worked.
fn busy() -> Result<(Duration, Duration)> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().context("/proc/stat is empty")?;
    let mut ticks = Vec::new();
    for field in line.split_whitespace().skip(1).take(8) {
        ticks.push(field.parse::<u64>()?);
    }
    let total: u64 = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    let time = |ticks: u64| Duration::from_millis(ticks * 10);
    Ok((time(total), time(total.saturating_sub(idle))))
}
