//! Catalogues by reference: the object holds the digest of a file and the names of its add-ons (semantics 1).

use std::sync::{Arc, Mutex, PoisonError};

use super::pushed::Pair;
use addons_tests::plugin::Plugin;
use addons_tests::servers::git::{GitHttp, Options, Repository};
use addons_tests::servers::http::{Answer, Server};
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use common::api::names::API_VERSION;
use serde_json::{Value, json};

/// Add-ons and versions of each in the large file.
const ADDONS: usize = 10;
const VERSIONS: usize = 1000;

/// A web server with one file, which can be changed and taken away.
struct Web {
    server: Server,
    /// `None`: the server answers 503.
    file: Arc<Mutex<Option<String>>>,
}

impl Web {
    fn start(file: String) -> Result<Self> {
        let file = Arc::new(Mutex::new(Some(file)));
        let shown = Arc::clone(&file);
        let server = Server::start(None, move |seen| {
            let file = shown.lock().unwrap_or_else(PoisonError::into_inner);
            match (&*file, seen.uri.as_str()) {
                (Some(file), "/all.json") => Answer::ok(file.clone()),
                (Some(_), _) => Answer::ok(config_map("web", &seen.uri)),
                (None, _) => Answer::status(503),
            }
        })?;
        Ok(Self { server, file })
    }

    fn put(&self, file: Option<String>) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
    }

    fn asked_for_file(&self) -> usize {
        let seen = self.server.requests();
        seen.iter().filter(|seen| seen.uri == "/all.json").count()
    }
}

/// A file with a catalogue; every manifest lies beside it.
fn file(stage: &Stage, addons: &[(String, Vec<String>)]) -> String {
    let addons = addons.iter().map(|(name, versions)| {
        let versions = versions.iter().map(|version| {
            json!({
                "version": version, "defaultNamespace": stage.namespace,
                "source": {"url": {"manifest": format!("{name}-{version}.yaml")}},
            })
        });
        json!({"name": name, "versions": versions.collect::<Vec<_>>()})
    });
    json!({
        "apiVersion": API_VERSION, "kind": "AddonCatalogue", "metadata": {"name": "platform"},
        "spec": {"addons": addons.collect::<Vec<_>>()},
    })
    .to_string()
}

fn large(stage: &Stage) -> String {
    let versions: Vec<String> = (0..VERSIONS).map(|patch| format!("1.0.{patch}")).collect();
    let names = (1..ADDONS).map(|number| format!("other-{number}"));
    let names = names.chain(["web".to_owned()]);
    let addons: Vec<_> = names.map(|name| (name, versions.clone())).collect();
    file(stage, &addons)
}

fn small(stage: &Stage, versions: &[&str]) -> String {
    let versions = versions.iter().map(|version| (*version).to_owned());
    file(stage, &[("web".to_owned(), versions.collect())])
}

/// What was fetched before is gone.
fn forget(stage: &Stage) -> Result<()> {
    Ok(std::fs::remove_dir_all(stage.plugin.home().join("cache"))?)
}

async fn stored(stage: &Stage) -> Result<Value> {
    stage.must("addoncatalogue", "platform").await
}

fn holds(text: &str, expected: &[&str]) -> Result<()> {
    for expected in expected {
        ensure!(text.contains(expected), "{expected:?} is not in {text}");
    }
    Ok(())
}

/// Ten thousand versions do not fit into an object. By reference they are installed from, and the file is fetched once.
#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: ten thousand versions")]
async fn ten_thousand_versions_are_installed_from_by_reference() -> Result<()> {
    let stage = Stage::new("large").await?;
    stage.run("init").await?.done()?;
    let web = Web::start(large(&stage))?;
    let url = web.server.url("/all.json");
    let refused = stage.run(&format!("catalogue add {url}")).await?.ended(1)?;
    let way_out = "fix:    kubectl addons catalogue add https://HOST/FILE --by-reference";
    holds(
        &refused.stderr,
        &["an object of a cluster at most 1 MiB", way_out],
    )?;
    let added = stage
        .run(&format!("catalogue add {url} --by-reference"))
        .await?
        .done()?;
    holds(
        &added.stderr,
        &["catalogue platform added: 10 add-ons by reference"],
    )?;
    let object = stored(&stage).await?;
    let digest = object["spec"]["from"]["digest"].as_str();
    let digest = digest.context("no digest")?.to_owned();
    let addons = object["spec"]["addons"].as_array().context("no addons")?;
    ensure!(addons.len() == ADDONS, "{object}");
    ensure!(
        addons.iter().all(|addon| addon["versions"] == json!([])),
        "{object}"
    );
    let revision = &object["status"]["synced"]["revision"];
    ensure!(
        revision.as_str().map(|hex| format!("sha256:{hex}")) == Some(digest.clone()),
        "{object}"
    );
    stage.run("install web@1.0.7 -y").await?.done()?;
    let live = stage.must("configmap", "web").await?;
    ensure!(live["data"]["key"] == "/web-1.0.7.yaml", "{live}");
    let before = web.asked_for_file();
    let listed = stage.run("list -o json").await?.done()?;
    let rows: Value = serde_json::from_str(&listed.stdout)?;
    ensure!(rows["items"][0]["newer"] == "1.0.999", "{rows}");
    ensure!(web.asked_for_file() == before, "the file was fetched again");
    let catalogues = stage.run("catalogue list -o json").await?.done()?;
    let rows: Value = serde_json::from_str(&catalogues.stdout)?;
    ensure!(rows["items"][0]["digest"] == digest.as_str(), "{rows}");
    Ok(())
}

