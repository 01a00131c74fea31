//! Definitions that change under live objects.

use addons_tests::stage::Stage;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{crd, definition, group, install, line, manifest, till, uninstall, versions};

const PLUGIN: &str = "kubectl-addons";

fn text() -> Value {
    json!({"type": "string"})
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// A version that nothing may be written for, and what is said of it.
async fn refused(stage: &Stage, line: &str, words: &[&str]) -> Result<()> {
    let mark = stage.cluster.audit().mark()?;
    let said = stage.run(line).await?.ended(1)?.stderr;
    for words in words {
        ensure!(said.contains(words), "not said: {words}\n{said}");
    }
    let writes = stage.requests(mark)?.writes(PLUGIN);
    ensure!(writes == 0, "{writes} writes\n{said}");
    Ok(())
}

#[tokio::test]
async fn a_field_that_live_objects_set_is_removed_only_when_accepted() -> Result<()> {
    let stage = Stage::new("removed").await?;
    let old = object(json!({"color": text(), "unused": text(), "size": {"type": "integer"}}));
    let first = manifest(&[definition(&stage, &old)]);
    let mark = stage.cluster.audit().mark()?;
    install(&stage, "1.0.0", &first).await?;
    let requests = stage.requests(mark)?;
    let reads = requests.of(PLUGIN).filter(|request| {
        request.object.resource == "tills"
            || (request.object.name == crd(&stage) && request.verb == "get")
    });
    let reads: Vec<&str> = reads.map(|request| request.uri.as_str()).collect();
    // The one look that finds that it is not there; metadata only.
    ensure!(reads.len() <= 1, "a first install asks for more: {reads:?}");
    for (name, spec) in [
        ("front", json!({"color": "red"})),
        ("back", json!({"color": "blue"})),
        ("side", json!({"size": 1})),
    ] {
        stage.apply(&till(&stage, name, &spec).to_string()).await?;
    }
    // No definition changes: nothing of them is read.
    let mark = stage.cluster.audit().mark()?;
    install(&stage, "1.0.1", &first.replace("\"1\"", "\"2\"")).await?;
    let requests = stage.requests(mark)?;
    let reads = requests
        .of(PLUGIN)
        .filter(|request| request.object.resource == "tills");
    ensure!(reads.count() == 0, "objects were read for nothing");

    let second = manifest(&[definition(
        &stage,
        &object(json!({"size": {"type": "integer"}})),
    )]);
    let upgrade = line(&stage, "2.0.0", &second)?;
    let namespace = &stage.namespace;
    let change = format!(
        "CustomResourceDefinition {}: field spec.color is removed, 2 live objects set it",
        crd(&stage)
    );
    // A field that no live object sets is only counted.
    let harmless = "2 fields removed\n".to_owned();
    let error = format!(
        "error: the upgrade of some would lose data in 2 Tills ({namespace}/back, {namespace}/front)"
    );
    let accept = format!("accept: kubectl addons {upgrade} ");
    let flag = " --allow-crd-breakage\n".to_owned();
    let words = [&change, &harmless, &error, &accept, &flag].map(String::as_str);
    refused(&stage, &upgrade, &words).await?;
    for mode in ["client", "server"] {
        let said = stage.run(&format!("{upgrade} --dry-run={mode}")).await?;
        let said = said.ended(1)?.stderr;
        ensure!(said.contains(&change) && said.contains(&error), "{said}");
    }
    let (_, channel) = upgrade.split_once("--channel").unwrap_or_default();
    let diff = format!("diff some -n {namespace} --channel {channel}").replace("--yes", "");
    let shown = stage.run(&diff).await?.ended(1)?.stdout;
    ensure!(shown.contains(&format!("warning   {change}")), "{shown}");

    stage
        .run(&format!("{upgrade} --allow-crd-breakage"))
        .await?
        .done()?;
    let front = stage.must(&crd(&stage), "front").await?;
    ensure!(front["spec"]["color"].is_null(), "{front:#}");
    Ok(())
}

#[tokio::test]
async fn tightened_and_newly_required_fields_name_who_does_not_fit() -> Result<()> {
    let stage = Stage::new("tightened").await?;
    let old = object(json!({"color": text(), "size": {"type": "integer"}}));
    install(&stage, "1.0.0", &manifest(&[definition(&stage, &old)])).await?;
    for (name, spec) in [
        ("fits", json!({"color": "red", "size": 3})),
        ("pink", json!({"color": "pink", "size": 3})),
        ("bare", json!({"color": "red"})),
    ] {
        stage.apply(&till(&stage, name, &spec).to_string()).await?;
    }
    let mut new = object(json!({
        "color": {"type": "string", "enum": ["red", "blue"]},
        "size": {"type": "integer", "maximum": 9},
    }));
    new["required"] = json!(["size"]);
    let upgrade = line(&stage, "2.0.0", &manifest(&[definition(&stage, &new)]))?;
    let namespace = &stage.namespace;
    refused(
        &stage,
        &upgrade,
        &[
            "field spec.color takes only \"red\", \"blue\", 1 live object does not fit",
            "field spec.size becomes required, 1 live object lacks it",
            // What every live object fits is only counted.
            " 1 narrowed, ",
            &format!("would make 2 Tills invalid ({namespace}/bare, {namespace}/pink)"),
        ],
    )
    .await?;
    // Once they fit, nothing stands in the way.
    stage
        .patch(&crd(&stage), "pink", &json!({"spec": {"color": "blue"}}))
        .await?;
    stage
        .patch(&crd(&stage), "bare", &json!({"spec": {"size": 1}}))
        .await?;
    stage.run(&upgrade).await?.done()?;
    Ok(())
}

#[tokio::test]
async fn what_the_api_server_never_changes_is_refused_before_the_first_write() -> Result<()> {
    let stage = Stage::new("fixed").await?;
    let spec = object(json!({"color": text()}));
    let first = definition(&stage, &spec);
    install(&stage, "1.0.0", &manifest(std::slice::from_ref(&first))).await?;
    let mut cluster = first;
    cluster["spec"]["scope"] = json!("Cluster");
    let upgrade = line(&stage, "2.0.0", &manifest(&[cluster]))?;
    let words = [
        "cannot be done",
        "spec.scope cannot change from Namespaced to Cluster",
    ];
    refused(&stage, &upgrade, &words).await?;
    // No flag helps: the API server would refuse it in the middle of the operation.
    refused(&stage, &format!("{upgrade} --allow-crd-breakage"), &words).await?;

    // v2 takes over from v1, which is still in the status, and in which nothing is stored.
    let both = versions(&stage, &[("v1", false, &spec), ("v2", true, &spec)]);
    install(&stage, "3.0.0", &manifest(&[both])).await?;
    let next = versions(&stage, &[("v2", true, &spec)]);
    let upgrade = line(&stage, "4.0.0", &manifest(&[next]))?;
    let said = stage.run(&upgrade).await?.done()?.stderr;
    for words in [
        "v1 is removed, no object is stored in it",
        "version v1 would no longer be served",
    ] {
        ensure!(said.contains(words), "no {words:?}: {said}");
    }
    Ok(())
}

#[tokio::test]
async fn a_kind_that_is_not_served_any_more_is_a_warning() -> Result<()> {
    let stage = Stage::new("vanished").await?;
    let spec = object(json!({"color": text()}));
    let one = till(&stage, "one", &json!({"color": "red"}));
    let all = manifest(&[definition(&stage, &spec), one]);
    install(&stage, "1.0.0", &all).await?;
    stage.delete("crd", &crd(&stage)).await?;
    let said = install(&stage, "2.0.0", &manifest(&[])).await?;
    let told = format!(
        "{}/Till one is forgotten: the cluster no longer serves Till",
        stage.namespace
    );
    ensure!(said.contains(&told), "{said}");

    install(&stage, "3.0.0", &all).await?;
    ensure!(stage.has(&crd(&stage), "one").await?, "not created again");
    stage.delete("crd", &crd(&stage)).await?;
    let said = stage.run(&uninstall(&stage)).await?.done()?.stderr;
    ensure!(said.contains(&told), "{said}");
    ensure!(
        !stage.has("configmap", "always").await? && !stage.has("addoninstallation", "some").await?,
        "not uninstalled from group {}",
        group(&stage)
    );
    Ok(())
}
