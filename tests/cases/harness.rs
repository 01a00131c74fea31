//! The harness itself: what the other tests rely on.

mod definitions;
mod nodes;
mod plugin;
mod proxy;
mod webhook;

use addons_tests::control_plane::cluster::client;
use addons_tests::control_plane::{ControlPlane, Options, unique};
use addons_tests::guard;
use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

fn deployment(name: &str) -> Result<Deployment> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "registry.example/main:1"}]},
            },
        },
    }))?)
}

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn a_deployment_rolls_out() -> Result<()> {
    let cluster = ControlPlane::shared().await?;
    let namespace = cluster.namespace("harness-rollout").await?;
    let deployments = Api::<Deployment>::namespaced(cluster.client().await?, &namespace);
    deployments
        .create(&PostParams::default(), &deployment("web")?)
        .await?;
    let mut events = deployments
        .watch(&WatchParams::default(), "0")
        .await?
        .boxed();
    while let Some(event) = events.try_next().await? {
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event
            && object
                .status
                .is_some_and(|status| status.available_replicas == Some(3))
        {
            return Ok(());
        }
    }
    panic!("the watch ended before the rollout: {}", cluster.logs())
}

#[tokio::test]
async fn the_audit_log_counts_requests_by_verb_and_agent() -> Result<()> {
    let cluster = ControlPlane::shared().await?;
    let namespace = cluster.namespace("harness-audit").await?;
    let user = cluster.user(&unique("auditor"), &["system:masters"])?;
    let maps = Api::<ConfigMap>::namespaced(client(&user.kubeconfig).await?, &namespace);

    let mark = cluster.audit().mark()?;
    maps.create(&PostParams::default(), &config_map("real"))
        .await?;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    maps.create(&dry, &config_map("dry")).await?;
    maps.get("real").await?;
    assert!(maps.get_opt("missing").await?.is_none());
    maps.list(&ListParams::default()).await?;

    let requests = cluster.audit().since(mark)?.by(&user.name);
    assert_eq!(requests.total(""), 5, "{requests:#?}");
    assert_eq!(requests.count("create", ""), 2);
    assert_eq!(requests.count("get", ""), 2);
    assert_eq!(requests.count("list", ""), 1);
    assert_eq!(requests.writes(""), 1, "a dry run writes nothing");
    assert_eq!(requests.total("another-client"), 0);
    assert_eq!(
        requests
            .0
            .first()
            .map(|request| request.object.namespace.as_str()),
        Some(namespace.as_str())
    );
    Ok(())
}

#[tokio::test]
async fn certificates_carry_user_and_groups() -> Result<()> {
    let cluster = ControlPlane::shared().await?;
    let user = cluster.user("jane", &["kubectl-addons:core", "ops"])?;
    let answer = Api::<SelfSubjectReview>::all(client(&user.kubeconfig).await?)
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await?;
    let info = answer
        .status
        .and_then(|status| status.user_info)
        .unwrap_or_default();
    assert_eq!(info.username.as_deref(), Some("jane"));
    let groups = info.groups.unwrap_or_default();
    for group in ["kubectl-addons:core", "ops", "system:authenticated"] {
        assert!(
            groups.iter().any(|found| found == group),
            "{group} in {groups:?}"
        );
    }
    let secrets = Api::<k8s_openapi::api::core::v1::Secret>::all(client(&user.kubeconfig).await?);
    let error = secrets.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 403));
    Ok(())
}

#[tokio::test]
async fn a_component_that_ends_is_an_error_with_its_log() -> Result<()> {
    let options = Options {
        apiserver_flags: vec!["--no-such-flag".to_owned()],
        api_only: true,
    };
    let Err(error) = ControlPlane::start(options).await else {
        panic!("kube-apiserver took a flag that does not exist")
    };
    let error = format!("{error:#}");
    assert!(error.contains("kube-apiserver ended"), "{error}");
    assert!(error.contains("no-such-flag"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_dropped_cluster_leaves_no_folder_and_no_server() -> Result<()> {
    let options = Options {
        apiserver_flags: vec!["--emulated-version=1.34".to_owned()],
        api_only: true,
    };
    let cluster = ControlPlane::start(options).await?;
    let client = cluster.client().await?;
    let version = client.apiserver_version().await?;
    assert_eq!(
        version.emulation_minor.as_deref(),
        Some("34"),
        "{version:?}"
    );
    let folder = cluster.folder().to_owned();
    drop(cluster);
    assert!(!folder.exists(), "{}", folder.display());
    assert!(client.apiserver_version().await.is_err());
    Ok(())
}

/// A process like a test binary that is killed: it guards a child and a folder, and dies without a chance to clean up.
#[test]
fn what_is_guarded_dies_with_its_guardian() -> Result<()> {
    let marker = guard::Folder::new("kubectl-addons-guard-")?;
    // The watchdog alone, told what `guard::spawn` tells it, by a process that then ends.
    let mut sleeper = std::process::Command::new("sleep");
    std::os::unix::process::CommandExt::process_group(&mut sleeper, 0);
    let mut sleeper = sleeper.arg("600").spawn()?;
    let orders = format!(
        "guard {}\nfolder {}\n",
        sleeper.id(),
        marker.path().display()
    );
    let mut watchdog = std::process::Command::new("/bin/sh")
        .args([
            "-c",
            include_str!("../control-plane/src/guard/watchdog.sh"),
            "watchdog",
        ])
        .stdin(std::process::Stdio::piped())
        .spawn()?;
    std::io::Write::write_all(&mut watchdog.stdin.take().unwrap(), orders.as_bytes())?;
    watchdog.wait()?;
    assert!(!sleeper.wait()?.success(), "killed");
    assert!(!marker.path().exists());
    Ok(())
}
