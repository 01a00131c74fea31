//! The loop as it is deployed, with the webhook and the policies: its ServiceAccount follows core sets.

use addons_tests::control_plane::ControlPlane;
use addons_tests::plugin::Plugin;
use addons_tests::stage::config_map;
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Result, ensure};
use common::api::names::{ANNOTATION_CLUSTER_DELETING, FINALIZER_CORE_GUARD, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

use crate::core_addons::listed_for;

use super::deployed::{COMPONENTS, OVERLAY, account};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy");
/// Whom the webhook of deploy/base takes for the loop.
const CORE_USER: &str =
    "--core-user=system:serviceaccount:kubectl-addons-reconciler:addons-reconciler";

async fn kubectl(admin: &Plugin, line: &str) -> Result<String> {
    let args: Vec<_> = line.split_whitespace().collect();
    Ok(admin.kubectl(&args).await?.done()?.stdout)
}

async fn apply(admin: &Plugin, object: &Value) -> Result<()> {
    let args = ["apply", "-f", "-"];
    let applied = admin.kubectl_with_input(&args, &object.to_string()).await?;
    applied.done().map(drop)
}

/// Writes what core sets follow from, as a member of the core group.
async fn list(admin: &Plugin, addons: &str) -> Result<()> {
    let label = format!("kubernetes.io/metadata.name: {SYSTEM_NAMESPACE}");
    let addons = &listed_for(&label, addons);
    let map = |name: &str, key: &str, text: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {key: text},
            "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
        })
    };
    let maps = json!({"apiVersion": "v1", "kind": "List", "items": [
        map("core-addon-rules", "rules.yaml", "[]"),
        map("custom-core-addons", "addons.yaml", addons),
    ]});
    let args = [
        "apply",
        "-f",
        "-",
        "--as=core",
        "--as-group=kubectl-addons:core",
        "--as-group=system:masters",
    ];
    let applied = admin.kubectl_with_input(&args, &maps.to_string()).await?;
    applied.done().map(drop)
}

/// Who keeps clusters: group, version and scope of its Clusters, and a namespace that stands for one of them.
const KEEPERS: [(&str, &str, &str, &str); 2] = [
    ("kubermatic.k8c.io", "v1", "Cluster", "cluster-site"),
    ("cluster.x-k8s.io", "v1beta1", "Namespaced", "sites"),
];

/// A keeper, the namespace of its cluster, and the record of a core add-on there. The cluster itself is never asked.
fn elsewhere((group, version, scope, namespace): (&str, &str, &str, &str)) -> [Value; 3] {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("clusters.{group}"), "annotations":
            {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/cluster-api"}},
        "spec": {
            "group": group, "scope": scope,
            "names": {"kind": "Cluster", "plural": "clusters", "singular": "cluster"},
            "versions": [{"name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let label = json!({"kubectl-addons.dev/kubeconfig-secret": "site-kubeconfig"});
    let home = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": label},
    });
    let record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": "dns", "namespace": namespace, "finalizers": [FINALIZER_CORE_GUARD]},
        "spec": {"addonRef": {"name": "dns", "catalogue": "core"}, "coreAddon": true},
    });
    [definition, home, record]
}

/// A cluster of a keeper, which takes its time to delete it.
fn cluster((group, version, scope, namespace): (&str, &str, &str, &str)) -> Value {
    let mut cluster = json!({
        "apiVersion": format!("{group}/{version}"), "kind": "Cluster",
        "metadata": {"name": "site", "finalizers": ["example.test/cleanup"]},
    });
    if scope == "Namespaced" {
        cluster["metadata"]["namespace"] = namespace.into();
    }
    cluster
}

async fn world(admin: &Plugin) -> Result<()> {
    admin.run(&["init"]).await?.done()?;
    let rbac = format!("{OVERLAY}/rbac.yaml");
    for file in [
        rbac,
        format!("{COMPONENTS}/reconciler-admin/binding.yaml"),
        format!("{COMPONENTS}/reconciler-core/rbac.yaml"),
    ] {
        kubectl(admin, &format!("apply -f {file}")).await?;
    }
    let version = json!({
        "version": "1.0.0", "defaultNamespace": "dns",
        "source": {"inline": {"manifest": config_map("dns", "1")}},
    });
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "core", "namespace": SYSTEM_NAMESPACE},
        "spec": {"class": "Core", "addons": [{"name": "dns", "versions": [version]}]},
    });
    apply(admin, &catalogue).await?;
    marked_without_core_sets(admin).await?;
    let all = KEEPERS.map(|keeper| (cluster(keeper), elsewhere(keeper)));
    for (_, [definition, home, _]) in &all {
        apply(admin, definition).await?;
        apply(admin, home).await?;
    }
    let established =
        "wait --for=condition=Established crd clusters.kubermatic.k8c.io clusters.cluster.x-k8s.io";
    kubectl(admin, established).await?;
    // A Cluster is older than the core add-ons of its namespace.
    for (cluster, [_, _, record]) in &all {
        apply(admin, cluster).await?;
        apply(admin, record).await?;
    }
    Ok(())
}

