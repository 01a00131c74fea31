//! A catalogue by reference in a repository that asks who reads it: only with the credentials that the catalogue names, also where the
//! file was fetched before (semantics 16).

use addons_tests::servers::git::{GitHttp, Options, Repository};
use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use common::api::names::API_VERSION;
use serde_json::{Value, json};

const USER: &str = "reader";
const PASSWORD: &str = "correct horse battery";
const WRONG: &str = "staple staple staple";

struct Private {
    stage: Stage,
    server: GitHttp,
    repository: Repository,
}

impl Private {
    async fn start() -> Result<Self> {
        let stage = Stage::new("private").await?;
        stage.run("init").await?.done()?;
        let repository = Repository::new()?;
        let options = Options {
            account: Some((USER, PASSWORD)),
            ..Options::default()
        };
        let server = GitHttp::start(repository.root(), options).await?;
        Ok(Self {
            stage,
            server,
            repository,
        })
    }

    /// Commits a catalogue with these versions, whose manifests lie beside it.
    fn list(&self, versions: &[&str]) -> Result<()> {
        let entries = versions.iter().map(|version| {
            json!({
                "version": version, "defaultNamespace": self.stage.namespace,
                "source": {"url": {"manifest": format!("web-{version}.yaml")}},
            })
        });
        let entries: Vec<Value> = entries.collect();
        for version in versions {
            self.repository
                .write(&format!("web-{version}.yaml"), config_map("web", version))?;
        }
        let catalogue = json!({
            "apiVersion": API_VERSION, "kind": "AddonCatalogue", "metadata": {"name": "platform"},
            "spec": {"addons": [{"name": "web", "versions": entries}]},
        });
        self.repository.write("all.json", catalogue.to_string())?;
        self.repository.commit("versions").map(drop)
    }

    /// The Secret that the catalogue names, with this password, for this host.
    async fn secret(&self, password: &str, host: &str) -> Result<()> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth",
            "metadata": {"name": "git-reader", "annotations": {"kubectl-addons.dev/allowed-hosts": host}},
            "stringData": {"username": USER, "password": password},
        });
        self.stage.apply(&secret.to_string()).await
    }

    fn host(&self) -> &str {
        self.server.url.trim_start_matches("http://")
    }

    /// The catalogue as a file, for `catalogue add`.
    fn object(&self) -> Result<String> {
        let git = json!({
            "remote": self.server.remote(), "ref": {"branch": "main"}, "path": "all.json",
            "auth": {"secretRef": {"name": "git-reader"}},
        });
        let object = json!({
            "apiVersion": API_VERSION, "kind": "AddonCatalogue", "metadata": {"name": "platform"},
            "spec": {"from": {"git": git}},
        });
        let file = self.stage.write("from.json", &object.to_string())?;
        Ok(file.display().to_string())
    }

    /// Runs a command that must fail with these words, and show no password.
    async fn refused(&self, line: &str, words: &[&str]) -> Result<()> {
        let said = self.stage.run(line).await?.ended(1)?;
        for words in words {
            ensure!(said.stderr.contains(words), "{line}: {}", said.stderr);
        }
        for password in [PASSWORD, WRONG] {
            let all = format!("{}{}", said.stdout, said.stderr);
            ensure!(!all.contains(password), "{line} shows a password");
        }
        Ok(())
    }

    async fn installed(&self, version: &str) -> Result<()> {
        let live = self.stage.must("configmap", "web").await?;
        ensure!(live["data"]["key"] == version, "{live}");
        Ok(())
    }
}

#[tokio::test]
async fn a_private_file_is_read_with_the_credentials_of_its_catalogue() -> Result<()> {
    let private = Private::start().await?;
    private.list(&["1.0.0"])?;
    let add = format!("catalogue add {} --by-reference", private.object()?);
    private.refused(&add, &["Secret", "git-reader"]).await?;
    private.secret(WRONG, private.host()).await?;
    private.refused(&add, &["401"]).await?;
    private.secret(PASSWORD, private.host()).await?;
    private.stage.run(&add).await?.done()?;
    private.stage.run("install web -y").await?.done()?;
    private.installed("1.0.0").await?;

    private.list(&["1.0.0", "1.1.0"])?;
    private.secret(WRONG, private.host()).await?;
    private
        .refused("catalogue sync platform", &["401", "auth.secretRef"])
        .await?;
    private.secret(PASSWORD, private.host()).await?;
    private.stage.run("catalogue sync platform").await?.done()?;
    private.stage.run("upgrade web -y").await?.done()?;
    private.installed("1.1.0").await
}

/// What one user fetched lies in the cache, and is served to no one who could not fetch it.
#[tokio::test]
async fn the_cache_serves_no_one_without_the_credentials() -> Result<()> {
    let private = Private::start().await?;
    private.list(&["1.0.0"])?;
    private.secret(PASSWORD, private.host()).await?;
    let add = format!("catalogue add {} --by-reference", private.object()?);
    private.stage.run(&add).await?.done()?;
    private.stage.run("show web").await?.done()?;
    for (password, host, words) in [
        (WRONG, private.host(), "401"),
        (PASSWORD, "git.example.org", "git.example.org"),
    ] {
        private.secret(password, host).await?;
        private.refused("show web", &[words]).await?;
        private.refused("install web -y", &[words]).await?;
    }
    private.stage.delete("secret", "git-reader").await?;
    private.refused("show web", &["git-reader"]).await?;
    private
        .refused("install web -y --offline", &["git-reader"])
        .await
}
