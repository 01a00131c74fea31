//! What guards is there, or is missed and repaired; and nothing that waits keeps it, or a fix, from beginning.

use std::time::Instant;

use addons_tests::objects;
use addons_tests::plugin::Plugin;
use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::clusters::other;
use crate::deploy::world::World;

/// Members may change and delete what the policies guard.
const CORE: [&str; 4] = [
    "--as=core",
    "--as-group=system:masters",
    "--as-group=kubectl-addons:core",
    "--as-group=kubectl-addons:break-glass",
];

/// (what others do, what `doctor` names, the part that restores it)
const BROKEN: [(&str, &str, &str); 6] = [
    (
        "delete role addons-webhook -n kubectl-addons",
        "Role addons-webhook",
        "--webhook",
    ),
    (
        "delete rolebinding addons-webhook -n kubectl-addons",
        "RoleBinding addons-webhook",
        "--webhook",
    ),
    (
        "delete clusterrolebinding kubectl-addons:webhook",
        "ClusterRoleBinding kubectl-addons:webhook",
        "--webhook",
    ),
    (
        "patch clusterrole kubectl-addons:webhook-configurations --type=merge -p={\"rules\":[]}",
        "ClusterRole kubectl-addons:webhook-configurations",
        "--webhook",
    ),
    (
        "delete poddisruptionbudget addons-webhook -n kubectl-addons",
        "installation kubectl-addons/addons-webhook",
        "--webhook",
    ),
    (
        "delete validatingadmissionpolicybinding,validatingadmissionpolicy -l app.kubernetes.io/part-of=kubectl-addons",
        "ValidatingAdmissionPolicy kubectl-addons-guards",
        "--policies",
    ),
];

/// Runs `kubectl addons LINE` as a member of the core group.
async fn core(stage: &Stage, line: &str) -> Result<()> {
    let args: Vec<&str> = line.split_whitespace().chain(CORE).collect();
    stage.plugin.run(&args).await?.done().map(drop)
}

/// The objects that `doctor` calls broken; they are what it exits by.
async fn errors(plugin: &Plugin) -> Result<Vec<String>> {
    let said = plugin.run(&["doctor", "-o", "json"]).await?;
    let found: Value = serde_json::from_str(&said.stdout).with_context(|| said.stderr.clone())?;
    let items = found["items"].as_array().context("no items")?;
    let errors = items.iter().filter(|item| item["severity"] == "error");
    let errors = errors.filter_map(|item| item["object"].as_str().map(str::to_owned));
    let errors: Vec<String> = errors.collect();
    ensure!(
        said.code == i32::from(!errors.is_empty()),
        "{}: {found}",
        said.code
    );
    Ok(errors)
}

/// What `init` installs is compared with the cluster, whatever its record says of it.
#[tokio::test]
async fn g16_what_init_installs_is_missed_and_restored() -> Result<()> {
    let world = World::new().await?;
    let admin = &world.admin;
    let init = ["init", "--webhook", "--policies", "--yes"];
    let init: Vec<&str> = init.into_iter().chain(CORE).collect();
    admin.run(&init).await?.done()?;
    let is_well = async || {
        until("nothing is broken", async || {
            let errors = errors(admin).await?;
            Ok(errors
                .is_empty()
                .then_some(())
                .ok_or_else(|| format!("{errors:?}")))
        })
        .await
    };
    is_well().await?;
    for (by, object, flag) in BROKEN {
        let args: Vec<&str> = by.split(' ').chain(CORE).collect();
        admin.kubectl(&args).await?.done()?;
        let found = errors(admin).await?;
        ensure!(found.iter().any(|found| found == object), "{by}: {found:?}");
        if by.starts_with("delete") {
            let listed = admin.run(&["list"]).await?.done()?.stdout;
            ensure!(listed.contains("Degraded"), "{by}: {listed}");
        }
        let args: Vec<&str> = ["init", flag, "--yes"].into_iter().chain(CORE).collect();
        let said = admin.run(&args).await?.done()?.stderr;
        is_well().await.context(said)?;
    }
    world.denies().await
}

