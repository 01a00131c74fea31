//! What is said before, instead of and after a change: what the server could not check, what is deleted, and how to go on.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};

/// A kops index with versions of one add-on that go into a namespace.
fn index(stage: &Stage, namespace: &str, versions: &[&str], manifest: &str) -> Result<String> {
    stage.write("web.yaml", manifest)?;
    let mut text = "kind: Addons\nmetadata: {name: test}\nspec:\n  addons:\n".to_owned();
    for version in versions {
        text.push_str(&format!(
            "  - {{name: web, version: {version}, namespace: {namespace}, manifest: web.yaml}}\n"
        ));
    }
    let path = stage.write("index.yaml", &text)?;
    Ok(path.to_string_lossy().into_owned())
}

#[tokio::test]
async fn a_namespace_of_its_own_is_announced_when_it_comes_and_goes() -> Result<()> {
    let stage = Stage::new("announced").await?;
    let namespace = format!("{}-own", stage.namespace);
    let group = format!("{}.example.com", stage.namespace);
    let manifest = format!(
        "{}{}apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: things.{group}}}\nspec:\n  \
         group: {group}\n  scope: Cluster\n  names: {{kind: Thing, plural: things}}\n  versions:\n  - {{name: v1, served: true, \
         storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}\n---\napiVersion: {group}/v1\nkind: Thing\n\
         metadata: {{name: a}}\n",
        config_map("a", "1"),
        config_map("b", "1")
    );
    let index = index(&stage, &namespace, &["1.0.0"], &manifest)?;
    let install = format!("install web --channel {index}");
    let unchecked = [
        format!("not checked by the server: 2 objects, namespace {namespace} does not exist yet\n"),
        "not checked by the server: 1 object, kind Thing is not defined yet\n".to_owned(),
    ];
    for line in ["--dry-run=server", "--yes"] {
        let said = stage.run(&format!("{install} {line}")).await?.done()?;
        for words in &unchecked {
            let is_said = said.stderr.contains(words);
            ensure!(is_said == (line != "--yes"), "{line}: {}", said.stderr);
        }
    }

    let removed = format!(
        "  delete    Namespace {namespace} (created by this installation, if nothing else is in it)\n"
    );
    for (line, is_removed) in [("uninstall web", true), ("uninstall web --keep", false)] {
        let said = stage.run(line).await?;
        ensure!(said.code != 0, "{line} did not ask");
        ensure!(
            said.stderr.contains(&removed) == is_removed,
            "{line}: {}",
            said.stderr
        );
    }
    stage
        .run("uninstall web --delete-crds --yes")
        .await?
        .done()?;
    Ok(())
}

#[tokio::test]
async fn hints_name_the_version_and_the_installation_that_is_meant() -> Result<()> {
    let stage = Stage::new("hints").await?;
    let manifest = config_map("hints-map", "1");
    let index = index(&stage, &stage.namespace, &["1.0.0", "1.1.0"], &manifest)?;
    let install = |version: &str| format!("install web@{version} --channel {index} --yes");
    stage.run(&install("1.0.0")).await?.done()?;
    stage.delete("configmap", "hints-map").await?;
    let said = stage.run("status web").await?.done()?;
    let restore = format!(
        "restore: kubectl addons upgrade web@1.0.0 -n {} --repair --system-namespace=",
        stage.namespace
    );
    ensure!(said.stdout.contains(&restore), "{}", said.stdout);
    stage
        .run("upgrade web@1.0.0 --repair --yes")
        .await?
        .done()?;
    stage.run(&install("1.1.0")).await?.done()?;

    let said = stage.run(&install("1.0.0")).await?.ended(1)?;
    let accept = format!(
        "\n       accept: kubectl addons {} ",
        install("1.0.0").replacen("install", "upgrade", 1)
    );
    for words in [accept.as_str(), " --allow-downgrade\n"] {
        ensure!(said.stderr.contains(words), "{}", said.stderr);
    }
    stage
        .run("upgrade web@1.0.0 --allow-downgrade --yes")
        .await?
        .done()?;

    let said = stage.run(&install("1.2.0")).await?.ended(1)?;
    let words = "web has no version 1.2.0; it has 1.1.0, 1.0.0\n";
    ensure!(said.stderr.contains(words), "{}", said.stderr);
    for verb in ["upgrade", "status", "uninstall"] {
        let said = stage.run(&format!("{verb} webb")).await?.ended(1)?;
        let words = "no installation named webb; did you mean web?";
        ensure!(said.stderr.contains(words), "{verb}: {}", said.stderr);
    }
    Ok(())
}
