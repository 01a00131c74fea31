//! The node that every cluster has: what it makes of Pods, as a kubelet would.

use std::time::Instant;

use addons_tests::control_plane::ControlPlane;
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::deployment;

/// More than one page of a watch, and fewer than the node takes.
const MANY: i32 = 200;

/// The status of a Pod, which is asked for until it says this.
async fn has(api: &Api<Pod>, name: &str, path: &str, value: &str) -> Result<Value> {
    until(&format!("{name} has {path} {value}"), async || {
        let pod = serde_json::to_value(api.get(name).await?)?;
        let found = pod.pointer(path).and_then(Value::as_str) == Some(value);
        Ok(found.then(|| pod["status"].clone()).ok_or(pod.to_string()))
    })
    .await
}

#[tokio::test]
async fn a_pod_is_ready_and_gone_as_soon_as_it_is_deleted() -> Result<()> {
    let cluster = ControlPlane::shared().await?;
    let namespace = cluster.namespace("harness-pod").await?;
    let pods = Api::<Pod>::namespaced(cluster.client().await?, &namespace);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {
            "initContainers": [
                {"name": "once", "image": "example.test/once:1"},
                {"name": "beside", "image": "example.test/beside:1", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "main", "image": "example.test/main:1"}],
        },
    });
    let pod: Pod = serde_json::from_value(pod)?;
    pods.create(&PostParams::default(), &pod).await?;
    let status = has(&pods, "web", "/status/phase", "Running").await?;
    let conditions = status["conditions"].as_array().cloned();
    for name in ["PodScheduled", "Initialized", "ContainersReady", "Ready"] {
        let mut conditions = conditions.iter().flatten();
        let is_true = conditions.any(|one| one["type"] == name && one["status"] == "True");
        assert!(is_true, "{name}: {status}");
    }
    assert_eq!(status["containerStatuses"][0]["ready"], true, "{status}");
    let states = &status["initContainerStatuses"];
    let ended = &states[0]["state"]["terminated"]["exitCode"];
    assert_eq!(
        (ended, states[1]["started"].clone()),
        (&json!(0), json!(true))
    );
    for field in ["hostIP", "podIP", "startTime"] {
        assert!(status[field].is_string(), "{field}: {status}");
    }

    // What a test writes into the status of a Pod that runs stays.
    let broken = json!({"status": {"containerStatuses": [{
        "name": "main", "image": "a", "imageID": "", "restartCount": 3, "ready": false,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    }]}});
    let params = PatchParams::default();
    pods.patch_status("web", &params, &Patch::Merge(broken))
        .await?;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    pods.patch("web", &params, &Patch::Merge(label)).await?;
    let reason = "/status/containerStatuses/0/state/waiting/reason";
    has(&pods, "web", reason, "CrashLoopBackOff").await?;

    // The grace period is 30 s.
    let began = Instant::now();
    pods.delete("web", &DeleteParams::default()).await?;
    until("the Pod is gone", async || {
        let found = pods.get_opt("web").await?;
        Ok(found.map_or(Ok(()), |pod| Err(format!("{pod:?}"))))
    })
    .await?;
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_job_ends_well_at_once() -> Result<()> {
    let cluster = ControlPlane::shared().await?;
    let namespace = cluster.namespace("harness-job").await?;
    let client = cluster.client().await?;
    let jobs = Api::<Job>::namespaced(client.clone(), &namespace);
    let job: Job = serde_json::from_value(json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "setup"},
        "spec": {"completions": 2, "template": {"spec": {
            "restartPolicy": "OnFailure",
            "containers": [{"name": "main", "image": "example.test/main:1"}],
        }}},
    }))?;
    jobs.create(&PostParams::default(), &job).await?;
    until("the Job is complete", async || {
        let status = jobs.get("setup").await?.status.unwrap_or_default();
        let mut conditions = status.conditions.iter().flatten();
        let is_complete = conditions.any(|one| one.type_ == "Complete" && one.status == "True");
        let is_done = is_complete && status.succeeded == Some(2);
        Ok(is_done.then_some(()).ok_or(format!("{status:?}")))
    })
    .await?;
    let pods = Api::<Pod>::namespaced(client, &namespace);
    for pod in pods.list(&ListParams::default()).await? {
        let phase = pod.status.and_then(|status| status.phase);
        assert_eq!(phase.as_deref(), Some("Succeeded"));
    }
    Ok(())
}

#[tokio::test]
async fn many_pods_roll_out_and_go() -> Result<()> {
    let mut tally = Tally::new("harness::nodes::many");
    let cluster = ControlPlane::shared().await?;
    let namespace = cluster.namespace("harness-many").await?;
    let deployments = Api::<Deployment>::namespaced(cluster.client().await?, &namespace);
    let mut web = deployment("web")?;
    if let Some(spec) = &mut web.spec {
        spec.replicas = Some(MANY);
    }
    let began = Instant::now();
    deployments.create(&PostParams::default(), &web).await?;
    for replicas in [Some(MANY), None] {
        until(&format!("{replicas:?} Pods are available"), async || {
            let status = deployments.get("web").await?.status.unwrap_or_default();
            let is_there = status.available_replicas == replicas;
            Ok(is_there.then_some(()).ok_or(format!("{status:?}")))
        })
        .await?;
        tally.note(format!(
            "{replicas:?}: {:.1} s",
            began.elapsed().as_secs_f64()
        ));
        let none = json!({"spec": {"replicas": 0}});
        let params = PatchParams::default();
        deployments
            .patch("web", &params, &Patch::Merge(none))
            .await?;
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
async fn the_node_renews_its_lease() -> Result<()> {
    let cluster = ControlPlane::shared().await?;
    let leases = Api::<Lease>::namespaced(cluster.client().await?, "kube-node-lease");
    let renewed = async || {
        let lease = leases.get_opt("node-0").await?;
        let spec = lease.and_then(|lease| lease.spec);
        anyhow::Ok(spec.and_then(|spec| spec.renew_time).map(|time| time.0))
    };
    let first = until("the Lease is there", async || {
        Ok(renewed().await?.ok_or_else(|| "no Lease".to_owned()))
    })
    .await?;
    until("the Lease is renewed", async || {
        let now = renewed().await?;
        Ok((now > Some(first)).then_some(()).ok_or(format!("{now:?}")))
    })
    .await
}