/// Until an object of the stage is there, or is gone.
async fn is_there(stage: &Stage, kind: &str, name: &str, is_wanted: bool) -> Result<()> {
    until(&format!("{kind} {name}: {is_wanted}"), async || {
        let found = stage.get(kind, name).await?;
        let is_so = found.is_some() == is_wanted;
        Ok(is_so.then_some(()).ok_or_else(|| format!("{found:?}")))
    })
    .await
}

/// What a person installed with `--core` is `Once` in its record, and is repaired all the same.
#[tokio::test]
async fn g16_a_core_addon_of_install_is_repaired() -> Result<()> {
    let stage = Stage::alone("guarded").await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("map", "1"))])?;
    let install = format!("install web --core --channel {index} --yes");
    core(&stage, &install).await?;
    let installation = format!("installation {}/web", stage.namespace);
    let found = errors(&stage.plugin).await?;
    ensure!(!found.contains(&installation), "{found:?}");
    let edit = json!({"data": {"key": "by hand"}});
    stage.patch("configmap", "map", &edit).await?;
    let found = errors(&stage.plugin).await?;
    ensure!(found.contains(&installation), "edited: {found:?}");
    stage.delete("configmap", "map").await?;
    let found = errors(&stage.plugin).await?;
    ensure!(found.contains(&installation), "deleted: {found:?}");
    // Nothing is due but that.
    core(&stage, &format!("upgrade web --channel {index} --yes")).await?;
    is_there(&stage, "configmap", "map", true).await?;
    let process = Running::reconcile(&stage, &["--interval", "1h"])?;
    process.says("leads").await?;
    stage.condition("web", "Ready").await?;
    stage.delete("configmap", "map").await?;
    is_there(&stage, "configmap", "map", true)
        .await
        .with_context(|| process.said())
}

/// An AddonInstallation.
fn record(namespace: &str, name: &str, spec: Value) -> String {
    json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    })
    .to_string()
}

/// More than there are workers.
const STUCK: usize = 6;

/// What is never ready keeps out neither others of its kind nor a core add-on.
#[tokio::test]
async fn g18_what_only_waits_holds_no_slot() -> Result<()> {
    let stage = Stage::alone("waiting").await?;
    stage.run("init").await?.done()?;
    let names: Vec<String> = (0..STUCK).map(|number| format!("web-{number}")).collect();
    let manifests = names
        .iter()
        .map(|name| deployment(name, 1, Some("nowhere")));
    let manifests: Vec<String> = manifests.collect();
    let mut entries: Vec<(&str, &str, &str)> = Vec::new();
    for (name, manifest) in names.iter().zip(&manifests) {
        entries.push((name, "1.0.0", manifest));
    }
    let core = config_map("core", "1");
    entries.push(("core", "1.0.0", &core));
    let index = stage.index("index.yaml", &entries)?;
    let process = Running::reconcile(&stage, &["--interval", "1h"])?;
    process.says("leads").await?;
    let of = |name: &str| json!({"addonRef": {"name": name, "index": index}});
    for name in &names {
        let record = record(&stage.namespace, name, of(name));
        stage.apply(&record).await?;
    }
    for name in &names {
        is_there(&stage, "deployment", name, true)
            .await
            .with_context(|| process.said())?;
    }
    let mut spec = of("core");
    spec["coreAddon"] = true.into();
    spec["addonRef"]["version"] = "1.0.0".into();
    stage.apply(&record(&stage.namespace, "core", spec)).await?;
    is_there(&stage, "configmap", "core", true)
        .await
        .with_context(|| process.said())?;
    let waiting = stage.record("web-0").await?;
    ensure!(waiting["status"]["operation"].is_object(), "{waiting}");
    Ok(())
}

