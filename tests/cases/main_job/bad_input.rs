//! Bad input of every kind: one error that names its place, the right exit code, nothing written (issue: "Bad input").

use addons_tests::plugin::Plugin;
use addons_tests::stage::{Stage, config_map};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

#[tokio::test]
async fn bad_input_is_one_error_and_writes_nothing() -> Result<()> {
    let mut tally = Tally::new("main_job::bad_input");
    let stage = Stage::new("bad-input").await?;
    stage.run("init").await?.done()?;
    let cases = [bad_packages(&stage)?, bad_lines(&stage)?].concat();
    let mark = stage.cluster.audit().mark()?;
    for (line, code, words) in &cases {
        let output = stage.run(line).await?;
        ensure!(
            output.code == *code,
            "`{line}` ended with {} instead of {code}\n{}",
            output.code,
            output.stderr
        );
        for word in words {
            ensure!(
                output.stderr.contains(word),
                "`{line}` does not say {word:?}:\n{}",
                output.stderr
            );
        }
        ensure!(
            output.stdout.is_empty(),
            "`{line}` wrote to stdout: {}",
            output.stdout
        );
        tally.ran();
    }
    let requests = stage.requests(mark)?;
    let here: Vec<_> = requests
        .of("kubectl-addons")
        .filter(|request| request.is_write())
        .collect();
    ensure!(here.is_empty(), "something was written: {here:?}");
    Ok(())
}

/// A line, its exit code, and what its error says.
type Case = (String, i32, Vec<&'static str>);

/// Indexes whose packages are not what they should be.
fn bad_packages(stage: &Stage) -> Result<Vec<Case>> {
    let good = index_of_good(stage)?;
    let tampered = stage.index(
        "tampered/index.yaml",
        &[("tampered", "1.0.0", &config_map("a", "1"))],
    )?;
    stage.write("tampered/tampered-1.0.0-0.yaml", &config_map("a", "2"))?;
    let broken = stage.index(
        "broken/index.yaml",
        &[("broken", "1.0.0", "apiVersion: v1\nkind: [\n")],
    )?;
    let unknown_kind = stage.index(
        "kind/index.yaml",
        &[(
            "kind",
            "1.0.0",
            "apiVersion: example.test/v1\nkind: Nothing\nmetadata: {name: a}\n",
        )],
    )?;
    let large = format!("{}# {}\n", config_map("large", "1"), "x".repeat(17 << 20));
    let large = stage.index("large/index.yaml", &[("large", "1.0.0", &large)])?;
    Ok(vec![
        (
            format!("install good --channel {tampered} --yes"),
            1,
            vec!["no add-on named good"],
        ),
        (
            format!("install tampered --channel {tampered} --yes"),
            1,
            vec!["manifestHash"],
        ),
        (
            format!("install broken --channel {broken} --yes"),
            1,
            vec!["broken-1.0.0-0.yaml:"],
        ),
        (
            format!("install kind --channel {unknown_kind} --yes"),
            1,
            vec!["Nothing", "example.test"],
        ),
        (
            format!("install large --channel {large} --yes"),
            1,
            vec!["16 MiB"],
        ),
        (
            format!("install good --channel {good} --yes --set replicas=2"),
            6,
            vec!["takes no values"],
        ),
        (
            format!("install goood --channel {good} --yes"),
            1,
            vec!["did you mean good"],
        ),
    ])
}

/// Indexes that cannot be read or do not fit, and wrong command lines.
fn bad_lines(stage: &Stage) -> Result<Vec<Case>> {
    let good = index_of_good(stage)?;
    let picky = stage.write(
        "picky.yaml",
        "kind: Addons\nmetadata: {name: picky}\nspec:\n  addons:\n  - name: picky\n    version: 1.0.0\n    kubernetesVersion: '>=9.0.0'\n    manifest: a.yaml\n",
    )?;
    let not_yaml = stage.write("not.yaml", "kind: Addons\nspec: [\n")?;

    Ok(vec![
        (
            format!("install picky --channel {} --yes", picky.display()),
            5,
            vec![">=9.0.0"],
        ),
        (
            format!("install x --channel {} --yes", not_yaml.display()),
            1,
            vec!["not.yaml"],
        ),
        (
            "install x --channel /nowhere/index.yaml --yes".to_owned(),
            1,
            vec!["/nowhere/index.yaml"],
        ),
        (
            "install x --channel ftp://example.test/index.yaml --yes".to_owned(),
            1,
            vec!["ftp"],
        ),
        (format!("install good --channel {good}"), 1, vec!["--yes"]),
        (
            format!("install good --channel {good} --yes --kubeconfig /nowhere"),
            1,
            vec!["/nowhere"],
        ),
        (
            format!("install good --channel {good} --yes --server https://127.0.0.1:1"),
            1,
            vec!["127.0.0.1:1"],
        ),
        ("install".to_owned(), 2, vec!["NAME"]),
        ("no-such-verb".to_owned(), 2, vec!["no-such-verb"]),
        (
            format!("uninstall nothing -n {} --yes", stage.namespace),
            1,
            vec!["nothing"],
        ),
    ])
}

/// An index with nothing wrong in it.
fn index_of_good(stage: &Stage) -> Result<String> {
    stage.index(
        "good/index.yaml",
        &[("good", "1.0.0", &config_map("good", "1"))],
    )
}

#[tokio::test]
async fn missing_rights_name_verb_and_resource() -> Result<()> {
    let stage = Stage::new("rights").await?;
    stage.run("init").await?.done()?;
    let index = stage.index("index.yaml", &[("rights", "1.0.0", &config_map("a", "1"))])?;
    let nobody = stage.cluster.user("nobody", &[])?;
    let plugin = Plugin::new(&stage.cluster, &nobody.kubeconfig)?;
    let output = plugin
        .run(&["install", "rights", "--channel", &index, "--yes"])
        .await?
        .ended(1)?;
    ensure!(
        output.stderr.contains("addoninstallations"),
        "{}",
        output.stderr
    );
    ensure!(output.stderr.contains("not allowed"), "{}", output.stderr);
    Ok(())
}
