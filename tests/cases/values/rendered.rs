//! One key in every store, with the real program and both methods: each store wins over those before it (semantics 9), and
//! what is in a Secret is told by nobody.

use std::process::Command;

use addons_tests::control_plane::binaries;
use addons_tests::plugin::Output;
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// What the Secret says, first and later.
const SECRETS: [&str; 2] = ["hunter2-first", "hunter2-later"];

/// What the package says of itself.
const DEFAULTS: &str = "# Of the package.\nname: web\nspec: {key: package}\n";
const README: &str = "# web\n\nServes.\n";

#[tokio::test]
async fn go_templates_take_the_key_from_every_store() -> Result<()> {
    let stage = Stage::new("every-template").await?;
    every_store(stage, "go-template").await
}

#[tokio::test]
async fn charts_take_the_key_from_every_store() -> Result<()> {
    let mut stage = Stage::new("every-chart").await?;
    let helm = binaries::helm()?.to_string_lossy().into_owned();
    stage.plugin = stage.plugin.variable("KUBECTL_ADDONS_HELM", &helm);
    every_store(stage, "helm").await
}

async fn every_store(stage: Stage, method: &'static str) -> Result<()> {
    let mut tally = Tally::new("values::rendered");
    stage.run("init").await?.done()?;
    let shop = Shop::new(stage, method)?;
    let name = shop.stage.namespace.clone();
    let file = shop.stage.write("values.yaml", "spec: {key: file}\n")?;
    let file = file.to_string_lossy().into_owned();
    let upgrade = ["upgrade", &name, "--yes"];

    shop.catalogue(Value::Null, json!({}))?;
    let said = shop
        .run(&["install", &name, "--channel", &shop.index(), "--yes"])
        .await?;
    shop.shows("package", "package", said).await?;
    tally.ran();
    documents(&shop).await?;
    tally.ran();

    shop.catalogue(json!({"spec": {"key": "catalogue"}}), json!({}))?;
    let said = shop.run(&upgrade).await?;
    shop.shows("catalogue", "catalogue", said).await?;
    tally.ran();

    shop.catalogue(
        json!({"spec": {"key": "catalogue"}}),
        json!({"default": "form"}),
    )?;
    let said = shop.run(&upgrade).await?;
    shop.shows("form", "form", said).await?;
    tally.ran();

    secrets(&shop, &mut tally).await?;

    let said = shop.run(&["upgrade", &name, "--yes", "-f", &file]).await?;
    shop.shows("file", "spec", said).await?;
    tally.ran();
    let said = shop
        .run(&[
            "upgrade",
            &name,
            "--yes",
            "-f",
            &file,
            "--set",
            "spec.key=flag",
        ])
        .await?;
    shop.shows("flag", "spec", said).await?;
    tally.ran();

    let none = [&upgrade[..], &["--values-from", ""]].concat();
    shop.run(&none).await?.done()?;
    let record = shop.stage.must("addoninstallation", &name).await?;
    ensure!(record["spec"]["valuesFrom"] == json!([]), "{record:#}");
    tally.ran();

    asked(&shop).await?;
    tally.ran();
    Ok(())
}

/// What a Secret holds is told neither before nor after; its change alone is due.
async fn secrets(shop: &Shop, tally: &mut Tally) -> Result<()> {
    let name = &shop.stage.namespace;
    let upgrade = ["upgrade", name, "--yes"];
    let secret = format!("{name}-values");
    let literal = |text: &str| format!("spec: {{key: {text}}}");
    let reference = format!("secret/{secret}:values");
    for (round, text) in SECRETS.into_iter().enumerate() {
        let mut flags = Vec::new();
        if round == 0 {
            let values = format!("--from-literal=values={}", literal(text));
            let create = ["create", "secret", "generic", &secret, "-n", name, &values];
            shop.stage.plugin.kubectl(&create).await?.done()?;
            flags.extend(["--values-from", &reference]);
        } else {
            shop.patch(
                "secret",
                &secret,
                &json!({"stringData": {"values": literal(text)}}),
            )
            .await?;
        }
        let said = shop.run(&[&["diff", name], &flags[..]].concat()).await?;
        ensure!(said.code == 1, "{}{}", said.stdout, said.stderr);
        shop.keeps_the_secret(&said)?;
        let said = shop.run(&[&upgrade, &flags[..]].concat()).await?;
        shop.shows(text, "valuesFrom", said).await?;
        let again = shop.run(&upgrade).await?.done()?;
        ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);
        tally.ran();
    }
    Ok(())
}

/// The package's own values and its README, as they are written.
async fn documents(shop: &Shop) -> Result<()> {
    let index = shop.index();
    let show = ["show", &shop.stage.namespace, "--channel", &index];
    for (flags, expected) in [
        (&["--values"][..], DEFAULTS),
        (&["--values", "-o", "yaml"], DEFAULTS),
        (&["--values", "-o", "jsonpath={.spec.key}"], "package"),
        (&["--readme"], README),
    ] {
        let said = shop.run(&[&show, flags].concat()).await?.done()?;
        ensure!(
            said.stdout == expected && said.stderr.is_empty(),
            "{flags:?}\n{}{}",
            said.stdout,
            said.stderr
        );
    }
    Ok(())
}

