//! What the API server promises of webhooks, seen with our configurations: the cases of Kubernetes' own end-to-end tests (`webhook.go`)
//! that have a counterpart here. Deletions of many are in `core`, users that are not judged in `exempt`, one denial a rule in `rules`.

mod configurations;

use std::net::TcpListener;

use addons_tests::control_plane::pki::{Authority, base64};
use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::plugin::{Output, Plugin};
use addons_tests::scene::{DENIED, catalogue, create, installation, stored, version};
use addons_tests::tally::Tally;
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result, ensure};
use common::api::names::{GROUP, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

const VALIDATING: &str = "validatingwebhookconfiguration";
const MUTATING: &str = "mutatingwebhookconfiguration";
const FAILED: &str = "failed calling webhook \"validate.kubectl-addons.dev\"";

/// A cluster whose webhook is made to fail in one way after the other.
struct Bench {
    admin: Plugin,
    webhook: Webhook,
    tally: Tally,
}

impl Bench {
    /// Changes the first webhook of a configuration.
    async fn change(&self, kind: &str, changes: Value) -> Result<Output> {
        let patch = changes.to_string();
        let args = ["patch", kind, "kubectl-addons", "--type=json", "-p", &patch];
        self.admin.kubectl(&args).await
    }

    /// Creates a catalogue that is denied where the webhook is asked, as a dry run.
    async fn probe(&self) -> Result<Output> {
        create(&self.admin, &broken("probe"), &["--dry-run=server"]).await
    }

    /// Waits until the API server says this of the probe; an empty text is success.
    async fn until_probe_says(&self, what: &str, words: &str) -> Result<()> {
        until(what, async || {
            let said = self.probe().await?;
            let is_there = match words {
                "" => said.code == 0,
                words => said.code != 0 && said.stderr.contains(words),
            };
            Ok(is_there.then_some(()).ok_or(said.stdout + &said.stderr))
        })
        .await
    }

    /// The first webhook of a configuration.
    async fn first(&self, kind: &str) -> Result<Value> {
        let get = ["get", kind, "kubectl-addons", "-o", "json"];
        let text = self.admin.kubectl(&get).await?.done()?.stdout;
        let object: Value = serde_json::from_str(&text)?;
        Ok(object["webhooks"][0].clone())
    }
}

/// A catalogue with a version that cannot be read.
fn broken(name: &str) -> Value {
    let versions = json!([version("one", json!({}))]);
    catalogue(
        name,
        SYSTEM_NAMESPACE,
        json!([{"name": "web", "versions": versions}]),
    )
}

fn fine(name: &str) -> Value {
    let versions = json!([version("1.0.0", json!({"defaultNamespace": "there"}))]);
    catalogue(
        name,
        SYSTEM_NAMESPACE,
        json!([{"name": name, "versions": versions}]),
    )
}

/// `replace` of a field of the first webhook.
fn replace(field: &str, value: Value) -> Value {
    json!([{"op": "replace", "path": format!("/webhooks/0/{field}"), "value": value}])
}

/// One cluster: each step puts right what it broke.
#[tokio::test]
async fn the_api_server_keeps_what_it_promises_of_webhooks() -> Result<()> {
    let cluster = ControlPlane::alone_api_only().await?;
    definitions::install(&cluster).await?;
    let admin = Plugin::admin(&cluster)?;
    let namespace = ["create", "namespace", SYSTEM_NAMESPACE];
    admin.kubectl(&namespace).await?.done()?;
    let webhook = Webhook::start(&cluster, &[]).await?;
    let mut bench = Bench {
        admin,
        webhook,
        tally: Tally::new("webhook::conformance"),
    };
    listed_by_discovery(&mut bench).await?;
    denied_on_each_operation(&mut bench).await?;
    defaulted_and_pruned_after_the_mutation(&mut bench).await?;
    closed_without_the_right_authority(&mut bench).await?;
    times_out(&mut bench).await?;
    mutates_or_is_left_out(&mut bench).await?;
    changes_take_effect(&mut bench).await?;
    configurations::judged_by_no_webhook(&mut bench).await?;
    bench.webhook.stop(&cluster).await
}

/// What deploy/ registers is served.
async fn listed_by_discovery(bench: &mut Bench) -> Result<()> {
    let get = ["get", "--raw", "/apis/admissionregistration.k8s.io/v1"];
    let text = bench.admin.kubectl(&get).await?.done()?.stdout;
    for resource in [
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ] {
        ensure!(text.contains(&format!("\"name\":\"{resource}\"")), "{text}");
        bench.tally.ran();
    }
    Ok(())
}

/// Creation, PUT, PATCH and deletion of our kinds; what is denied stays as it was.
async fn denied_on_each_operation(bench: &mut Bench) -> Result<()> {
    let admin = &bench.admin;
    let said = create(admin, &broken("denied"), &[]).await?.ended(1)?;
    ensure!(said.stderr.contains(DENIED), "{}", said.stderr);
    create(admin, &fine("kept"), &[]).await?.done()?;
    let get = [
        "get",
        "addoncatalogue",
        "kept",
        "-n",
        SYSTEM_NAMESPACE,
        "-o",
        "json",
    ];
    let before: Value = serde_json::from_str(&admin.kubectl(&get).await?.done()?.stdout)?;
    let mut put = before.clone();
    put["spec"] = broken("kept")["spec"].clone();
    let replace = ["replace", "-f", "-"];
    let said = admin.kubectl_with_input(&replace, &put.to_string()).await?;
    ensure!(
        said.code == 1 && said.stderr.contains(DENIED),
        "{}",
        said.stderr
    );
    let patch = json!({"spec": put["spec"]}).to_string();
    let of = [
        "patch",
        "addoncatalogue",
        "kept",
        "-n",
        SYSTEM_NAMESPACE,
        "--type=merge",
        "-p",
        &patch,
    ];
    let said = admin.kubectl(&of).await?.ended(1)?;
    ensure!(said.stderr.contains(DENIED), "{}", said.stderr);
    let after: Value = serde_json::from_str(&admin.kubectl(&get).await?.done()?.stdout)?;
    ensure!(before == after, "{after}");
    // A catalogue of class Core is deleted by the core group only.
    let core = json!({"spec": {"class": "Core"}}).to_string();
    let group = [
        "--as=core",
        "--as-group=system:masters",
        "--as-group=kubectl-addons:core",
    ];
    let of = [
        "patch",
        "addoncatalogue",
        "kept",
        "-n",
        SYSTEM_NAMESPACE,
        "--type=merge",
        "-p",
        &core,
    ];
    let args: Vec<&str> = of.iter().chain(&group).copied().collect();
    admin.kubectl(&args).await?.done()?;
    let delete = ["delete", "addoncatalogue", "kept", "-n", SYSTEM_NAMESPACE];
    let said = admin.kubectl(&delete).await?.ended(1)?;
    ensure!(said.stderr.contains(DENIED), "{}", said.stderr);
    admin.kubectl(&get).await?.done()?;
    bench.tally.ran();
    Ok(())
}

/// The patch of the mutating webhook, then the defaults of the schema; a field that the schema does not know is pruned.
async fn defaulted_and_pruned_after_the_mutation(bench: &mut Bench) -> Result<()> {
    let admin = &bench.admin;
    create(admin, &fine("mutated"), &[]).await?.done()?;
    until("the webhook fills in what the catalogue says", async || {
        let spec = json!({"addonRef": {"name": "mutated"}, "unknown": {"a": 1}});
        let object = installation("mutated", SYSTEM_NAMESPACE, spec);
        let said = create(admin, &object, &["--validate=ignore"]).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await?;
    let spec = stored(admin, "mutated", SYSTEM_NAMESPACE).await?["spec"].clone();
    ensure!(spec["targetNamespace"] == "there", "{spec}");
    let defaults = (
        &spec["reconcile"],
        &spec["deletionPolicy"],
        &spec["coreAddon"],
    );
    ensure!(
        defaults == (&json!("Once"), &json!("Delete"), &json!(false)),
        "{spec}"
    );
    ensure!(spec.get("unknown").is_none(), "{spec}");
    bench.tally.ran();
    Ok(())
}

/// Another authority than the webhook's, and none: nothing of ours is written, whatever it is.
async fn closed_without_the_right_authority(bench: &mut Bench) -> Result<()> {
    let right = bench.first(VALIDATING).await?["clientConfig"]["caBundle"].clone();
    let other = Authority::new("other")?;
    for (change, words) in [
        (
            replace("clientConfig/caBundle", json!(base64(&other.certificate))),
            "x509",
        ),
        (
            json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]),
            "x509",
        ),
    ] {
        bench.change(VALIDATING, change).await?.done()?;
        bench
            .until_probe_says("the authority is another one", words)
            .await?;
        let said = create(&bench.admin, &fine("closed"), &[]).await?.ended(1)?;
        ensure!(said.stderr.contains(FAILED), "{}", said.stderr);
        bench.tally.ran();
    }
    let add = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": right}]);
    bench.change(VALIDATING, add).await?.done()?;
    bench.until_probe_says("it is trusted again", DENIED).await
}

/// Nothing answers: after `timeoutSeconds` Fail fails, and Ignore passes.
async fn times_out(bench: &mut Bench) -> Result<()> {
    let before = bench.first(VALIDATING).await?;
    ensure!(before["timeoutSeconds"] == 5, "{before}");
    // It takes connections and says nothing.
    let silent = TcpListener::bind(("127.0.0.1", 0))?;
    let url = format!("https://{}/validate", silent.local_addr()?);
    let mut changes = replace("clientConfig/url", json!(url));
    let more = replace("timeoutSeconds", json!(1));
    let (Some(all), Value::Array(more)) = (changes.as_array_mut(), more) else {
        anyhow::bail!("a patch is a list");
    };
    all.extend(more);
    bench.change(VALIDATING, changes).await?.done()?;
    bench
        .until_probe_says("it times out", "context deadline exceeded")
        .await?;
    let said = create(&bench.admin, &fine("timed-out"), &[])
        .await?
        .ended(1)?;
    ensure!(said.stderr.contains(FAILED), "{}", said.stderr);
    bench.tally.ran();
    bench
        .change(VALIDATING, replace("failurePolicy", json!("Ignore")))
        .await?
        .done()?;
    bench.until_probe_says("no one judges", "").await?;
    bench.tally.ran();
    for (field, value) in [
        ("failurePolicy", json!("Fail")),
        ("timeoutSeconds", json!(5)),
        ("clientConfig/url", before["clientConfig"]["url"].clone()),
    ] {
        bench
            .change(VALIDATING, replace(field, value))
            .await?
            .done()?;
    }
    bench.until_probe_says("it answers again", DENIED).await
}

/// The mutating webhook is not needed: without it the object is as it was written, and judged.
async fn mutates_or_is_left_out(bench: &mut Bench) -> Result<()> {
    let before = bench.first(MUTATING).await?;
    ensure!(before["failurePolicy"] == "Ignore", "{before}");
    let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
    let url = json!(format!("https://{address}/mutate"));
    bench
        .change(MUTATING, replace("clientConfig/url", url))
        .await?
        .done()?;
    let admin = &bench.admin;
    let mut count = 0;
    until("nothing is filled in", async || {
        count += 1;
        let name = format!("left-out-{count}");
        let object = installation(
            &name,
            SYSTEM_NAMESPACE,
            json!({"addonRef": {"name": "mutated"}}),
        );
        create(admin, &object, &[]).await?.done()?;
        let spec = stored(admin, &name, SYSTEM_NAMESPACE).await?["spec"].clone();
        let is_bare = spec.get("targetNamespace").is_none();
        Ok(is_bare.then_some(()).ok_or_else(|| spec.to_string()))
    })
    .await?;
    let unknown = installation(
        "wrong",
        SYSTEM_NAMESPACE,
        json!({"addonRef": {"name": "unknown"}}),
    );
    let said = create(admin, &unknown, &[]).await?.ended(1)?;
    ensure!(said.stderr.contains(DENIED), "{}", said.stderr);
    bench.tally.ran();
    let url = before["clientConfig"]["url"].clone();
    bench
        .change(MUTATING, replace("clientConfig/url", url))
        .await?
        .done()?;
    Ok(())
}

/// Rules and conditions are those of the stored configuration; an expression that cannot be compiled is refused.
async fn changes_take_effect(bench: &mut Bench) -> Result<()> {
    let before = bench.first(VALIDATING).await?;
    let condition = |expression: &str| {
        let condition = json!({"name": "skip-me", "expression": expression});
        json!([{"op": "add", "path": "/webhooks/0/matchConditions/-", "value": condition}])
    };
    let said = bench
        .change(VALIDATING, condition("object.metadata.name ="))
        .await?
        .ended(1)?;
    ensure!(
        said.stderr.contains("compilation failed"),
        "{}",
        said.stderr
    );
    bench.tally.ran();
    let skip = condition("object == null || object.metadata.name != 'probe'");
    bench.change(VALIDATING, skip).await?.done()?;
    bench
        .until_probe_says("the probe is passed over", "")
        .await?;
    let said = create(&bench.admin, &broken("other"), &[])
        .await?
        .ended(1)?;
    ensure!(said.stderr.contains(DENIED), "{}", said.stderr);
    bench.tally.ran();
    let conditions = before["matchConditions"].clone();
    bench
        .change(VALIDATING, replace("matchConditions", conditions))
        .await?
        .done()?;
    bench.until_probe_says("it is judged again", DENIED).await?;
    // Other operations are not judged once they are taken out.
    bench
        .change(VALIDATING, replace("rules/0/operations", json!(["DELETE"])))
        .await?
        .done()?;
    bench
        .until_probe_says("creations are not judged", "")
        .await?;
    bench.tally.ran();
    let rule = before["rules"].get(0).context("a webhook without rules")?;
    ensure!(rule["apiGroups"] == json!([GROUP]), "{rule}");
    bench
        .change(VALIDATING, replace("rules", json!([rule])))
        .await?
        .done()?;
    bench
        .until_probe_says("creations are judged again", DENIED)
        .await
}
