//! `preflight`: what is installed, judged for a release of Kubernetes that the cluster does not have yet.

mod risks;

use addons_advice::preflight::lifecycle::Lifecycle;
use addons_tests::control_plane::{ControlPlane, Options, definitions};
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// A release that is later than the test cluster's and known to the table; it removes the API below.
const TO: &str = "1.37";
/// An API that release 1.37 removes and the test cluster serves when it is told to.
const SERVED: &str = "--runtime-config=storage.k8s.io/v1beta1=true";

/// One add-on, and what is found of it.
struct Row {
    name: &'static str,
    /// Its versions with their Kubernetes ranges; the first one is installed.
    versions: &'static [(&'static str, &'static str)],
    manifest: &'static str,
    verdict: &'static str,
    /// Of the sentences that the table prints.
    says: &'static str,
    remedy: Option<(&'static str, &'static str)>,
}

const PLAIN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n";
const CLASS: &str = "apiVersion: storage.k8s.io/VERSION\nkind: VolumeAttributesClass\nmetadata: {name: NAME}\n\
                     driverName: example.test\nparameters: {speed: high}\n";

const ROWS: &[Row] = &[
    Row {
        name: "fits",
        versions: &[("1.0.0", ">=1.30.0")],
        manifest: PLAIN,
        verdict: "Fits",
        says: "",
        remedy: None,
    },
    Row {
        name: "early",
        versions: &[("1.0.0", "<1.37.0"), ("1.1.0", ">=1.30.0")],
        manifest: PLAIN,
        verdict: "DoesNotFit",
        says: "kubernetesVersion <1.37.0 does not match 1.37.0",
        remedy: Some(("before", "1.1.0")),
    },
    Row {
        name: "late",
        versions: &[("1.0.0", "<1.37.0"), ("2.0.0", ">=1.37.0")],
        manifest: PLAIN,
        verdict: "DoesNotFit",
        says: "kubernetesVersion <1.37.0 does not match 1.37.0",
        remedy: Some(("after", "2.0.0")),
    },
    Row {
        name: "never",
        versions: &[("1.0.0", "<1.37.0")],
        manifest: PLAIN,
        verdict: "DoesNotFit",
        says: "kubernetesVersion <1.37.0 does not match 1.37.0",
        remedy: None,
    },
    Row {
        name: "removed",
        versions: &[("1.0.0", "")],
        manifest: CLASS,
        verdict: "DoesNotFit",
        says: "storage.k8s.io/v1beta1 VolumeAttributesClass (1 object) was removed in 1.37; use storage.k8s.io/v1 \
               VolumeAttributesClass",
        remedy: None,
    },
    Row {
        name: "written",
        versions: &[("1.0.0", "")],
        manifest: CLASS,
        verdict: "Fits",
        says: "storage.k8s.io/v1beta1 VolumeAttributesClass (1 object, last written so by old-operator) was removed in \
               1.37; use storage.k8s.io/v1 VolumeAttributesClass",
        remedy: None,
    },
];

impl Row {
    fn manifest(&self) -> String {
        let version = if self.name == "written" {
            "v1"
        } else {
            "v1beta1"
        };
        self.manifest
            .replace("NAME", self.name)
            .replace("VERSION", version)
    }

    fn addon(&self, namespace: &str) -> Value {
        let versions = self.versions.iter().map(|(version, range)| {
            json!({"version": version, "constraints": {"kubernetesVersion": range},
                "defaultNamespace": namespace, "source": {"inline": {"manifest": self.manifest()}}})
        });
        json!({"name": self.name, "versions": versions.collect::<Vec<_>>()})
    }

    fn check(&self, found: &Value) -> Result<()> {
        ensure!(found["verdict"] == self.verdict, "{found}");
        let reasons = found["reasons"].as_array().context("no reasons")?;
        let expected: Vec<&str> = Some(self.says)
            .filter(|it| !it.is_empty())
            .into_iter()
            .collect();
        ensure!(*reasons == expected, "{found}");
        let remedy = match self.remedy {
            Some((when, version)) => json!({"when": when, "version": version}),
            None => Value::Null,
        };
        ensure!(found["remedy"] == remedy, "{found}");
        Ok(())
    }
}

/// A user of a cluster that serves the API, with every row installed.
async fn installed() -> Result<Stage> {
    let options = Options {
        apiserver_flags: vec![SERVED.to_owned()],
        api_only: true,
    };
    let cluster = ControlPlane::start(options).await?;
    definitions::install(&cluster).await?;
    let stage = Stage::on(cluster, "preflight").await?;
    let addons = ROWS.iter().map(|row| row.addon(&stage.namespace));
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "preflight"}, "spec": {"addons": addons.collect::<Vec<_>>()},
    });
    stage.write("catalogue.json", &catalogue.to_string())?;
    let file = stage.plugin.home().join("catalogue.json");
    let add = ["catalogue", "add", &file.display().to_string()];
    stage.plugin.run(&add).await?.done()?;
    let names: Vec<_> = ROWS
        .iter()
        .map(|row| format!("{}@1.0.0", row.name))
        .collect();
    let install = format!("install {} --yes", names.join(" "));
    stage.run(&install).await?.done()?;
    // Another manager writes the object of one in the version that will be gone.
    let old = CLASS
        .replace("NAME", "written")
        .replace("VERSION", "v1beta1");
    let apply = [
        "apply",
        "--server-side",
        "--field-manager=old-operator",
        "--force-conflicts",
        "-f",
        "-",
    ];
    stage
        .plugin
        .kubectl_with_input(&apply, &old)
        .await?
        .done()?;
    Ok(stage)
}

