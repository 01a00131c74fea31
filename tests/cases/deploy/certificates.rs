//! What others do to the certificates, and what becomes of it.

use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::json;

use super::load::Load;
use super::world::{BASE, CONFIGURATIONS, SECRET, World};

/// One scenario on one cluster, under load from the second step on.
#[tokio::test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: each starts a cluster with the deployed webhook"
)]
async fn what_is_wiped_or_deleted_comes_back() -> Result<()> {
    let mut tally = Tally::new("deploy::certificates");
    let world = World::new().await?;
    world.kubectl(&["apply", "-k", BASE]).await?;
    world.rolled_out().await?;
    wiped(&world, &mut tally).await?;
    let load = Load::start(world.cluster.kubeconfig(), 2).await?;
    let known = world.announced(1).await?;
    let mut authority = known.clone();
    for (what, path) in [
        ("deleted", None),
        ("emptied", Some("/data")),
        ("half-written", Some("/data/ca.key")),
    ] {
        match path {
            Some(path) => remove(&world, path).await?,
            None => world.in_system(&["delete", "secret", SECRET]).await?,
        };
        let new = until("another authority is written", async || {
            let found = world.authority().await?;
            let is_new = found.as_ref().filter(|found| **found != authority);
            Ok(is_new.cloned().ok_or_else(|| world.kubelet.logs()))
        })
        .await?;
        // The first one stays announced: it has signed what is served until the new one is known everywhere.
        until("both are announced", async || {
            let bundles = world.bundles().await?;
            let has_both =
                |bundle: &String| [&known, &new].iter().all(|it| bundle.contains(it.trim()));
            let are = bundles.iter().all(has_both);
            Ok(are
                .then_some(())
                .ok_or_else(|| format!("{what}: {bundles:?}")))
        })
        .await?;
        world.denies().await?;
        authority = new;
        tally.ran();
    }
    let reviews = load.stop(|| world.kubelet.logs()).await?;
    tally.note(format!("{reviews} reviews, none failed"));
    Ok(())
}

/// The caBundle is taken away from both configurations, and comes back.
async fn wiped(world: &World, tally: &mut Tally) -> Result<()> {
    let bundle = world.announced(1).await?;
    for kind in CONFIGURATIONS {
        let wipe = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]);
        let wipe = wipe.to_string();
        let args = ["patch", kind, "kubectl-addons", "--type=json", "-p", &wipe];
        world.kubectl(&args).await?;
        ensure!(world.announced(1).await? == bundle, "another caBundle");
        tally.ran();
    }
    until("it denies again", async || {
        Ok(world.denies().await.map_err(|error| error.to_string()))
    })
    .await?;
    tally.ran();
    Ok(())
}

/// Removes a field of the Secret.
async fn remove(world: &World, path: &str) -> Result<String> {
    let patch = json!([{"op": "remove", "path": path}]).to_string();
    let args = ["patch", "secret", SECRET, "--type=json", "-p", &patch];
    world.in_system(&args).await
}