/// Only the file with the digest counts. Another one is an error of its add-ons, which names `catalogue sync`; what is installed stays
/// listed, and other catalogues go on.
#[tokio::test]
async fn a_file_with_another_digest_is_refused_until_it_is_synchronised() -> Result<()> {
    let stage = Stage::new("digest").await?;
    stage.run("init").await?.done()?;
    let web = Web::start(small(&stage, &["1.0.0"]))?;
    let url = web.server.url("/all.json");
    let add = format!("catalogue add {url} --by-reference");
    stage.run(&add).await?.done()?;
    let version =
        json!({"version": "1.0.0", "source": {"inline": {"manifest": config_map("api", "1")}}});
    let beside = stage.write(
        "beside.json",
        &json!({
            "apiVersion": API_VERSION, "kind": "AddonCatalogue", "metadata": {"name": "beside"},
            "spec": {"addons": [{"name": "api", "versions": [version]}]},
        })
        .to_string(),
    )?;
    stage
        .run(&format!("catalogue add {}", beside.display()))
        .await?
        .done()?;
    stage.run("install web -y").await?.done()?;

    // The file changed, and the cache has the old one: commands still read that, also where the server is silent.
    let next = small(&stage, &["1.0.0", "1.1.0"]);
    for there in [Some(next.clone()), None] {
        web.put(there);
        let shown = stage.run("catalogue show platform").await?.done()?;
        ensure!(!shown.stdout.contains("1.1.0"), "{}", shown.stdout);
    }
    web.put(Some(next.clone()));
    forget(&stage)?;
    completed(&stage, &web).await?;
    let refused = stage.run("upgrade web").await?.ended(1)?;
    let fix = "fix:    kubectl addons catalogue sync platform";
    holds(
        &refused.stderr,
        &["catalogue platform: ", "spec.from.digest is sha256:", fix],
    )?;
    let listed = stage.run("list").await?.done()?;
    holds(&listed.stderr, &["warning: catalogue platform: ", fix])?;
    ensure!(!listed.stdout.contains("Unlisted"), "{}", listed.stdout);
    stage
        .run(&format!(
            "install api --target-namespace {} -y",
            stage.namespace
        ))
        .await?
        .done()?;

    web.put(None);
    stage.run("reconcile web").await?.ended(1)?;
    let stalled = stage.condition("web", "Stalled").await?;
    ensure!(stalled["reason"] == "SourceUnavailable", "{stalled}");
    let record = stage.record("web").await?;
    let conditions = record["status"]["conditions"].as_array();
    let mut conditions = conditions.context("no conditions")?.iter();
    ensure!(
        !conditions.any(|one| one["type"] == "Unlisted" && one["status"] == "True"),
        "{record}"
    );

    web.put(Some(next));
    let synced = stage.run("catalogue sync platform").await?.done()?;
    holds(
        &synced.stderr,
        &["catalogue platform changed: 1 add-on by reference"],
    )?;
    stage.run("upgrade web -y").await?.done()?;
    let live = stage.must("configmap", "web").await?;
    ensure!(live["data"]["key"] == "/web-1.1.0.yaml", "{live}");
    twin(&stage).await?;
    by_hand(&stage).await
}

/// Completion knows the names, and fetches nothing.
async fn completed(stage: &Stage, web: &Web) -> Result<()> {
    let before = web.asked_for_file();
    let system = format!("--system-namespace={}", stage.namespace);
    let words = ["__complete", "addons", &system, "show", ""];
    let said = stage.plugin.kubectl(&words).await?.done()?;
    holds(&said.stdout, &["web"])?;
    ensure!(web.asked_for_file() == before, "the file was fetched");
    Ok(())
}

/// A version that another catalogue holds as well is refused by commands, which read the file; one that was applied beside them is
/// named.
async fn twin(stage: &Stage) -> Result<()> {
    let version =
        json!({"version": "v1.1", "source": {"inline": {"manifest": config_map("web", "twin")}}});
    let twin = json!({
        "apiVersion": API_VERSION, "kind": "AddonCatalogue",
        "metadata": {"name": "twin", "namespace": stage.namespace},
        "spec": {"addons": [{"name": "web", "versions": [version]}]},
    });
    let file = stage.write("twin.json", &twin.to_string())?;
    let add = format!("catalogue add {}", file.display());
    let refused = stage.run(&add).await?.ended(6)?;
    let held = "web v1.1 is already in catalogue platform";
    holds(
        &refused.stderr,
        &["spec.addons[0].versions[0]: ", "catalogue platform"],
    )?;
    stage.apply(&twin.to_string()).await?;
    let viewed = stage.run("catalogue view").await?.ended(1)?;
    holds(&viewed.stderr, &["error: catalogue ", held])?;
    stage.run("catalogue remove twin").await?.done().map(drop)
}

