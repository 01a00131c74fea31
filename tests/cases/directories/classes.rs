//! Classes of objects: what is restored, what is only created, and what is ignored.

use anyhow::{Result, ensure};
use serde_json::json;

use super::Directory;

/// Semantics 21: each file and folder is an installation; what is edited or deleted is restored, and a second pass writes nothing.
#[tokio::test]
async fn a_directory_is_installed_repaired_and_upgraded() -> Result<()> {
    let directory = Directory::new("sync").await?;
    let stage = &directory.stage;
    directory.write("dns.yaml", &directory.reconciled("dns", "1"))?;
    directory.write("web/a.yml", &directory.reconciled("web-a", "1"))?;
    let label = "kubernetes.io/cluster-service: \"true\"";
    directory.write("web/b.json", &json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-b", "namespace": stage.namespace,
            "labels": {"kubernetes.io/cluster-service": "true"}}, "data": {"key": "1"}},
    ]}).to_string())?;
    directory.write("README.md", "not a manifest")?;
    directory.write(".web.yaml.swp", "{")?;
    let preview = stage.run(&directory.line("--dry-run")).await?.done()?;
    ensure!(
        preview.stderr.contains("create    2 objects"),
        "{}",
        preview.stderr
    );
    ensure!(
        directory.installed().await?.is_empty(),
        "a dry run installs nothing"
    );

    stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(directory.installed().await? == ["dns", "web"]);
    let record = stage.record("web").await?;
    ensure!(
        record["spec"]["addonRef"]["directory"] == json!(directory.path),
        "{record:#}"
    );
    ensure!(
        record["spec"]["reconcile"] == "Ensure" && record["spec"]["targetNamespace"] == "default"
    );
    let listed = stage.run("list").await?.done()?;
    ensure!(listed.stdout.contains("Ready"), "{}", listed.stdout);

    let mark = stage.cluster.audit().mark()?;
    let again = stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    let requests = stage.requests(mark)?;
    ensure!(
        requests.writes("kubectl-addons") == 0,
        "{:?}",
        requests.by_verb("kubectl-addons")
    );

    // Drift is repaired, although nothing in the directory changed.
    stage
        .patch("configmap", "dns", &json!({"data": {"key": "edited"}}))
        .await?;
    stage.delete("configmap", "web-b").await?;
    stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(directory.value("dns").await?.as_deref() == Some("1"));
    ensure!(stage.has("configmap", "web-b").await?);

    // A changed file is an upgrade; what leaves it is pruned.
    directory.write("web/a.yml", &directory.reconciled("web-c", "2"))?;
    directory.write("dns.yaml", &directory.config_map("dns", "3", label))?;
    let said = stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(said.stderr.contains("prune     "), "{}", said.stderr);
    ensure!(directory.value("dns").await?.as_deref() == Some("3"));
    ensure!(directory.value("web-c").await?.as_deref() == Some("2"));
    ensure!(!stage.has("configmap", "web-a").await?);

    // Other commands leave it alone, and name the one that does not.
    let upgraded = stage.run("upgrade --yes").await?.done()?;
    ensure!(
        upgraded.stderr.contains("kubectl addons sync "),
        "{}",
        upgraded.stderr
    );
    let refused = stage.run("upgrade dns --yes").await?.ended(1)?;
    ensure!(
        refused.stderr.contains("fix:    kubectl addons sync "),
        "{}",
        refused.stderr
    );
    Ok(())
}

