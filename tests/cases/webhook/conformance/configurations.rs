//! Webhook configurations themselves.

use std::net::TcpListener;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Bench, MUTATING, VALIDATING};

const LABEL: &str = "conformance=dummy";

/// A configuration of one webhook, at an address where nothing answers.
fn dummy(kind: &str, name: &str, rule: &Value, url: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
    "metadata": {"name": name, "labels": {"conformance": "dummy"}},
    "webhooks": [{
        "name": "dummy.example.test", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail", "clientConfig": {"url": url}, "rules": [rule],
    }]})
}

/// A webhook that denies every change of configurations stops none: what is registered can always be mended. A missing time-out is
/// 10 seconds, and several are listed and deleted at once.
pub(super) async fn judged_by_no_webhook(bench: &mut Bench) -> Result<()> {
    let admin = &bench.admin;
    let refused = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
    let url = format!("https://{refused}/deny");
    let everything = json!({
        "apiGroups": ["admissionregistration.k8s.io"], "apiVersions": ["*"], "operations": ["*"],
        "resources": ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"],
    });
    let nothing = json!({"apiGroups": ["example.test"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["nothing"]});
    for (kind, name, rule) in [
        ("ValidatingWebhookConfiguration", "dummy-guard", &everything),
        ("MutatingWebhookConfiguration", "dummy-guard", &everything),
        ("ValidatingWebhookConfiguration", "dummy", &nothing),
        ("MutatingWebhookConfiguration", "dummy", &nothing),
    ] {
        let object = dummy(kind, name, rule, &url).to_string();
        let created = admin
            .kubectl_with_input(&["create", "-f", "-"], &object)
            .await?;
        created.done()?;
    }
    for kind in [VALIDATING, MUTATING] {
        let list = ["get", kind, "-l", LABEL, "-o", "json"];
        let text = admin.kubectl(&list).await?.done()?.stdout;
        let found: Value = serde_json::from_str(&text)?;
        let items = found["items"].as_array().map(Vec::as_slice);
        let [dummy, guard] = items.unwrap_or_default() else {
            anyhow::bail!("two of {kind} have the label: {found}");
        };
        for one in [dummy, guard] {
            let webhook = &one["webhooks"][0];
            ensure!(webhook["timeoutSeconds"] == 10, "{webhook}");
        }
        // Ours is changed under the guard as well.
        let change = [
            "label",
            kind,
            "kubectl-addons",
            "conformance-",
            "--overwrite",
        ];
        admin.kubectl(&change).await?.done()?;
        admin
            .kubectl(&["delete", kind, "-l", LABEL])
            .await?
            .done()?;
        let left = admin.kubectl(&list).await?.done()?.stdout;
        let left: Value = serde_json::from_str(&left)?;
        ensure!(left["items"] == json!([]), "{left}");
        bench.tally.ran();
    }
    Ok(())
}