/// What a person installed with `--core` carries no guard, and keeps its namespace from being deleted until that is marked.
async fn marked_without_core_sets(admin: &Plugin) -> Result<()> {
    let [_, (group, version, scope, _)] = KEEPERS;
    let keeper = (group, version, scope, "by-hand");
    let [definition, home, mut record] = elsewhere(keeper);
    record["metadata"]["finalizers"] = json!([]);
    apply(admin, &definition).await?;
    let established = format!("wait --for=condition=Established crd clusters.{group}");
    kubectl(admin, &established).await?;
    for object in [home, cluster(keeper), record] {
        apply(admin, &object).await?;
    }
    let delete = format!("delete cluster.{group} site --wait=false -n by-hand");
    kubectl(admin, &delete).await?;
    // Nothing leads to the cluster itself, which is what the exit code says.
    admin.run(&["reconcile"]).await?;
    let found = kubectl(admin, "get namespace by-hand -o json").await?;
    ensure!(found.contains(ANNOTATION_CLUSTER_DELETING), "{found}");
    Ok(())
}

async fn policies(admin: &Plugin) -> Result<()> {
    kubectl(admin, &format!("apply -k {DEPLOY}/policies")).await?;
    until("the policies are in force", async || {
        let args = ["delete", "addoninstallation", "dns", "-n", "cluster-site"];
        let said = admin
            .kubectl(&[&args[..], &["--dry-run=server"]].concat())
            .await?;
        let is_denied = said.stderr.contains("'kubectl-addons-installations'");
        Ok(is_denied.then_some(()).ok_or(said.stdout + &said.stderr))
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn the_deployed_loop_follows_core_sets() -> Result<()> {
    let cluster = ControlPlane::alone().await?;
    let admin = Plugin::admin(&cluster)?;
    world(&admin).await?;
    let webhook = Webhook::start(&cluster, &[CORE_USER]).await?;
    policies(&admin).await?;
    list(&admin, "[{name: dns, version: 1.0.0}]").await?;
    let plugin = account(&cluster, &admin).await?;
    let flags = [
        "reconcile",
        "--watch",
        "--service-account=addons-admin",
        "--interval=1h",
    ];
    let process = plugin.start(&flags)?;
    let log = || std::fs::read_to_string(plugin.home().join("stderr")).unwrap_or_default();
    let get = format!("get addoninstallation dns -n {SYSTEM_NAMESPACE} -o json --ignore-not-found");
    until("it is installed and guarded", async || {
        let found = kubectl(&admin, &get).await?;
        let is_there =
            found.contains("\"phase\": \"Ready\"") && found.contains(FINALIZER_CORE_GUARD);
        Ok(is_there
            .then_some(())
            .ok_or_else(|| format!("{found}\n{}", log())))
    })
    .await?;
    // No one but the loop and the core group edits it.
    let args = [
        "patch",
        "addoninstallation",
        "dns",
        "-n",
        SYSTEM_NAMESPACE,
        "--type=merge",
        "-p",
    ];
    let patch = [&args[..], &[r#"{"spec":{"suspend":true}}"#]].concat();
    let said = admin.kubectl(&patch).await?;
    ensure!(
        said.stderr.contains("changes core add-ons"),
        "{}",
        said.stderr
    );
    deleted_with_its_cluster(&admin, &log).await?;
    list(&admin, "[]").await?;
    until("it is released and uninstalled", async || {
        let found = kubectl(&admin, &get).await?;
        let object = kubectl(&admin, "get configmap dns -n dns --ignore-not-found").await?;
        let is_gone = found.is_empty() && object.is_empty();
        Ok(is_gone
            .then_some(())
            .ok_or_else(|| format!("{found}\n{object}\n{}", log())))
    })
    .await?;
    drop((process, webhook));
    Ok(())
}

/// Its keeper deletes a cluster, then the namespace: nothing denies that, nothing holds it, and the cluster itself is not asked.
async fn deleted_with_its_cluster(admin: &Plugin, log: &dyn Fn() -> String) -> Result<()> {
    for (group, _, _, namespace) in KEEPERS {
        let line = format!("delete cluster.{group} site --wait=false -n {namespace}");
        kubectl(admin, &line).await?;
    }
    // The loop looks when the list changes: at its interval it would see it as well.
    list(admin, "[{name: dns, version: 1.0.0}] #").await?;
    for (group, _, _, namespace) in KEEPERS {
        until("nothing holds its record", async || {
            let line = format!("get addoninstallation dns -n {namespace} -o json");
            let found = kubectl(admin, &line).await?;
            let is_free = !found.contains("\"finalizers\"");
            Ok(is_free
                .then_some(())
                .ok_or_else(|| format!("{found}\n{}", log())))
        })
        .await?;
        let cleaned = r#"{"metadata":{"finalizers":null}}"#;
        let patch = format!("patch cluster.{group} site -n {namespace} --type=merge -p {cleaned}");
        kubectl(admin, &patch).await?;
        // The webhook may not know the mark yet.
        until("the namespace is gone", async || {
            let line = format!("delete namespace {namespace} --ignore-not-found --timeout=30s");
            let args: Vec<_> = line.split_whitespace().collect();
            let said = admin.kubectl(&args).await?;
            Ok((said.code == 0).then_some(()).ok_or(said.stderr))
        })
        .await?;
    }
    Ok(())
}
