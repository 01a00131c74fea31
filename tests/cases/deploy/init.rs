//! `init --webhook --policies` on a cluster of its own: from nothing, again, with a dead webhook, another image, and back to nothing.

use addons_tests::control_plane::audit::Mark;
use addons_tests::plugin::Output;
use addons_tests::scene::create;
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::load::Load;
use super::world::{BASE, CONFIGURATIONS, World, duplicate};

const POLICIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/policies");

/// One scenario: a control plane is the expensive part.
#[tokio::test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: each starts a cluster with the deployed webhook"
)]
async fn the_plugin_installs_mends_upgrades_and_uninstalls_it() -> Result<()> {
    let mut tally = Tally::new("deploy::init");
    let world = World::new().await?;
    refusals(&world, &mut tally).await?;
    // A command that ended before it has seen the webhook deny; the next one goes on.
    init(&world, &["--webhook", "--wait=false", "--yes"])
        .await?
        .done()?;
    failure_policy(&world, "Ignore").await?;
    tally.ran();
    let said = init(&world, &["--webhook", "--policies", "--yes"])
        .await?
        .done()?;
    world.denies().await.with_context(|| said.stderr.clone())?;
    ensure!(
        said.stderr.contains("is required from now on"),
        "{}",
        said.stderr
    );
    tally.ran();
    same_as_kustomize(&world, &mut tally).await?;
    again(&world, &mut tally, &["--webhook", "--policies", "--yes"]).await?;
    upgraded(&world, &mut tally).await?;
    mended(&world, &mut tally).await?;
    uninstalled(&world, &mut tally).await?;
    adopted(&world, &mut tally).await
}

/// What is installed guards core add-ons, and is one: only the core group installs and changes it.
const CORE: [&str; 3] = [
    "--as=core",
    "--as-group=system:masters",
    "--as-group=kubectl-addons:core",
];

async fn init(world: &World, flags: &[&str]) -> Result<Output> {
    plain_init(world, &[flags, &CORE].concat()).await
}

/// The same as an administrator who is not of the core group.
async fn plain_init(world: &World, flags: &[&str]) -> Result<Output> {
    world.admin.run(&[&["init"], flags].concat()).await
}

/// Nothing is written without consent, in a dry run, or into another namespace.
async fn refusals(world: &World, tally: &mut Tally) -> Result<()> {
    for (flags, code, text) in [
        (&["--dry-run"][..], 2, "--dry-run can only be used with"),
        (
            &["--webhook", "--dry-run"],
            0,
            "dry run: nothing was changed",
        ),
        (
            &["--webhook", "--dry-run", "--system-namespace=other"],
            2,
            "are installed into kubectl-addons",
        ),
    ] {
        let said = init(world, flags).await?.ended(code)?;
        ensure!(said.stderr.contains(text), "{flags:?}: {}", said.stderr);
        tally.ran();
    }
    let crds = world.kubectl(&["get", "crd", "-o", "name"]).await?;
    ensure!(crds.is_empty(), "{crds}");
    tally.ran();
    // Who may not do all of it does nothing of it.
    let rules =
        json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "create"]}]);
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "reader"},
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "reader"}],
    });
    for object in [role, binding] {
        create(&world.admin, &object, &[]).await?.done()?;
    }
    let flags = ["--webhook", "--dry-run", "--as=reader"];
    let flags = [&flags[..], &["--as-group=kubectl-addons:core"]].concat();
    let said = plain_init(world, &flags).await?.ended(1)?;
    let named = "not allowed: patch secrets addons-webhook-ca in namespace kubectl-addons (and ";
    ensure!(said.stderr.contains(named), "{}", said.stderr);
    tally.ran();
    let said = plain_init(world, &["--webhook", "--dry-run"])
        .await?
        .ended(6)?;
    let fix = "fix:    add --as USER --as-group kubectl-addons:core";
    ensure!(said.stderr.contains(fix), "{}", said.stderr);
    tally.ran();
    Ok(())
}

