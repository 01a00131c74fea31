//! The workflows: what they run is there, what they use is pinned, what they may do is said, and, with `FULL=1`, actionlint accepts them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use addons_control_plane::programs;
use addons_tests::release::platforms;
use addons_tests::tally::Tally;
use addons_tests::tier;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Hex digits of a commit.
const COMMIT: usize = 40;

/// The files of the workflows, and what they say.
fn workflows() -> Result<Vec<(PathBuf, String)>> {
    let folder = Path::new(ROOT).join(".github/workflows");
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        found.push((path, text));
    }
    ensure!(found.len() >= 3, "{found:?}");
    Ok(found)
}

/// Each job of a workflow: its name, and what it holds.
fn jobs(text: &str) -> Result<Vec<(String, Value)>> {
    let workflow: Value = serde_saphyr::from_str(text)?;
    let jobs = workflow["jobs"].as_object().context("no jobs")?;
    Ok(jobs
        .iter()
        .map(|(name, job)| (name.clone(), job.clone()))
        .collect())
}

/// Each step of a job.
fn steps(job: &Value) -> impl Iterator<Item = &Value> {
    job["steps"].as_array().into_iter().flatten()
}

#[test]
fn scripts_that_workflows_run_are_there() -> Result<()> {
    let mut found = BTreeSet::new();
    for (path, text) in workflows()? {
        for (_, job) in jobs(&text)? {
            let scripts = steps(&job).filter_map(|step| step["run"].as_str());
            let words = scripts.flat_map(str::split_whitespace);
            for word in words.filter(|word| word.starts_with("deploy/") || word.starts_with(".ci/"))
            {
                let file = Path::new(ROOT).join(word);
                let metadata = fs::metadata(&file);
                let metadata = metadata.with_context(|| format!("{}: {word}", path.display()))?;
                let is_program = metadata.permissions().mode() & 0o111 != 0;
                ensure!(
                    is_program || word.contains('.') && !word.starts_with(".ci/"),
                    "{word} cannot be executed"
                );
                found.insert(word.to_owned());
            }
        }
    }
    for script in [".ci/run", ".ci/deny", "deploy/release/package"] {
        ensure!(found.contains(script), "no workflow runs {script}");
    }
    Ok(())
}

/// A tag can be moved to other code, a commit cannot.
#[test]
fn actions_are_pinned_by_their_commit() -> Result<()> {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in workflows()? {
        for (line, number) in text.lines().zip(1..) {
            let Some((_, used)) = line.split_once("uses: ") else {
                continue;
            };
            count += 1;
            let pinned = used.split_once('@').and_then(|(_, pin)| {
                let (commit, version) = pin.split_once(" # v")?;
                let is_commit =
                    commit.len() == COMMIT && commit.bytes().all(|digit| digit.is_ascii_hexdigit());
                (is_commit && version.split('.').count() == 3).then_some(())
            });
            if pinned.is_none() {
                wrong.push(format!("{}:{number}: {used}", path.display()));
            }
        }
    }
    ensure!(count > 10 && wrong.is_empty(), "{count} {wrong:#?}");
    Ok(())
}

#[test]
fn a_job_has_only_the_permissions_that_it_names() -> Result<()> {
    let mut wrong = Vec::new();
    for (path, text) in workflows()? {
        let workflow: Value = serde_saphyr::from_str(&text)?;
        let name = path.display();
        if workflow["permissions"] != serde_json::json!({}) {
            wrong.push(format!("{name}: its jobs have permissions by default"));
        }
        for (job, content) in jobs(&text)? {
            if !content["permissions"].is_object() {
                wrong.push(format!("{name}: {job}: has no permissions of its own"));
            }
            for step in steps(&content) {
                let is_checkout = step["uses"]
                    .as_str()
                    .is_some_and(|action| action.starts_with("actions/checkout@"));
                if is_checkout && step["with"]["persist-credentials"] != false {
                    wrong.push(format!("{name}: {job}: leaves its token in the checkout"));
                }
                // Text of a pull request or a tag would become code.
                if step["run"].as_str().is_some_and(|run| run.contains("${{")) {
                    wrong.push(format!("{name}: {job}: a script has an expression in it"));
                }
            }
        }
    }
    ensure!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

#[test]
fn every_program_of_a_release_is_built_and_has_its_bill_of_materials_attested() -> Result<()> {
    let path = Path::new(ROOT).join(".github/workflows/release.yaml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut programs = BTreeSet::new();
    for platform in platforms()? {
        let target = platform.target;
        let built = text.lines().filter(|line| {
            line.contains("deploy/release/compile ") && line.contains(&format!(" {target}"))
        });
        ensure!(built.count() == 1, "{target} is not compiled once");
        let names = platform.programs().into_iter();
        programs.extend(
            names.map(|(_, program)| format!("{program}-{}-{}", platform.os, platform.arch)),
        );
    }
    let jobs = jobs(&text)?;
    let materials = jobs.iter().find(|(name, _)| name == "materials");
    let (_, materials) = materials.context("no job materials")?;
    let attested = materials["strategy"]["matrix"]["program"]
        .as_array()
        .context("no matrix")?;
    let attested: BTreeSet<String> = attested
        .iter()
        .filter_map(|program| program.as_str().map(str::to_owned))
        .collect();
    ensure!(attested == programs, "{attested:?}, not {programs:?}");
    Ok(())
}

#[test]
fn actionlint_accepts_every_workflow() -> Result<()> {
    let mut tally = Tally::new("workflows::actionlint_accepts_every_workflow");
    if !tier::full() {
        tally.left_out("actionlint has to be built: set FULL=1");
        return Ok(());
    }
    let actionlint = programs::actionlint()?;
    for (path, _) in workflows()? {
        // Other linters that it finds on the PATH are not the same on every machine.
        let output = Command::new(&actionlint)
            .args(["-shellcheck=", "-pyflakes=", "-no-color"])
            .arg(&path)
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{}\n{said}", path.display());
        tally.ran();
    }
    // A linter that accepts everything would prove nothing.
    let wrong = "on: push\njobs: {a: {runs-on: ubuntu-24.04, steps: [{run: 'true', wiht: {}}]}}\n";
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("wrong.yaml");
    fs::write(&path, wrong)?;
    let status = Command::new(&actionlint).arg(&path).output()?.status;
    ensure!(!status.success(), "it accepts {wrong}");
    tally.ran();
    Ok(())
}
