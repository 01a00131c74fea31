//! Charts that a chart is made of: fetched as its source is, within the same reach, and covered by its hash.

use std::process::Command;

use addons_tests::control_plane::binaries;
use addons_tests::guard::Folder;
use addons_tests::servers::charts::shelf::{self, Shelf};
use addons_tests::servers::charts::{Charts, Options};
use addons_tests::servers::git::http::{self as git, GitHttp};
use addons_tests::servers::git::repository::Repository;
use addons_tests::stage::{Stage, sha256};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

/// An add-on whose chart lies in a git repository, and a chart repository that has what it is made of.
struct Rig {
    stage: Stage,
    repository: Repository,
    git: GitHttp,
    shelf: Shelf,
    charts: Charts,
    helm: String,
}

fn map(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{key: {value:?}}}\n"
    )
}

fn about(dependency: &str) -> String {
    format!("apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {dependency}\n")
}

impl Rig {
    async fn new(what: &str) -> Result<Self> {
        let stage = Stage::new(what).await?;
        stage.run("init").await?.done()?;
        let repository = Repository::new()?;
        let shelf = Shelf::new()?;
        let charts = Charts::serve(shelf.path(), &Options::default())?;
        let rig = Self {
            git: GitHttp::start(repository.root(), git::Options::default()).await?,
            helm: binaries::helm()?.display().to_string(),
            stage,
            repository,
            shelf,
            charts,
        };
        rig.publish("reviewed")?;
        Ok(rig)
    }

    /// Puts `part` 0.2.0 onto the server.
    fn publish(&self, value: &str) -> Result<()> {
        let part = map("part", value);
        self.shelf
            .chart("part", "0.2.0", &[("templates/a.yaml", &part)])?;
        self.shelf.index(None)
    }

    /// `Chart.lock` as its author makes it.
    fn lock(&self, about: &str) -> Result<String> {
        let folder = Folder::new("kubectl-addons-author-")?;
        let chart = folder.path().join("web");
        shelf::write(&chart, "web", "1.0.0", &[("Chart.yaml", about)])?;
        let output = Command::new(&self.helm)
            .args(["dependency", "update"])
            .arg(&chart)
            .env_clear()
            .env("HOME", folder.path())
            .output()
            .context("cannot start helm")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{said}");
        Ok(std::fs::read_to_string(chart.join("Chart.lock"))?)
    }

    /// Commits the chart, and installs it from a catalogue in the cluster with an empty cache.
    async fn install(
        &self,
        about: &str,
        lock: &str,
        hash: Option<&str>,
    ) -> Result<addons_tests::plugin::Output> {
        self.repository.write("web/Chart.yaml", about)?;
        self.repository.write("web/Chart.lock", lock)?;
        self.repository
            .write("web/templates/a.yaml", map("web", "1"))?;
        self.repository
            .commit(&sha256(&format!("{about}{lock}{hash:?}")))?;
        let name = self.stage.namespace.as_str();
        let mut version = json!({
            "version": "1.0.0", "defaultNamespace": name, "template": {"method": "helm"},
            "source": {"git": {"remote": self.git.remote(), "ref": {"branch": "main"}, "path": "web"}},
        });
        if let Some(hash) = hash {
            version["manifestHash"] = hash.into();
        }
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": name},
            "spec": {"addons": [{"name": name, "versions": [version]}]},
        });
        let file = self.stage.write("catalogue.json", &catalogue.to_string())?;
        let line = format!("catalogue add {}", file.display());
        self.stage.run(&line).await?.done()?;
        let _ = std::fs::remove_dir_all(self.stage.plugin.home().join("cache"));
        let line = format!("install {name} --helm-bin {} --yes --wait=false", self.helm);
        self.stage.run(&line).await
    }

    async fn uninstall(&self) -> Result<()> {
        let line = format!("uninstall {} --yes", self.stage.namespace);
        self.stage.run(&line).await?.done().map(drop)
    }

    async fn is_installed(&self) -> Result<bool> {
        self.stage.has("configmap", "web").await
    }
}

