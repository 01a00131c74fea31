//! `catalogue sync`, and the loop that does the same.

use std::sync::Arc;
use std::sync::Mutex;

use addons_tests::running::Running;
use addons_tests::servers::git::{GitHttp, Options, Repository};
use addons_tests::servers::http::{Answer, Server};
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// An AddonCatalogue with `web` in these versions, whose manifests lie beside it.
fn catalogue(stage: &Stage, versions: &[&str]) -> String {
    let namespace = &stage.namespace;
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            let manifest = format!("web/{version}.yaml");
            json!({"version": version, "defaultNamespace": namespace, "source": {"url": {"manifest": manifest}}})
        })
        .collect();
    json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "platform"},
        "spec": {"addons": [{"name": "web", "versions": versions}]},
    })
    .to_string()
}

async fn stored(stage: &Stage) -> Result<Value> {
    stage.must("addoncatalogue", "platform").await
}

/// The condition that says whether the add-ons are those that are there.
fn condition(object: &Value) -> Option<&Value> {
    let all = object["status"]["conditions"].as_array()?;
    all.iter().find(|one| one["type"] == "Synced")
}

/// A catalogue that names a file of a repository gets its add-ons from there, with the manifests beside it at the same commit. What
/// cannot be read or is refused leaves them, and is a condition; where nothing changed, nothing is written; the loop does the same.
#[tokio::test]
async fn a_catalogue_follows_its_repository() -> Result<()> {
    let stage = Stage::new("follows").await?;
    stage.run("init").await?.done()?;
    let repository = Repository::new()?;
    repository.write("c/web/1.0.0.yaml", config_map("web", "1"))?;
    repository.write("c/all.json", catalogue(&stage, &["1.0.0"]))?;
    let commit = repository.commit("one")?;
    let server = GitHttp::start(repository.root(), Options::default()).await?;
    let git = json!({"remote": server.remote(), "ref": {"branch": "main"}, "path": "c/all.json"});
    let object = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "platform"},
        "spec": {"from": {"git": git}},
    });
    let file = stage.write("from.json", &object.to_string())?;
    let said = stage
        .run(&format!("catalogue add {}", file.display()))
        .await?;
    let expected = format!("catalogue platform changed: 1 add-on, 1 version, revision {commit}");
    ensure!(said.done()?.stderr.contains(&expected), "not synchronised");
    let first = stored(&stage).await?;
    ensure!(first["status"]["synced"]["revision"] == commit, "{first}");
    let git = &first["spec"]["addons"][0]["versions"][0]["source"]["git"];
    let beside =
        json!({"remote": server.remote(), "ref": {"commit": commit}, "path": "c/web/1.0.0.yaml"});
    ensure!(*git == beside, "{first}");
    stage.run("install web -y").await?.done()?;
    ensure!(stage.must("configmap", "web").await?["data"]["key"] == "1");

    let again = stage.run("catalogue sync -o json").await?.done()?;
    let rows: Value = serde_json::from_str(&again.stdout)?;
    let row = &rows["items"][0];
    ensure!(
        row["result"] == "unchanged" && row["revision"] == commit,
        "{rows}"
    );
    ensure!(stored(&stage).await? == first);

    let twice = catalogue(&stage, &["1.0.0", "v1"]);
    for (text, reason) in [("spec: [", "Unreadable"), (&twice, "Refused")] {
        repository.write("c/all.json", text)?;
        repository.commit(reason)?;
        let said = stage.run("catalogue sync platform").await?;
        ensure!(said.code != 0, "{}", said.stderr);
        let kept = stored(&stage).await?;
        ensure!(kept["spec"] == first["spec"], "{kept}");
        let found = condition(&kept).context("no condition")?;
        ensure!(
            found["status"] == "False" && found["reason"] == reason,
            "{found}"
        );
        ensure!(stage.run("catalogue sync platform").await?.code != 0);
        ensure!(stored(&stage).await? == kept);
    }

    let loops = Running::reconcile(&stage, &["--interval", "2s"])?;
    loops.says("leads").await?;
    repository.write("c/web/1.1.0.yaml", config_map("web", "2"))?;
    repository.write("c/all.json", catalogue(&stage, &["1.0.0", "1.1.0"]))?;
    let commit = repository.commit("two")?;
    until("the loop follows the repository", async || {
        let web = stage.must("configmap", "web").await?;
        let object = stored(&stage).await?;
        let is_synced = condition(&object).is_some_and(|it| it["status"] == "True");
        let is_done = is_synced
            && object["status"]["synced"]["revision"] == commit
            && web["data"]["key"] == "2";
        Ok(is_done
            .then_some(())
            .ok_or_else(|| object["status"].to_string()))
    })
    .await
}

/// What was added by URL is read there again; its class and its own settings stay.
#[tokio::test]
async fn a_catalogue_that_was_added_by_url_is_read_there_again() -> Result<()> {
    let stage = Stage::new("by-url").await?;
    stage.run("init").await?.done()?;
    let text = Arc::new(Mutex::new(catalogue(&stage, &["1.0.0"])));
    let shown = Arc::clone(&text);
    let server = Server::start(None, move |_| {
        let text = shown.lock().map(|text| text.clone());
        Answer::ok(text.unwrap_or_default())
    })?;
    let url = server.url("/all.json");
    stage.run(&format!("catalogue add {url}")).await?.done()?;
    let added = stored(&stage).await?;
    ensure!(
        added["spec"]["from"] == json!({"url": {"manifest": url}}),
        "{added}"
    );
    let registry = json!({"spec": {"registry": "mirror.example.test"}});
    stage.patch("addoncatalogue", "platform", &registry).await?;

    let said = stage.run("catalogue sync platform").await?.done()?;
    ensure!(
        said.stderr.contains("catalogue platform is up to date"),
        "{}",
        said.stderr
    );
    if let Ok(mut text) = text.lock() {
        *text = catalogue(&stage, &["1.0.0", "1.1.0"]);
    }
    let said = stage.run("catalogue sync platform").await?.done()?;
    let expected = "catalogue platform changed: 1 add-on, 2 versions, revision ";
    ensure!(said.stderr.contains(expected), "{}", said.stderr);
    let object = stored(&stage).await?;
    ensure!(
        object["spec"]["registry"] == "mirror.example.test",
        "{object}"
    );
    ensure!(object["spec"]["baseURL"] == url, "{object}");
    let missing = stage.run("catalogue sync paltform").await?.ended(1)?;
    ensure!(
        missing.stderr.contains("did you mean platform?"),
        "{}",
        missing.stderr
    );
    Ok(())
}
