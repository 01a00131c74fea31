//! What must stay possible with all guards: no one is locked out, and nothing that is deleted is held for ever (semantics 14).

use addons_tests::plugin::{Output, Plugin};
use addons_tests::scene::{catalogue, create, version};
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use common::api::names::{
    ANNOTATION_CLUSTER_DELETING, ANNOTATION_RELEASED, BREAK_GLASS_GROUP, CORE_GROUP, LABEL_CLUSTER,
    SYSTEM_NAMESPACE,
};
use serde_json::{Value, json};

use super::world::{self, GUARDED, TARGET, World};

const PLAIN_NAMESPACES: usize = 100;

/// Who walks through.
struct Users {
    admin: Plugin,
    core: Plugin,
    glass: Plugin,
}

/// Runs `kubectl LINE`, which must succeed.
async fn run(user: &Plugin, line: &str) -> Result<Output> {
    let args: Vec<_> = line.split_whitespace().collect();
    user.kubectl(&args).await?.done()
}

/// One cluster: each step leaves what the next does not need.
#[tokio::test]
async fn what_is_allowed_is_done_with_all_guards() -> Result<()> {
    let mut tally = Tally::new("bypass::through");
    let world = World::new().await?;
    let user = |name: &str, groups: &[&str]| -> Result<Plugin> {
        let groups: Vec<_> = ["system:masters"].iter().chain(groups).copied().collect();
        let user = world.cluster.user(name, &groups)?;
        Plugin::new(&world.cluster, &user.kubeconfig)
    };
    let users = Users {
        admin: user("way-admin", &[])?,
        core: user("way-core", &[CORE_GROUP])?,
        glass: user("way-glass", &[BREAK_GLASS_GROUP])?,
    };
    world::policies(&users.admin).await?;
    addons(&users).await?;
    not_core(&users).await?;
    tally.ran();
    core(&users).await?;
    tally.ran();
    released(&users).await?;
    tally.ran();
    namespaces(&users).await?;
    tally.ran();
    with_its_cluster(&users).await?;
    tally.ran();
    break_glass(&world, &users).await?;
    tally.ran();
    with_the_webhook(&users).await?;
    tally.ran();
    Ok(())
}

/// A source catalogue with two versions of each add-on.
async fn addons(users: &Users) -> Result<()> {
    let addon = |name: &str| {
        let of = |text: &str| {
            let manifest = format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{v: '{text}'}}\n"
            );
            version(text, json!({"source": {"inline": {"manifest": manifest}}}))
        };
        json!({"name": name, "versions": [of("1.0.0"), of("2.0.0")]})
    };
    let names = ["web", "dns", "proxy", "fleet"];
    let all: Vec<Value> = names.into_iter().map(addon).collect();
    let object = catalogue("ways", SYSTEM_NAMESPACE, json!(all));
    create(&users.admin, &object, &[]).await?.done()?;
    until("the webhook knows the catalogue", async || {
        let args = ["addons", "install", "web@1.0.0", "--yes"];
        let said = users.admin.kubectl(&args).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await
}

/// Whoever may install, upgrades and uninstalls.
async fn not_core(users: &Users) -> Result<()> {
    run(&users.admin, "addons upgrade web@2.0.0 --yes").await?;
    run(&users.admin, "addons uninstall web --yes").await?;
    gone(users, "namespace/web").await
}

/// The core group does everything with core add-ons; the namespace goes in the end.
async fn core(users: &Users) -> Result<()> {
    run(&users.core, "addons install dns@1.0.0 --core --yes").await?;
    run(&users.core, "addons upgrade dns@2.0.0 --yes").await?;
    run(&users.core, "addons upgrade dns --repair --yes").await?;
    release(users, "dns", SYSTEM_NAMESPACE).await?;
    run(&users.core, "addons uninstall dns --yes").await?;
    gone(users, "namespace/dns").await
}

/// What is released is uninstalled by others as well; they do not take the guard from its namespace, which stays.
async fn released(users: &Users) -> Result<()> {
    run(&users.core, "addons install proxy --core --yes").await?;
    release(users, "proxy", SYSTEM_NAMESPACE).await?;
    let said = run(&users.admin, "addons uninstall proxy --yes").await?;
    ensure!(
        said.stderr.contains("the namespace stays"),
        "{}",
        said.stderr
    );
    let record = format!("addoninstallation/proxy -n {SYSTEM_NAMESPACE}");
    gone(users, &record).await?;
    run(
        &users.core,
        "label namespace proxy kubectl-addons.dev/holds-core-",
    )
    .await?;
    run(&users.admin, "delete namespace proxy --timeout=60s").await?;
    Ok(())
}

/// Namespaces that are not ours come and go.
async fn namespaces(users: &Users) -> Result<()> {
    let names: Vec<String> = (0..PLAIN_NAMESPACES).map(|n| format!("many-{n}")).collect();
    let items: Vec<Value> = names
        .iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"of": "many"}}}))
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    create(&users.admin, &list, &[]).await?.done()?;
    run(&users.admin, "delete namespaces -l of=many --timeout=120s").await?;
    Ok(())
}

