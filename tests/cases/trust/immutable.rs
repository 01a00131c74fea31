//! What cannot be changed in place is known before the first write: it is named, asked for, and nothing is half done.

use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// A Deployment and a ConfigMap beside it; the second version changes both, and the Deployment in its selector.
fn versions() -> [String; 2] {
    let web = deployment("web", 1, None);
    let moved = web.replace("app: web", "app: web, tier: front");
    [
        format!("{}{web}", config_map("settings", "1")),
        format!("{}{moved}", config_map("settings", "2")),
    ]
}

/// Installs the first version; the index of the second.
async fn installed(stage: &Stage, [one, two]: &[String; 2]) -> Result<String> {
    let index = stage.index("1.yaml", &[("set", "1.0.0", one)])?;
    stage
        .run(&format!("install set --channel {index} --yes"))
        .await?
        .done()?;
    stage.index("2.yaml", &[("set", "2.0.0", two)])
}

async fn setting(stage: &Stage) -> Result<String> {
    let map = stage.must("configmap", "settings").await?;
    Ok(map["data"]["key"].as_str().unwrap_or_default().to_owned())
}

async fn uid(stage: &Stage, kind: &str, name: &str) -> Result<String> {
    let object = stage.must(kind, name).await?;
    let uid = object["metadata"]["uid"].as_str();
    Ok(uid.context("no uid")?.to_owned())
}

/// A command that is refused: exit code 4, these words, and not one write.
async fn refused(stage: &Stage, line: &str, words: &[&str]) -> Result<()> {
    let mark = stage.cluster.audit().mark()?;
    let said = stage.run(line).await?.ended(4)?;
    let told = format!("{}{}", said.stdout, said.stderr);
    for words in words {
        ensure!(told.contains(words), "{line}: no {words:?}: {told}");
    }
    let writes = stage.requests(mark)?.writes("kubectl-addons");
    ensure!(writes == 0, "{line}: {writes} writes");
    Ok(())
}

/// trust 24: the selector, in every command that plans or changes.
#[tokio::test]
async fn t24_a_changed_selector_is_known_before_the_first_write() -> Result<()> {
    let stage = Stage::new("immutable-known").await?;
    let index = installed(&stage, &versions()).await?;
    let before = uid(&stage, "deployment", "web").await?;
    let upgrade = format!("upgrade set -n {} --channel {index}", stage.namespace);
    let channel = format!("channel apply {index}");
    let named = [
        "Deployment web",
        "spec.selector",
        "field is immutable",
        "--recreate Deployment/web",
    ];
    for line in [
        format!("{upgrade} --dry-run"),
        format!("{upgrade} --dry-run=server"),
        format!("{upgrade} --yes"),
        format!("{channel} --dry-run"),
        channel.clone(),
        format!("{channel} --yes"),
    ] {
        refused(&stage, &line, &named).await?;
    }
    for (line, code) in [
        (upgrade.replace("upgrade", "diff"), 1),
        (upgrade.replace("upgrade", "plan"), 1),
    ] {
        let shown = stage.run(&line).await?.ended(code)?;
        let told = format!("{}{}", shown.stdout, shown.stderr);
        for words in named {
            ensure!(told.contains(words), "{line}: no {words:?}: {told}");
        }
    }
    ensure!(setting(&stage).await? == "1", "half of it was applied");

    let accepted = format!("{channel} --recreate Deployment/web");
    let planned = stage.run(&format!("{accepted} --dry-run")).await?.done()?;
    for words in ["update    1 object ", "recreate  ", "spec.selector"] {
        ensure!(
            planned.stderr.contains(words),
            "no {words:?}: {}",
            planned.stderr
        );
    }
    let done = stage.run(&format!("{accepted} --yes")).await?.done()?;
    ensure!(
        done.stderr.contains("1 changed, 1 recreated"),
        "{}",
        done.stderr
    );
    ensure!(setting(&stage).await? == "2");
    ensure!(uid(&stage, "deployment", "web").await? != before);
    let again = stage.run(&format!("{channel} --yes")).await?.done()?;
    ensure!(
        again.stderr.contains("No update required"),
        "{}",
        again.stderr
    );
    Ok(())
}

