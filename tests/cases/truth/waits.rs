//! What is waited for comes, and what failed before says nothing of now.

use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Result, ensure};

/// A validating webhook whose backend is part of a later add-on, and whose failures are ignored until then.
#[tokio::test]
async fn n21_a_webhook_that_stops_nothing_is_not_waited_for() -> Result<()> {
    let stage = Stage::new("ignored").await?;
    stage.run("init").await?.done()?;
    let namespace = &stage.namespace;
    let base = format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n\
         metadata: {{name: {namespace}-validator}}\nwebhooks:\n- name: validate.{namespace}.example.test\n  \
         admissionReviewVersions: [v1]\n  sideEffects: None\n  failurePolicy: Ignore\n  \
         clientConfig: {{service: {{name: control, namespace: {namespace}}}}}\n  \
         rules: [{{apiGroups: [{namespace}.example.test], apiVersions: ['*'], operations: ['*'], resources: ['*']}}]\n"
    );
    let entries = [
        ("base", "1.0.0", base.as_str()),
        ("control", "1.0.0", &config_map("control", "1")),
    ];
    let index = stage.index("index.yaml", &entries)?;
    let install = format!("install base control --channel {index} --yes --timeout 30s");
    stage.run(&install).await?.done()?;
    let status = stage.run("status base -o json").await?.done()?;
    ensure!(
        status
            .stdout
            .contains("has no caBundle yet, which is ignored"),
        "{}",
        status.stdout
    );
    Ok(())
}

/// Pods could not be created for want of a ServiceAccount, which is there now.
#[tokio::test]
async fn n21_what_was_mended_does_not_fail_the_next_try() -> Result<()> {
    let stage = Stage::new("mended").await?;
    stage.run("init").await?.done()?;
    let pods = "serviceAccountName: missing, containers: ";
    let manifest = deployment("web", 1, None).replace("containers: ", pods);
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest)])?;
    let install = format!("install web --channel {index} --yes --timeout 60s");
    let failed = stage.run(&install).await?.ended(1)?;
    ensure!(failed.stderr.contains("missing"), "{}", failed.stderr);
    stage
        .kubectl(&["create", "serviceaccount", "missing"])
        .await?;
    stage
        .run("upgrade web --yes --timeout 100s")
        .await?
        .done()?;
    Ok(())
}
