//! What scripts need: exit codes that tell, several names, names as they were printed, and files on stdin.

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

#[tokio::test]
async fn exit_codes_names_and_stdin() -> Result<()> {
    let stage = Stage::new("scripted").await?;
    let index = stage.index(
        "index.yaml",
        &[
            ("one", "1.0.0", &config_map("one", "1")),
            ("two", "1.0.0", &config_map("two", "1")),
        ],
    )?;
    let plan = format!("plan one two --channel {index} --exit-code");
    stage.run(&plan).await?.ended(1)?;
    let install = format!("install addon/one two --channel {index} --yes");
    stage.run(&install).await?.done()?;
    stage.run(&plan).await?.done()?;
    let unknown = stage
        .run(&format!("plan three --channel {index} --exit-code"))
        .await?;
    ensure!(unknown.code > 1, "{}: {}", unknown.code, unknown.stderr);

    listed(&stage).await?;
    elsewhere(&stage).await?;
    looked_at(&stage).await?;
    planned_on_stdin(&stage).await
}

/// What `list -o name` prints is taken as it is.
async fn listed(stage: &Stage) -> Result<()> {
    let rows = stage.run("list --no-headers").await?.done()?.stdout;
    ensure!(
        rows.lines().count() == 2 && rows.starts_with("one "),
        "{rows}"
    );
    let all = stage.run("list -A --no-headers").await?.done()?.stdout;
    let first = all.split_whitespace().take(2);
    ensure!(first.eq([&*stage.namespace, "one"]), "{all}");
    let names = stage.run("list -o name").await?.done()?.stdout;
    let names: Vec<&str> = names.split_whitespace().collect();
    ensure!(names.len() == 2, "{names:?}");
    let upgrade = format!("upgrade {} --yes", names.join(" "));
    let said = stage.run(&upgrade).await?.done()?.stderr;
    ensure!(said.matches("nothing to do").count() == 2, "{said}");
    Ok(())
}

/// `-n` names the namespace of records, and is often taken for that of objects; `show` knows what is installed from an index.
async fn elsewhere(stage: &Stage) -> Result<()> {
    let target = "--target-namespace";
    for (line, code, words) in [
        (
            "list -n default",
            0,
            "-n names the namespace of their records",
        ),
        (
            "status one -n default",
            1,
            "; did you mean the one in namespace ",
        ),
        (
            "upgrade one -n default --yes",
            2,
            "fix:    leave out -n default: ",
        ),
        ("show one", 0, "which it is installed from"),
    ] {
        let said = stage.run(line).await?.ended(code)?.stderr;
        ensure!(said.contains(words), "{line}: {said}");
        ensure!(!said.contains(target), "{line}: {said}");
    }
    Ok(())
}

/// Several at once, by name and by label, and whether they are ready.
async fn looked_at(stage: &Stage) -> Result<()> {
    let label = ["label", "addoninstallation", "two", "tier=back"];
    stage.kubectl(&label).await?;
    for (line, expected) in [
        ("status one -o json", &["one"][..]),
        ("status addoninstallation/two one -o json", &["two", "one"]),
        ("status -A -o json", &["one", "two"]),
        ("status -l tier=back -o json", &["two"]),
        ("status -l tier=front -o json", &[]),
        ("list -l tier=back -o json", &["two"]),
        ("list -l tier=front -o json", &[]),
    ] {
        let said = stage.run(line).await?.done()?.stdout;
        let said: Value = serde_json::from_str(&said)?;
        let one = [said.clone()];
        let items = said["items"].as_array().map_or(&one[..], Vec::as_slice);
        let names: Vec<&str> = items
            .iter()
            .filter_map(|item| item["name"].as_str())
            .collect();
        ensure!(names == expected, "{line}: {said:#}");
    }
    let none = stage.run("list -l tier=front").await?.done()?.stderr;
    let words = "no installation matches -l tier=front";
    ensure!(none.contains(words), "{none}");
    stage.run("status -A --exit-code").await?.done()?;
    stage.delete("configmap", "two").await?;
    stage.run("status one --exit-code").await?.done()?;
    stage.run("status one two --exit-code").await?.ended(1)?;
    stage.run("status two").await?.done()?;
    let unknown = stage.run("status three --exit-code").await?;
    ensure!(unknown.code > 1, "{}: {}", unknown.code, unknown.stderr);
    Ok(())
}

/// A plan goes through a pipe.
async fn planned_on_stdin(stage: &Stage) -> Result<()> {
    let plan = stage.run("plan two --repair -o json").await?.done()?.stdout;
    let apply = ["apply", "-", "--yes"];
    stage.plugin.run_with_input(&apply, &plan).await?.done()?;
    ensure!(stage.has("configmap", "two").await?);
    Ok(())
}

#[tokio::test]
async fn what_is_in_a_chart_is_shown_before_it_is_installed() -> Result<()> {
    let stage = Stage::new("shown").await?;
    let manifest = deployment("web", 1, None);
    let shelf = Shelf::new()?;
    let packed = shelf.chart("web", "1.0.0", &[("templates/web.yaml", &manifest)])?;
    let version = json!({"version": "1.0.0", "template": {"method": "helm"},
        "source": {"url": {"manifest": packed}}});
    let file = stage.catalogue("web", &version)?.display().to_string();
    let helm = binaries::helm()?.display().to_string();
    let show = ["show", "web", "--channel", &file, "--helm-bin", &helm];
    let said = stage.plugin.run(&show).await?.done()?;
    for words in ["1: Deployment", "example.test/web:1"] {
        ensure!(said.stdout.contains(words), "{words}: {}", said.stdout);
    }
    Ok(())
}
