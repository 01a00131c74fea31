//! Waits for what an object does not say itself: controllers that report later, Services behind webhooks, storage classes,
//! Jobs that go by themselves.

use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// A kind with a status, and one object of it.
fn widget(group: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: widgets.{group}}}\nspec:\n  \
         group: {group}\n  scope: Namespaced\n  names: {{plural: widgets, singular: widget, kind: Widget}}\n  versions:\n  \
         - name: v1\n    served: true\n    storage: true\n    subresources: {{status: {{}}}}\n    \
         schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}\n\
         ---\napiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: one}}\nspec: {{size: 1}}\n"
    )
}

#[tokio::test]
async fn a_custom_resource_is_ready_when_its_controller_says_so() -> Result<()> {
    let stage = Stage::new("reporting").await?;
    let group = format!("{}.example.com", stage.namespace);
    let index = stage.index("index.yaml", &[("widget", "1.0.0", &widget(&group))])?;
    let kind = format!("widgets.{group}");
    let report = async |status: &str, reason: &str| {
        let condition = json!({"type": "Ready", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"conditions": [condition]});
        stage.patch_status(&kind, "one", &status).await
    };
    let line = format!("install widget --channel {index} --yes");
    let controller = async {
        // Before the definition is served, kubectl does not know the kind.
        let path = format!(
            "/apis/{group}/v1/namespaces/{}/widgets/one",
            stage.namespace
        );
        until("the widget", async || {
            let found = stage.plugin.kubectl(&["get", "--raw", &path]).await?;
            Ok(found.done().map(drop).map_err(|error| error.to_string()))
        })
        .await?;
        report("False", "Starting").await?;
        let phase = stage.record("widget").await?["status"]["phase"].clone();
        ensure!(phase == "Progressing", "it did not wait: {phase}");
        report("True", "Started").await
    };
    let (installed, controlled) = tokio::join!(stage.run(&line), controller);
    controlled?;
    let installed = installed?.done()?;
    ensure!(
        installed.stderr.contains("Widget one") && !installed.stderr.contains("no status after"),
        "{}",
        installed.stderr
    );
    Ok(())
}

#[tokio::test]
async fn a_webhook_configuration_is_ready_when_its_service_has_endpoints() -> Result<()> {
    let stage = Stage::new("webhook-wait").await?;
    let namespace = stage.namespace.clone();
    let manifest = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: guard}}\nspec: {{ports: [{{port: 443}}]}}\n---\n\
         apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: {namespace}}}\n\
         webhooks:\n- name: guard.example.com\n  failurePolicy: Fail\n  sideEffects: None\n  admissionReviewVersions: [v1]\n  \
         rules: [{{apiGroups: [{namespace}.example.com], apiVersions: [v1], operations: [CREATE], resources: [nothing]}}]\n  \
         clientConfig: {{caBundle: Zm9v, service: {{namespace: {namespace}, name: guard}}}}\n"
    );
    let index = stage.index("index.yaml", &[("guard", "1.0.0", &manifest)])?;
    let timed_out = stage
        .run(&format!(
            "install guard --channel {index} --yes --timeout 3s"
        ))
        .await?
        .ended(3)?;
    let reason = format!("{namespace}/Service guard has no ready endpoints yet");
    ensure!(timed_out.stderr.contains(&reason), "{}", timed_out.stderr);

    // A pod that is not ready is nobody.
    let slice = |ready: bool| {
        format!(
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: guard-1, labels: {{kubernetes.io/service-name: guard}}}}\n\
             addressType: IPv4\nports: [{{port: 443}}]\nendpoints: [{{addresses: [10.1.2.3], conditions: {{ready: {ready}}}}}]\n"
        )
    };
    stage.apply(&slice(false)).await?;
    let upgrade = format!("upgrade guard -n {namespace} --yes --timeout 60s");
    let (upgraded, applied) = tokio::join!(stage.run(&upgrade), async {
        until("the wait", async || {
            let phase = stage.record("guard").await?["status"]["phase"].clone();
            Ok(if phase == "Failed" || phase == "Progressing" {
                Ok(())
            } else {
                Err(phase.to_string())
            })
        })
        .await?;
        stage.apply(&slice(true)).await
    });
    applied?;
    upgraded?.done()?;
    stage
        .delete("validatingwebhookconfiguration", &namespace)
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_claim_is_ready_as_its_storage_class_has_it() -> Result<()> {
    let stage = Stage::new("claims").await?;
    let namespace = stage.namespace.clone();
    let class = |name: &str, mode: &str| {
        format!(
            "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {namespace}-{name}}}\n\
             provisioner: nobody.example.com\nvolumeBindingMode: {mode}\n---\n"
        )
    };
    stage
        .apply(
            &[
                class("later", "WaitForFirstConsumer"),
                class("now", "Immediate"),
            ]
            .concat(),
        )
        .await?;
    let claim = |class: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {class}}}\nspec:\n  accessModes: [ReadWriteOnce]\n  \
             storageClassName: {namespace}-{class}\n  resources: {{requests: {{storage: 1Gi}}}}\n"
        )
    };
    let later = stage.index("later.yaml", &[("later", "1.0.0", &claim("later"))])?;
    stage
        .run(&format!(
            "install later --channel {later} --yes --timeout 60s"
        ))
        .await?
        .done()?;
    let now = stage.index("now.yaml", &[("now", "1.0.0", &claim("now"))])?;
    let timed_out = stage
        .run(&format!("install now --channel {now} --yes --timeout 3s"))
        .await?
        .ended(3)?;
    ensure!(
        timed_out.stderr.contains("not yet bound"),
        "{}",
        timed_out.stderr
    );
    Ok(())
}

