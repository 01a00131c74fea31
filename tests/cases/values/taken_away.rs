//! `--unset` and `--reset-values`: what the layers below say counts again, and a path without a value changes nothing.

use addons_tests::plugin::Output;
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// A template that shows its values.
const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {values: {{ .Variables | toJson | quote }}}\n";

#[tokio::test]
async fn values_that_are_taken_away_come_from_the_layers_below() -> Result<()> {
    let mut tally = Tally::new("values::taken_away");
    let stage = Stage::new("taken-away").await?;
    stage.run("init").await?.done()?;
    let shop = Shop::new(stage).await?;
    let name = shop.stage.namespace.as_str();
    let install = [
        "install",
        name,
        "--yes",
        "--set=replicas=3,gone=null",
        "--set=web.host=h",
        "--set=list={a,b,c}",
    ];
    shop.stage.plugin.run(&install).await?.done()?;
    let set =
        json!({"level": "catalogue", "list": ["a", "b", "c"], "replicas": 3, "web": {"host": "h"}});
    shop.shows(&set).await?;

    // What would change is shown, and nothing changes.
    let said = shop.run("diff", "--unset=replicas").await?.ended(1)?;
    ensure!(said.stdout.contains("data.values"), "{}", said.stdout);
    let said = shop.run("plan", "--reset-values").await?.done()?;
    ensure!(said.stdout.contains("update"), "{}", said.stdout);
    shop.shows(&set).await?;
    tally.ran();

    // A default of the form, one of the catalogue, a map that was there for its value only, and items of a list.
    let said = shop
        .upgrade(&[
            "--unset=replicas,gone",
            "--unset=web.host",
            "--unset=list[0],list[2]",
        ])
        .await?;
    ensure!(!said.stderr.contains("warning"), "{}", said.stderr);
    let unset = json!({"gone": 1, "level": "catalogue", "list": ["b"], "replicas": 1});
    shop.shows(&unset).await?;
    let record = shop.stage.record(name).await?;
    ensure!(record["spec"]["values"] == unset, "{record}");
    tally.ran();

    shop.nothing_is_unset().await?;
    shop.shows(&unset).await?;
    tally.ran();

    let said = shop.upgrade(&["--set=level=mine,replicas=2"]).await?;
    ensure!(!said.stderr.contains("warning"), "{}", said.stderr);
    shop.upgrade(&["--reset-values", "--set=replicas=5"])
        .await?;
    let reset = json!({"gone": 1, "level": "catalogue", "replicas": 5});
    shop.shows(&reset).await?;
    let explained = shop.run("values", "--explain").await?.done()?;
    ensure!(
        explained.stdout.matches("spec.values").count() == 1,
        "{}",
        explained.stdout
    );
    tally.ran();
    Ok(())
}

/// An add-on of a catalogue, called like the namespace.
struct Shop {
    stage: Stage,
}

impl Shop {
    async fn new(stage: Stage) -> Result<Self> {
        let name = &stage.namespace;
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1",
            "kind": "AddonCatalogue",
            "metadata": {"name": "shop"},
            "spec": {"addons": [{"name": name, "versions": [{
                "version": "1.0.0",
                "defaultNamespace": name,
                "values": {"level": "catalogue", "gone": 1},
                "template": {"method": "go-template", "formSpec": [
                    {"internalName": "replicas", "type": "number", "default": 1},
                ]},
                "source": {"inline": {"manifest": MANIFEST}},
            }]}]},
        });
        let file = stage.write("catalogue.json", &catalogue.to_string())?;
        let add = ["catalogue", "add", &file.to_string_lossy()];
        stage.plugin.run(&add).await?.done()?;
        Ok(Self { stage })
    }

    async fn run(&self, verb: &str, flag: &str) -> Result<Output> {
        let args = [verb, &self.stage.namespace, flag];
        self.stage.plugin.run(&args).await
    }

    async fn upgrade(&self, flags: &[&str]) -> Result<Output> {
        let args = ["upgrade", &self.stage.namespace, "--yes"];
        let said = self.stage.plugin.run(&[&args, flags].concat()).await?;
        said.done()
    }

    /// The values that the template saw.
    async fn shows(&self, values: &Value) -> Result<()> {
        let map = self.stage.get("configmap", "web").await?;
        let map = map.context("no ConfigMap")?;
        let text = map["data"]["values"].as_str().unwrap_or_default();
        let seen: Value = serde_json::from_str(text)?;
        ensure!(seen == *values, "{seen} instead of {values}");
        Ok(())
    }

    /// A path that is not set is named, and the record stays as it is.
    async fn nothing_is_unset(&self) -> Result<()> {
        let before = self.stage.record(&self.stage.namespace).await?;
        let said = self.upgrade(&["--unset=relpicas"]).await?;
        for words in [
            "spec.values.relpicas is not set, so there is nothing to unset",
            "nothing to do",
        ] {
            ensure!(said.stderr.contains(words), "{words}\n{}", said.stderr);
        }
        let after = self.stage.record(&self.stage.namespace).await?;
        let version = |record: &Value| record["metadata"]["resourceVersion"].clone();
        ensure!(version(&before) == version(&after), "{after}");
        Ok(())
    }
}