/// trust 24: one request more for each object that changes or is created, none for the others.
#[tokio::test]
async fn t24_one_request_more_for_each_changed_object() -> Result<()> {
    let stage = Stage::new("immutable-requests").await?;
    let set = |value: &str| {
        let others = (0..20).map(|i| config_map(&format!("other-{i}"), "same"));
        let others: String = others.collect();
        format!("{}{others}", config_map("settings", value))
    };
    let dry_runs = async |line: &str| -> Result<(usize, usize)> {
        let mark = stage.cluster.audit().mark()?;
        stage.run(line).await?.done()?;
        let requests = stage.requests(mark)?;
        let patches = requests
            .of("kubectl-addons")
            .filter(|one| one.verb == "patch");
        let (dry, sent): (Vec<_>, Vec<_>) = patches.partition(|one| one.uri.contains("dryRun"));
        Ok((dry.len(), sent.len()))
    };
    let index = stage.index("1.yaml", &[("set", "1.0.0", &set("1"))])?;
    let install = format!("install set --channel {index} --yes");
    ensure!(dry_runs(&install).await? == (21, 21));
    ensure!(dry_runs(&install).await? == (0, 0), "nothing changed");
    let index = stage.index("2.yaml", &[("set", "2.0.0", &set("2"))])?;
    let upgrade = format!("upgrade set -n {} --channel {index} --yes", stage.namespace);
    ensure!(dry_runs(&upgrade).await? == (1, 1));
    Ok(())
}

/// trust 24: on a terminal the user is asked.
#[tokio::test]
async fn t24_on_a_terminal_it_asks() -> Result<()> {
    let stage = Stage::new("immutable-asks").await?;
    let index = installed(&stage, &versions()).await?;
    let before = uid(&stage, "deployment", "web").await?;
    let line = format!("upgrade set -n {} --channel {index}", stage.namespace);
    let args: Vec<&str> = line.split_whitespace().collect();
    let told = stage.plugin.run_on_terminal(&args, "n\n").await?.stdout;
    for words in ["Deployment web", "spec.selector", "recreate", "[y/N]"] {
        ensure!(told.contains(words), "no {words:?}: {told}");
    }
    ensure!(setting(&stage).await? == "1", "half of it was applied");
    let told = stage.plugin.run_on_terminal(&args, "y\ny\n").await?;
    let told = told.done()?.stdout;
    ensure!(told.contains("1 changed, 1 recreated"), "{told}");
    ensure!(setting(&stage).await? == "2");
    ensure!(uid(&stage, "deployment", "web").await? != before);
    Ok(())
}

/// trust 24: what no table can know is judged by the server: a rule of a definition.
#[tokio::test]
async fn t24_a_rule_of_a_definition_is_known_as_well() -> Result<()> {
    let stage = Stage::new("immutable-rule").await?;
    let group = format!("{}.example.test", stage.namespace);
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: tills.{group}}}\n\
         spec: {{group: {group}, scope: Namespaced, names: {{kind: Till, plural: tills, singular: till}}, versions: [\
         {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object, properties: {{spec: \
         {{type: object, properties: {{drawer: {{type: string, x-kubernetes-validations: [\
         {{rule: self == oldSelf, message: Value is immutable}}]}}}}}}}}}}}}}}]}}\n---\n"
    );
    let till = |drawer: &str| {
        format!(
            "apiVersion: {group}/v1\nkind: Till\nmetadata: {{name: one}}\nspec: {{drawer: {drawer}}}\n---\n"
        )
    };
    let set = |value: &str, drawer: &str| {
        format!(
            "{definition}{}{}",
            config_map("settings", value),
            till(drawer)
        )
    };
    let index = installed(&stage, &[set("1", "left"), set("2", "right")]).await?;
    let line = format!("upgrade set -n {} --channel {index} --yes", stage.namespace);
    let named = [
        "Till one",
        "spec.drawer",
        "immutable",
        "--recreate Till/one",
    ];
    refused(&stage, &line, &named).await?;
    stage
        .run(&format!("{line} --recreate Till/one"))
        .await?
        .done()?;
    let one = stage.must(&format!("tills.{group}"), "one").await?;
    ensure!(one["spec"]["drawer"] == "right", "{one:#}");
    Ok(())
}

