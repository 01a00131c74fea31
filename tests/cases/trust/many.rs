//! Many add-ons in one command: what a person sees stays readable.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::json;

/// trust, small things: an installation has one line on a terminal, and all of it where it is asked for.
#[tokio::test]
async fn t21_many_installations_have_a_line_each_on_a_terminal() -> Result<()> {
    let mut stage = Stage::new("brief").await?;
    stage.plugin = stage.plugin.variable("TERM", "xterm");
    stage.run("init").await?.done()?;
    let names: Vec<String> = (0..6).map(|n| format!("brief-{n}")).collect();
    let index = |value: &str| {
        let objects = names.iter().map(|name| {
            let more = config_map(&format!("{name}-more"), value);
            (
                name.clone(),
                format!("{}\n---\n{more}", config_map(name, value)),
            )
        });
        objects.collect::<Vec<_>>()
    };
    let apply = async |value: &str, version: &str, verbosity: &str| {
        let objects = index(value);
        let entries: Vec<(&str, &str, &str)> = objects
            .iter()
            .map(|(name, manifest)| (name.as_str(), version, manifest.as_str()))
            .collect();
        let index = stage.index("index.yaml", &entries)?;
        let args = ["channel", "apply", &index, "--yes", "-v", verbosity];
        let said = stage.plugin.run_on_terminal(&args, "").await?;
        ensure!(said.code == 0, "{}", said.stdout);
        anyhow::Ok(said.stdout.replace("\r\n", "\n"))
    };
    let brief = apply("1", "1.0.0", "0").await?;
    for name in &names {
        let announced = brief.lines().filter(|line| {
            line.starts_with(&format!("{name} 1.0.0 into ")) && line.ends_with("  create 2")
        });
        ensure!(announced.count() == 1, "{name}:\n{brief}");
        let reported = format!("{name} 1.0.0 installed: 2 created");
        ensure!(brief.contains(&reported), "{name}:\n{brief}");
    }
    ensure!(
        brief.contains("to see every object and the order, add -v 1"),
        "{brief}"
    );
    ensure!(!brief.contains("ConfigMap ×2"), "{brief}");
    let full = apply("2", "2.0.0", "1").await?;
    ensure!(
        full.matches("ConfigMap ×2").count() == names.len(),
        "{full}"
    );
    ensure!(!full.contains("-v 1"), "{full}");
    println!("{brief}");
    Ok(())
}

/// From level 6 on, a line for each answer of the API server, as with kubectl; headers are in none.
#[tokio::test]
async fn requests_are_printed_with_their_answers() -> Result<()> {
    let stage = Stage::new("many-requests").await?;
    let said = stage.run("list -v 6").await?.done()?;
    let lines: Vec<&str> = said.stderr.lines().collect();
    let is_told = lines.iter().any(|line| {
        line.strip_prefix("GET https://").is_some_and(|rest| {
            rest.contains("/addoninstallations")
                && rest.contains(" 200 OK in ")
                && rest.ends_with(" milliseconds")
        })
    });
    ensure!(is_told, "{lines:#?}");
    ensure!(!said.stderr.to_lowercase().contains("bearer"), "{lines:#?}");
    let said = stage.run("version -v 5").await?.done()?;
    ensure!(!said.stderr.contains("milliseconds"), "{}", said.stderr);
    Ok(())
}

/// trust, small things: a warning of the API server that many objects get is one line.
#[tokio::test]
async fn t21_a_warning_is_shown_once_with_its_count() -> Result<()> {
    let stage = Stage::new("warned").await?;
    let node = json!({"beta.kubernetes.io/os": "linux"});
    let objects = ["one", "two", "three"].map(|name| {
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never",
                "nodeSelector": node, "containers": [{"name": "c", "image": "registry.invalid/c"}]}}}}}})
        .to_string()
    });
    let index = stage.index("web.yaml", &[("web", "1.0.0", &objects.join("\n---\n"))])?;
    let said = stage
        .run(&format!("install web --channel {index} --yes"))
        .await?
        .done()?;
    let warned: Vec<&str> = said
        .stderr
        .lines()
        .filter(|line| line.contains("deprecated since v1.14"))
        .collect();
    ensure!(
        matches!(warned.as_slice(), [line] if line.contains("warning: ") && line.contains(" and 2 more: ")),
        "{}",
        said.stderr
    );
    println!("{}", warned.join("\n"));
    Ok(())
}

/// trust, small things: what is said where `--yes` is missing is said once.
#[tokio::test]
async fn t21_channel_apply_without_yes_says_one_thing() -> Result<()> {
    let stage = Stage::new("says-once").await?;
    stage.run("init").await?.done()?;
    let index = stage.index("web.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    let said = stage.run(&format!("channel apply {index}")).await?.done()?;
    ensure!(
        said.stderr.contains("Must specify --yes to update")
            && !said.stderr.contains("nothing was changed"),
        "{}",
        said.stderr
    );
    stage
        .run(&format!("channel apply {index} --yes"))
        .await?
        .done()?;
    stage
        .patch("configmap", "web", &json!({"data": {"key": "other"}}))
        .await?;
    let said = stage
        .run(&format!(
            "channel apply {index} --repair --conflicts take --yes"
        ))
        .await?
        .done()?;
    ensure!(said.stderr.contains("1 changed"), "{}", said.stderr);
    Ok(())
}