/// The same in another cluster, whose core add-ons may be what the others wait for.
#[tokio::test]
async fn g18_what_only_waits_keeps_no_core_addon_out_of_another_cluster() -> Result<()> {
    let (stage, other) = (Stage::alone("waiting-there").await?, other().await?);
    stage.run("init").await?.done()?;
    let team = format!("{}-team", stage.namespace);
    let target = format!("{}-there", stage.namespace);
    let client = other.client().await?;
    let version = |manifest: &str| json!({"version": "1.0.0", "defaultNamespace": target, "source": {"inline": {"manifest": manifest}}});
    let addon = |name: &str, manifest: &str| json!({"name": name, "versions": [version(manifest)]});
    let names: Vec<String> = (0..STUCK).map(|number| format!("web-{number}")).collect();
    let stuck = names
        .iter()
        .map(|name| addon(name, &deployment(name, 1, Some("nowhere"))));
    let addons: Vec<Value> = stuck
        .chain([addon("core", &config_map("core", "1"))])
        .collect();
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "all"}, "spec": {"class": "Core", "addons": addons},
    });
    stage.apply(&catalogue.to_string()).await?;
    let kubeconfig = STANDARD.encode(std::fs::read(other.kubeconfig())?);
    let label = json!({"kubectl-addons.dev/kubeconfig-secret": "other"});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team, "labels": label}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": team},
         "data": {"kubeconfig": kubeconfig}},
    ]});
    let apply = async |text: &str| {
        let args = ["apply", "-f", "-"];
        stage.plugin.kubectl_with_input(&args, text).await?.done()
    };
    apply(&list.to_string()).await?;
    let process = Running::reconcile(&stage, &["--interval", "1h"])?;
    process.says("leads").await?;
    let there = async |kind: &str, name: &str| {
        let path = objects::path(kind, &target, name).context("a known kind")?;
        until(&format!("{kind} {name} is there"), async || {
            let found = objects::read(&client, &path).await?;
            Ok(found.map(drop).ok_or_else(|| process.said()))
        })
        .await
    };
    let of =
        |name: &str| json!({"addonRef": {"name": name, "catalogue": "all", "version": "1.0.0"}});
    for name in &names {
        apply(&record(&team, name, of(name))).await?;
    }
    for name in &names {
        there("deployment", name).await?;
    }
    let mut spec = of("core");
    spec["coreAddon"] = true.into();
    apply(&record(&team, "core", spec)).await?;
    there("configmap", "core").await
}

/// What is wished for while an operation waits does not wait for its end.
#[tokio::test]
async fn g18_a_newer_wish_ends_the_wait() -> Result<()> {
    let stage = Stage::alone("wishes").await?;
    stage.run("init").await?.done()?;
    let [first, second, stuck] = [
        ("web", Some("nowhere")),
        ("web", None),
        ("stuck", Some("nowhere")),
    ]
    .map(|(name, node)| deployment(name, 1, node));
    let entries = [
        ("web", "1.0.0", first.as_str()),
        ("web", "1.1.0", second.as_str()),
        ("stuck", "1.0.0", stuck.as_str()),
    ];
    let index = stage.index("index.yaml", &entries)?;
    // Far beyond the deadline of this test.
    let process = Running::reconcile(&stage, &["--interval", "1h", "--timeout", "1h"])?;
    process.says("leads").await?;
    let spec =
        |version: &str| json!({"addonRef": {"name": "web", "version": version, "index": index}});
    stage
        .apply(&record(&stage.namespace, "web", spec("1.0.0")))
        .await?;
    is_there(&stage, "deployment", "web", true)
        .await
        .with_context(|| process.said())?;
    let begun = Instant::now();
    let fix = json!({"spec": spec("1.1.0")});
    stage.patch("addoninstallation", "web", &fix).await?;
    until("the fix is installed", async || {
        let status = stage.record("web").await?["status"].clone();
        let is_fixed = status["installed"]["version"] == "1.1.0" && status["phase"] == "Ready";
        Ok(is_fixed
            .then_some(())
            .ok_or_else(|| format!("{status}\n{}", process.said())))
    })
    .await?;
    println!(
        "guard::operations: a fix of what waited was installed after {:?}",
        begun.elapsed()
    );
    // Nothing of that counts as a failure, which would have been followed by a pause.
    let said = process.said();
    ensure!(!said.contains("not ready"), "{said}");
    // A deletion is a wish as well.
    let record = record(
        &stage.namespace,
        "stuck",
        json!({"addonRef": {"name": "stuck", "index": index}}),
    );
    stage.apply(&record).await?;
    is_there(&stage, "deployment", "stuck", true)
        .await
        .with_context(|| process.said())?;
    stage
        .kubectl(&["delete", "addoninstallation", "stuck", "--wait=false"])
        .await?;
    for kind in ["addoninstallation", "deployment"] {
        is_there(&stage, kind, "stuck", false)
            .await
            .with_context(|| process.said())?;
    }
    Ok(())
}
