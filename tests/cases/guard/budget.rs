//! What a tenant writes, and what a pod sends, takes neither the memory nor the places that reviews of the API server need; and the webhook
//! is called only where something is judged (semantics 18).

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::plugin::Plugin;
use addons_tests::scene::{catalogue, create, installation, version};
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result, ensure};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonInstallation;
use common::api::names::SYSTEM_NAMESPACE;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Half of what deploy/base allows the pod, in bytes; the build for tests takes more than a release.
const MEMORY: u64 = 128 << 20;
/// Records and catalogues of a tenant.
const MANY: usize = 20;
/// Address of a pod; the API server connects from 127.0.0.1.
const POD: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 7));
/// Requests of the pod at one time: more than the webhook ever had places.
const AT_ONCE: usize = 300;

async fn cluster() -> Result<(Arc<ControlPlane>, Plugin)> {
    let cluster = definitions::on(ControlPlane::alone_api_only().await?).await?;
    let admin = Plugin::new(&cluster, cluster.kubeconfig())?;
    for name in [SYSTEM_NAMESPACE, "tenant"] {
        admin
            .kubectl(&["create", "namespace", name])
            .await?
            .done()?;
    }
    Ok((cluster, admin))
}

/// A source that lists one version of an add-on.
fn source(name: &str) -> Value {
    let versions = [version("1.0.0", json!({}))];
    let addons = json!([{"name": "web", "versions": versions}]);
    catalogue(name, SYSTEM_NAMESPACE, addons)
}

/// The most bytes that a process ever had.
fn most(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no VmHWM")?.parse::<u64>()? << 10)
}

/// Values and catalogues that were stored before the webhook was there, or while it was not.
#[tokio::test]
async fn g11_one_tenant_does_not_fill_the_memory() -> Result<()> {
    let (cluster, admin) = cluster().await?;
    let client = cluster.client().await?;
    let records = Api::<AddonInstallation>::namespaced(client.clone(), "tenant");
    let catalogues = Api::<AddonCatalogue>::namespaced(client, "tenant");
    // Each is a megabyte as text, and many times that in memory.
    let zeros = vec![0; 500_000];
    let text = "x".repeat(1_000_000);
    for number in 0..MANY {
        let spec =
            json!({"addonRef": {"name": "web", "catalogue": "platform"}, "values": {"a": zeros}});
        let record = installation(&format!("large-{number}"), "tenant", spec);
        let record = serde_json::from_value(record)?;
        records.create(&PostParams::default(), &record).await?;
        let versions = json!([{"version": "1.0.0", "source": {"inline": {"manifest": text}}}]);
        let addons = json!([{"name": "web", "versions": versions}]);
        let object = catalogue(&format!("large-{number}"), "tenant", addons);
        let object = serde_json::from_value(object)?;
        catalogues.create(&PostParams::default(), &object).await?;
    }
    create(&admin, &source("platform"), &[]).await?.done()?;
    let mut webhook = Webhook::start(&cluster, &[]).await?;

    // Others are judged as ever, and are told who uses what.
    let line = format!("delete addoncatalogue platform -n {SYSTEM_NAMESPACE} --dry-run=server");
    let args: Vec<&str> = line.split(' ').collect();
    let said = admin.kubectl(&args).await?.done()?;
    ensure!(
        said.stderr.contains("and 17 more are installed from it"),
        "{said:?}"
    );
    let web = json!({"addonRef": {"name": "web", "catalogue": "platform"}});
    let record = installation("web", SYSTEM_NAMESPACE, web);
    create(&admin, &record, &[]).await?.done()?;
    // What is too large is refused, and what is stored can be marked and deleted.
    let more = json!({"addonRef": {"name": "web"}, "values": {"a": "x".repeat(300 << 10)}});
    let more = serde_json::from_value(installation("more", "tenant", more))?;
    let refused = records.create(&PostParams::default(), &more).await;
    let refused = refused.err().map(|error| error.to_string());
    let words = "spec.values: it cannot be read: it has 307208 bytes, and 262144 are allowed";
    ensure!(
        refused
            .as_ref()
            .is_some_and(|refused| refused.contains(words)),
        "{refused:?}"
    );
    for line in [
        "label addoninstallation large-0 a=b",
        "delete addoninstallation large-0",
    ] {
        let args: Vec<&str> = line.split(' ').chain(["-n", "tenant"]).collect();
        admin.kubectl(&args).await?.done()?;
    }
    let most = most(webhook.process().id())?;
    ensure!(most < MEMORY, "{} MiB", most >> 20);
    webhook.stop(&cluster).await
}

/// Rules whose conditions take a while, within their steps.
fn slow_rules() -> Value {
    let ones = "1,".repeat(100) + "1";
    let when = format!("[{ones}].all(a, [{ones}].all(b, a == b))");
    let rules = json!([{"name": "slow", "when": when, "addons": []}]).to_string();
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "core-addon-rules", "namespace": SYSTEM_NAMESPACE}, "data": {"rules.yaml": rules}})
}

