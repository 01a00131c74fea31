//! What a change refuses before it writes, its preview refuses as well: with the same exit code, error and ways out.

use std::fs;

use addons_tests::plugin::Output;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::json;

/// The lines of an error and of its advice, without the flags of the preview and of the change.
fn told(said: &Output) -> Vec<String> {
    let is_told = |line: &&str| {
        let line = line.trim_start();
        ["error:", "accept:", "fix:", "look:"]
            .iter()
            .any(|label| line.starts_with(label))
    };
    let lines = said.stderr.lines().filter(is_told);
    lines
        .map(|line| line.replace(" --dry-run", "").replace(" --yes", ""))
        .collect()
}

/// Writes manifests into a directory, and an index with one entry for each.
fn write(stage: &Stage, names: &[&str]) -> Result<String> {
    let directory = stage.plugin.home().join("directory");
    let _ = fs::remove_dir_all(&directory);
    for name in names {
        let namespace = &stage.namespace;
        let label = "addonmanager.kubernetes.io/mode: Reconcile";
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: dir-{name}, namespace: {namespace}, labels: {{{label}}}}}\n"
        );
        stage.write(&format!("directory/dir-{name}.yaml"), &text)?;
    }
    let manifests: Vec<String> = names.iter().map(|name| config_map(name, "1")).collect();
    let entries: Vec<_> = names
        .iter()
        .zip(&manifests)
        .map(|(name, manifest)| (*name, "1.0.0", manifest.as_str()))
        .collect();
    stage.index("index.yaml", &entries)
}

