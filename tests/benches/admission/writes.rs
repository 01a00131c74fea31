//! Records are created and updated by some writers at one time, each of which sends the next write when the last one was answered. The API
//! servers take turns, so that what else the machine does hits all alike.

use std::time::Duration;

use anyhow::Result;
use common::api::installation::AddonInstallation;
use common::api::names::API_VERSION;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::say;
use super::world::{ADDON, Layer, World};

/// Writers at one time.
pub(crate) const WRITERS: [usize; 3] = [1, 8, 64];
/// Turns of each API server.
const TURNS: usize = 5;
/// Creates of one turn, and as many updates.
const WRITES: usize = 512;

/// What one API server took.
pub(crate) struct Measured {
    pub(crate) layer: Layer,
    pub(crate) writers: usize,
    pub(crate) creates: Times,
    pub(crate) updates: Times,
}

/// How long each write took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// The time within which such a share of the writes was answered.
    pub(crate) fn within(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = (sorted.len() as f64 * share) as usize;
        let last = sorted.len().saturating_sub(1);
        sorted.get(at.min(last)).copied().unwrap_or_default()
    }
}

pub(crate) async fn run(worlds: &[World]) -> Result<Vec<Measured>> {
    let mut all = Vec::new();
    for writers in WRITERS {
        say(&format!("{writers} writers …"));
        let mut measured = Vec::new();
        for world in worlds {
            measured.push(Measured {
                layer: world.layer,
                writers,
                creates: Times::default(),
                updates: Times::default(),
            });
        }
        // The first one only warms up.
        for turn in 0..=TURNS {
            for (world, measured) in worlds.iter().zip(&mut measured) {
                let api = world.records().await?;
                let (creates, updates) = round(&api, writers, turn).await?;
                if turn > 0 {
                    measured.creates.0.extend(creates.0);
                    measured.updates.0.extend(updates.0);
                }
            }
        }
        all.extend(measured);
    }
    Ok(all)
}

async fn round(
    api: &Api<AddonInstallation>,
    writers: usize,
    turn: usize,
) -> Result<(Times, Times)> {
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let api = api.clone();
        tasks.spawn(async move {
            let (mut creates, mut updates) = (Times::default(), Times::default());
            for number in 0..WRITES / writers {
                let name = format!("r-{writers}-{turn}-{writer}-{number}");
                let begun = Instant::now();
                let mut record = api.create(&PostParams::default(), &record(&name)?).await?;
                creates.0.push(begun.elapsed());
                record.spec.values = Some(json!({"replicas": number}));
                let begun = Instant::now();
                api.replace(&name, &PostParams::default(), &record).await?;
                updates.0.push(begun.elapsed());
            }
            anyhow::Ok((creates, updates))
        });
    }
    let (mut creates, mut updates) = (Times::default(), Times::default());
    while let Some(written) = tasks.join_next().await {
        let (created, updated) = written??;
        creates.0.extend(created.0);
        updates.0.extend(updated.0);
    }
    Ok((creates, updates))
}

fn record(name: &str) -> Result<AddonInstallation> {
    Ok(serde_json::from_value(json!({
        "apiVersion": API_VERSION, "kind": "AddonInstallation",
        "metadata": {"name": name}, "spec": {"addonRef": {"name": ADDON}},
    }))?)
}
