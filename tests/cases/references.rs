//! Charts and manifests by reference: installed, upgraded, kept and uninstalled without a catalogue, with the content that was named; and
//! add-ons that are installed with what they require.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use addons_tests::control_plane::binaries;
use addons_tests::page::blocks;
use addons_tests::plugin::Output;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::servers::charts::{self, Charts};
use addons_tests::servers::http::{Answer, Server};
use addons_tests::servers::registry::{Door, Layer, Registry, digest};
use addons_tests::stage::{Stage, config_map, sha256};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const CHART_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const PAGE: &str = include_str!("../../kubectl-addons/docs/install-from-a-reference.md");

/// A user, and the servers that hold what they install.
struct World {
    stage: Stage,
    registry: Registry,
    shelf: Shelf,
    charts: Charts,
    web: Server,
    /// Whether the file `moved.yaml` was replaced.
    is_moved: Arc<AtomicBool>,
}

impl World {
    /// Charts `shop` 1.2.3 and 1.3.0 in the registry, `till` 2.0.0 and 2.1.0 in the repository, and a manifest.
    async fn new(what: &str) -> Result<Self> {
        let stage = Stage::new(what).await?;
        let registry = Registry::start(Door::Open).await?;
        let shelf = Shelf::new()?;
        for version in ["2.0.0", "2.1.0"] {
            let map = config_map("till", "{{ .Chart.Version }}");
            shelf.chart("till", version, &[("templates/c.yaml", &map)])?;
        }
        shelf.index(None)?;
        let charts = Charts::serve(shelf.path(), &charts::Options::default())?;
        let manifest = config_map("agent", "1");
        let is_moved = Arc::new(AtomicBool::new(false));
        let moved = Arc::clone(&is_moved);
        let web = Server::start(None, move |request| match request.uri.as_str() {
            "/releases/v1.4.0/install.yaml" => Answer::ok(manifest.clone()),
            "/moved.yaml" if moved.load(Ordering::Relaxed) => Answer::ok(config_map("moved", "2")),
            "/moved.yaml" => Answer::ok(config_map("moved", "1")),
            "/catalogue.yaml" => Answer::ok(
                "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonCatalogue\nmetadata: {name: a}\nspec: {addons: []}\n",
            ),
            _ => Answer::status(404),
        })?;
        let world = Self {
            stage,
            registry,
            shelf,
            charts,
            web,
            is_moved,
        };
        for version in ["1.2.3", "1.3.0"] {
            world.push("1.0", version, version).await?;
        }
        Ok(world)
    }

    /// Pushes chart `shop` in a version under a tag; returns its digest. `value` distinguishes contents.
    async fn push(&self, value: &str, version: &str, tag: &str) -> Result<String> {
        let map = config_map("shop", &format!("{{{{ .Chart.Version }}}}-{value}"));
        let packed = self
            .shelf
            .chart("shop", version, &[("templates/c.yaml", &map)])?;
        let layer = Layer {
            media_type: CHART,
            bytes: fs::read(packed)?,
            title: None,
        };
        self.registry
            .push("charts/shop", tag, CHART_CONFIG, &[layer])
            .await?;
        let manifest = self.registry.manifest("charts/shop", tag).await?;
        Ok(digest(&manifest.context("no manifest")?))
    }

    fn shop(&self, version: &str) -> String {
        format!("oci://{}/charts/shop:{version}", self.registry.host)
    }

    /// Runs a command that may render charts.
    async fn run(&self, line: &str) -> Result<Output> {
        let helm = binaries::helm()?;
        self.stage
            .run(&format!("{line} --helm-bin {}", helm.display()))
            .await
    }

    async fn install(&self, reference: &str) -> Result<Output> {
        let namespace = &self.stage.namespace;
        self.run(&format!(
            "install {reference} --target-namespace {namespace} --yes"
        ))
        .await
    }

    async fn value(&self, name: &str) -> Result<String> {
        let object = self.stage.must("configmap", name).await?;
        Ok(object["data"]["key"]
            .as_str()
            .unwrap_or_default()
            .to_owned())
    }

