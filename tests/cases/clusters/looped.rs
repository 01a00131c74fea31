//! `reconcile` in other clusters than that of the records.

use std::time::{Duration, Instant};

use addons_tests::proxy::{Action, Fault, Proxy};
use addons_tests::running::Running;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::json;

use super::secret;
use super::sites::Fleet;

/// What a person begins, and the loop finishes.
const DELETE: [&str; 4] = ["delete", "addoninstallation", "web", "--wait=false"];

/// semantics 6, 14, 15, 20: what records ask for is installed, upgraded and repaired in their clusters; credentials that expire are
/// read again; a cluster that is slow delays no other; without a kubeconfig, and in a namespace that is deleted, the cluster stays as
/// it is.
#[tokio::test]
async fn the_loop_works_in_the_clusters_of_namespaces() -> Result<()> {
    let fleet = Fleet::new("fleet").await?;
    fleet.stage.run("init").await?.done()?;
    fleet.offer("1.0.0", "1").await?;
    one_pass(&fleet).await?;
    let proxy = Proxy::start(&fleet.other)?;
    let admin = fleet.other.admin();
    let old = proxy.client("old", admin)?;
    let slow = proxy.client("slow", admin)?;
    let delay = Action::Delay(Duration::from_secs(2));
    proxy.fault(Fault::always(delay).client("slow"));
    fleet.stand("a", &old).await?;
    fleet.stand("slow", &slow).await?;
    let mut process = Running::reconcile(&fleet.stage, &["--interval", "3s"])?;
    process.says("leads").await?;
    fleet.record("slow").await?;
    until("the slow cluster is asked", async || {
        let asked = proxy.requests().iter().any(|seen| seen.client == "slow");
        Ok(asked.then_some(()).ok_or_else(|| process.said()))
    })
    .await?;
    fleet.record("a").await?;
    fleet.is("a", "1").await?;
    ensure!(fleet.there("slow").await?.is_none(), "it is not slow");

    fleet.offer("2.0.0", "2").await?;
    fleet.is("a", "2").await?;
    fleet.is("b", "2").await?;
    is_idle(&fleet, &proxy).await?;
    fleet.edit("a", "edited").await?;
    // No watch tells of that; a change of the record does not wait for the ten minutes either.
    let again = ["patch", "addoninstallation", "web", "--type=merge", "-p"];
    for suspend in ["true", "false"] {
        let patch = format!("{{\"spec\":{{\"suspend\":{suspend}}}}}");
        fleet
            .kubectl("a", &[&again[..], &[&patch]].concat())
            .await?;
    }
    fleet.is("a", "2").await?;

    moved(&fleet, &proxy).await?;
    renewed(&fleet, &proxy).await?;
    upgraded(&fleet, &proxy).await?;
    given_up(&fleet).await?;
    // A deletion where everything is there deletes the objects.
    proxy.heal();
    fleet.is("slow", "3").await?;
    fleet.kubectl("slow", &DELETE).await?;
    fleet.gone("slow").await?;
    ensure!(fleet.there("slow").await?.is_none(), "it was left there");
    process.ends(0)?;
    ended(&fleet).await
}

/// semantics 20: the end does not wait for what a namespace stands for.
async fn ended(fleet: &Fleet) -> Result<()> {
    let home = Proxy::start(&fleet.stage.cluster)?;
    let line = ["reconcile", "--watch", "--interval", "3s"];
    let mut process = Running::with(&fleet.stage, home.kubeconfig(), &line)?;
    process.says("leads").await?;
    fleet.record("slow").await?;
    fleet.is("slow", "3").await?;
    let path = format!("/api/v1/namespaces/{}", fleet.namespace("slow"));
    let hang = Action::Hang { delivered: false };
    home.fault(Fault::always(hang).path(&path));
    until("the namespace is asked for", async || {
        Ok((home.hits() > 0)
            .then_some(())
            .ok_or_else(|| process.said()))
    })
    .await?;
    let asked = Instant::now();
    process.ends(0)?;
    let took = asked.elapsed();
    ensure!(took < Duration::from_secs(10), "{took:?}");
    Ok(())
}

/// The namespace is labelled with another Secret: nothing is sent any more where the first one leads.
async fn moved(fleet: &Fleet, proxy: &Proxy) -> Result<()> {
    let green = std::fs::read_to_string(proxy.client("green", fleet.other.admin())?)?;
    let secret = secret(&fleet.namespace("a"), "green", "Opaque", "value", &green);
    fleet.apply(&[secret]).await?;
    fleet.lead("a", "green").await?;
    let asked = |client: &str| {
        let all = proxy.requests().into_iter();
        all.filter(|seen| seen.client == client).count()
    };
    until("two passes where the second leads", async || {
        let count = asked("green");
        Ok((count >= 2).then_some(()).ok_or_else(|| count.to_string()))
    })
    .await?;
    let (old, green) = (asked("old"), asked("green"));
    until("another pass", async || {
        let count = asked("green");
        Ok((count > green)
            .then_some(())
            .ok_or_else(|| count.to_string()))
    })
    .await?;
    ensure!(asked("old") == old, "it still works with the first one");
    fleet.lead("a", "other").await
}

