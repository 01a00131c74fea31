//! What applying the files does, once and again, and which rights they give.

use addons_tests::control_plane::audit::Mark;
use addons_tests::scene::{catalogue, create};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use common::api::names::SYSTEM_NAMESPACE;
use serde_json::json;

use super::world::{BASE, SECRET, World};

#[tokio::test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: each starts a cluster with the deployed webhook"
)]
async fn applying_alone_ends_with_a_webhook_that_enforces() -> Result<()> {
    let mut tally = Tally::new("deploy::applied");
    let world = World::new().await?;
    let mark = world.cluster.audit().mark()?;
    world.kubectl(&["apply", "-k", BASE]).await?;
    world.rolled_out().await?;
    // Ready means that the API server was told whom to trust: the first object is judged.
    world.denies().await?;
    tally.ran();
    let good = catalogue("good", SYSTEM_NAMESPACE, json!([]));
    create(&world.admin, &good, &[]).await?.done()?;
    tally.ran();
    one_authority(&world).await?;
    tally.ran();
    again(&world, &mut tally).await?;
    written(&world, mark)?;
    tally.ran();
    rights(&world, &mut tally).await
}

/// The webhook wrote what it may, and has watched both configurations, which it may by name only.
fn written(world: &World, mark: Mark) -> Result<()> {
    let requests = world.cluster.audit().since(mark)?.by(&account());
    for request in requests.0.iter().filter(|request| request.is_write()) {
        let object = (
            request.object.resource.as_str(),
            request.object.name.as_str(),
        );
        let is_ours = matches!(
            object,
            ("secrets", SECRET)
                | ("mutatingwebhookconfigurations", "kubectl-addons")
                | ("validatingwebhookconfigurations", "kubectl-addons")
        );
        ensure!(is_ours, "{request:?}");
    }
    // A watch follows a list that was allowed.
    for resource in [
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    ] {
        let watches = requests.0.iter().filter(|request| request.verb == "watch");
        let watches = watches.filter(|request| request.object.resource == resource);
        ensure!(watches.count() > 0, "{resource}: {requests:?}");
    }
    // One by each replica, and one more where both made an authority at once: nothing is written again and again.
    let writes = requests.writes("");
    ensure!((3..=8).contains(&writes), "{writes} writes: {requests:?}");
    Ok(())
}

/// The name of the webhook.
fn account() -> String {
    format!("system:serviceaccount:{SYSTEM_NAMESPACE}:addons-webhook")
}

/// Both replicas started at once, and neither undid what the other one wrote.
async fn one_authority(world: &World) -> Result<()> {
    world.announced(1).await?;
    let logs = world.kubelet.logs();
    let made = logs.matches(r#""step":"First""#).count();
    ensure!(made == 1, "{made} authorities were written:\n{logs}");
    let served = logs.matches("serving a new certificate").count();
    ensure!(served == 2, "{served} certificates were signed:\n{logs}");
    Ok(())
}

/// Nothing is reset, and the dry run of the server agrees.
async fn again(world: &World, tally: &mut Tally) -> Result<()> {
    let bundle = world.announced(1).await?;
    let secret = world.get("secret", SECRET).await?;
    ensure!(secret["data"]["ca.key"].is_string(), "no authority");
    for more in [&["--dry-run=server"][..], &[], &[]] {
        let said = world
            .kubectl(&[&["apply", "-k", BASE], more].concat())
            .await?;
        // kubectl sends a PodDisruptionBudget's selector each time (its patch strategy is replace).
        let changed = said.lines().find(|line| {
            !line.contains(" unchanged") && !line.starts_with("poddisruptionbudget.policy/")
        });
        ensure!(changed.is_none(), "{said}");
        tally.ran();
    }
    world
        .kubectl(&["apply", "--server-side", "-k", BASE])
        .await?;
    tally.ran();
    ensure!(world.announced(1).await? == bundle, "another caBundle");
    let after = world.get("secret", SECRET).await?;
    ensure!(after["data"] == secret["data"], "another authority");
    world.denies().await?;
    tally.ran();
    Ok(())
}

/// What verdicts look at is read; one Secret and two configurations are written, by name (semantics 16).
async fn rights(world: &World, tally: &mut Tally) -> Result<()> {
    let account = format!("--as={}", account());
    for (verb, resource, answer) in [
        ("list", "addoncatalogues.kubectl-addons.dev", "yes"),
        ("watch", "addoninstallations.kubectl-addons.dev", "yes"),
        ("watch", "namespaces", "yes"),
        ("watch", "addonpolicies.kubectl-addons.dev", "yes"),
        ("update", "addonpolicies.kubectl-addons.dev", "no"),
        ("update", "addoninstallations.kubectl-addons.dev", "no"),
        ("patch", "namespaces", "no"),
        ("list", "configmaps", "no"),
        ("get", "secret/addons-webhook-ca", "yes"),
        ("update", "secret/addons-webhook-ca", "yes"),
        ("delete", "secret/addons-webhook-ca", "no"),
        ("get", "secret/other", "no"),
        ("create", "secrets", "no"),
        ("list", "secrets", "no"),
        (
            "patch",
            "validatingwebhookconfiguration/kubectl-addons",
            "yes",
        ),
        ("patch", "validatingwebhookconfiguration/other", "no"),
        (
            "delete",
            "validatingwebhookconfiguration/kubectl-addons",
            "no",
        ),
        (
            "patch",
            "mutatingwebhookconfiguration/kubectl-addons",
            "yes",
        ),
        ("patch", "mutatingwebhookconfiguration/other", "no"),
    ] {
        let can = ["auth", "can-i", verb, resource, &account];
        let can = [&can[..], &["-n", SYSTEM_NAMESPACE]].concat();
        let said = world.admin.kubectl(&can).await?;
        ensure!(
            said.stdout.trim() == answer,
            "{verb} {resource}: {}",
            said.stdout
        );
        tally.ran();
    }
    Ok(())
}
