//! What leaves the directory: pruned, uninstalled, moved, or kept because it is not certain.

use addons_tests::stage::config_map;
use anyhow::{Result, ensure};

use super::Directory;

/// Semantics 21: a file that is gone is an uninstallation, also where another add-on fails.
#[tokio::test]
async fn what_is_gone_is_uninstalled_although_another_addon_fails() -> Result<()> {
    let directory = Directory::new("gone").await?;
    let stage = &directory.stage;
    for name in ["a", "b", "c"] {
        directory.write(&format!("{name}.yaml"), &directory.reconciled(name, "1"))?;
    }
    stage.run(&directory.line("--yes")).await?.done()?;
    let said = stage.run("show c").await?.ended(1)?;
    ensure!(
        said.stderr.contains("c comes from directory "),
        "{}",
        said.stderr
    );
    directory.remove("c.yaml")?;
    directory.write("b.yaml", &directory.reconciled("b", "2"))?;
    // Another installation owns what the add-on wants now.
    let index = stage.index(
        "index.yaml",
        &[("other", "1.0.0", &config_map("theirs", "1"))],
    )?;
    let install = format!("install other --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let both = directory.reconciled("a", "1") + &directory.reconciled("theirs", "2");
    directory.write("a.yaml", &both)?;
    let said = stage.run(&directory.line("--yes")).await?.ended(4)?;
    ensure!(said.stderr.contains("theirs belongs to"), "{}", said.stderr);
    ensure!(said.stderr.contains("uninstalling c"), "{}", said.stderr);
    ensure!(directory.installed().await? == ["a", "b", "other"]);
    ensure!(!stage.has("configmap", "c").await?);
    ensure!(stage.has("configmap", "a").await?);
    ensure!(directory.value("b").await?.as_deref() == Some("2"));
    Ok(())
}

/// Semantics 21: a missing, empty or unreadable directory deletes nothing.
#[tokio::test]
async fn a_missing_or_empty_directory_deletes_nothing() -> Result<()> {
    let directory = Directory::new("empty").await?;
    let stage = &directory.stage;
    let nothing = stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(
        nothing.stderr.contains("holds no manifest"),
        "{}",
        nothing.stderr
    );
    for name in ["a", "b"] {
        directory.write(&format!("{name}.yaml"), &directory.reconciled(name, "1"))?;
    }
    stage.run(&directory.line("--yes")).await?.done()?;
    let elsewhere = stage.plugin.home().join("elsewhere");
    std::fs::rename(&directory.path, &elsewhere)?;
    for flags in ["--yes", "--yes --allow-empty --allow-removals"] {
        let missing = stage.run(&directory.line(flags)).await?.ended(1)?;
        ensure!(
            missing.stderr.contains("error: directory "),
            "{}",
            missing.stderr
        );
    }
    std::fs::create_dir(&directory.path)?;
    let empty = stage.run(&directory.line("--yes")).await?.ended(4)?;
    ensure!(
        empty.stderr.contains("2 of the installations came from it"),
        "{}",
        empty.stderr
    );
    let way_out = format!("accept: kubectl addons {}", directory.line("--yes"));
    ensure!(
        empty.stderr.contains(&way_out) && empty.stderr.contains(" --allow-empty\n"),
        "{}",
        empty.stderr
    );
    ensure!(directory.installed().await? == ["a", "b"]);
    stage
        .run(&directory.line("--yes --allow-empty"))
        .await?
        .done()?;
    ensure!(directory.installed().await?.is_empty());
    ensure!(!stage.has("configmap", "a").await?);
    Ok(())
}

/// Semantics 21: more than half of the add-ons at once is a question that `--yes` does not answer.
#[tokio::test]
async fn most_of_a_directory_is_not_uninstalled_without_a_word() -> Result<()> {
    let directory = Directory::new("mostly").await?;
    let stage = &directory.stage;
    for name in ["a", "b", "c"] {
        directory.write(&format!("{name}.yaml"), &directory.reconciled(name, "1"))?;
    }
    stage.run(&directory.line("--yes")).await?.done()?;
    directory.remove("a.yaml")?;
    directory.remove("b.yaml")?;
    directory.write("c.yaml", &directory.reconciled("c", "2"))?;
    let refused = stage.run(&directory.line("--yes")).await?.ended(4)?;
    ensure!(
        refused.stderr.contains("2 of the 3 add-ons"),
        "{}",
        refused.stderr
    );
    ensure!(directory.installed().await? == ["a", "b", "c"]);
    ensure!(
        directory.value("c").await?.as_deref() == Some("2"),
        "the rest is done"
    );
    stage
        .run(&directory.line("--yes --allow-removals"))
        .await?
        .done()?;
    ensure!(directory.installed().await? == ["c"]);
    Ok(())
}

/// Semantics 13: an object that moves between two files changes its owner and is never deleted; also out of a file that is gone.
#[tokio::test]
async fn an_object_that_moves_between_files_stays() -> Result<()> {
    let directory = Directory::new("moved").await?;
    let stage = &directory.stage;
    let x = |name: &str| directory.reconciled(name, "1");
    directory.write("a.yaml", &(x("one") + &x("two")))?;
    directory.write("b.yaml", &(x("three") + &x("four")))?;
    directory.write("c.yaml", &x("five"))?;
    stage.run(&directory.line("--yes")).await?.done()?;
    let names = ["one", "two", "three", "four", "five"];
    let mut before = Vec::new();
    for name in names {
        before.push(stage.must("configmap", name).await?["metadata"]["uid"].clone());
    }
    // In both directions, and out of a file that is gone.
    directory.write("a.yaml", &(x("one") + &x("three")))?;
    directory.write("b.yaml", &(x("two") + &x("four") + &x("five")))?;
    directory.remove("c.yaml")?;
    let said = stage.run(&directory.line("--yes")).await?.done()?;
    let line = "move      ";
    ensure!(said.stderr.matches(line).count() == 3, "{}", said.stderr);
    let owners = ["a", "b", "a", "b", "b"];
    for ((name, uid), owner) in names.iter().zip(before).zip(owners) {
        let live = stage.must("configmap", name).await?;
        ensure!(live["metadata"]["uid"] == uid, "{name} was created again");
        let annotation = &live["metadata"]["annotations"]["kubectl-addons.dev/installation"];
        ensure!(
            *annotation == format!("{}/{owner}", stage.namespace),
            "{live:#}"
        );
        let args = [
            "get",
            "configmap",
            name,
            "-o",
            "json",
            "--show-managed-fields",
        ];
        let shown = stage.kubectl(&args).await?;
        ensure!(
            shown
                .stdout
                .matches("\"manager\": \"kubectl-addons.")
                .count()
                == 1,
            "{}",
            shown.stdout
        );
    }
    ensure!(directory.installed().await? == ["a", "b"]);
    let mark = stage.cluster.audit().mark()?;
    stage.run(&directory.line("--yes")).await?.done()?;
    let requests = stage.requests(mark)?;
    ensure!(
        requests.writes("kubectl-addons") == 0,
        "{:?}",
        requests.by_verb("kubectl-addons")
    );
    // What moved is pruned by its new owner.
    directory.write("a.yaml", &x("one"))?;
    stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(!stage.has("configmap", "three").await?);
    Ok(())
}

/// Semantics 21: the allow-list of the addon-manager, in its own notation; a Namespace in it does not override rule 7.
#[tokio::test]
async fn the_prune_allow_list_of_the_original_is_accepted() -> Result<()> {
    let directory = Directory::new("allowed").await?;
    let stage = &directory.stage;
    let house = format!("{}-house", stage.namespace);
    let mode = "addonmanager.kubernetes.io/mode: Reconcile";
    let account = format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: leaks, namespace: {}, labels: {{{mode}}}}}\n---\n",
        stage.namespace
    );
    let namespace = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {house}, labels: {{{mode}}}}}\n---\n"
    );
    let all = [
        directory.reconciled("a", "1"),
        directory.reconciled("b", "1"),
        account,
        namespace,
    ]
    .concat();
    directory.write("x.yaml", &all)?;
    stage.run(&directory.line("--yes")).await?.done()?;
    directory.write("x.yaml", &directory.reconciled("a", "1"))?;
    let mut args = vec![
        "sync".to_owned(),
        directory.path.display().to_string(),
        "--yes".to_owned(),
    ];
    args.extend([
        "--extra-prune-allowlist".to_owned(),
        "policy/v1/PodDisruptionBudget core/v1/Namespace".to_owned(),
    ]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let said = stage.plugin.run(&args).await?.done()?;
    ensure!(
        said.stderr
            .contains("leaks stays: its kind is not in the prune allow-list"),
        "{}",
        said.stderr
    );
    ensure!(!stage.has("configmap", "b").await?);
    ensure!(stage.has("serviceaccount", "leaks").await? && stage.has("namespace", &house).await?);
    // Without a list every kind is pruned, but for those of rule 7.
    stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(!stage.has("serviceaccount", "leaks").await?);
    ensure!(stage.has("namespace", &house).await?);
    Ok(())
}