#[tokio::test]
async fn what_a_future_release_would_do_is_said_and_nothing_is_written() -> Result<()> {
    let mut tally = Tally::new("preflight");
    let stage = installed().await?;
    let mark = stage.cluster.audit().mark()?;
    let asked = format!("preflight --to {TO} -o json");
    let said = stage.run(&asked).await?.ended(5)?;
    ensure!(stage.requests(mark)?.writes("kubectl-addons") == 0);
    let found: Value = serde_json::from_str(&said.stdout)?;
    let items = found["items"].as_array().context("no items")?;
    ensure!(items.len() == ROWS.len(), "{found}");
    for row in ROWS {
        let item = items.iter().find(|item| item["name"] == row.name);
        row.check(item.context(row.name)?).context(row.name)?;
        tally.ran();
    }
    order(&found)?;
    table(&stage).await?;
    pages(&stage).await?;
    tally.ran();
    remedy(&stage).await?;
    tally.ran();
    unknown(&stage).await?;
    tally.ran();
    wrong(&stage).await?;
    tally.ran();
    risks::dropped(&stage).await?;
    tally.ran();
    risks::stored(&stage).await?;
    tally.ran();
    risks::found(&stage).await?;
    tally.ran();
    Ok(())
}

/// What is upgraded before the cluster and after it, with the commands, and what no version helps.
fn order(found: &Value) -> Result<()> {
    let steps = found["order"].as_array().context("no order")?;
    let steps: Vec<_> = steps
        .iter()
        .map(|step| (&step["when"], &step["name"]))
        .collect();
    let expected = json!([["before", "early"], ["cluster", null], ["after", "late"]]);
    ensure!(json!(steps) == expected, "{found}");
    let command = found["order"][0]["command"]
        .as_str()
        .context("no command")?;
    ensure!(
        command.starts_with("kubectl addons upgrade early@1.1.0 -n "),
        "{command}"
    );
    ensure!(found["order"][1]["version"] == "1.37.0", "{found}");
    let blocked = found["blocked"].as_array().context("no blocked")?;
    let blocked: Vec<_> = blocked.iter().map(|one| &one["name"]).collect();
    ensure!(json!(blocked) == json!(["never", "removed"]), "{found}");
    Ok(())
}

/// For people: the verdict, each reason, and the command.
async fn table(stage: &Stage) -> Result<()> {
    let said = stage
        .run(&format!("preflight early removed --to {TO}"))
        .await?;
    let namespace = &stage.namespace;
    let typed = format!(" --system-namespace={namespace}");
    let said = said.ended(5)?.stdout.replace(&typed, "");
    for text in [
        "does not fit",
        ROWS[4].says,
        &format!("before the cluster's upgrade: kubectl addons upgrade early@1.1.0 -n {namespace}"),
        &format!(
            "1. before Kubernetes: kubectl addons upgrade early@1.1.0 -n {namespace}\n2. upgrade Kubernetes to 1.37.0"
        ),
        &format!("blocked: removed (namespace {namespace}): no version of it fits"),
    ] {
        ensure!(said.contains(text), "{text:?} is missing in\n{said}");
    }
    Ok(())
}

/// To hand it on: the same verdicts, reasons and commands.
async fn pages(stage: &Stage) -> Result<()> {
    for (format, head, verdict) in [
        (
            "markdown",
            "## Preflight for Kubernetes",
            "| does not fit | early |",
        ),
        (
            "html",
            "<h1>Preflight for Kubernetes",
            "<td>does not fit</td><td>early</td>",
        ),
    ] {
        let line = format!("preflight early removed --to {TO} -o {format}");
        let page = stage.run(&line).await?.ended(5)?.stdout;
        for text in [head, verdict, "kubectl addons upgrade early@1.1.0"] {
            ensure!(page.contains(text), "{text:?} is missing in\n{page}");
        }
    }
    Ok(())
}

/// The command that it names mends it.
async fn remedy(stage: &Stage) -> Result<()> {
    let upgrade = format!("upgrade early@1.1.0 -n {} --yes", stage.namespace);
    stage.run(&upgrade).await?.done()?;
    stage
        .run(&format!("preflight early fits --to {TO}"))
        .await?
        .done()?;
    Ok(())
}

/// Of a release that the table does not know, nothing that Kubernetes serves is said to fit.
async fn unknown(stage: &Stage) -> Result<()> {
    let said = stage
        .run("preflight fits --to 1.99 -o json")
        .await?
        .ended(5)?;
    let found: Value = serde_json::from_str(&said.stdout)?;
    ensure!(found["items"][0]["verdict"] == "Unknown", "{found}");
    let newest = Lifecycle::default().newest().to_string();
    ensure!(said.stderr.contains(&newest), "{}", said.stderr);
    Ok(())
}

/// Mistakes are named.
async fn wrong(stage: &Stage) -> Result<()> {
    for (line, text) in [
        ("preflight --to banana", "--to: \"banana\" is not"),
        ("preflight --to 1,37", "--to: \"1,37\" is not"),
        (
            "preflight --to 1.37 -n none",
            "namespace none does not exist",
        ),
    ] {
        let said = stage.run(line).await?.ended(2)?;
        ensure!(said.stderr.contains(text), "{}", said.stderr);
    }
    for (line, text) in [("preflight nothing --to 1.37", "nothing")] {
        let said = stage.run(line).await?;
        ensure!(
            said.code != 0 && said.code != 5,
            "{}: {}",
            said.code,
            said.stderr
        );
        ensure!(said.stderr.contains(text), "{}", said.stderr);
    }
    Ok(())
}
