//! Several indexes at once, and indexes that hold nothing.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};

use super::{Entry, index, record};

fn entry<'a>(name: &'a str, fields: &'a [&'a str], manifest: &'a str) -> Entry<'a> {
    Entry {
        name,
        fields,
        manifest,
    }
}

/// Several indexes count as one: of two versions the higher one is installed, in whatever order they stand (T4 of kops).
#[tokio::test]
async fn of_two_indexes_the_higher_version_counts() -> Result<()> {
    let stage = Stage::new("kops-merge").await?;
    for (name, order) in [("up", ["1", "2"]), ("down", ["2", "1"])] {
        let mut channels = Vec::new();
        for value in order {
            let manifest = config_map(name, value);
            let version = format!("version: 1.0.{value}");
            let fields = [version.as_str(), "id: k8s-1.18"];
            let file = format!("{name}-{value}.yaml");
            channels.push(index(&stage, &file, &[entry(name, &fields, &manifest)])?);
        }
        let apply = format!("channel apply {} --yes", channels.join(" "));
        stage.run(&apply).await?.done()?;
        let live = stage.must("configmap", name).await?;
        ensure!(live["data"]["key"] == "2", "{name}: {live}");
        let recorded = record(&stage, name).await?.context("no record")?;
        ensure!(recorded.contains("1.0.2"), "{recorded}");
    }
    Ok(())
}

/// One entry with two contents is an error that names both indexes; the others are installed.
#[tokio::test]
async fn an_entry_with_two_hashes_is_an_error() -> Result<()> {
    let stage = Stage::new("kops-hashes").await?;
    let [one, two, other] =
        [("dns", "1"), ("dns", "2"), ("other", "1")].map(|(name, value)| config_map(name, value));
    let fields = ["version: 1.0.0", "id: a"];
    let entries = [entry("dns", &fields, &one), entry("other", &fields, &other)];
    let first = index(&stage, "first.yaml", &entries)?;
    let second = index(&stage, "second.yaml", &[entry("dns", &fields, &two)])?;
    let apply = format!("channel apply {first} {second} --yes");
    let said = stage.run(&apply).await?.ended(1)?.stderr;
    for part in ["two manifests", "first.yaml", "second.yaml"] {
        ensure!(said.contains(part), "{part}: {said}");
    }
    ensure!(!stage.has("configmap", "dns").await?, "{said}");
    ensure!(stage.has("configmap", "other").await?, "{said}");
    Ok(())
}

/// An index that was emptied uninstalls nothing, and one that was named by a relative path is the same index.
#[tokio::test]
async fn an_empty_index_uninstalls_nothing_by_itself() -> Result<()> {
    let stage = Stage::new("kops-empty").await?;
    let manifest = config_map("dns", "1");
    index(&stage, "index.yaml", &[entry("dns", &[], &manifest)])?;
    let apply = "channel apply index.yaml --yes";
    stage.run(apply).await?.done()?;
    let recorded = record(&stage, "dns").await?.context("no record")?;
    let path = stage.plugin.home().join("index.yaml");
    ensure!(recorded.contains(&path.display().to_string()), "{recorded}");
    for text in ["", "# nothing\n", "kind: Addons\nspec: {addons: []}\n"] {
        stage.write("index.yaml", text)?;
        let said = stage.run(&format!("{apply} --prune-removed")).await?;
        ensure!(said.code == 1, "{text:?}: {}", said.stderr);
        let refused = "1 of 1 installations from kops indexes are no longer in them";
        ensure!(said.stderr.contains(refused), "{text:?}: {}", said.stderr);
        ensure!(stage.has("configmap", "dns").await?, "{text:?}");
    }
    Ok(())
}