/// A webhook for these resources of the namespace that never answers.
fn silent_webhook(stage: &Stage, groups: &Value, resources: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": stage.namespace},
        "webhooks": [{
            "name": "silent.example.test", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 1, "clientConfig": {"url": "https://127.0.0.1:1/mutate"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}},
            "rules": [{"apiGroups": groups, "apiVersions": ["*"], "operations": ["UPDATE"], "resources": resources}],
        }],
    })
}

/// trust 24: where a webhook keeps the server from judging, the table of built-in kinds does; the rest is counted.
#[tokio::test]
async fn t24_what_a_webhook_hides_is_judged_by_the_table_or_counted() -> Result<()> {
    let stage = Stage::new("immutable-silent").await?;
    let role = |verb: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: reader}}\n\
             rules: [{{apiGroups: [''], resources: [configmaps], verbs: [{verb}]}}]\n---\n"
        )
    };
    let [one, two] = versions();
    let versions = [one + &role("get"), two + &role("list")];
    let index = installed(&stage, &versions).await?;
    let webhook = silent_webhook(&stage, &json!(["apps"]), &json!(["deployments"]));
    stage.apply(&webhook.to_string()).await?;
    let line = format!("upgrade set -n {} --channel {index}", stage.namespace);
    let named = [
        "Deployment web",
        "spec.selector",
        "--recreate Deployment/web",
    ];
    refused(&stage, &format!("{line} --yes"), &named).await?;
    ensure!(setting(&stage).await? == "1", "half of it was applied");

    let webhook = silent_webhook(&stage, &json!(["*"]), &json!(["roles", "configmaps"]));
    stage.apply(&webhook.to_string()).await?;
    let line = format!("{line} --recreate Deployment/web");
    let shown = stage.run(&format!("{line} --dry-run")).await?.done()?;
    ensure!(
        shown.stderr.contains("not checked by the server: 1 object"),
        "{}",
        shown.stderr
    );
    stage
        .delete("mutatingwebhookconfiguration", &stage.namespace)
        .await?;
    stage.run(&format!("{line} --yes")).await?.done()?;
    Ok(())
}

/// trust 24: what holds data is refused before the first write, whatever is accepted.
#[tokio::test]
async fn t24_what_holds_data_is_refused_before_the_first_write() -> Result<()> {
    let stage = Stage::new("immutable-data").await?;
    let claim = |class: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data, annotations: {{kubectl-addons.dev/recreate: 'true'}}}}\n\
             spec: {{accessModes: [ReadWriteOnce], storageClassName: {class}, resources: {{requests: {{storage: 1Gi}}}}}}\n---\n"
        )
    };
    let one = format!("{}{}", config_map("settings", "1"), claim("a"));
    let two = format!("{}{}", config_map("settings", "2"), claim("b"));
    let index = stage.index("1.yaml", &[("set", "1.0.0", &one)])?;
    stage
        .run(&format!("install set --channel {index} --yes --wait=false"))
        .await?
        .done()?;
    let index = stage.index("2.yaml", &[("set", "2.0.0", &two)])?;
    let line = format!(
        "upgrade set -n {} --channel {index} --yes --wait=false",
        stage.namespace
    );
    let said = stage.run(&line).await?.ended(1)?;
    for words in [
        "spec.storageClassName: spec is immutable after creation",
        "is never recreated: the data in it would be lost",
    ] {
        ensure!(said.stderr.contains(words), "no {words:?}: {}", said.stderr);
    }
    ensure!(!said.stderr.contains("accept:"), "{}", said.stderr);
    ensure!(setting(&stage).await? == "1", "half of it was applied");
    Ok(())
}
