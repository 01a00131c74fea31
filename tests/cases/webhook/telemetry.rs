//! What the webhook and the API server tell about verdicts, and what the webhook keeps to itself.

use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::monitoring::{PAGE, ensure_listed};
use addons_tests::plugin::Plugin;
use addons_tests::scene::{catalogue, create, installation, version};
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result, ensure};
use common::api::names::{BREAK_GLASS_GROUP, CORE_GROUP, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

/// Stands wherever a user can write something that may be a secret.
const CANARY: &str = "c4n4ry-7f3a";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[tokio::test]
async fn rules_uids_and_traces_are_told_and_no_content() -> Result<()> {
    let cluster = ControlPlane::alone_api_only().await?;
    definitions::install(&cluster).await?;
    let admin = Plugin::admin(&cluster)?;
    let namespace = ["create", "namespace", SYSTEM_NAMESPACE];
    admin.kubectl(&namespace).await?.done()?;
    let mut webhook = Webhook::start(&cluster, &[]).await?;
    content(&cluster, &admin).await?;
    traced(&webhook).await?;
    deleted(&admin, &webhook).await?;
    let url = format!("{}/metrics", webhook.health_url());
    let metrics = reqwest::get(url).await?.text().await?;
    for line in [
        "addons_webhook_denials_total{rule=\"unknown-addon\"} ",
        "addons_webhook_break_glass_total{rule=\"core-deletion\"} 1",
        "addons_webhook_break_glass_last_timestamp_seconds 1",
        "addons_webhook_watch_failures_total{resource=\"addoninstallations\"} 0",
        "addons_webhook_build_info{version=\"",
        "addons_webhook_review_duration_seconds_bucket{le=\"0.000025\",path=\"/validate\"} ",
    ] {
        ensure!(metrics.contains(line), "{line} in {metrics}");
    }
    let unused = [
        "addons_webhook_policy_warnings_total",
        "addons_webhook_refused_total",
    ];
    ensure_listed("addons_webhook_", &metrics, &unused)?;
    let log = webhook.log();
    ensure!(!metrics.contains(CANARY), "{metrics}");
    ensure!(!log.contains(CANARY), "{log}");

    // Nothing answers: what the API server counts then has these names on the page.
    webhook.process().kill()?;
    let plain = installation(
        "plain",
        SYSTEM_NAMESPACE,
        json!({"addonRef": {"name": "web"}}),
    );
    let refused = create(&admin, &plain, &[]).await?;
    ensure!(
        refused.stderr.contains("failed calling webhook"),
        "{refused:?}"
    );
    let metrics = admin.kubectl(&["get", "--raw", "/metrics"]).await?.done()?;
    for (name, labels) in [
        ("fail_open_count", "name=\"mutate.kubectl-addons.dev\""),
        (
            "rejection_count",
            "error_type=\"calling_webhook_error\",name=\"validate.kubectl-addons.dev\"",
        ),
    ] {
        let metric = format!("apiserver_admission_webhook_{name}");
        let mut lines = metrics.stdout.lines();
        ensure!(
            lines.any(|line| line.starts_with(&metric) && line.contains(labels)),
            "{metric} {labels}"
        );
        let page = std::fs::read_to_string(PAGE)?;
        ensure!(page.contains(&metric), "{metric} is not on the page");
    }
    webhook.stop(&cluster).await
}

/// Allowed, denied, unreadable and lifted: objects with the canary in every place.
async fn content(cluster: &ControlPlane, admin: &Plugin) -> Result<()> {
    let entry = version(
        "1.0.0",
        json!({"values": {"password": CANARY}, "template": {"method": "go-template"}}),
    );
    let addons = json!([{"name": "web", "versions": [entry]}]);
    let platform = catalogue("platform", SYSTEM_NAMESPACE, addons);
    create(admin, &platform, &[]).await?.done()?;
    let record = |name: &str, addon: &str| {
        let values = json!({"password": CANARY, "list": [CANARY]});
        let spec = json!({"addonRef": {"name": addon}, "values": values});
        let mut record = installation(name, SYSTEM_NAMESPACE, spec);
        record["metadata"]["annotations"] = json!({"note": CANARY});
        record["metadata"]["labels"] = json!({"note": CANARY});
        record
    };
    until("the webhook knows the catalogue", async || {
        let said = create(admin, &record("first", "web"), &["--dry-run=server"]).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await?;
    create(admin, &record("first", "web"), &[]).await?.done()?;
    let denied = create(admin, &record("second", "no-such"), &[]).await?;
    ensure!(denied.stderr.contains("denied the request"), "{denied:?}");
    let core = cluster.user("core", &["system:masters", CORE_GROUP])?;
    let core = Plugin::new(cluster, &core.kubeconfig)?;
    let mut guarded = record("guarded", "web");
    guarded["spec"]["coreAddon"] = json!(true);
    create(&core, &guarded, &[]).await?.done()?;
    let glass = cluster.user("glass", &["system:masters", BREAK_GLASS_GROUP])?;
    let glass = Plugin::new(cluster, &glass.kubeconfig)?;
    let delete = [
        "delete",
        "addoninstallation",
        "guarded",
        "-n",
        SYSTEM_NAMESPACE,
        "--wait=false",
    ];
    let lifted = glass.kubectl(&delete).await?.done()?;
    ensure!(lifted.stderr.contains("break-glass"), "{lifted:?}");
    Ok(())
}

/// A deletion is allowed, and the log says who deleted what.
async fn deleted(admin: &Plugin, webhook: &Webhook) -> Result<()> {
    let delete = ["delete", "addoninstallation", "-n", SYSTEM_NAMESPACE];
    let dry = [&delete[..], &["first", "--dry-run=server"]].concat();
    admin.kubectl(&dry).await?.done()?;
    // Of a collection, the objects alone name what is deleted.
    let all = "/apis/kubectl-addons.dev/v1alpha1/namespaces/kubectl-addons/addoninstallations?labelSelector=note";
    admin.kubectl(&["delete", "--raw", all]).await?.done()?;
    let log = webhook.log();
    let lines: Vec<Value> = log
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let mut found = lines.iter().filter(|line| {
        line["operation"] == "DELETE" && line["name"] == "first" && line["allowed"] == true
    });
    for is_dry_run in [true, false] {
        let line = found.next().with_context(|| log.clone())?;
        let user = line["user"].as_str().unwrap_or_default();
        ensure!(line["dry_run"] == is_dry_run && !user.is_empty(), "{line}");
    }
    Ok(())
}

/// A review as an API server with tracing sends it; its object cannot be read.
async fn traced(webhook: &Webhook) -> Result<()> {
    let authority = webhook.authority().certificate.as_bytes();
    let client = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_pem(authority)?])
        .no_proxy()
        .build()?;
    let review = json!({"request": {
        "uid": "traced-uid", "operation": "CREATE", "name": "x", "namespace": "default",
        "kind": {"group": "kubectl-addons.dev", "version": "v1alpha1", "kind": "AddonInstallation"},
        "resource": {"group": "kubectl-addons.dev", "version": "v1alpha1", "resource": "addoninstallations"},
        "object": {"metadata": {"name": "x"}, "spec": {"addonRef": CANARY, "values": CANARY}},
    }});
    let answer = client
        .post(format!("{}/validate", webhook.url()))
        .header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"))
        .header("content-type", "application/json")
        .body(review.to_string())
        .send()
        .await?;
    let answer: Value = serde_json::from_slice(&answer.bytes().await?)?;
    ensure!(answer["response"]["allowed"] == false, "{answer}");
    ensure!(!answer.to_string().contains(CANARY), "{answer}");
    let log = webhook.log();
    let lines: Vec<Value> = log
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .with_context(|| log.clone())?;
    let line = lines.iter().find(|line| line["uid"] == "traced-uid");
    let line = line.with_context(|| log.clone())?;
    ensure!(line["span"]["trace_id"] == TRACE, "{line}");
    Ok(())
}