    async fn from(&self, name: &str) -> Result<Value> {
        let record = self.stage.record(name).await?;
        Ok(record["spec"]["addonRef"]["from"].clone())
    }
}

#[tokio::test]
async fn a_chart_of_a_registry_is_kept_at_its_digest() -> Result<()> {
    let world = World::new("reference-oci").await?;
    let stage = &world.stage;
    let before = world.push("a", "1.2.3", "1.2.3").await?;
    let said = world.install(&world.shop("1.2.3")).await?.done()?;
    ensure!(
        said.stderr.contains("from") && said.stderr.contains(&before),
        "{}",
        said.stderr
    );
    let from = world.from("shop").await?;
    ensure!(
        from["helm"]["digest"] == before.as_str()
            && from["helm"]["version"] == "1.2.3"
            && from["version"] == "1.2.3"
            && from["manifestHash"]
                .as_str()
                .is_some_and(|hash| hash.len() == 64),
        "{from}"
    );
    ensure!(world.value("shop").await? == "1.2.3-a");
    let listed = stage.run("list -o wide").await?.done()?;
    ensure!(
        listed.stdout.contains(&world.shop("1.2.3")),
        "{}",
        listed.stdout
    );

    // The tag moves: what is recorded stays, also for the loop, which has not read it before.
    let now = world.push("b", "1.2.3", "1.2.3").await?;
    ensure!(now != before);
    stage.delete("configmap", "shop").await?;
    stage
        .patch(
            "addoninstallation",
            "shop",
            &json!({"spec": {"reconcile": "Ensure"}}),
        )
        .await?;
    let cache = stage.plugin.home().join("of-the-loop");
    world
        .run(&format!("reconcile shop --cache-dir {}", cache.display()))
        .await?
        .done()?;
    ensure!(world.value("shop").await? == "1.2.3-a");
    let again = world.run("upgrade shop --yes").await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);

    // Who names the tag again sees that it moved.
    let to = format!("upgrade shop --to {} --yes", world.shop("1.2.3"));
    let said = world.run(&to).await?.done()?;
    ensure!(
        said.stderr.contains("has other content than recorded") && said.stderr.contains(&now),
        "{}",
        said.stderr
    );
    ensure!(world.value("shop").await? == "1.2.3-b");

    world
        .run(&format!("upgrade shop --to {} --yes", world.shop("1.3.0")))
        .await?
        .done()?;
    ensure!(world.value("shop").await? == "1.3.0-1.0");
    let lower = world
        .run(&format!("upgrade shop --to {} --yes", world.shop("1.2.3")))
        .await?;
    ensure!(
        lower.code != 0 && lower.stderr.contains("--allow-downgrade"),
        "{}",
        lower.stderr
    );
    world.run("rollback shop --yes").await?.done()?;
    ensure!(world.value("shop").await? == "1.2.3-b");

    stage.run("uninstall shop --yes").await?.done()?;
    ensure!(
        !stage.has("configmap", "shop").await? && !stage.has("addoninstallation", "shop").await?
    );
    Ok(())
}