#[tokio::test]
async fn a_preview_refuses_what_the_change_refuses() -> Result<()> {
    let stage = Stage::new("previews").await?;
    stage.run("init").await?.done()?;
    let home = stage.plugin.home().display().to_string();
    let index = format!(
        "file://{}",
        write(&stage, &["one", "two", "three", "four"])?
    );
    let sync = format!("sync {home}/directory");
    let channel = format!("channel apply {index}");
    // An add-on of twelve objects, and one that another requires.
    let many = |count: usize| {
        let all = (0..count).map(|i| config_map(&format!("many-{i}"), "1"));
        all.collect::<String>()
    };
    let old = stage.index("many.yaml", &[("many", "1.0.0", &many(12))])?;
    let pump =
        json!({"version": "1.0.0", "source": {"inline": {"manifest": config_map("pump", "1")}}});
    let well = json!({"version": "1.0.0", "requires": [{"name": "pump"}],
        "source": {"inline": {"manifest": config_map("well", "1")}}});
    for (name, version) in [("pump", &pump), ("well", &well)] {
        let file = stage.catalogue(name, version)?;
        stage
            .run(&format!("catalogue add {}", file.display()))
            .await?
            .done()?;
    }
    for line in [
        format!("{channel} --yes"),
        format!("{sync} --yes"),
        format!("install many --channel {old} --yes"),
        "install pump well --yes".to_owned(),
    ] {
        stage.run(&line).await?.done()?;
    }
    write(&stage, &["one"])?;
    stage.index("many.yaml", &[("many", "2.0.0", &many(2))])?;
    let refused =
        "apiVersion: v1\nkind: Service\nmetadata: {name: refused}\nspec: {ports: [{port: 0}]}\n";
    let refused = stage.index("refused.yaml", &[("refused", "1.0.0", refused)])?;
    stage.apply(&config_map("theirs", "1")).await?;
    let theirs = stage.index(
        "theirs.yaml",
        &[("theirs", "1.0.0", &config_map("theirs", "2"))],
    )?;
    // What cannot be adopted: nothing exists, another installation owns it, a controller has made it.
    let one = |name: &str, object: &str| {
        let manifest = config_map(object, "2");
        stage.index(&format!("{name}.yaml"), &[(name, "1.0.0", &manifest)])
    };
    let none = stage.index("none.yaml", &[("none", "1.0.0", &config_map("none", "1"))])?;
    let (owned, made) = (one("owned", "pump")?, one("made", "made")?);
    let owner = stage.must("configmap", "theirs").await?["metadata"]["uid"].clone();
    let owner = format!(
        "{{apiVersion: v1, kind: ConfigMap, name: theirs, uid: {owner}, controller: true}}"
    );
    let of_controller = format!("metadata: {{name: made, ownerReferences: [{owner}]}}");
    stage
        .apply(&config_map("made", "1").replace("metadata: {name: made}", &of_controller))
        .await?;
    let mut wrong = Vec::new();
    for (line, code) in [
        (format!("{channel} --prune-removed"), 1),
        (sync.clone(), 4),
        (format!("upgrade many --channel {old}"), 1),
        (format!("install refused --channel {refused}"), 1),
        (format!("install theirs --channel {theirs}"), 4),
        ("uninstall pump".to_owned(), 1),
        ("rollback pump 9".to_owned(), 1),
        ("rollback pump --to 9.0.0".to_owned(), 1),
        ("upgrade pump --recreate Deployment/nothing".to_owned(), 2),
        ("catalogue remove nothing".to_owned(), 1),
        ("adopt nothing".to_owned(), 1),
        (format!("adopt none --channel {none}"), 1),
        ("adopt pump".to_owned(), 1),
        (format!("adopt owned --channel {owned}"), 4),
        (format!("adopt made --channel {made}"), 4),
        ("adopt nothing --release".to_owned(), 1),
        ("upgrade nothing".to_owned(), 1),
    ] {
        let shown = stage.run(&format!("{line} --dry-run")).await?;
        let done = stage.run(&format!("{line} --yes")).await?;
        let (shown_lines, done_lines) = (told(&shown), told(&done));
        let all = format!("{line}\n{}\n{}", shown.stderr, done.stderr);
        let is_same = shown.code == code && done.code == code && shown_lines == done_lines;
        if !is_same || done_lines.is_empty() {
            wrong.push(format!("{} {}: {all}", shown.code, done.code));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Without --yes, `channel apply` is a preview, too.
    let shown = stage
        .run(&format!("{channel} --prune-removed"))
        .await?
        .ended(1)?;
    ensure!(
        shown.stderr.contains("are no longer in them"),
        "{}",
        shown.stderr
    );
    // What is accepted, the preview shows.
    let accepted = format!("{channel} --prune-removed --allow-prune 100% --dry-run");
    let shown = stage.run(&accepted).await?.done()?;
    ensure!(
        shown.stderr.contains("uninstalling two"),
        "{}",
        shown.stderr
    );
    ensure!(stage.has("configmap", "two").await? && stage.has("configmap", "dir-two").await?);

    let shown = stage.run("catalogue remove pump --dry-run").await?.done()?;
    for text in ["remove catalogue pump", "nothing was changed"] {
        ensure!(shown.stderr.contains(text), "{}", shown.stderr);
    }
    stage.run("catalogue show pump").await?.done()?;
    Ok(())
}

/// `upgrade` of what is not installed, and a version that does not stand behind its name.
#[tokio::test]
async fn what_was_meant_is_named() -> Result<()> {
    let stage = Stage::new("meant").await?;
    stage.run("init").await?.done()?;
    let name = &stage.namespace;
    let version =
        json!({"version": "1.0.0", "source": {"inline": {"manifest": config_map("web", "1")}}});
    let file = stage.catalogue(name, &version)?;
    stage
        .run(&format!("catalogue add {}", file.display()))
        .await?
        .done()?;
    let behind = format!("write the version behind the name: {name}@1.0.0");
    for (line, expected) in [
        (
            format!("upgrade {name}"),
            format!("fix:    kubectl addons install {name}"),
        ),
        (format!("install {name}=1.0.0"), behind),
        (
            format!("install {name} 1.0.0"),
            "behind the name: NAME@1.0.0".to_owned(),
        ),
        (
            format!("show {name} --catalogue {name}x"),
            format!("did you mean {name}?"),
        ),
    ] {
        let said = stage.run(&line).await?.ended(1)?.stderr;
        ensure!(said.contains(&expected), "{line}: {said}");
    }
    Ok(())
}
