//! Hooks of a chart that our engine applies: what runs, what runs again, what stays.

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::servers::charts::{Charts, Options};
use addons_tests::stage::Stage;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

const CHANGED: &str = "pre-install,pre-upgrade";

/// A Job with hooks, and a label that changes with the chart.
fn job(name: &str, hooks: &str, more: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  labels: {{chart: '{{{{ .Chart.Version }}}}'}}\n  \
         annotations: {{helm.sh/hook: '{hooks}'{more}}}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      \
         containers: [{{name: main, image: 'example.test/job:1'}}]\n"
    )
}

fn secret() -> String {
    "apiVersion: v1\nkind: Secret\nmetadata: {name: made-once, annotations: {helm.sh/hook: pre-install}}\n\
     stringData: {password: {{ randAlphaNum 20 }}}\n"
        .to_owned()
}

/// The uid of an object, where it is there.
async fn uid(stage: &Stage, kind: &str, name: &str) -> Result<Option<String>> {
    let object = stage.get(kind, name).await?;
    let uid = |object: Value| object["metadata"]["uid"].as_str().map(str::to_owned);
    Ok(object.and_then(uid))
}

#[tokio::test]
async fn hooks_run_when_they_are_due() -> Result<()> {
    let stage = Stage::new("hooks").await?;
    let shelf = Shelf::new()?;
    put_charts(&shelf)?;
    shelf.index(None)?;
    let charts = Charts::serve(shelf.path(), &Options::default())?;
    let entry = |version: &str| {
        format!(
            "    - version: {version}\n      template: {{method: helm}}\n      source: {{helm: {{url: '{}', chart: hooks, version: {version}}}}}\n",
            charts.url()
        )
    };
    let catalogue = format!(
        "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonCatalogue\nmetadata: {{name: hooks}}\nspec:\n  addons:\n  - name: {}\n    versions:\n{}{}",
        stage.namespace,
        entry("1.0.0"),
        entry("2.0.0")
    );
    let file = stage.write("catalogue.yaml", &catalogue)?;
    let helm = binaries::helm()?;
    let (file, helm) = (file.display(), helm.display());
    let name = stage.namespace.as_str();
    let flags = format!("--helm-bin {helm} --yes --timeout 120s");
    let line = format!("install {name}@1.0.0 --channel {file} --target-namespace {name} {flags}");
    let installed = stage.run(&line).await?.done()?;
    let said = &installed.stderr;
    ensure!(
        said.contains("Job leaving is left out: it is a hook of pre-delete"),
        "{said}"
    );
    let first = uid(&stage, "job", "migrate")
        .await?
        .context("no Job migrate")?;
    let password = uid(&stage, "secret", "made-once").await?;
    ensure!(
        password.is_some() && uid(&stage, "job", "once").await?.is_some(),
        "{said}"
    );
    let ends = stage.get("job", "goes").await?.context("no Job goes")?;
    ensure!(ends["spec"]["ttlSecondsAfterFinished"] == 600, "{ends}");
    for absent in ["leaving", "tested", "later"] {
        ensure!(uid(&stage, "job", absent).await?.is_none(), "{absent}");
    }
    // As if its ten minutes were over.
    stage
        .plugin
        .kubectl(&["delete", "job", "goes", "-n", name])
        .await?
        .done()?;
    let line = format!("upgrade {name}@1.0.0 --repair {flags}");
    nothing_runs_again(&stage, &line, &first, &password).await?;
    // Another one: whatever changed in a Job, a label is enough, it runs again.
    let line = format!("upgrade {name} {flags}");
    let upgraded = stage.run(&line).await?;
    ensure!(upgraded.code == 0, "{upgraded:?}");
    let second = uid(&stage, "job", "migrate")
        .await?
        .context("no Job migrate")?;
    ensure!(second != first, "it did not run again: {upgraded:?}");
    ensure!(
        uid(&stage, "job", "goes").await?.is_some(),
        "it was not made again"
    );
    ensure!(
        uid(&stage, "job", "later").await?.is_some() && uid(&stage, "job", "once").await?.is_none(),
        "it is an upgrade"
    );
    ensure!(
        uid(&stage, "secret", "made-once").await? == password,
        "the Secret is lost"
    );
    let line = format!("uninstall {name} {flags}");
    let gone = stage.run(&line).await?;
    ensure!(gone.code == 0, "{gone:?}");
    ensure!(uid(&stage, "job", "migrate").await?.is_none());
    ensure!(
        uid(&stage, "secret", "made-once").await? == password,
        "helm leaves it, too"
    );
    Ok(())
}

/// The same chart: nothing of it runs, and what has run stays; a repair is neither an installation nor an upgrade.
async fn nothing_runs_again(
    stage: &Stage,
    line: &str,
    first: &str,
    password: &Option<String>,
) -> Result<()> {
    let repaired = stage.run(line).await?;
    ensure!(repaired.code == 0, "{repaired:?}");
    ensure!(
        uid(stage, "job", "migrate").await?.as_deref() == Some(first),
        "it ran again"
    );
    ensure!(
        uid(stage, "job", "goes").await?.is_none(),
        "it was made again"
    );
    ensure!(
        uid(stage, "job", "later").await?.is_none(),
        "it is for upgrades"
    );
    ensure!(
        uid(stage, "job", "once").await?.is_some(),
        "what has run is pruned"
    );
    ensure!(
        uid(stage, "secret", "made-once").await? == *password,
        "the Secret is lost"
    );
    Ok(())
}

/// The chart `hooks` in two versions, with a hook for each occasion.
fn put_charts(shelf: &Shelf) -> Result<()> {
    let (migrate, once) = (job("migrate", CHANGED, ""), job("once", "post-install", ""));
    let goes = job(
        "goes",
        "post-install,post-upgrade",
        ", helm.sh/hook-delete-policy: hook-succeeded",
    );
    let (leaving, tested) = (job("leaving", "pre-delete", ""), job("tested", "test", ""));
    let (later, secret) = (job("later", "pre-upgrade", ""), secret());
    let files = [
        ("templates/migrate.yaml", migrate.as_str()),
        ("templates/once.yaml", &once),
        ("templates/goes.yaml", &goes),
        ("templates/leaving.yaml", &leaving),
        ("templates/tested.yaml", &tested),
        ("templates/later.yaml", &later),
        ("templates/secret.yaml", &secret),
        (
            "templates/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n",
        ),
    ];
    for version in ["1.0.0", "2.0.0"] {
        shelf.chart("hooks", version, &files)?;
    }
    Ok(())
}