/// Every object of the kustomizations is live as they have it.
async fn same_as_kustomize(world: &World, tally: &mut Tally) -> Result<()> {
    for folder in [BASE, POLICIES] {
        let built = world.kubectl(&["kustomize", folder]).await?;
        let objects: Vec<Value> = serde_saphyr::from_multiple(&built)?;
        ensure!(objects.len() > 7, "{built}");
        for object in objects {
            let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
            let (kind, name) = (text("/kind"), text("/metadata/name"));
            let (kind, name) = (kind.context("kind")?, name.context("name")?);
            // The namespace of records is older than the webhook.
            if kind != "Namespace" {
                let live = world.get(kind, name).await?;
                lacks(&object, &live).map_or(Ok(()), |place| {
                    Err(anyhow::anyhow!("{kind} {name}: {place}\n{live}"))
                })?;
            }
            tally.ran();
        }
    }
    Ok(())
}

/// Where a live object differs from what a manifest says; defaults of the server are not said.
fn lacks(wanted: &Value, live: &Value) -> Option<String> {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().find_map(|(name, wanted)| {
            let found = lacks(wanted, live.get(name).unwrap_or(&Value::Null))?;
            Some(format!("{name}.{found}"))
        }),
        (Value::Array(wanted), Value::Array(live)) if wanted.len() == live.len() => {
            let mut pairs = wanted.iter().zip(live).enumerate();
            pairs.find_map(|(index, (wanted, live))| {
                Some(format!("{index}.{}", lacks(wanted, live)?))
            })
        }
        _ => (wanted != live).then(|| format!(" {wanted} is {live}")),
    }
}

/// A second run writes nothing.
async fn again(world: &World, tally: &mut Tally, flags: &[&str]) -> Result<()> {
    let mark = world.cluster.audit().mark()?;
    let said = init(world, flags).await?.done()?;
    ensure!(said.stderr.contains("nothing to do"), "{}", said.stderr);
    nothing_written(world, mark)?;
    tally.ran();
    Ok(())
}

/// But for our definitions, of which the server says whether they are up to date.
fn nothing_written(world: &World, mark: Mark) -> Result<()> {
    let mut requests = world.cluster.audit().since(mark)?;
    let definitions = "customresourcedefinitions";
    requests
        .0
        .retain(|request| request.object.resource != definitions);
    ensure!(requests.writes("kubectl-addons/") == 0, "{requests:?}");
    Ok(())
}

/// The failurePolicy of every entry of the validating webhook.
async fn failure_policy(world: &World, wanted: &str) -> Result<()> {
    let configuration = world.get(CONFIGURATIONS[1], "kubectl-addons").await?;
    let webhooks = configuration["webhooks"].as_array().context("webhooks")?;
    let is_wanted = |webhook: &Value| webhook["failurePolicy"] == wanted;
    ensure!(webhooks.iter().all(is_wanted), "{configuration}");
    Ok(())
}

/// Another image rolls out, and no review fails meanwhile.
async fn upgraded(world: &World, tally: &mut Tally) -> Result<()> {
    let load = Load::start(world.cluster.kubeconfig(), 2).await?;
    let image = "--image=registry.example.org/addons-webhook:next";
    let said = init(world, &["--webhook", image, "--yes"]).await?.done()?;
    ensure!(said.stderr.contains("upgraded"), "{}", said.stderr);
    world.gone().await?;
    let reviews = load.stop(|| world.kubelet.logs()).await?;
    let deployment = world.get("deployment", "addons-webhook").await?;
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    ensure!(
        image.ends_with(container["image"].as_str().context("image")?),
        "{container}"
    );
    tally.note(format!(
        "{reviews} reviews while it was upgraded, none failed"
    ));
    tally.ran();
    Ok(())
}