/// Names that were written by hand are not those that the rules judged, and versions do not go with a digest.
async fn by_hand(stage: &Stage) -> Result<()> {
    let names = json!({"spec": {"addons": [{"name": "web", "versions": []}, {"name": "dns", "versions": []}]}});
    stage.patch("addoncatalogue", "platform", &names).await?;
    let refused = stage.run("show web").await?.ended(1)?;
    let fix = "fix:    kubectl addons catalogue sync platform";
    let why = "dns is among the names and not in the file";
    holds(&refused.stderr, &[why, fix])?;
    let version = json!({"version": "1.0.0", "source": {"inline": {"manifest": ""}}});
    let versions = json!({"spec": {"addons": [{"name": "web", "versions": [version]}]}});
    let patched = stage.patch("addoncatalogue", "platform", &versions).await;
    let error = patched.err().context("versions beside a digest")?;
    holds(&format!("{error:#}"), &["the catalogue is by reference"])
}

/// Another cluster gets the reference and reads the file itself; a second run writes nothing, and the copy is emptied when its source is gone.
#[tokio::test]
async fn another_cluster_gets_the_reference() -> Result<()> {
    let pair = Pair::new("reference").await?;
    pair.prepare_other().await?;
    let web = Web::start(small(&pair.stage, &["1.0.0"]))?;
    let add = format!(
        "catalogue add {} --by-reference",
        web.server.url("/all.json")
    );
    pair.stage.run(&add).await?.done()?;
    pair.offer("api", &config_map("api", "1")).await?;
    let pushed = pair.push("--to-context other").await?.done()?;
    holds(
        &pushed.stderr,
        &[
            "other  catalogue merged-custom created: 1 add-on, 1 version",
            "other  catalogue merged-ref-platform created: 1 add-on by reference",
        ],
    )?;
    let again = pair.push("--to-context other").await?.done()?;
    holds(
        &again.stderr,
        &["merged-custom unchanged", "merged-ref-platform unchanged"],
    )?;

    let there = Plugin::admin(&pair.other)?.system_namespace(&pair.stage.namespace);
    there.run(&["install", "web", "-y"]).await?.done()?;
    let copy = ["catalogue", "sync", "merged-ref-platform"];
    let refused = there.run(&copy).await?.ended(1)?;
    holds(&refused.stderr, &["it is a copy"])?;
    pair.stage
        .run("catalogue remove platform --yes")
        .await?
        .done()?;
    let pushed = pair.push("--to-context other").await?.done()?;
    holds(
        &pushed.stderr,
        &["other  catalogue merged-ref-platform replaced"],
    )?;
    let listed = there.run(&["list"]).await?.done()?;
    holds(
        &listed.stdout,
        &["Orphaned: catalogue merged-ref-platform no longer has web"],
    )
}

/// A file in a repository is read at its commit, whatever the branch is now, and the manifests beside it are of the same commit.
#[tokio::test]
async fn a_file_in_a_repository_is_read_at_its_commit() -> Result<()> {
    let stage = Stage::new("pinned").await?;
    stage.run("init").await?.done()?;
    let repository = Repository::new()?;
    repository.write("web-1.0.0.yaml", config_map("web", "1"))?;
    repository.write("all.json", small(&stage, &["1.0.0"]))?;
    let commit = repository.commit("one")?;
    let server = GitHttp::start(repository.root(), Options::default()).await?;
    let git = json!({"remote": server.remote(), "ref": {"branch": "main"}, "path": "all.json"});
    let object = json!({
        "apiVersion": API_VERSION, "kind": "AddonCatalogue", "metadata": {"name": "platform"},
        "spec": {"from": {"git": git}},
    });
    let object = stage.write("from.json", &object.to_string())?;
    let add = format!("catalogue add {} --by-reference", object.display());
    stage.run(&add).await?.done()?;
    let from = &stored(&stage).await?["spec"]["from"];
    ensure!(from["revision"] == commit, "{from}");

    repository.write("web-1.0.0.yaml", config_map("web", "2"))?;
    repository.write("all.json", small(&stage, &["1.0.0", "2.0.0"]))?;
    repository.commit("two")?;
    forget(&stage)?;
    stage.run("install web -y").await?.done()?;
    let live = stage.must("configmap", "web").await?;
    ensure!(live["data"]["key"] == "1", "{live}");
    let disk = stage.write("disk.json", &small(&stage, &["1.0.0"]))?;
    let disk = format!("catalogue add {} --by-reference", disk.display());
    let refused = stage.run(&disk).await?.ended(2)?;
    holds(
        &refused.stderr,
        &["--by-reference needs a file that others can read"],
    )
}
