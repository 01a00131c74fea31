//! `requiredResourceTypes`: an add-on waits until the cluster serves what it requires, and says so.

use addons_tests::chaos::rig::Rig;
use addons_tests::stage::Stage;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::sent::Sent;
use super::{config_map, manifest};

const PLUGIN: &str = "kubectl-addons";

/// A user with a catalogue file: `monitors`, whose type is spelled as people spell it, and `operator`, which defines it.
async fn set_up(what: &str, kind: &str) -> Result<(Rig, String)> {
    let rig = Rig::new(what).await?;
    let stage = &rig.stage;
    let version = |objects: &[Value], types: Value| {
        json!({"version": "1.0.0", "defaultNamespace": stage.namespace,
            "template": {"requiredResourceTypes": types},
            "source": {"inline": {"manifest": manifest(objects)}}})
    };
    let types = json!([
        {"group": group(stage), "version": "v1", "kind": kind},
        {"version": "v1", "kind": "configmaps"},
    ]);
    let spec = json!({"addons": [
        {"name": "monitors", "versions": [version(&[config_map("monitors")], types)]},
        {"name": "operator", "versions": [
            version(&[definition(stage), config_map("operator")], json!([]))]},
    ]});
    let catalogue = json!({"apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "test"}, "spec": spec});
    let file = stage.write("catalogue.yaml", &catalogue.to_string())?;
    rig.run("init").await?.done()?;
    // A file is a catalogue of one command; its records lie in the user's namespace.
    // Named, for other tests install add-ons of these names.
    let channel = format!("--channel {} -n {}", file.display(), stage.namespace);
    Ok((rig, channel))
}

fn group(stage: &Stage) -> String {
    format!("{}.example.test", stage.namespace)
}

fn definition(stage: &Stage) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("prometheuses.{}", group(stage))},
        "spec": {"group": group(stage), "scope": "Namespaced",
            "names": {"plural": "prometheuses", "singular": "prom", "kind": "Prometheus"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    })
}

/// That a wait for changes was opened.
async fn is_watched(rig: &Rig) -> Result<()> {
    let watched = "/customresourcedefinitions?watch=1";
    until("a watch of definitions", async || {
        let requests = rig.proxy.requests();
        let seen = requests.iter().any(|seen| seen.uri.contains(watched));
        Ok(seen.then_some(()).ok_or_else(|| format!("{requests:?}")))
    })
    .await
}

#[tokio::test]
async fn an_add_on_waits_until_its_types_are_served() -> Result<()> {
    for (what, kind) in [
        ("types-plural", "prometheuses"),
        ("types-singular", "prom"),
        ("types-kind", "Prometheus"),
    ] {
        let (rig, channel) = set_up(what, kind).await?;
        let install = format!("install monitors {channel} --yes --timeout 60s");
        let crd = definition(&rig.stage).to_string();
        let defining = async {
            is_watched(&rig).await?;
            let before = Sent::after(&rig, 0);
            ensure!(before.objects().is_empty(), "{before:?}");
            let args = ["create", "-f", "-"];
            rig.stage
                .plugin
                .kubectl_with_input(&args, &crd)
                .await?
                .done()
        };
        let (said, defined) = tokio::join!(rig.run(&install), defining);
        defined?;
        let said = said?.done()?.stderr;
        let waiting = format!("waiting for {}/v1 {kind}", group(&rig.stage));
        let lines = said.lines().filter(|line| line.contains(&waiting));
        ensure!(lines.count() == 1, "{said}");
        rig.stage.record("monitors").await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_is_not_served_in_time_ends_with_3_and_writes_nothing() -> Result<()> {
    let (rig, channel) = set_up("types-late", "prometheuses").await?;
    let stage = &rig.stage;
    let mark = stage.cluster.audit().mark()?;
    let install = format!("install monitors {channel} --yes --timeout 1s");
    let said = rig.run(&install).await?.ended(3)?.stderr;
    let (group, writes) = (group(stage), stage.requests(mark)?.writes(PLUGIN));
    let error = format!(
        "error: monitors: timed out after 1.0s waiting for {group}/v1 prometheuses\nlook:   kubectl api-resources --api-group={group}"
    );
    // Lines of an error stand under its first word.
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    ensure!(lines.join("\n").contains(&error), "{said}");
    ensure!(writes == 0, "{writes} writes");
    Ok(())
}

#[tokio::test]
async fn who_only_looks_does_not_wait() -> Result<()> {
    let (rig, channel) = set_up("types-look", "Prometheus").await?;
    let warning = format!(
        "warning: monitors requires {}/v1 Prometheus, which this cluster does not serve",
        group(&rig.stage)
    );
    for (line, code) in [
        (format!("install monitors {channel} --dry-run"), 0),
        (format!("install monitors {channel} --dry-run=server"), 0),
        (format!("diff monitors {channel}"), 1),
        (format!("plan monitors {channel} -o plan.json"), 0),
        // As kops' tool: without --yes it shows what is due.
        (
            format!("channel apply {}", channel.trim_start_matches("--channel ")),
            0,
        ),
    ] {
        let said = rig.run(&line).await?.ended(code)?.stderr;
        // The last command has both add-ons: one brings what the other requires.
        let warned = said.contains(&warning);
        ensure!(warned != line.starts_with("channel"), "{line}: {said}");
    }
    let seen = rig.proxy.requests();
    let watches = seen.iter().filter(|seen| seen.uri.contains("watch=1"));
    ensure!(watches.count() == 0, "{seen:?}");
    Ok(())
}

#[tokio::test]
async fn types_of_the_command_are_not_waited_for_but_come_first() -> Result<()> {
    let (rig, channel) = set_up("types-both", "prometheuses").await?;
    let before = rig.proxy.requests().len();
    let install = format!("install monitors operator {channel} --yes --timeout 60s");
    let said = rig.run(&install).await?.done()?.stderr;
    ensure!(!said.contains("waiting for"), "{said}");
    let sent = Sent::after(&rig, before);
    let crd = format!(
        "customresourcedefinitions/prometheuses.{}",
        group(&rig.stage)
    );
    sent.ensure(&crd, "configmaps/monitors")?;
    sent.ensure("configmaps/operator", "configmaps/monitors")?;
    // Now it is served: nothing is waited for, and the kinds at hand say so without a request.
    let line = format!("diff monitors {channel}");
    let before = rig.proxy.requests().len();
    rig.run(&line).await?.done()?;
    let requests = rig.proxy.requests();
    let discoveries = requests
        .iter()
        .skip(before)
        .filter(|seen| seen.uri == "/apis");
    ensure!(discoveries.count() <= 1, "{requests:?}");
    Ok(())
}
