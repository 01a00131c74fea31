//! Who leads, on a real API server.

use std::sync::Arc;
use std::time::Duration;

use addons_engine::{Cluster, ClusterOptions};
use addons_loops::election::{self, ElectionCandidate, LeaderRevision};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use addons_tests::stage::Stage;

/// A candidate in this process.
struct Running {
    candidate: ElectionCandidate,
    cluster: Arc<Cluster>,
    leads: watch::Receiver<Option<LeaderRevision>>,
    task: JoinHandle<()>,
}

async fn run(stage: &Stage, identity: &str) -> Result<Running> {
    let file = kube::config::Kubeconfig::read_from(stage.plugin.kubeconfig())?;
    let config = kube::Config::from_custom_kubeconfig(file, &Default::default()).await?;
    let options = ClusterOptions {
        cache_dir: None,
        request_timeout: Duration::from_secs(30),
        concurrency: 4,
    };
    let cluster = Arc::new(Cluster::new(config, options).await?);
    let candidate = ElectionCandidate {
        namespace: stage.namespace.clone(),
        name: "leader".to_owned(),
        identity: identity.to_owned(),
    };
    let (said, leads) = watch::channel(None);
    let task = tokio::spawn({
        let (cluster, candidate) = (Arc::clone(&cluster), candidate.clone());
        async move {
            let never = std::future::pending();
            let (_same, revision) = watch::channel(LeaderRevision::Same);
            election::run(&cluster, &candidate, revision, &said, never, &|_| {}).await;
        }
    });
    Ok(Running {
        candidate,
        cluster,
        leads,
        task,
    })
}

impl Running {
    /// How long it takes until it leads.
    async fn leads(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        let leading = self.leads.wait_for(Option::is_some);
        tokio::time::timeout(Duration::from_secs(60), leading).await??;
        Ok(begun.elapsed())
    }

    /// Dies without a word, as by SIGKILL.
    fn kill(&self) {
        self.task.abort();
    }
}

#[tokio::test]
async fn one_leads_and_the_other_follows_when_it_is_dead_or_resigns() -> Result<()> {
    let stage = super::stage("leader").await?;
    let mut first = run(&stage, "first").await?;
    first.leads().await?;
    let mut second = run(&stage, "second").await?;
    let mark = stage.cluster.audit().mark()?;
    tokio::time::timeout(Duration::from_secs(9), second.leads())
        .await
        .map_or_else(|_| Ok(()), |_| Err(anyhow::anyhow!("both lead")))?;
    // The leader reads the Lease before it renews it; who waits is told of each renewal and reads nothing, but when it begins.
    let requests = stage.requests(mark)?;
    let count = |verb: &str| {
        let all = requests.0.iter();
        all.filter(|one| one.object.resource == "leases" && one.verb == verb)
            .count()
    };
    let (reads, renewals) = (count("get"), count("update"));
    ensure!(renewals >= 2, "{requests:?}");
    ensure!(reads <= renewals + 2, "{reads} reads, {renewals} renewals");
    first.kill();
    let took = second.leads().await?;
    ensure!(took < Duration::from_secs(20), "{took:?}");
    let lease = stage.must("lease", "leader").await?;
    ensure!(lease["spec"]["holderIdentity"] == "second", "{lease}");
    ensure!(lease["spec"]["leaseTransitions"] == 1, "{lease}");

    // Given back, it is taken at the next try.
    let mut third = run(&stage, "third").await?;
    second.kill();
    election::resign(&second.cluster, &second.candidate).await?;
    let took = third.leads().await?;
    ensure!(took < Duration::from_secs(10), "{took:?}");
    Ok(())
}

/// A Lease that was deleted, or taken by another writer, has one leader again.
#[tokio::test]
async fn a_lost_lease_is_replaced_and_a_taken_one_is_obeyed() -> Result<()> {
    let stage = super::stage("lost-lease").await?;
    let mut first = run(&stage, "first").await?;
    first.leads().await?;
    stage.delete("lease", "leader").await?;
    until("the Lease is there again", async || {
        let lease = stage.get("lease", "leader").await?;
        Ok(match lease {
            Some(lease) if lease["spec"]["holderIdentity"] == "first" => Ok(()),
            other => Err(format!("{other:?}")),
        })
    })
    .await?;
    let other = json!({"spec": {"holderIdentity": "other", "leaseDurationSeconds": 30}});
    stage.patch("lease", "leader", &other).await?;
    let stops = first.leads.wait_for(Option::is_none);
    tokio::time::timeout(Duration::from_secs(10), stops).await??;
    Ok(())
}

/// What the clock of a dead leader said does not matter.
#[tokio::test]
async fn clocks_of_others_do_not_matter() -> Result<()> {
    for (what, renewed) in [
        ("future", "2099-01-01T00:00:00.000000Z"),
        ("past", "2001-01-01T00:00:00.000000Z"),
    ] {
        let stage = super::stage(&format!("clock-{what}")).await?;
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"},
            "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 4, "renewTime": renewed},
        });
        stage.apply(&lease.to_string()).await?;
        let begun = Instant::now();
        let mut next = run(&stage, "next").await?;
        next.leads().await?;
        let took = begun.elapsed();
        ensure!(
            took >= Duration::from_secs(4),
            "{what}: it was taken after {took:?}"
        );
        ensure!(
            took < Duration::from_secs(12),
            "{what}: it was taken after {took:?}"
        );
    }
    Ok(())
}