/// The credentials are revoked, and there are others later.
async fn renewed(fleet: &Fleet, proxy: &Proxy) -> Result<()> {
    let refused = Action::Answer {
        status: 401,
        retry_after: None,
    };
    proxy.fault(Fault::always(refused).client("old"));
    fleet.reason("a", "CredentialsRefused").await?;
    fleet
        .stand("a", &proxy.client("new", fleet.other.admin())?)
        .await?;
    fleet.offer("3.0.0", "3").await?;
    fleet.is("a", "3").await
}

/// A cluster is upgraded beyond what the add-on supports: that is said, and nothing is removed.
async fn upgraded(fleet: &Fleet, proxy: &Proxy) -> Result<()> {
    let version = json!({"major": "1", "minor": "99", "gitVersion": "v1.99.0"});
    let upgraded = Fault::always(Action::Say(version.to_string()));
    proxy.fault(upgraded.client("new").path("/version"));
    let misfit = "web 3.0.0: k8sVersion <1.99.0 does not match 1.99.0";
    until("Compatible=False", async || {
        let record = fleet.stored("a").await?.unwrap_or_default();
        let conditions = record["status"]["conditions"].as_array();
        let mut all = conditions.into_iter().flatten();
        let found = all.any(|one| {
            one["type"] == "Compatible" && one["status"] == "False" && one["message"] == misfit
        });
        Ok(found.then_some(()).ok_or_else(|| record.to_string()))
    })
    .await?;
    let list = format!("list -n {}", fleet.namespace("a"));
    let said = fleet.stage.run(&list).await?.done()?;
    ensure!(said.stdout.contains("Incompatible: web 3.0.0"), "{said:?}");
    ensure!(fleet.there("a").await?.as_deref() == Some("3"));
    Ok(())
}

/// Without a kubeconfig, and in a namespace that is deleted, nothing waits for the other cluster.
async fn given_up(fleet: &Fleet) -> Result<()> {
    // The kubeconfig is gone, and then the record.
    fleet.is("b", "3").await?;
    fleet.kubectl("b", &["delete", "secret", "other"]).await?;
    fleet.reason("b", "KubeconfigMissing").await?;
    fleet.kubectl("b", &DELETE).await?;
    fleet.gone("b").await?;
    ensure!(fleet.there("b").await?.as_deref() == Some("3"));

    // The namespace goes with everything in it.
    let namespace = fleet.namespace("a");
    let args = ["delete", "namespace", &namespace, "--timeout=60s"];
    fleet.stage.plugin.kubectl(&args).await?.done()?;
    ensure!(fleet.there("a").await?.as_deref() == Some("3"));
    Ok(())
}

/// A pass in which nothing is due asks another cluster for its version alone.
async fn is_idle(fleet: &Fleet, proxy: &Proxy) -> Result<()> {
    let of_loop = || {
        let all = proxy.requests().into_iter();
        all.filter(|seen| seen.client == "old").collect::<Vec<_>>()
    };
    let passes = |all: &[addons_tests::proxy::Seen]| {
        let versions = all.iter().filter(|seen| seen.uri == "/version");
        versions.count()
    };
    // What followed the last upgrade comes to its end first.
    let before = passes(&of_loop());
    until("a pass", async || {
        let count = passes(&of_loop());
        Ok((count > before)
            .then_some(())
            .ok_or_else(|| count.to_string()))
    })
    .await?;
    let (mark, seen) = (fleet.stage.cluster.audit().mark()?, of_loop().len());
    until("two idle passes", async || {
        let count = passes(&of_loop()[seen..]);
        Ok((count >= 2).then_some(()).ok_or_else(|| count.to_string()))
    })
    .await?;
    let asked: Vec<_> = of_loop()[seen..].iter().map(|it| it.uri.clone()).collect();
    ensure!(asked.iter().all(|uri| uri == "/version"), "{asked:?}");
    let requests = fleet.stage.requests(mark)?;
    let namespace = fleet.namespace("a");
    let mut here = requests.0.iter();
    let written = here.find(|request| request.is_write() && request.object.namespace == namespace);
    ensure!(written.is_none(), "{written:?}");
    Ok(())
}

/// One pass works on all clusters, repairs what was edited, and says which one does not respond.
async fn one_pass(fleet: &Fleet) -> Result<()> {
    fleet.stand("b", fleet.other.kubeconfig()).await?;
    let text = std::fs::read_to_string(fleet.other.kubeconfig())?;
    let nowhere = text.replace(fleet.other.server(), "https://127.0.0.1:9");
    let dead = fleet.stage.write("dead", &nowhere)?;
    fleet.stand("dead", &dead).await?;
    for site in ["b", "dead"] {
        fleet.record(site).await?;
    }
    let pass = async || {
        let said = fleet.stage.run("reconcile").await?;
        let is_named = said
            .stderr
            .contains(&format!("{}/web", fleet.namespace("dead")));
        ensure!(said.code == 1 && is_named, "{said:?}");
        Ok(())
    };
    pass().await?;
    fleet.is("b", "1").await?;
    fleet.reason("dead", "ClusterUnreachable").await?;
    fleet.edit("b", "edited").await?;
    pass().await?;
    fleet.is("b", "1").await
}