/// Without a right to anything, a pod sends reviews of its own, on as many connections as it likes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_one_pod_keeps_no_review_waiting() -> Result<()> {
    let (cluster, admin) = cluster().await?;
    create(&admin, &source("platform"), &[]).await?.done()?;
    let webhook = Webhook::start(&cluster, &[]).await?;
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "namespace": SYSTEM_NAMESPACE, "name": "core-addon-rules",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "object": slow_rules(),
    }})
    .to_string();
    let authority = webhook.authority().certificate.as_bytes();
    let client = reqwest::Client::builder()
        .tls_certs_only(reqwest::Certificate::from_pem_bundle(authority)?)
        .no_proxy()
        .local_address(POD)
        .timeout(Duration::from_secs(20))
        .build()?;
    let url = format!("{}/core-sets", webhook.url());
    let (mut pod, answered) = (JoinSet::<()>::new(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..AT_ONCE {
        let (client, url, review) = (client.clone(), url.clone(), review.clone());
        let answered = Arc::clone(&answered);
        pod.spawn(async move {
            loop {
                let request = client.post(&url).body(review.clone());
                let request = request.header("Content-Type", "application/json");
                // Whatever the answer is.
                if request.send().await.is_ok() {
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    until("all of them have waited", async || {
        let count = answered.load(Ordering::Relaxed);
        Ok((count > AT_ONCE).then_some(()).ok_or(count.to_string()))
    })
    .await?;
    for number in 0..10 {
        let name = format!("web-{number}");
        let spec = json!({"addonRef": {"name": "web", "catalogue": "platform"}});
        let begun = Instant::now();
        let object = installation(&name, SYSTEM_NAMESPACE, spec);
        let said = create(&admin, &object, &[]).await?;
        ensure!(said.code == 0, "{name}, {:?}: {said:?}", begun.elapsed());
    }
    // What needs a turn as well has the next one.
    create(&admin, &slow_rules(), &[]).await?.done()?;
    pod.abort_all();
    webhook.stop(&cluster).await
}

/// What a condition may cost is counted, not timed.
#[tokio::test]
async fn g11_a_condition_beyond_its_steps_is_refused_at_once() -> Result<()> {
    let (cluster, admin) = cluster().await?;
    let webhook = Webhook::start(&cluster, &[]).await?;
    for when in [
        format!("[[1]]{}.size() == 1", ".map(a, a + a)".repeat(60)),
        "[1].all(lists, lists.range(1000000000).size() > 1)".to_owned(),
    ] {
        let mut rules = slow_rules();
        let text = json!([{"name": "large", "when": when, "addons": []}]).to_string();
        rules["data"]["rules.yaml"] = json!(text);
        let denied = create(&admin, &rules, &[]).await?;
        let words = "rule large: when: it may take ";
        ensure!(
            denied.code != 0 && denied.stderr.contains(words),
            "{denied:?}"
        );
    }
    webhook.stop(&cluster).await
}

/// While the webhook does not respond, what no rule could deny is written, and everything else is refused.
#[tokio::test]
async fn g20_the_webhook_is_called_only_where_something_is_judged() -> Result<()> {
    let (cluster, admin) = cluster().await?;
    create(&admin, &source("platform"), &[]).await?.done()?;
    let mut webhook = Webhook::start(&cluster, &[]).await?;
    let core = [
        "--as=core",
        "--as-group=system:masters",
        "--as-group=kubectl-addons:core",
    ];
    for (name, more) in [("web", &[][..]), ("dns", &core[..])] {
        let spec = json!({"addonRef": {"name": "web", "catalogue": "platform"}, "coreAddon": name == "dns"});
        let object = installation(name, SYSTEM_NAMESPACE, spec).to_string();
        let args = [&["create", "-f", "-"], more].concat();
        admin.kubectl_with_input(&args, &object).await?.done()?;
    }
    webhook.process().kill()?;
    let finalizer = |name: &str| format!("{{\"metadata\":{{\"finalizers\":[\"{name}\"]}}}}");
    for (line, patch, is_written) in [
        ("label addoninstallation web a=b", None, true),
        ("annotate addoninstallation web a=b", None, true),
        (
            "patch addoninstallation web --type=merge -p",
            Some(finalizer("a.example/b")),
            true,
        ),
        (
            "patch addoninstallation web --type=merge -p",
            Some(finalizer("kubectl-addons.dev/core-guard")),
            false,
        ),
        (
            "annotate addoninstallation web kubectl-addons.dev/released=true",
            None,
            false,
        ),
        (
            "annotate addoninstallation web --overwrite kubectl-addons.dev/written-by=jane",
            None,
            false,
        ),
        (
            "patch addoninstallation web --type=merge -p",
            Some(r#"{"spec":{"suspend":true}}"#.to_owned()),
            false,
        ),
        ("label addoninstallation dns a=b", None, false),
        ("delete addoninstallation web", None, false),
    ] {
        let args: Vec<&str> = line
            .split(' ')
            .chain(patch.as_deref())
            .chain(["-n", SYSTEM_NAMESPACE])
            .collect();
        let said = admin.kubectl(&args).await?;
        ensure!((said.code == 0) == is_written, "{line} {patch:?}: {said:?}");
    }
    webhook.stop(&cluster).await
}
