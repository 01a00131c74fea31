//! What is deployed: the manifests are taken by the API server, and the loop can do its work with the rights that they give.

use std::path::Path;

use addons_tests::control_plane::ControlPlane;
use addons_tests::plugin::Plugin;
use addons_tests::stage::config_map;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use common::api::names::{RECONCILER_NAMESPACE, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

use crate::clusters::other;

pub(crate) const OVERLAY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/overlays/reconciler");
pub(crate) const COMPONENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/components");

/// The loop itself, with the token of its ServiceAccount.
pub(crate) async fn account(cluster: &ControlPlane, admin: &Plugin) -> Result<Plugin> {
    let args = [
        "create",
        "token",
        "addons-reconciler",
        "-n",
        RECONCILER_NAMESPACE,
    ];
    let token = admin.kubectl(&args).await?.done()?.stdout;
    let text = std::fs::read_to_string(cluster.kubeconfig())?;
    let mut config: Value = serde_saphyr::from_str(&text)?;
    config["users"][0]["user"] = json!({"token": token.trim()});
    let path = admin.home().join("account.json");
    std::fs::write(&path, config.to_string())?;
    Plugin::new(cluster, &path)
}

/// Applies the overlay, twice: the second time nothing changes.
async fn deploy(admin: &Plugin) -> Result<()> {
    let applied = admin.kubectl(&["apply", "-k", OVERLAY]).await?.done()?;
    ensure!(!applied.stderr.contains("Warning"), "{}", applied.stderr);
    let again = admin.kubectl(&["apply", "-k", OVERLAY]).await?.done()?;
    let changed = again.stdout.lines().find(|line| {
        !line.contains(" unchanged") && !line.starts_with("poddisruptionbudget.policy/")
    });
    ensure!(changed.is_none(), "{}", again.stdout);
    let rollout = [
        "rollout",
        "status",
        "deployment/addons-reconciler",
        "--timeout=60s",
    ];
    admin
        .kubectl(&[&rollout[..], &["-n", RECONCILER_NAMESPACE]].concat())
        .await?
        .done()?;
    Ok(())
}

/// An installation that nothing but the loop installs.
pub(crate) async fn record(admin: &Plugin) -> Result<()> {
    let version = json!({
        "version": "1.0.0", "defaultNamespace": "shop",
        "source": {"inline": {"manifest": config_map("web", "1")}},
    });
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "team", "namespace": SYSTEM_NAMESPACE},
        "spec": {"addons": [{"name": "web", "versions": [version]}]},
    });
    let record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": "web", "namespace": SYSTEM_NAMESPACE},
        "spec": {"addonRef": {"name": "web", "catalogue": "team"}, "reconcile": "Ensure"},
    });
    for object in [&catalogue, &record] {
        let args = ["apply", "-f", "-"];
        admin
            .kubectl_with_input(&args, &object.to_string())
            .await?
            .done()?;
    }
    Ok(())
}

