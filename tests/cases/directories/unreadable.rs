//! Files that cannot be read, and files that contradict each other: one bad file does not stop the rest, and deletes nothing.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::Directory;

/// Semantics 21: it counts as present and blocks pruning of its add-on; the rest goes on.
#[tokio::test]
async fn a_bad_file_deletes_nothing_and_stops_nothing() -> Result<()> {
    let directory = Directory::new("bad").await?;
    let stage = &directory.stage;
    directory.write("a/1.yaml", &directory.reconciled("a-1", "1"))?;
    directory.write("a/2.yaml", &directory.reconciled("a-2", "1"))?;
    directory.write("b.yaml", &directory.reconciled("b", "1"))?;
    directory.write("c.yaml", &directory.reconciled("c", "1"))?;
    stage.run(&directory.line("--yes")).await?.done()?;
    for (text, why) in [
        ("", "the file is empty"),
        ("a: [", "2.yaml:1"),
        ("cluster.name: es\n", "no apiVersion"),
    ] {
        directory.write("a/2.yaml", text)?;
        directory.write("b.yaml", text)?;
        let said = stage.run(&directory.line("--yes")).await?.ended(1)?;
        ensure!(said.stderr.contains(why), "{}", said.stderr);
        for name in ["a-1", "a-2", "b", "c"] {
            ensure!(
                stage.has("configmap", name).await?,
                "{why}: {name} was deleted"
            );
        }
    }
    // The rest of the add-on, and of the directory, goes on.
    directory.write("a/1.yaml", &directory.reconciled("a-1", "2"))?;
    directory.write("c.yaml", &directory.reconciled("c", "2"))?;
    stage.run(&directory.line("--yes")).await?.ended(1)?;
    for name in ["a-1", "c"] {
        ensure!(
            directory.value(name).await?.as_deref() == Some("2"),
            "{name}"
        );
    }
    ensure!(directory.installed().await? == ["a", "b", "c"]);
    // What is not in it when it can be read again is pruned.
    directory.remove("a/2.yaml")?;
    directory.write("b.yaml", &directory.reconciled("b", "2"))?;
    stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(!stage.has("configmap", "a-2").await?);
    Ok(())
}

/// Semantics 21: a file whose objects the cluster does not serve, or refuses, is left out; the other files of its add-on are applied, and
/// nothing of it is pruned.
#[tokio::test]
async fn a_file_that_cannot_be_applied_is_left_out() -> Result<()> {
    let directory = Directory::new("left-out").await?;
    let stage = &directory.stage;
    directory.write("a/1.yaml", &directory.reconciled("a-1", "1"))?;
    directory.write("a/2.yaml", &directory.reconciled("a-2", "1"))?;
    directory.write("a/3.yaml", &directory.reconciled("a-3", "1"))?;
    stage.run(&directory.line("--yes")).await?.done()?;
    let reconciled = "labels: {addonmanager.kubernetes.io/mode: Reconcile}";
    let unserved = format!(
        "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n\
         metadata: {{name: as.example.test, {reconciled}}}\n"
    );
    let invalid = directory
        .reconciled("a-2", "1")
        .replace("data: {key: \"1\"}", "data: {'not a key': '1'}");
    let (mut value, unpruned) = (1, directory.reconciled("a-4", "1"));
    for (bad, why) in [
        (&unserved, "does not serve CustomResourceDefinition"),
        (&invalid, "not a key"),
    ] {
        value += 1;
        let first = directory.reconciled("a-1", &value.to_string());
        directory.write("a/1.yaml", &first)?;
        directory.write("a/2.yaml", bad)?;
        directory.write("a/3.yaml", &unpruned)?;
        let said = stage.run(&directory.line("--yes")).await?.ended(1)?;
        let left_out = "a/2.yaml: left out; the other files of its add-on are applied";
        for words in [why, left_out] {
            ensure!(said.stderr.contains(words), "{words}: {}", said.stderr);
        }
        let found = directory.value("a-1").await?;
        ensure!(
            found == Some(value.to_string()),
            "{found:?}: {}",
            said.stderr
        );
        for name in ["a-2", "a-3", "a-4"] {
            ensure!(stage.has("configmap", name).await?, "{name} is missing");
        }
    }
    directory.write("a/2.yaml", &directory.reconciled("a-2", "2"))?;
    stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(directory.value("a-2").await?.as_deref() == Some("2"));
    ensure!(!stage.has("configmap", "a-3").await?, "it is pruned");
    Ok(())
}

