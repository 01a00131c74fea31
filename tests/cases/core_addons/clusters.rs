//! Several clusters: each has its own facts, a change reaches one after the other, and a person releases.

use addons_tests::control_plane::ControlPlane;
use addons_tests::stage::Stage;
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::api::names::{CORE_ADDON_RULES, CUSTOM_CORE_ADDONS, FINALIZER_UNINSTALL};
use serde_json::{Value, json};

use super::{CORE, RULES, core, installed, is_guarded, listed_for, rules, write};

/// Rules, and for how long a canary has to stay ready.
async fn soaked_rules(stage: &Stage, text: &str, soak: &str) -> Result<()> {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CORE_ADDON_RULES},
        "data": {"rules.yaml": text, "rollout": format!("soak: {soak}")},
    });
    stage.apply(&object.to_string()).await
}

/// The core set of this cluster is that of the system namespace, also where another one is asked for, or is being deleted.
pub(super) async fn other_namespaces_of_this_cluster_have_no_core_set(stage: &Stage) -> Result<()> {
    let shelf = format!("{}-shelf", stage.namespace);
    let data = "Cluster: {CNIPlugin: {Type: cilium}}";
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace",
         "metadata": {"name": shelf, "labels": {"kubectl-addons.dev/cluster": "local"}}},
        {"apiVersion": "v1", "kind": "ConfigMap",
         "metadata": {"name": "addon-template-data", "namespace": shelf}, "data": {"data.yaml": data}},
    ]});
    apply(stage, &objects).await?;
    core(stage, &format!("reconcile -n {shelf}"), 0).await?;
    let kubectl = async |line: String| {
        let args: Vec<_> = line.split_whitespace().collect();
        let said = stage.plugin.kubectl(&args).await?.done()?;
        Ok::<_, anyhow::Error>(said.stdout)
    };
    let found = kubectl(format!("get addoninstallations -n {shelf} -o name")).await?;
    ensure!(found.is_empty(), "{found}");
    let held = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": "shop", "namespace": shelf, "finalizers": [FINALIZER_UNINSTALL]},
        "spec": {"addonRef": {"name": "shop", "catalogue": "core"}, "suspend": true},
    });
    apply(stage, &held).await?;
    kubectl(format!("delete namespace {shelf} --wait=false")).await?;
    core(stage, &format!("reconcile -n {shelf}"), 0).await?;
    let found = kubectl(format!("get addoninstallation shop -n {shelf} -o json")).await?;
    ensure!(found.contains(FINALIZER_UNINSTALL), "{found}");
    let free = r#"{"metadata":{"finalizers":null}}"#;
    let patch = format!("patch addoninstallation shop -n {shelf} --type=merge -p {free}");
    kubectl(patch).await.map(drop)
}

async fn apply(stage: &Stage, objects: &Value) -> Result<()> {
    let args = ["apply", "-f", "-"];
    let applied = stage
        .plugin
        .kubectl_with_input(&args, &objects.to_string())
        .await?;
    applied.done().map(drop)
}

/// A namespace that stands for another cluster gets records of its own, from the facts of that cluster.
pub(super) async fn several_are_changed_in_waves_and_released_by_a_person(
    stage: &Stage,
) -> Result<()> {
    let other = ControlPlane::alone_api_only().await?;
    let team = format!("{}-team", stage.namespace);
    let kubeconfig = STANDARD.encode(std::fs::read(other.kubeconfig())?);
    let data = "Cluster: {CNIPlugin: {Type: cilium}}";
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace",
         "metadata": {"name": team, "labels": {"kubectl-addons.dev/kubeconfig-secret": "other"}}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": team},
         "data": {"kubeconfig": kubeconfig}},
        {"apiVersion": "v1", "kind": "Secret",
         "metadata": {"name": "addon-template-data", "namespace": team, "labels": {"kubectl-addons.dev/values": "true"}},
         "stringData": {"data.yaml": "Variables: {url: s3cret}"}},
        {"apiVersion": "v1", "kind": "ConfigMap",
         "metadata": {"name": "addon-template-data", "namespace": team}, "data": {"data.yaml": data}},
    ]});
    apply(stage, &objects).await?;
    core(stage, "reconcile", 0).await?;
    let there = async || {
        let args = ["get", "addoninstallations", "-n", &team, "-o", "json"];
        let said = stage.plugin.kubectl(&args).await?.done()?;
        let found: Value = serde_json::from_str(&said.stdout)?;
        let found = found["items"].as_array().cloned().unwrap_or_default();
        ensure!(found.iter().all(is_guarded), "{found:?}");
        let names = found
            .iter()
            .map(|record| record["metadata"]["name"].clone());
        Ok::<_, anyhow::Error>(names.collect::<Vec<_>>())
    };
    ensure!(there().await? == ["cilium", "dns"]);
    what_is_stated_is_not_asked_for(stage, &team, &other).await?;
    a_change_reaches_one_cluster_after_the_other(stage, &team).await?;
    a_change_of_the_catalogue_does_as_well(stage, &team).await?;
    ensure!(there().await? == ["cilium", "dns"]);
    let rules_of_cni = RULES.lines().take(3).collect::<Vec<_>>().join("\n");
    rules(stage, &rules_of_cni).await?;
    for released in ["", "core release dns"] {
        if !released.is_empty() {
            core(stage, &format!("{released} -n {team}"), 0).await?;
        }
        let said = core(stage, "reconcile", 0).await?.stderr;
        let ours = format!("{}/dns  needs confirmation", stage.namespace);
        ensure!(said.contains(&ours), "{said}");
        ensure!(
            said.contains(&format!("{team}/dns  needs confirmation")) == released.is_empty(),
            "{said}"
        );
        stage.condition("dns", "NeedsConfirmation").await?;
    }
    // What a person released was uninstalled there, and what is still there is let go with the cluster.
    let left = there().await?;
    ensure!(left == ["cilium"], "{left:?}");
    let said = core(
        stage,
        &format!("core release --cluster-deleting -n {team}"),
        0,
    )
    .await?;
    ensure!(
        said.stderr.contains("finalizers removed from 1 record"),
        "{}",
        said.stderr
    );
    let delete = ["delete", "namespace", &team, "--timeout=30s"];
    stage.plugin.kubectl(&delete).await?.done()?;
    rules(stage, &RULES.replace("1.0.0", "2.0.0")).await?;
    core(stage, "reconcile", 0).await?;
    ensure!(installed(stage).await? == ["canal 2.0.0", "dns 2.0.0"]);
    Ok(())
}