/// Its Deployment has no pods: everything that it judges is refused, the record of the mending installation as well.
async fn mended(world: &World, tally: &mut Tally) -> Result<()> {
    let bundle = world.announced(1).await?;
    let scale = ["scale", "deployment", "addons-webhook", "--replicas=0"];
    let namespace = ["-n", "kubectl-addons"];
    let said = world
        .admin
        .kubectl(&[&scale[..], &namespace].concat())
        .await?;
    ensure!(
        said.stderr.contains("guards core add-ons"),
        "{}",
        said.stderr
    );
    world.in_system(&[&scale[..], &CORE].concat()).await?;
    until("nothing answers", async || {
        let said = create(&world.admin, &duplicate(), &["--dry-run=server"]).await?;
        Ok(match said.stderr.contains("failed calling webhook") {
            true => Ok(()),
            false => Err(said.stderr),
        })
    })
    .await?;
    let said = plain_init(world, &["--webhook", "--yes"]).await?.ended(6)?;
    ensure!(
        said.stderr.contains("group kubectl-addons:core"),
        "{}",
        said.stderr
    );
    tally.ran();
    let said = init(world, &["--webhook", "--yes"]).await?.done()?;
    world.denies().await.with_context(|| said.stderr.clone())?;
    failure_policy(world, "Fail").await?;
    ensure!(world.announced(1).await? == bundle, "another authority");
    tally.ran();
    Ok(())
}

/// The policies go first, or nothing does; afterwards nothing stands in the way of deleting everything.
async fn uninstalled(world: &World, tally: &mut Tally) -> Result<()> {
    let uninstall = async |names: &[&str]| {
        let args = [&["uninstall", "--yes"], names].concat();
        world.admin.run(&args).await
    };
    let both = ["addons-webhook", "addons-policies"];
    let said = uninstall(&both).await?.ended(6)?;
    ensure!(said.stderr.contains("is a core add-on"), "{}", said.stderr);
    let release = [&["core", "release"][..], &both, &CORE].concat();
    world.admin.run(&release).await?.done()?;
    let said = uninstall(&["addons-webhook"]).await?.ended(6)?;
    ensure!(
        said.stderr.contains("kubectl-addons:break-glass"),
        "{}",
        said.stderr
    );
    world.denies().await?;
    tally.ran();
    uninstall(&["addons-webhook", "addons-policies"])
        .await?
        .done()?;
    let kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings,validatingwebhookconfigurations,\
                 mutatingwebhookconfigurations,clusterroles,clusterrolebindings";
    let ours = [
        "get",
        kinds,
        "-l",
        "app.kubernetes.io/part-of=kubectl-addons",
    ];
    let left = world
        .kubectl(&[&ours[..], &["-o", "name"]].concat())
        .await?;
    ensure!(left.is_empty(), "{left}");
    tally.ran();
    world
        .kubectl(&["delete", "namespace", "kubectl-addons", "--timeout=60s"])
        .await?;
    let definitions = ["-l", "app.kubernetes.io/part-of=kubectl-addons"];
    world
        .kubectl(&[&["delete", "crd"], &definitions[..]].concat())
        .await?;
    tally.ran();
    Ok(())
}

/// What kubectl applied becomes an installation: its image stays, and its pods run on.
async fn adopted(world: &World, tally: &mut Tally) -> Result<()> {
    let folder = world.overlay(&json!({
        "resources": [BASE],
        "images": [{"name": "addons-webhook", "newName": "registry.example.org/addons-webhook", "newTag": "1"}],
    }))?;
    world.kubectl(&["apply", "-k", &folder]).await?;
    world.rolled_out().await?;
    world.denies().await?;
    let pods = async || world.in_system(&["get", "pods", "-o", "name"]).await;
    let before = pods().await?;
    let said = init(world, &["--webhook", "--yes"]).await?.done()?;
    ensure!(pods().await? == before, "{before}{}", said.stderr);
    world.denies().await?;
    failure_policy(world, "Fail").await?;
    let list = world.admin.run(&["list", "-o", "name"]).await?.done()?;
    ensure!(list.stdout.contains("addons-webhook"), "{}", list.stdout);
    tally.ran();
    again(world, tally, &["--webhook", "--yes"]).await
}