/// Semantics 21: two files of one basename, and two files that define one object.
#[tokio::test]
async fn contradictions_are_named_and_change_nothing() -> Result<()> {
    let directory = Directory::new("twice").await?;
    let stage = &directory.stage;
    directory.write(
        "a.yaml",
        &(directory.reconciled("a", "1") + &directory.reconciled("x", "1")),
    )?;
    directory.write("b.yaml", &directory.reconciled("b", "1"))?;
    stage.run(&directory.line("--yes")).await?.done()?;
    directory.write(
        "b.yaml",
        &(directory.reconciled("b", "2") + &directory.reconciled("x", "2")),
    )?;
    let said = stage.run(&directory.line("--yes")).await?.ended(1)?;
    let path = directory.path.display();
    let line = format!("ConfigMap x is defined at {path}/a.yaml:6 and at {path}/b.yaml:6");
    ensure!(said.stderr.contains(&line), "{}", said.stderr);
    ensure!(directory.value("x").await?.as_deref() == Some("1"));
    ensure!(directory.value("b").await?.as_deref() == Some("2"));
    directory.write("b.yaml", &directory.reconciled("b", "2"))?;
    directory.write("a.json", "{}")?;
    let said = stage.run(&directory.line("--yes")).await?.ended(1)?;
    ensure!(
        said.stderr.contains("are two add-ons of one name"),
        "{}",
        said.stderr
    );
    ensure!(stage.has("configmap", "a").await?);
    // The name of an installation from elsewhere is taken.
    directory.remove("a.json")?;
    let index = stage.index(
        "index.yaml",
        &[("web", "1.0.0", &addons_tests::stage::config_map("web", "1"))],
    )?;
    stage
        .run(&format!("install web --channel {index} --yes"))
        .await?
        .done()?;
    directory.write("web.yaml", &directory.reconciled("other", "1"))?;
    let said = stage.run(&directory.line("--yes")).await?.ended(4)?;
    ensure!(
        said.stderr.contains("does not come from this directory"),
        "{}",
        said.stderr
    );
    ensure!(!stage.has("configmap", "other").await?);
    Ok(())
}

/// Semantics 21: a file that someone is still writing is waited for.
#[tokio::test]
async fn a_half_written_file_is_waited_out() -> Result<()> {
    let directory = Directory::new("writing").await?;
    let stage = &directory.stage;
    let whole = directory.reconciled("one", "1") + &directory.reconciled("two", "1");
    directory.write("a.yaml", &whole)?;
    directory.write("b.yaml", &directory.reconciled("b", "1"))?;
    stage.run(&directory.line("--yes")).await?.done()?;
    let half = directory.reconciled("one", "2");
    directory.write("a.yaml", &half)?;
    let line = directory.line("--yes");
    let writing = async {
        for part in 0..6 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            directory.write("a.yaml", &(half.clone() + &"# more\n".repeat(part)))?;
        }
        directory.write(
            "a.yaml",
            &(half.clone() + &directory.reconciled("two", "2")),
        )
    };
    let (said, written) = tokio::join!(stage.run(&line), writing);
    written?;
    let said = said?.done()?;
    ensure!(!said.stderr.contains("prune"), "{}", said.stderr);
    for name in ["one", "two"] {
        ensure!(
            directory.value(name).await?.as_deref() == Some("2"),
            "{name}"
        );
    }
    Ok(())
}

/// Semantics 21: numbers give order; where objects need another one, that counts.
#[tokio::test]
async fn numbered_files_come_one_after_another() -> Result<()> {
    let directory = Directory::new("numbers").await?;
    let stage = &directory.stage;
    for name in ["20-b", "10-a", "30-c"] {
        directory.write(&format!("{name}.yaml"), &directory.reconciled(name, "1"))?;
    }
    let said = stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(
        said.stderr.contains("after     10-a (requires)"),
        "{}",
        said.stderr
    );
    let mut times = Vec::new();
    for name in ["10-a", "20-b", "30-c"] {
        let live = stage.must("configmap", name).await?;
        let version = live["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or_default();
        times.push(version.parse::<u64>()?);
    }
    ensure!(times.is_sorted(), "{times:?}");
    let house = format!("{}-late", stage.namespace);
    let mode = "labels: {addonmanager.kubernetes.io/mode: Reconcile}";
    directory.write("10-a.yaml", &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: inside, namespace: {house}, {mode}}}\n"))?;
    directory.write(
        "20-b.yaml",
        &format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {house}, {mode}}}\n"),
    )?;
    let said = stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(
        said.stderr.contains("the numbers of the files contradict"),
        "{}",
        said.stderr
    );
    Ok(())
}