#[tokio::test]
async fn the_deployed_loop_installs_with_the_rights_of_the_admin_account() -> Result<()> {
    let cluster = ControlPlane::alone().await?;
    let admin = Plugin::admin(&cluster)?;
    admin.run(&["init"]).await?.done()?;
    deploy(&admin).await?;
    record(&admin).await?;
    let plugin = account(&cluster, &admin).await?;
    let process = plugin.start(&["reconcile", "--watch", "--service-account=addons-admin"])?;
    let stored = async || -> Result<Value> {
        let args = [
            "get",
            "addoninstallation",
            "web",
            "-n",
            SYSTEM_NAMESPACE,
            "-o",
            "json",
        ];
        Ok(serde_json::from_str(
            &admin.kubectl(&args).await?.done()?.stdout,
        )?)
    };
    let log = || std::fs::read_to_string(plugin.home().join("stderr")).unwrap_or_default();
    // Without the component the account has no rights: nothing happens, and the record says why.
    until("the condition", async || {
        let record = stored().await?.to_string();
        let is_told = record.contains("\"Forbidden\"") || record.contains("not allowed");
        Ok(is_told
            .then_some(())
            .ok_or_else(|| format!("{record}\n{}", log())))
    })
    .await?;
    let binding = format!("{COMPONENTS}/reconciler-admin/binding.yaml");
    admin.kubectl(&["apply", "-f", &binding]).await?.done()?;
    let has = async |value: &str| -> Result<()> {
        until("the ConfigMap", async || {
            let args = [
                "get",
                "configmap",
                "web",
                "-n",
                "shop",
                "-o",
                "json",
                "--ignore-not-found",
            ];
            let found = admin.kubectl(&args).await?.done()?.stdout;
            let is_there = found.contains(&format!("\"key\": \"{value}\""));
            Ok(is_there
                .then_some(())
                .ok_or_else(|| format!("{found}\n{}", log())))
        })
        .await
    };
    has("1").await?;
    // Its objects are watched with the rights of the account, too.
    until("it is ready", async || {
        let record = stored().await?;
        let is_ready = record["status"]["phase"] == "Ready";
        Ok(is_ready
            .then_some(())
            .ok_or_else(|| format!("{record}\n{}", log())))
    })
    .await?;
    let patch = [
        "patch",
        "configmap",
        "web",
        "-n",
        "shop",
        "--type=merge",
        "-p",
    ];
    let patch = [&patch[..], &[r#"{"data":{"key":"by hand"}}"#]].concat();
    admin.kubectl(&patch).await?.done()?;
    has("1").await?;
    elsewhere(&admin).await?;
    drop(process);
    Ok(())
}

/// What `deploy/README.md` grants in a namespace that stands for a cluster; a kubeconfig by its name.
pub(crate) async fn enrolled(admin: &Plugin, namespace: &str, secret: Option<&str>) -> Result<()> {
    let account = format!("--serviceaccount={RECONCILER_NAMESPACE}:addons-reconciler");
    let mut lines =
        vec!["rolebinding addons-enrolled --clusterrole=kubectl-addons:enrolled".to_owned()];
    if let Some(secret) = secret {
        lines.push(format!(
            "role addons-kubeconfig --verb=get --resource=secrets --resource-name={secret}"
        ));
        lines.push("rolebinding addons-kubeconfig --role=addons-kubeconfig".to_owned());
    }
    for line in lines {
        let mut args = vec!["create", "-n", namespace];
        args.extend(line.split_whitespace());
        if line.starts_with("rolebinding") {
            args.push(&account);
        }
        admin.kubectl(&args).await?.done()?;
    }
    Ok(())
}

/// The kubeconfig of another cluster is read once the account may.
async fn elsewhere(admin: &Plugin) -> Result<()> {
    let other = other().await?;
    let kubeconfig = std::fs::read_to_string(other.kubeconfig())?;
    let label = json!({"kubectl-addons.dev/kubeconfig-secret": "other"});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "deployed", "labels": label}},
        {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": "deployed"},
            "stringData": {"value": kubeconfig},
        },
        {
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "web", "namespace": "deployed"},
            "spec": {"addonRef": {"name": "web", "catalogue": "team"}, "targetNamespace": "deployed-there"},
        },
    ]});
    let args = ["apply", "-f", "-"];
    admin
        .kubectl_with_input(&args, &list.to_string())
        .await?
        .done()?;
    let says = async |word: &str| {
        until(word, async || {
            let args = [
                "get",
                "addoninstallation",
                "web",
                "-n",
                "deployed",
                "-o",
                "json",
            ];
            let record = admin.kubectl(&args).await?.done()?.stdout;
            Ok(record.contains(word).then_some(()).ok_or(record))
        })
        .await
    };
    says("\"Forbidden\"").await?;
    enrolled(admin, "deployed", Some("other")).await?;
    says("\"phase\": \"Ready\"").await?;
    let args = ["get", "configmap", "web", "-n", "deployed-there"];
    Plugin::admin(&other)?
        .kubectl(&args)
        .await?
        .done()
        .map(drop)
}

/// The path of a folder as an overlay in `from` has to write it.
pub(crate) fn relative(path: &str, from: &Path) -> Result<String> {
    let target = std::fs::canonicalize(path)?;
    let ups = "../".repeat(std::fs::canonicalize(from)?.components().count() - 1);
    let target = target.display().to_string();
    Ok(format!("{ups}{}", target.trim_start_matches('/')))
}

/// Components are added to an overlay of the user's own.
#[tokio::test]
async fn components_complete_the_overlay() -> Result<()> {
    let stage = super::stage("components").await?;
    let folder = stage.plugin.home().join("overlay");
    std::fs::create_dir(&folder)?;
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [relative(OVERLAY, &folder)?],
        "components": [
            relative(&format!("{COMPONENTS}/reconciler-admin"), &folder)?,
            relative(&format!("{COMPONENTS}/reconciler-core"), &folder)?,
            relative(&format!("{COMPONENTS}/reconciler-monitor"), &folder)?,
        ],
    });
    std::fs::write(folder.join("kustomization.yaml"), kustomization.to_string())?;
    let folder = folder.display().to_string();
    let built = stage
        .plugin
        .kubectl(&["kustomize", &folder])
        .await?
        .done()?
        .stdout;
    for part in [
        "kind: PodMonitor",
        "name: kubectl-addons:admin",
        "name: kubectl-addons:enrolled",
        "name: kubectl-addons:core-sets",
        "kind: PodDisruptionBudget",
    ] {
        ensure!(built.contains(part), "{part}: {built}");
    }
    Ok(())
}