#[tokio::test]
async fn manifests_and_charts_of_repositories_are_recorded_by_their_hash() -> Result<()> {
    let world = World::new("reference-url").await?;
    let stage = &world.stage;
    let manifest = world.web.url("/releases/v1.4.0/install.yaml");
    world
        .install(&format!("{manifest} --name agent"))
        .await?
        .done()?;
    let from = world.from("agent").await?;
    ensure!(
        from["url"]["manifest"] == manifest.as_str()
            && from["version"] == "v1.4.0"
            && from["manifestHash"] == sha256(config_map("agent", "1").trim()).as_str(),
        "{from}"
    );
    world
        .install(&format!(
            "till --repo {} --version 2.0.0",
            world.charts.url()
        ))
        .await?
        .done()?;
    ensure!(world.value("till").await? == "2.0.0");
    let to = format!("upgrade till --to till --repo {} --yes", world.charts.url());
    world.run(&to).await?.done()?;
    ensure!(world.value("till").await? == "2.1.0");

    // A file that was replaced is not what was named.
    world
        .install(&format!("{} --name moved", world.web.url("/moved.yaml")))
        .await?
        .done()?;
    world.is_moved.store(true, Ordering::Relaxed);
    stage.delete("configmap", "moved").await?;
    let cache = stage.plugin.home().join("empty");
    let repair = format!(
        "upgrade moved --repair --yes --cache-dir {}",
        cache.display()
    );
    let said = world.run(&repair).await?;
    ensure!(
        said.code != 0 && said.stderr.contains("manifestHash"),
        "{}",
        said.stderr
    );

    for name in ["agent", "till", "moved"] {
        stage
            .run(&format!("uninstall {name} --yes"))
            .await?
            .done()?;
        ensure!(!stage.has("addoninstallation", name).await?);
        ensure!(!stage.has("configmap", name).await?, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn a_reference_is_no_way_around_the_rules() -> Result<()> {
    let world = World::new("reference-rules").await?;
    let stage = &world.stage;
    let shop = world.shop("1.2.3");
    for (line, code, words) in [
        (
            format!("{shop} web"),
            2,
            "cannot be combined with other names",
        ),
        (
            format!("{shop} --catalogue a"),
            2,
            "cannot be combined with other names, --channel or --catalogue",
        ),
        (
            "http://example.test/a.yaml".to_owned(),
            2,
            "kubectl addons install https://example.test/a.yaml",
        ),
        (
            shop.replace(":1.2.3", "@1.2.3"),
            2,
            "kubectl addons install oci://",
        ),
        (
            "web --version 1.0.0".to_owned(),
            2,
            "kubectl addons install web@1.0.0",
        ),
        (world.web.url("/catalogue.yaml"), 1, "--channel"),
        (world.shop("9.9.9"), 1, "9.9.9"),
    ] {
        let said = world.install(&line).await?;
        ensure!(
            said.code == code && said.stderr.contains(words),
            "{line}: {} {}",
            said.code,
            said.stderr
        );
    }
    let namespace = &stage.namespace;
    let policy = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonPolicy", "metadata": {"name": namespace},
        "spec": {
            "action": "Enforce",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "allowed": {"sourceHosts": ["registry.example.com"]},
        },
    });
    stage.run("init").await?.done()?;
    stage.apply(&policy.to_string()).await?;
    let said = world.install(&shop).await?;
    ensure!(
        said.code == 6 && said.stderr.contains("sourceHosts"),
        "{} {}",
        said.code,
        said.stderr
    );
    stage.delete("addonpolicy", namespace).await?;

    // What a catalogue lists is installed from there.
    let version =
        json!({"version": "1.2.3", "source": {"inline": {"manifest": config_map("shop", "1")}}});
    let file = stage.catalogue("shop", &version)?;
    stage
        .run(&format!("catalogue add {}", file.display()))
        .await?
        .done()?;
    let said = world.install(&shop).await?;
    ensure!(
        said.code != 0 && said.stderr.contains("is already in catalogue shop"),
        "{}",
        said.stderr
    );
    ensure!(!stage.has("addoninstallation", "shop").await?);
    // Another version is not a duplicate.
    world.install(&world.shop("1.3.0")).await?.done()?;
    Ok(())
}

#[tokio::test]
async fn what_is_required_is_installed_on_demand() -> Result<()> {
    let stage = Stage::new("reference-required").await?;
    let add = async |name: &str, versions: &[&str], requires: Value| {
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| {
                json!({
                    "version": version, "defaultNamespace": stage.namespace, "requires": requires,
                    "source": {"inline": {"manifest": config_map(name, version)}},
                })
            })
            .collect();
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": name},
            "spec": {"addons": [{"name": name, "versions": versions}]},
        });
        let file = stage.write(&format!("{name}.json"), &catalogue.to_string())?;
        stage
            .run(&format!("catalogue add {}", file.display()))
            .await?
            .done()
    };
    add("ref-base", &["1.0.0", "1.5.0", "2.0.0"], json!([])).await?;
    add(
        "ref-middle",
        &["1.0.0"],
        json!([{"name": "ref-base", "version": "<2"}]),
    )
    .await?;
    add("ref-top", &["1.0.0"], json!([{"name": "ref-middle"}])).await?;
    let refused = stage.run("install ref-top --yes").await?.ended(1)?;
    ensure!(
        refused.stderr.contains("--with-required"),
        "{}",
        refused.stderr
    );
    let refused = stage
        .plugin
        .run_on_terminal(&["install", "ref-top"], "n\n")
        .await?;
    ensure!(
        refused.code == 1
            && refused.stdout.contains(
                "ref-middle is required by ref-top 1.0.0, and catalogue ref-middle has 1.0.0"
            ),
        "{}",
        refused.stdout
    );
    ensure!(!stage.has("addoninstallation", "ref-top").await?);
    let done = stage
        .plugin
        .run_on_terminal(&["install", "ref-top"], "y\ny\ny\n")
        .await?;
    ensure!(done.code == 0, "{}", done.stdout);
    for name in ["ref-base", "ref-middle", "ref-top"] {
        ensure!(stage.has("configmap", name).await?, "{name}");
    }
    let base = stage.record("ref-base").await?;
    ensure!(base["status"]["installed"]["version"] == "1.5.0", "{base}");
    stage
        .run("uninstall ref-top ref-middle ref-base --yes")
        .await?
        .done()?;
    let said = stage
        .run("install ref-top --with-required --yes")
        .await?
        .done()?;
    ensure!(stage.has("configmap", "ref-base").await?, "{}", said.stderr);
    // Nothing is added if nothing is missing.
    let said = stage
        .run("install ref-top --with-required --yes")
        .await?
        .done()?;
    ensure!(said.stderr.contains("nothing to do"), "{}", said.stderr);
    Ok(())
}