#[tokio::test]
async fn a_job_is_waited_for_also_when_it_deletes_itself() -> Result<()> {
    let stage = Stage::new("jobs").await?;
    let job = |name: &str, more: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n  {more}\n  template:\n    spec:\n      \
             restartPolicy: Never\n      containers: [{{name: main, image: 'example.test/job:1'}}]\n---\n"
        )
    };
    let jobs = [
        job("stays", "completions: 1"),
        job("goes", "ttlSecondsAfterFinished: 0"),
    ];
    let index = stage.index("index.yaml", &[("jobs", "1.0.0", &jobs.concat())])?;
    let installed = stage
        .run(&format!(
            "install jobs --channel {index} --yes --timeout 60s"
        ))
        .await?
        .done()?;
    ensure!(
        installed.stderr.contains("Job stays"),
        "{}",
        installed.stderr
    );
    let job = stage.get("job", "stays").await?.unwrap_or_default();
    let is_complete =
        |condition: &Value| condition["type"] == "Complete" && condition["status"] == "True";
    let conditions = job["status"]["conditions"].as_array();
    ensure!(
        conditions.is_some_and(|conditions| conditions.iter().any(is_complete)),
        "not complete: {job}"
    );
    Ok(())
}

/// Its pod fits on no node, and it fails by its own deadline.
const FAILS: &str = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\nspec:\n  ttlSecondsAfterFinished: 1\n  \
    activeDeadlineSeconds: 1\n  template:\n    spec:\n      restartPolicy: Never\n      nodeSelector: {zone: no-such-zone}\n      \
    containers: [{name: main, image: 'example.test/job:1'}]\n";

#[tokio::test]
async fn a_failed_job_that_deleted_itself_runs_again() -> Result<()> {
    let stage = Stage::new("jobs-again").await?;
    let namespace = stage.namespace.clone();
    let index = stage.index("index.yaml", &[("jobs", "1.0.0", &config_map("old", "1"))])?;
    let install = format!("install jobs --channel {index} --yes");
    stage.run(&install).await?.done()?;
    stage.index("index.yaml", &[("jobs", "2.0.0", FAILS)])?;
    let upgrade = format!("upgrade jobs -n {namespace} --yes --timeout 60s");
    for _ in 0..2 {
        let failed = stage.run(&upgrade).await?.ended(1)?.stderr;
        ensure!(failed.contains("Job migrate"), "{failed}");
        ensure!(stage.has("configmap", "old").await?, "pruned: {failed}");
        until("the Job is gone", async || {
            let job = stage.get("job", "migrate").await?;
            Ok(job.map_or(Ok(()), |job| Err(job["status"].to_string())))
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn list_and_status_say_what_keeps_a_workload() -> Result<()> {
    let stage = Stage::new("blockers").await?;
    let index = stage.index(
        "index.yaml",
        &[("web", "1.0.0", &deployment("web", 1, Some("no-such-zone")))],
    )?;
    let mark = stage.cluster.audit().mark()?;
    let waited = stage
        .run(&format!("install web --channel {index} --yes --timeout 6s"))
        .await?
        .ended(3)?;
    // Told while it waits, not only at its end.
    let told = waited
        .stderr
        .lines()
        .filter(|line| line.contains("Unschedulable"));
    ensure!(told.count() >= 2, "{}", waited.stderr);
    let requests = stage.requests(mark)?;
    ensure!(
        requests.total("kubectl-addons") <= 30,
        "{:?}",
        requests.by_verb("kubectl-addons")
    );
    let list = stage
        .run(&format!("list -n {}", stage.namespace))
        .await?
        .done()?;
    ensure!(
        list.stdout
            .contains("Failed: install: Deployment web 0/1 ready (Unschedulable)"),
        "{}",
        list.stdout
    );
    let status = stage
        .run(&format!("status web -n {}", stage.namespace))
        .await?
        .done()?;
    ensure!(
        status.stdout.contains("0/1 ready   pod web-") && status.stdout.contains("node"),
        "{}",
        status.stdout
    );
    Ok(())
}

#[tokio::test]
async fn list_and_status_say_what_the_server_refused() -> Result<()> {
    let stage = Stage::new("refused").await?;
    let job =
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\nspec: {parallelism: -1}\n";
    let both = format!("{}---\n{job}", config_map("first", "1"));
    let index = stage.index("index.yaml", &[("web", "1.0.0", &both)])?;
    let namespace = &stage.namespace;
    // In a namespace that does not exist, no plan knows of it.
    let install = format!("install web --channel {index} --target-namespace {namespace}-own --yes");
    stage.run(&install).await?.ended(1)?;
    let list = stage.run(&format!("list -n {namespace}")).await?.done()?;
    let status = stage
        .run(&format!("status web -n {namespace}"))
        .await?
        .done()?;
    let told = "Failed: install: ";
    ensure!(list.stdout.contains(told), "{}", list.stdout);
    let expected = [
        told,
        "parallelism: Invalid value: -1",
        "ConfigMap first   ready",
        // A Job that is gone counts as one that has run; this one never existed.
        "Job migrate       does not exist yet",
        &format!("to continue: kubectl addons upgrade web -n {namespace}"),
    ];
    let missing = expected.iter().find(|it| !status.stdout.contains(**it));
    ensure!(missing.is_none(), "{missing:?}: {}", status.stdout);
    ensure!(!status.stdout.contains("restore:"), "{}", status.stdout);
    let line = format!("status web -n {namespace} -o json");
    let said: Value = serde_json::from_str(&stage.run(&line).await?.done()?.stdout)?;
    let way_on = format!("kubectl addons upgrade web -n {namespace}");
    ensure!(said["phase"] == "Failed", "{said}");
    ensure!(said["wayOn"] == way_on.as_str(), "{said}");
    Ok(())
}
