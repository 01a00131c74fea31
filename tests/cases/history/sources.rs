//! A rollback to content of a repository or a registry: from there or from the cache, with the hash that the revision holds.

use std::sync::{Arc, Mutex, PoisonError};

use addons_tests::servers::git::{GitHttp, Options, Repository};
use addons_tests::servers::http::{Answer, Server};
use addons_tests::servers::registry::{Door, Layer, Registry, tar};

use super::*;

/// The type of a layer of an image.
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

fn version(number: &str, source: &Value) -> Value {
    json!({"version": number, "source": source})
}

/// Upgrades to what the source holds now, while the catalogue lists no other version.
async fn upgrade(shop: &Shop, number: &str, source: &Value) -> Result<()> {
    shop.list(&[version(number, source)]).await?;
    shop.run("upgrade web --yes").await?;
    ensure!(shop.key().await? == number);
    Ok(())
}

/// Forgets what this user has fetched.
fn forget(stage: &Stage) -> Result<()> {
    let cache = stage.plugin.home().join("cache");
    let found = std::fs::read_dir(&cache).with_context(|| format!("{} is gone", cache.display()));
    ensure!(found?.next().is_some(), "nothing was cached");
    std::fs::remove_dir_all(cache)?;
    Ok(())
}

#[tokio::test]
async fn a_branch_that_has_moved_is_taken_back_to_its_commit() -> Result<()> {
    let mut tally = Tally::new("history::sources::a_branch");
    let repository = Repository::new()?;
    let server = GitHttp::start(repository.root(), Options::default()).await?;
    let commit = |value: &str| {
        repository.write("web.yaml", config_map("web", value))?;
        repository.commit(value)
    };
    let source =
        json!({"git": {"remote": server.remote(), "ref": {"branch": "main"}, "path": "web.yaml"}});
    commit("1.0.0")?;
    let shop = Shop::new("history-git", &[version("1.0.0", &source)]).await?;
    shop.run("install web --yes").await?;
    let first = shop.stage.record("web").await?;
    commit("2.0.0")?;
    upgrade(&shop, "2.0.0", &source).await?;

    // The repository serves the commit, though neither branch nor catalogue names it.
    forget(&shop.stage)?;
    shop.run("rollback web --yes").await?;
    ensure!(shop.key().await? == "1.0.0");
    let now = shop.stage.record("web").await?;
    for field in [
        "/status/installed/manifestHash",
        "/status/installed/revision",
    ] {
        let before = first.pointer(field);
        ensure!(now.pointer(field) == before, "{field}: {now}");
    }
    tally.ran();

    // Nor is the server needed for what was read before.
    upgrade(&shop, "2.0.0", &source).await?;
    drop(server);
    shop.run("rollback web --yes").await?;
    ensure!(shop.key().await? == "1.0.0");
    shop.run("reconcile web").await?;
    ensure!(shop.key().await? == "1.0.0");
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn a_tag_that_has_moved_is_taken_back_to_its_digest() -> Result<()> {
    let mut tally = Tally::new("history::sources::a_tag");
    let registry = Registry::start(Door::Open).await?;
    let push = async |value: &str| {
        let layer = Layer {
            media_type: LAYER,
            bytes: tar(&[("web.yaml", config_map("web", value))])?,
            title: None,
        };
        registry.push("web", "stable", CONFIG, &[layer]).await
    };
    let image = format!("{}/web:stable", registry.host);
    let source = json!({"docker": {"image": image, "path": "web.yaml", "plainHTTP": true}});
    let first = push("1.0.0").await?;
    let shop = Shop::new("history-oci", &[version("1.0.0", &source)]).await?;
    shop.run("install web --yes").await?;
    push("2.0.0").await?;
    upgrade(&shop, "2.0.0", &source).await?;
    forget(&shop.stage)?;
    shop.run("rollback web --yes").await?;
    ensure!(shop.key().await? == "1.0.0");
    tally.ran();

    // Neither the registry nor the cache has it: nothing is changed.
    upgrade(&shop, "2.0.0", &source).await?;
    forget(&shop.stage)?;
    drop(registry);
    let said = shop.stage.run("rollback web --yes").await?.ended(1)?;
    let digest = format!("{}@{first}", image.trim_end_matches(":stable"));
    ensure!(said.stderr.contains(&digest), "{}", said.stderr);
    ensure!(shop.key().await? == "2.0.0");
    ensure!(shop.versions().await?.0 == "2.0.0");
    tally.ran();
    Ok(())
}

/// A URL serves other bytes by now, or none: what was installed comes from the cache; without it, the message names the revision.
#[tokio::test]
async fn a_file_that_has_changed_is_taken_back_from_the_cache() -> Result<()> {
    let served: Arc<Mutex<Option<String>>> = Arc::default();
    let serve = |text: Option<String>| {
        *served.lock().unwrap_or_else(PoisonError::into_inner) = text;
    };
    let content = Arc::clone(&served);
    let server = Server::start(None, move |_| {
        let content = content.lock().unwrap_or_else(PoisonError::into_inner);
        match &*content {
            Some(text) => Answer::ok(text.clone()),
            None => Answer::status(404),
        }
    })?;
    let source = json!({"url": {"manifest": server.url("/web.yaml")}});
    serve(Some(config_map("web", "1.0.0")));
    let shop = Shop::new("history-url", &[version("1.0.0", &source)]).await?;
    shop.run("install web --yes").await?;
    serve(Some(config_map("web", "2.0.0")));
    upgrade(&shop, "2.0.0", &source).await?;
    shop.run("rollback web --yes").await?;
    ensure!(shop.key().await? == "1.0.0", "from the cache");
    upgrade(&shop, "2.0.0", &source).await?;
    serve(None);
    shop.run("rollback web 1 --yes").await?;
    ensure!(shop.key().await? == "1.0.0", "the server has nothing");
    // Nowhere: the message names the revision and its hash.
    serve(Some(config_map("web", "2.0.0")));
    upgrade(&shop, "2.0.0", &source).await?;
    forget(&shop.stage)?;
    let said = shop.stage.run("rollback web 1 --yes").await?.ended(1)?;
    let told = "revision 1 (web 1.0.0, manifestHash ";
    ensure!(said.stderr.contains(told), "{}", said.stderr);
    ensure!(!said.stderr.contains("spec.addons"), "{}", said.stderr);
    ensure!(shop.key().await? == "2.0.0");
    Ok(())
}
