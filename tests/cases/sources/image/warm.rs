//! A warm cache, and no network.

use addons_tests::servers::registry::front::{Fault, Front};
use addons_tests::servers::registry::{Door, Registry};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};

use super::{CONFIG, Reader, TAR, files, layer, outcome, push_app, right, tar};

const APP: &str = "a.yaml:new b.yaml:b";

#[tokio::test]
async fn requests_of_a_warm_cache() -> Result<()> {
    let mut tally = Tally::new("sources::image::warm");
    let registry = Registry::start(Door::Open).await?;
    let digest = push_app(&registry, "team/app", "1").await?;
    let index = registry
        .push_index("team/app", "index", &[("linux", "amd64", &digest)])
        .await?;
    let front = Front::start(Some(&registry), |_| None).await?;
    let image = |name: &str| format!("{}/team/app{name}", front.host);
    let mut reader = Reader::new()?;
    let pinned = format!("@{digest}");
    let pinned_index = format!("@{index}");
    for (name, path, expected) in [
        // A manifest and two layers; then whether the tag has moved.
        (":1", "/m", &["GET", "GET", "GET"][..]),
        (":1", "/m", &["HEAD"]),
        (&pinned, "/m", &[]),
        // The layers are there.
        (&pinned, "/m/a.yaml", &[]),
        (":1", "/m/b.yaml", &["GET"]),
        // The index is new, and its image known.
        (":index", "/m", &["GET"]),
        (":index", "/m", &["HEAD"]),
        (&pinned_index, "/m", &[]),
    ] {
        let fetched = reader.fetch(&image(name), path).await?;
        assert_eq!(fetched.resolved.as_deref(), Some(digest.as_str()));
        let requests = front.requests();
        let methods: Vec<&str> = requests.iter().map(|seen| seen.method.as_str()).collect();
        assert_eq!(methods, expected, "{name} {path}");
        tally.ran();
    }
    // The tag moves, and back.
    let layers = [layer(TAR, tar(&[("m/a.yaml", "moved")])?)];
    let moved = registry.push("team/app", "1", CONFIG, &layers).await?;
    let fetched = reader.fetch(&image(":1"), "/m").await?;
    assert_eq!(files(&fetched), "a.yaml:moved");
    assert_eq!(fetched.resolved.as_deref(), Some(moved.as_str()));
    assert_eq!(front.requests().len(), 3);
    push_app(&registry, "team/app", "1").await?;
    assert_eq!(files(&reader.fetch(&image(":1"), "/m").await?), APP);
    assert_eq!(front.requests().len(), 1);
    tally.ran();

    reader.offline = true;
    for (name, path, expected) in [
        (":1", "/m", APP),
        (":index", "/m", APP),
        (&pinned, "/m", APP),
        (&pinned, "/", "m/a.yaml:new m/b.yaml:b"),
        (
            ":2",
            "/m",
            "is not in the cache, and no server may be asked",
        ),
        (":1", "/m/a.yaml", "is not in the cache"),
    ] {
        let found = outcome(reader.fetch(&image(name), path).await);
        ensure!(found.contains(expected), "{name} {path}: {found}");
        tally.ran();
    }
    assert_eq!(front.requests().len(), 0);

    // A damaged cache is fetched again.
    reader.offline = false;
    for entry in std::fs::read_dir(reader.folder.path().join("cache/sha256"))? {
        std::fs::write(entry?.path(), "damaged")?;
    }
    assert_eq!(files(&reader.fetch(&image(&pinned), "/m").await?), APP);
    assert_eq!(front.requests().len(), 3);
    tally.ran();
    Ok(())
}

/// A digest means the same content for everyone, but not everyone may read it (semantics 16).
#[tokio::test]
async fn what_a_secret_opened_is_not_in_the_cache_for_who_has_none() -> Result<()> {
    let mut tally = Tally::new("sources::image::stranger");
    let registry = Registry::start(Door::Password).await?;
    let digest = push_app(&registry, "team/private", "1").await?;
    let manifest = registry.manifest("team/private", &digest).await?;
    let manifest = manifest.context("no manifest")?;
    let image = format!("{}/team/private@{digest}", registry.host);
    let mut reader = Reader::with(right(&registry.host)?)?;
    assert_eq!(outcome(reader.fetch(&image, "/m").await), APP);
    reader.offline = true;
    let all = outcome(reader.fetch(&image, "/").await);
    assert_eq!(all, "m/a.yaml:new m/b.yaml:b");
    tally.ran();

    let stranger = Reader {
        credentials: None,
        offline: false,
        ..reader
    };
    let found = outcome(stranger.fetch(&image, "/m").await);
    let words = "refuses requests without credentials";
    ensure!(found.contains(words), "{found}");
    tally.ran();
    // Nor are the layers, for a registry of the stranger's own that has none of them, or says that it has.
    for (blob, expected) in [(None, "was not found"), (Some(b"x".to_vec()), "only 1")] {
        let manifest = manifest.clone();
        let front = Front::start(None, move |seen| match seen.path.contains("/manifests/") {
            true => Some(Fault::Bytes(manifest.clone())),
            false => blob.clone().map(Fault::Bytes),
        });
        let front = front.await?;
        let image = format!("{}/team/own@{digest}", front.host);
        for _ in 0..2 {
            let found = outcome(stranger.fetch(&image, "/m").await);
            ensure!(found.contains(expected), "{found}");
        }
        tally.ran();
    }
    Ok(())
}