/// trust 4: what a hash covers.
#[tokio::test]
async fn t04_the_hash_of_a_folder_covers_the_charts_that_it_is_made_of() -> Result<()> {
    let rig = Rig::new("dependency-hash").await?;
    let url = rig.charts.url();
    let about = about(&format!(
        "{{name: part, version: '>=0.1.0', repository: '{url}'}}"
    ));
    let lock = rig.lock(&about)?;
    // The listing of the folder alone.
    let template = map("web", "1");
    let files = [
        ("Chart.lock", lock.as_str()),
        ("Chart.yaml", &about),
        ("templates/a.yaml", &template),
    ];
    let listing = |files: &[(&str, String)]| {
        let lines = files.iter().map(|(path, hash)| format!("{hash}  {path}\n"));
        sha256(&lines.collect::<String>())
    };
    let mut hashes: Vec<(&str, String)> = files.map(|(path, text)| (path, sha256(text))).into();
    let folder = listing(&hashes);
    let said = rig.install(&about, &lock, Some(&folder)).await?.ended(1)?;
    let archive = std::fs::read(rig.shelf.path().join("part-0.2.0.tgz"))?;
    hashes.insert(
        2,
        (
            "charts/part-0.2.0.tgz",
            common::manifest::digest::sha256(&archive),
        ),
    );
    let whole = listing(&hashes);
    for part in ["part 0.2.0", "charts/", &whole] {
        ensure!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    ensure!(!rig.is_installed().await?, "something was written");

    // The hash that it names is that of everything, and the archive is the publisher's, byte by byte.
    rig.install(&about, &lock, Some(&whole)).await?.done()?;
    let part = rig.stage.must("configmap", "part").await?;
    ensure!(part["data"]["key"] == "reviewed", "{part}");
    rig.uninstall().await?;

    // The chart repository serves something else under the same version.
    rig.publish("replaced")?;
    let said = rig.install(&about, &lock, Some(&whole)).await?.ended(1)?;
    ensure!(said.stderr.contains(&whole), "{}", said.stderr);
    ensure!(!rig.is_installed().await?, "something was written");

    // Without a hash it is the user's choice, as with every other source.
    rig.install(&about, &lock, None).await?.done()?;
    Ok(())
}

/// trust 4: what may be asked.
#[tokio::test]
async fn t04_dependencies_reach_no_further_than_the_source() -> Result<()> {
    let rig = Rig::new("dependency-reach").await?;
    let digest = |repository: &str, range: &str, locked: &str| {
        // As helm makes it, over names, ranges and repositories.
        let text = format!(
            r#"[[{{"name":"part","version":"{range}","repository":"{repository}"}}],[{{"name":"part","version":"0.2.0","repository":"{locked}"}}]]"#
        );
        format!("sha256:{}", sha256(&text))
    };
    let lock = |repository: &str, digest: &str| {
        format!(
            "dependencies:\n- {{name: part, version: 0.2.0, repository: '{repository}'}}\ndigest: {digest}\ngenerated: '2026-01-01T00:00:00Z'\n"
        )
    };
    let metadata = "http://169.254.169.254/charts";
    let chart = about(&format!(
        "{{name: part, version: 0.2.0, repository: '{metadata}'}}"
    ));
    let locked = lock(metadata, &digest(metadata, "0.2.0", metadata));
    let said = rig.install(&chart, &locked, None).await?.ended(1)?;
    ensure!(
        said.stderr.contains("is a link-local address"),
        "{}",
        said.stderr
    );

    // A folder of whoever runs the command, by a lock file with a digest that fits.
    let secret = rig.stage.plugin.home().join("private");
    let files = [("templates/a.yaml", map("part", "private"))];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    shelf::write(&secret, "part", "0.2.0", &files)?;
    let folder = format!("file://{}", secret.display());
    let url = rig.charts.url();
    let chart = about(&format!(
        "{{name: part, version: 0.2.0, repository: '{url}'}}"
    ));
    let locked = lock(&folder, &digest(url, "0.2.0", &folder));
    let said = rig.install(&chart, &locked, None).await?.ended(1)?;
    ensure!(said.stderr.contains("Chart.lock"), "{}", said.stderr);

    // A lock file that was made for another Chart.yaml.
    let locked = lock(url, &digest(url, "0.1.0", url));
    let said = rig.install(&chart, &locked, None).await?.ended(1)?;
    let words = "Chart.lock was not made for this Chart.yaml";
    ensure!(said.stderr.contains(words), "{}", said.stderr);
    ensure!(!rig.is_installed().await?, "something was written");

    let locked = lock(url, &digest(url, "0.2.0", url));
    rig.install(&chart, &locked, None).await?.done()?;
    Ok(())
}
