//! A plan is written, reviewed and run; a file that is none is one clear error.

use std::fs;

use addons_plan::file;
use addons_tests::small::{self, PASSWORD};
use addons_tests::stage::{Stage, config_map};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

#[tokio::test]
async fn a_plan_is_run_as_it_was_written() -> Result<()> {
    let stage = Stage::new("plan-apply").await?;
    // Otherwise another test may define the kinds between two plans.
    stage.run("init").await?.done()?;
    let namespace = stage.namespace.clone();
    let first = small::index(&stage, "1.0.0", &small::first())?;
    let second = small::index(&stage, "2.0.0", &small::second())?;

    let mark = stage.cluster.audit().mark()?;
    let line = format!("plan small -n {namespace} --channel {first} -o plan.json");
    let written = stage.run(&line).await?.done()?;
    ensure!(written.stdout.is_empty(), "{}", written.stdout);
    ensure!(
        written.stderr.contains("create    9 objects")
            && written
                .stderr
                .contains("plan written to plan.json (sha256:"),
        "{}",
        written.stderr
    );
    // A dry run is no write; all else that could be one is.
    let requests = stage.requests(mark)?;
    let written = requests
        .of("kubectl-addons")
        .filter(|request| request.is_write() && request.verb != "patch");
    ensure!(written.count() == 0, "{requests:?}");
    ensure!(
        !stage.has("configmap", "kept").await?,
        "a plan applied something"
    );

    let text = fs::read_to_string(stage.plugin.home().join("plan.json"))?;
    secrets_stay_out(&text)?;
    stage
        .run(&format!(
            "plan small -n {namespace} --channel {first} -o again.json"
        ))
        .await?
        .done()?;
    let again = fs::read_to_string(stage.plugin.home().join("again.json"))?;
    let lines = text.lines().zip(again.lines());
    let differs = lines.filter(|(one, other)| one != other).take(5);
    let differs: Vec<_> = differs.collect();
    ensure!(
        text == again,
        "two plans of one cluster differ: {differs:?}"
    );

    let applied = stage.run("apply plan.json --yes").await?.done()?;
    ensure!(
        applied.stderr.contains("small 1.0.0 installed: 9 created"),
        "{}",
        applied.stderr
    );
    let twice = stage.run("apply plan.json --yes").await?.ended(4)?;
    ensure!(
        twice
            .stderr
            .contains("this is not what the plan was made for"),
        "{}",
        twice.stderr
    );

    let line = format!("plan small -n {namespace} --channel {second} -o up.json");
    upgraded(&stage, &line).await?;

    // Nothing to do is a plan, too.
    stage.run(&line).await?.done()?;
    let nothing = stage.run("apply up.json --yes").await?.done()?;
    ensure!(
        nothing.stderr.contains("nothing to do"),
        "{}",
        nothing.stderr
    );
    Ok(())
}

/// An upgrade that prunes; what the file says of Secrets is masked.
async fn upgraded(stage: &Stage, line: &str) -> Result<()> {
    stage.run(line).await?.done()?;
    let text = fs::read_to_string(stage.plugin.home().join("up.json"))?;
    ensure!(
        text.contains("dropped-secret") && !text.contains(PASSWORD),
        "{text}"
    );
    let applied = stage.run("apply up.json --yes").await?.done()?;
    ensure!(
        applied.stderr.contains("small 2.0.0 upgraded") && applied.stderr.contains("3 pruned"),
        "{}",
        applied.stderr
    );
    ensure!(
        !stage.has("configmap", "dropped-a").await?,
        "dropped-a stays"
    );
    Ok(())
}

/// Neither the password nor what it could be guessed from is in a plan.
fn secrets_stay_out(text: &str) -> Result<()> {
    let encoded = BASE64_STANDARD.encode(PASSWORD);
    ensure!(
        !text.contains(PASSWORD) && !text.contains(encoded.trim_end_matches('=')),
        "the password is in the file"
    );
    let file::Plans::One(plan) = file::read(text.as_bytes(), None)? else {
        anyhow::bail!("it is not the plan of one cluster");
    };
    for step in plan.installations.iter().flat_map(|planned| &planned.steps) {
        // The digest of a Secret could be guessed (semantics 13).
        let is_secret = step.target.key.kind == "Secret";
        ensure!(step.digest.is_empty() == is_secret, "{step:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_no_plan_is_one_error() -> Result<()> {
    let mut tally = Tally::new("plans::files");
    let stage = Stage::new("plan-files").await?;
    let index = small::index(&stage, "1.0.0", &small::first())?;
    let namespace = &stage.namespace;
    let line = format!("plan small -n {namespace} --channel {index} -o plan.json");
    stage.run(&line).await?.done()?;
    let text = fs::read_to_string(stage.plugin.home().join("plan.json"))?;
    let file::Plans::One(mut other) = file::read(text.as_bytes(), None)? else {
        anyhow::bail!("it is not the plan of one cluster");
    };
    other.cluster.uid = "00000000-0000-0000-0000-000000000000".to_owned();
    let other = file::write(&other)?.0.to_string();
    for (name, content, code, said) in [
        (
            "tampered.json",
            text.replace("\"dropped-a\"", "\"dropped-c\""),
            1,
            "it was changed after it was made",
        ),
        (
            "truncated.json",
            text.chars().take(text.len() / 2).collect(),
            1,
            "it is not valid JSON, or was cut off",
        ),
        ("huge.json", " ".repeat(17 << 20), 1, "16 MiB"),
        (
            "another-version.json",
            text.replace(
                "\"apiVersion\": \"kubectl-addons.dev/v1alpha9\"",
                "\"apiVersion\": \"kubectl-addons.dev/v1\"",
            ),
            1,
            "fix:    write it again with the command that wrote it",
        ),
        (
            "pod.yaml",
            "kind: Pod\n".to_owned(),
            1,
            "it is not valid JSON",
        ),
        ("elsewhere.json", other, 4, "another cluster"),
    ] {
        stage.write(name, &content)?;
        let mark = stage.cluster.audit().mark()?;
        let refused = stage
            .run(&format!("apply {name} --yes"))
            .await?
            .ended(code)?;
        ensure!(
            refused.stderr.contains(said) && refused.stderr.matches("error:").count() == 1,
            "{name}: {}",
            refused.stderr
        );
        let requests = stage.requests(mark)?;
        ensure!(
            requests.writes("kubectl-addons") == 0,
            "{name}: {requests:?}"
        );
        tally.ran();
    }
    let missing = stage.run("apply nowhere.json --yes").await?.ended(1)?;
    ensure!(
        missing.stderr.contains("nowhere.json"),
        "{}",
        missing.stderr
    );
    Ok(())
}

/// A method that takes no values refuses them.
#[tokio::test]
async fn values_that_nothing_takes_are_not_lost() -> Result<()> {
    let stage = Stage::new("plan-values").await?;
    let index = stage.index("index.yaml", &[("set", "1.0.0", &config_map("one", "a"))])?;
    stage
        .run(&format!("install set --channel {index} --yes"))
        .await?
        .done()?;
    let flags = format!("-n {} --channel {index} --set a=b", stage.namespace);
    for verb in ["plan set", "diff set", "upgrade set --yes"] {
        let said = stage.run(&format!("{verb} {flags}")).await?.ended(6)?;
        ensure!(said.stderr.contains("values"), "{verb}: {}", said.stderr);
    }
    Ok(())
}