/// The commands of the page, in their order.
#[tokio::test]
async fn the_commands_of_the_page_do_what_it_says() -> Result<()> {
    let world = World::new("reference-page").await?;
    let stage = &world.stage;
    // Other tests install add-ons of other names.
    let base = "reference-base";
    for (name, requires) in [(base, json!([])), ("web", json!([{"name": base}]))] {
        let version = json!({"version": "1.0.0", "requires": requires,
            "source": {"inline": {"manifest": config_map(name, "1")}}});
        let file = stage.catalogue(name, &version)?;
        stage
            .run(&format!("catalogue add {}", file.display()))
            .await?
            .done()?;
    }
    let commands = blocks(PAGE)
        .flat_map(|(_, text)| text.lines())
        .filter_map(|line| line.strip_prefix("kubectl addons "));
    let mut count = 0;
    let helm = binaries::helm()?;
    for line in commands {
        let line = line
            .replace("registry.example.com", &world.registry.host)
            .replace(
                "https://charts.example.com",
                world.charts.url().trim_end_matches('/'),
            )
            .replace("https://example.com/", &world.web.url("/"))
            .replace(
                "--target-namespace shop",
                &format!("--target-namespace {}", stage.namespace),
            );
        let line = format!("{line} --helm-bin {}", helm.display());
        let args: Vec<&str> = line.split_whitespace().collect();
        let said = stage.plugin.run_on_terminal(&args, "y\n").await?;
        ensure!(said.code == 0, "{line}: {}", said.stdout);
        match count {
            0 => ensure!(world.value("shop").await?.starts_with("1.2.3")),
            3 => ensure!(world.value("shop").await?.starts_with("1.3.0")),
            5 => ensure!(world.value("shop").await?.starts_with("1.2.3")),
            _ => {}
        }
        count += 1;
    }
    ensure!(count == 9, "{count} commands");
    ensure!(stage.has("configmap", base).await? && !stage.has("configmap", "shop").await?);
    Ok(())
}