/// Semantics 21: created whenever missing, never changed, never pruned; a manifest that differs is shown.
#[tokio::test]
async fn what_is_only_created_is_never_changed_or_pruned() -> Result<()> {
    let directory = Directory::new("ensured").await?;
    let stage = &directory.stage;
    directory.write(
        "a.yaml",
        &(directory.ensured("settings", "1") + &directory.reconciled("other", "1")),
    )?;
    directory.write("b.yaml", &directory.reconciled("b", "1"))?;
    // It exists already, and is not changed.
    let theirs = directory.config_map("settings", "theirs", "");
    stage.apply(theirs.trim_end_matches("---\n")).await?;
    stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(directory.value("settings").await?.as_deref() == Some("theirs"));
    for _ in 0..2 {
        stage.delete("configmap", "settings").await?;
        stage.run(&directory.line("--yes")).await?.done()?;
        ensure!(
            directory.value("settings").await?.as_deref() == Some("1"),
            "it is created again"
        );
    }
    stage
        .patch("configmap", "settings", &json!({"data": {"key": "edited"}}))
        .await?;
    stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(directory.value("settings").await?.as_deref() == Some("edited"));

    directory.write(
        "a.yaml",
        &(directory.ensured("settings", "2") + &directory.reconciled("other", "1")),
    )?;
    for _ in 0..2 {
        let said = stage.run(&directory.line("--yes")).await?.done()?;
        let line = "ConfigMap settings differs from its manifest, and stays: it is only created";
        ensure!(said.stderr.contains(line), "{}", said.stderr);
    }
    ensure!(directory.value("settings").await?.as_deref() == Some("edited"));
    directory.write("a.yaml", &directory.reconciled("other", "1"))?;
    stage.run(&directory.line("--yes")).await?.done()?;
    directory.remove("a.yaml")?;
    stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(
        directory.value("settings").await?.as_deref() == Some("edited"),
        "never pruned"
    );
    ensure!(!stage.has("configmap", "other").await?);
    Ok(())
}

/// Semantics 21: without a label an object is ignored, loudly; one that loses its label stays as it is.
#[tokio::test]
async fn unlabelled_objects_are_ignored_loudly() -> Result<()> {
    let directory = Directory::new("unlabelled").await?;
    let stage = &directory.stage;
    let text = directory.config_map("bare", "1", "") + &directory.reconciled("kept", "1");
    directory.write("a.yaml", &text)?;
    directory.write("only.yaml", &directory.config_map("alone", "1", "app: x"))?;
    let line = format!(
        "a.yaml:1: {}/ConfigMap bare is ignored: it has no label",
        stage.namespace
    );
    let said = stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(said.stderr.contains(&line), "{}", said.stderr);
    ensure!(directory.installed().await? == ["a"]);
    ensure!(!stage.has("configmap", "bare").await?);

    stage.run(&directory.line("--all --yes")).await?.done()?;
    ensure!(directory.installed().await? == ["a", "only"]);
    ensure!(directory.value("bare").await?.as_deref() == Some("1"));
    // Without the flag its manifest is there all the same.
    directory.write("a.yaml", &text.replace("key: \"1\"", "key: \"2\""))?;
    let said = stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(
        said.stderr.contains("ConfigMap bare stays: "),
        "{}",
        said.stderr
    );
    ensure!(directory.value("bare").await?.as_deref() == Some("1"));
    ensure!(directory.value("kept").await?.as_deref() == Some("2"));
    ensure!(stage.has("configmap", "alone").await?);
    // When the manifest goes, so does what came from it.
    directory.write("a.yaml", &directory.reconciled("kept", "2"))?;
    stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(!stage.has("configmap", "bare").await?);
    Ok(())
}

/// Semantics 21: what cannot be changed in place stops its own add-on only.
#[tokio::test]
async fn a_refused_change_stops_its_own_addon_only() -> Result<()> {
    let directory = Directory::new("refused").await?;
    let stage = &directory.stage;
    let job = |image: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: once, namespace: {}, labels: {{addonmanager.kubernetes.io/mode: Reconcile}}}}\n\
             spec: {{suspend: true, template: {{spec: {{restartPolicy: Never, containers: [{{name: main, image: '{image}'}}]}}}}}}\n",
            stage.namespace
        )
    };
    directory.write("a.yaml", &job("example.test/a:1"))?;
    directory.write("b.yaml", &directory.reconciled("b", "1"))?;
    stage
        .run(&directory.line("--yes --wait=false"))
        .await?
        .done()?;
    directory.write("a.yaml", &job("example.test/a:2"))?;
    directory.write("b.yaml", &directory.reconciled("b", "2"))?;
    let said = stage
        .run(&directory.line("--yes --wait=false"))
        .await?
        .ended(4)?;
    let way_out = format!(
        "accept: kubectl addons {} ",
        directory.line("--yes --wait=false")
    );
    for words in [way_out.as_str(), " --recreate Job/once\n"] {
        ensure!(said.stderr.contains(words), "{}", said.stderr);
    }
    ensure!(directory.value("b").await?.as_deref() == Some("2"));
    stage
        .run(&directory.line("--yes --wait=false --recreate Job/once"))
        .await?
        .done()?;
    Ok(())
}