/// Only the package has a value, and the form wants it from the user: the answer replaces the package's.
async fn asked(shop: &Shop) -> Result<()> {
    shop.catalogue(Value::Null, json!({"required": true}))?;
    let index = shop.index();
    let install = [
        "install",
        &shop.stage.namespace,
        "--name",
        "asked",
        "--channel",
        &index,
        "--set",
        "name=asked",
    ];
    let said = shop
        .stage
        .plugin
        .run_on_terminal(&install, "typed\ny\n")
        .await?;
    said.done()?;
    let map = shop
        .stage
        .get("configmap", "asked")
        .await?
        .context("no ConfigMap")?;
    ensure!(map["data"]["key"] == "typed", "{map}");
    Ok(())
}

/// A repository with a package, and a catalogue that names it; the add-on is called like the namespace.
struct Shop {
    stage: Stage,
    method: &'static str,
}

impl Shop {
    fn new(stage: Stage, method: &'static str) -> Result<Self> {
        let (values, folder) = match method {
            "helm" => (".Values", "repository/web/templates"),
            _ => (".Variables", "repository/web"),
        };
        if method == "helm" {
            let chart = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
            stage.write("repository/web/Chart.yaml", chart)?;
        }
        stage.write("repository/web/values.yaml", DEFAULTS)?;
        stage.write("repository/web/README.md", README)?;
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{{{ {values}.name }}}}\ndata:\n  key: {{{{ {values}.spec.key }}}}\n"
        );
        stage.write(&format!("{folder}/map.yaml"), &map)?;
        let repository = stage.plugin.home().join("repository");
        let commit = ["commit", "--quiet", "-m", "web"];
        let identity = ["-c", "user.name=web", "-c", "user.email=web@example.test"];
        let commit: Vec<&str> = identity.into_iter().chain(commit).collect();
        for args in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["add", "."],
            &commit,
        ] {
            let output = Command::new("git")
                .args(args)
                .current_dir(&repository)
                .output()?;
            ensure!(
                output.status.success(),
                "git {args:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(Self { stage, method })
    }

    fn index(&self) -> String {
        self.stage
            .plugin
            .home()
            .join("catalogue.json")
            .to_string_lossy()
            .into_owned()
    }

    /// Writes the catalogue with these values, and with these further fields of the form's only field.
    fn catalogue(&self, values: Value, more: Value) -> Result<()> {
        let name = &self.stage.namespace;
        let remote = self.stage.plugin.home().join("repository");
        let mut field = json!({"internalName": "spec.key"});
        for (key, value) in more.as_object().into_iter().flatten() {
            field[key] = value.clone();
        }
        let mut version = json!({
            "version": "1.0.0",
            "defaultNamespace": name,
            "template": {"method": self.method, "formSpec": [field]},
            "source": {"git": {"remote": format!("file://{}", remote.display()), "ref": {"branch": "main"}, "path": "web"}},
        });
        if !values.is_null() {
            version["values"] = values;
        }
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1",
            "kind": "AddonCatalogue",
            "metadata": {"name": "shop"},
            "spec": {"addons": [{"name": name, "versions": [version]}]},
        });
        self.stage.write("catalogue.json", &catalogue.to_string())?;
        Ok(())
    }

    async fn run(&self, args: &[&str]) -> Result<Output> {
        self.stage.plugin.run(args).await
    }

    async fn patch(&self, kind: &str, name: &str, patch: &Value) -> Result<()> {
        let patch = patch.to_string();
        let namespace = &self.stage.namespace;
        let args = [
            "patch",
            kind,
            name,
            "-n",
            namespace,
            "--type=merge",
            "-p",
            &patch,
        ];
        self.stage.plugin.kubectl(&args).await?.done()?;
        Ok(())
    }

    /// The ConfigMap holds `text`, `values --explain` names `layer`, and nobody tells what is in the Secret.
    async fn shows(&self, text: &str, layer: &str, said: Output) -> Result<()> {
        let said = said.done()?;
        self.keeps_the_secret(&said)?;
        let map = self
            .stage
            .get("configmap", "web")
            .await?
            .context("no ConfigMap")?;
        ensure!(map["data"]["key"] == text, "{text}: {map}");
        let name = self.stage.namespace.as_str();
        let explained = self
            .run(&["values", name, "--explain", "-o", "json"])
            .await?
            .done()?;
        let items: Value = serde_json::from_str(&explained.stdout)?;
        let items = items["items"].as_array().context("no items")?;
        let leaf = items.iter().find(|leaf| leaf["path"] == "spec.key");
        let leaf = leaf.context("the key is not explained")?;
        ensure!(leaf["layer"] == layer, "{leaf}");
        self.keeps_the_secret(&explained)?;
        for args in [
            &["values", name][..],
            &["values", name, "--explain"],
            &["values", name, "-o", "json"],
        ] {
            let shown = self.run(args).await?.done()?;
            self.keeps_the_secret(&shown)?;
            let told = if SECRETS.contains(&text) {
                shown
                    .stdout
                    .contains(&format!("(from Secret {name}/{name}-values, key values)"))
            } else {
                shown.stdout.contains(text)
            };
            ensure!(told, "{args:?}\n{}", shown.stdout);
        }
        let record = self.stage.record(name).await?.to_string();
        ensure!(!record.contains("hunter2"), "{record}");
        Ok(())
    }

    fn keeps_the_secret(&self, said: &Output) -> Result<()> {
        let is_kept = !said.stdout.contains("hunter2") && !said.stderr.contains("hunter2");
        ensure!(is_kept, "{}{}", said.stdout, said.stderr);
        Ok(())
    }
}