/// The namespace of a cluster that is deleted goes with its core records.
async fn with_its_cluster(users: &Users) -> Result<()> {
    run(&users.admin, "create namespace cluster-a").await?;
    run(
        &users.admin,
        &format!("label namespace cluster-a {LABEL_CLUSTER}=local"),
    )
    .await?;
    until("the webhook knows the namespace", async || {
        let line = "addons install fleet --core -n cluster-a --yes";
        let args: Vec<_> = line.split_whitespace().collect();
        let said = users.core.kubectl(&args).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await?;
    let mark = format!("annotate namespace cluster-a {ANNOTATION_CLUSTER_DELETING}=true");
    run(&users.core, &mark).await?;
    run(&users.admin, "delete namespace cluster-a --timeout=60s").await?;
    Ok(())
}

/// Members delete what is guarded, and the audit log says so.
async fn break_glass(world: &World, users: &Users) -> Result<()> {
    let delete = |name: &str| format!("delete {name} --wait=false");
    let record = format!("addoninstallation {GUARDED} -n {SYSTEM_NAMESPACE}");
    run(&users.glass, &delete(&record)).await?;
    run(&users.glass, &delete(&format!("namespace {TARGET}"))).await?;
    let of = |policy: &str| format!("\"kubectl-addons-{policy}/break-glass\":\"DELETE of ");
    let wanted = [of("installations"), of("namespaces")];
    until("the audit log", async || {
        let log = std::fs::read_to_string(world.cluster.folder().join("audit.log"))?;
        let missing = wanted.iter().find(|wanted| !log.contains(wanted.as_str()));
        Ok(missing.map_or(Ok(()), |missing| Err(missing.clone())))
    })
    .await
}

/// The system namespace goes with its cluster as well, and what of the webhook is in it goes with the namespace.
async fn with_the_webhook(users: &Users) -> Result<()> {
    let webhook = format!("get deployment,service addons-webhook -n {SYSTEM_NAMESPACE}");
    run(&users.admin, &webhook).await?;
    let mark = format!("addons core release --cluster-deleting -n {SYSTEM_NAMESPACE}");
    run(&users.core, &mark).await?;
    let delete = format!("delete namespace {SYSTEM_NAMESPACE} --timeout=60s");
    run(&users.admin, &delete).await.map(drop)
}

async fn release(users: &Users, name: &str, namespace: &str) -> Result<()> {
    let line =
        format!("annotate addoninstallation {name} -n {namespace} {ANNOTATION_RELEASED}=true");
    run(&users.core, &line).await.map(drop)
}

async fn gone(users: &Users, what: &str) -> Result<()> {
    let line = format!("wait --for=delete {what} --timeout=60s");
    run(&users.admin, &line).await.map(drop)
}