/// Each pass is a process of its own: what was begun is known to the next one.
async fn a_change_reaches_one_cluster_after_the_other(stage: &Stage, team: &str) -> Result<()> {
    let text = RULES.replace("1.0.0", "2.0.0");
    soaked_rules(stage, &text, "1h").await?;
    let label = ["label", "namespace", &stage.namespace, team, "listed=yes"];
    stage.plugin.kubectl(&label).await?.done()?;
    let listed = listed_for("listed: \"yes\"", "[{name: extra, version: 1.0.0}]");
    write(stage, CUSTOM_CORE_ADDONS, "addons.yaml", &listed).await?;
    let waits = format!("{team}/extra  waits: the change reaches other clusters first");
    for _ in 0..2 {
        let said = core(stage, "reconcile", 0).await?.stderr;
        ensure!(said.contains(&waits), "{said}");
        let now = installed(stage).await?;
        ensure!(
            now == ["canal 2.0.0", "dns 2.0.0", "extra 1.0.0"],
            "{now:?}"
        );
    }
    let said = core(stage, "core list -o json", 0).await?.stdout;
    let said: Value = serde_json::from_str(&said)?;
    let rows = said["items"].as_array().context("no rows")?;
    let decision = |namespace: &str| {
        let mut rows = rows.iter();
        let row = rows.find(|row| row["name"] == "extra" && row["namespace"] == namespace);
        row.map(|row| row["decision"].clone())
    };
    ensure!(decision(team) == Some(json!("Waits")), "{said}");
    ensure!(
        decision(&stage.namespace) == Some(json!("Listed")),
        "{said}"
    );
    soaked_rules(stage, &text, "0s").await?;
    // The record of the first cluster says that it is ready, and its object is gone.
    stage.delete("configmap", "extra").await?;
    let said = core(stage, "reconcile", 0).await?.stderr;
    ensure!(said.contains(&waits), "{said}");
    ensure!(
        stage.has("configmap", "extra").await?,
        "it was restored: {said}"
    );
    let said = core(stage, "reconcile", 0).await?.stderr;
    let created =
        format!("{team}/extra  is listed as a core add-on of this cluster: record created");
    ensure!(said.contains(&created), "{said}");
    write(stage, CUSTOM_CORE_ADDONS, "addons.yaml", "[]").await?;
    core(stage, "core release extra", 0).await?;
    core(stage, &format!("core release extra -n {team}"), 0).await?;
    core(stage, "reconcile", 0).await.map(drop)
}

/// Under a version that is listed, too.
async fn a_change_of_the_catalogue_does_as_well(stage: &Stage, team: &str) -> Result<()> {
    let text = RULES.replace("1.0.0", "2.0.0");
    soaked_rules(stage, &text, "1h").await?;
    let change = json!({"spec": {"registry": "registry.example.test"}}).to_string();
    let patch = [
        "patch",
        "addoncatalogue",
        "core",
        "--type=merge",
        "-p",
        &change,
    ];
    let patched = stage.kubectl(&[&patch[..], &CORE[..]].concat()).await?;
    patched.done()?;
    for _ in 0..2 {
        let said = core(stage, "reconcile", 0).await?.stderr;
        let waits = format!("{team}/dns  waits: the change reaches other clusters first");
        ensure!(said.contains(&waits), "{said}");
    }
    soaked_rules(stage, &text, "0s").await?;
    let said = core(stage, "reconcile", 0).await?.stderr;
    let written = format!("{team}/dns  record restored as listed");
    ensure!(said.contains(&written), "{said}");
    Ok(())
}

/// Records, rules and list are read once for all clusters. Of each one is read where it is and what is stated of it, and there which
/// cluster it is and its version.
async fn what_is_stated_is_not_asked_for(
    stage: &Stage,
    team: &str,
    other: &ControlPlane,
) -> Result<()> {
    let (here, there) = (stage.cluster.audit().mark()?, other.audit().mark()?);
    core(stage, "core list", 0).await?;
    let here = stage.requests(here)?;
    let of_team = here.0.iter().map(|request| &request.object);
    let mut of_team: Vec<_> = of_team
        .filter(|object| object.namespace == *team)
        .map(|object| object.resource.as_str())
        .collect();
    of_team.sort_unstable();
    ensure!(
        of_team == ["configmaps", "namespaces", "secrets"],
        "{here:?}"
    );
    let there = other.audit().since(there)?;
    let there: Vec<_> = there.of("kubectl-addons").map(|one| &one.uri).collect();
    ensure!(
        there == ["/api/v1/namespaces/kube-system", "/version"],
        "{there:?}"
    );
    Ok(())
}
