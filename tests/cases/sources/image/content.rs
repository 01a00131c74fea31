//! What an image holds at a path.

use addons_tests::servers::registry::front::{Fault, Front};
use addons_tests::servers::registry::{Door, Layer, Registry};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use serde_json::json;

use super::{CONFIG, DOCKER, GZIP, Reader, TAR, ZSTD, files, gzip, layer, outcome, push_app, tar};

#[tokio::test]
async fn what_an_image_holds() -> Result<()> {
    let mut tally = Tally::new("sources::image::content");
    let registry = Registry::start(Door::Open).await?;
    let host = &registry.host;
    let digest = push_app(&registry, "team/app", "1").await?;
    push_others(&registry).await?;

    let app = "a.yaml:new b.yaml:b";
    let long = format!("{}/a.yaml:a", "n".repeat(150));
    let rows = [
        ("team/app:1", "/m", app),
        ("team/app:1", "m/", app),
        ("team/app:1", "/x/../m", app),
        ("team/app:1", "", "m/a.yaml:new m/b.yaml:b"),
        ("team/app:1", "/m/a.yaml", "a.yaml:new"),
        ("team/mixed:1", "/m", "b.yaml:b c.yaml:c d.yaml:d"),
        ("artifact:1", "", "app/a.yaml:a"),
        ("artifact:1", "/app", "a.yaml:a"),
        ("file:1", "", "list.yaml:kind: List"),
        ("long:1", "m", &long),
        // What is not there.
        ("team/app:1", "/n", "there is no /n in the image; / holds m"),
        ("team/app:1", "/m/c.yaml", "/m holds a.yaml, b.yaml"),
        ("team/app:1", "../m", "leads out of the image"),
        (
            "team/app:2",
            "/m",
            "team/app:2 was not found: manifest unknown",
        ),
        ("team/app", "/m", "team/app:latest was not found"),
        ("team/none:1", "/m", "team/none:1 was not found"),
        (
            "json:1",
            "/m",
            "a layer of type application/json is not supported",
        ),
        ("locked:1", "/m", "it is encrypted"),
        ("Team/app:1", "/m", "is not a valid image"),
    ];
    for (image, path, expected) in rows {
        let found = outcome(Reader::new()?.fetch(&format!("{host}/{image}"), path).await);
        let is_files = !expected.contains(' ')
            || expected.contains(':') && !expected.contains("is ") && !expected.contains("was ");
        let fits = if is_files {
            found == expected
        } else {
            found.contains(expected)
        };
        ensure!(fits, "{image} {path}: {found}");
        tally.ran();
    }

    // By digest, with and without a tag; where it was read.
    let short = digest.get(..19).unwrap_or_default();
    for image in [
        format!("{host}/team/app@{digest}"),
        format!("{host}/team/app:no-such-tag@{digest}"),
        format!("{host}/team/app:1"),
    ] {
        let fetched = Reader::new()?.fetch(&image, "/m").await?;
        assert_eq!(files(&fetched), app);
        assert_eq!(fetched.resolved.as_deref(), Some(digest.as_str()));
        assert_eq!(fetched.location, format!("{host}/team/app@{short}:/m"));
        tally.ran();
    }
    let unknown = format!("{host}/team/app@sha256:{}", "0".repeat(64));
    let error = outcome(Reader::new()?.fetch(&unknown, "/m").await);
    ensure!(error.contains("was not found"), "{error}");
    tally.ran();
    let other = format!("{host}/team/app@sha512:{}", "0".repeat(128));
    let error = outcome(Reader::new()?.fetch(&other, "/m").await);
    ensure!(error.contains("is not a valid sha256 digest"), "{error}");
    tally.ran();
    Ok(())
}

/// Images and artifacts of every kind of layer.
async fn push_others(registry: &Registry) -> Result<()> {
    let zeros = ruzstd::encoding::compress_to_vec(
        &tar(&[("m/.wh.a.yaml", ""), ("m/c.yaml", "c")])?[..],
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let layers = [
        layer(
            DOCKER,
            gzip(&tar(&[("m/a.yaml", "a"), ("m/b.yaml", "b")])?)?,
        ),
        layer(ZSTD, zeros),
        layer(TAR, tar(&[("m/d.yaml", "d")])?),
    ];
    registry.push("team/mixed", "1", CONFIG, &layers).await?;
    let artifact = [layer(GZIP, gzip(&tar(&[("app/a.yaml", "a")])?)?)];
    let unknown = "application/vnd.unknown.config.v1+json";
    registry.push("artifact", "1", unknown, &artifact).await?;
    let mut file = layer(TAR, b"kind: List".to_vec());
    file.title = Some("list.yaml");
    registry.push("file", "1", unknown, &[file]).await?;
    let json = [layer("application/json", b"{}".to_vec())];
    registry.push("json", "1", CONFIG, &json).await?;
    let locked = [layer(
        "application/vnd.oci.image.layer.v1.tar+gzip+encrypted",
        b"x".to_vec(),
    )];
    registry.push("locked", "1", CONFIG, &locked).await?;
    let long = format!("m/{}/a.yaml", "n".repeat(150));
    let long = [layer(GZIP, gzip(&tar(&[(&long, "a")])?)?)];
    registry.push("long", "1", CONFIG, &long).await?;
    Ok(())
}

/// An artifact of several files, as oras pushes it: only those at the wanted path are fetched, and all of them count.
#[tokio::test]
async fn files_at_the_wanted_path() -> Result<()> {
    let mut tally = Tally::new("sources::image::files");
    let registry = Registry::start(Door::Open).await?;
    let file = |title, text: &str| Layer {
        title: Some(title),
        ..layer(TAR, text.as_bytes().to_vec())
    };
    let unknown = "application/vnd.unknown.config.v1+json";
    let two = [file("d/a.yaml", "a"), file("b.yaml", "b")];
    registry.push("files", "1", unknown, &two).await?;
    let front = Front::start(Some(&registry), |_| None).await?;
    let fetched = |front: &Front| {
        let seen = front.requests();
        let blobs = seen.iter().filter(|seen| seen.path.contains("/blobs/"));
        blobs.count()
    };
    for (path, expected, blobs) in [
        ("/d", "a.yaml:a", 1),
        ("/b.yaml", "b.yaml:b", 1),
        ("", "b.yaml:b d/a.yaml:a", 2),
        ("/n", "there is no /n in the image; / holds b.yaml, d", 0),
    ] {
        let image = format!("{}/files:1", front.host);
        let found = outcome(Reader::new()?.fetch(&image, path).await);
        ensure!(found.ends_with(expected), "{path}: {found}");
        assert_eq!(fetched(&front), blobs, "{path}");
        tally.ran();
    }
    let long = "n".repeat(4097);
    for (title, size, expected) in [
        ("a.yaml", 65 << 20, "have more than 64 MiB"),
        (
            &long,
            1,
            "has a name or link target of more than 4096 bytes",
        ),
    ] {
        let annotations = json!({"org.opencontainers.image.title": title});
        let digest = format!("sha256:{}", "0".repeat(64));
        let manifest = json!({
            "schemaVersion": 2,
            "config": {"mediaType": unknown, "digest": digest, "size": 1},
            "layers": [{"mediaType": TAR, "digest": digest, "size": size, "annotations": annotations}],
        });
        let bytes = manifest.to_string().into_bytes();
        let front = Front::start(None, move |seen| {
            let is_manifest = seen.path.contains("/manifests/");
            is_manifest.then(|| Fault::Bytes(bytes.clone()))
        });
        let front = front.await?;
        let image = format!("{}/files:1", front.host);
        let found = outcome(Reader::new()?.fetch(&image, "").await);
        ensure!(found.contains(expected), "{found}");
        assert_eq!(fetched(&front), 0, "{found}");
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
async fn one_platform_of_an_index() -> Result<()> {
    let mut tally = Tally::new("sources::image::platforms");
    let registry = Registry::start(Door::Open).await?;
    let mut digests = Vec::new();
    for name in ["arm", "amd", "windows"] {
        let layers = [layer(TAR, tar(&[("m/a.yaml", name)])?)];
        digests.push(registry.push("app", name, CONFIG, &layers).await?);
    }
    let [arm, amd, windows] = &digests[..] else {
        anyhow::bail!("three images");
    };
    let all = [
        ("windows", "amd64", windows.as_str()),
        ("linux", "s390x", arm.as_str()),
        ("linux", "amd64", amd.as_str()),
    ];
    let index = registry.push_index("app", "all", &all).await?;
    registry.push_index("app", "other", &all[..2]).await?;
    registry
        .push_index("app", "windows-only", &all[..1])
        .await?;
    let image = |name: &str| format!("{}/app{name}", registry.host);
    for (name, expected, digest) in [
        (":all".to_owned(), "a.yaml:amd", amd),
        (format!("@{index}"), "a.yaml:amd", amd),
        (":other".to_owned(), "a.yaml:arm", arm),
    ] {
        let fetched = Reader::new()?.fetch(&image(&name), "/m").await?;
        assert_eq!(files(&fetched), expected, "{name}");
        assert_eq!(fetched.resolved.as_ref(), Some(digest), "{name}");
        tally.ran();
    }
    let error = outcome(Reader::new()?.fetch(&image(":windows-only"), "/m").await);
    ensure!(error.contains("only for windows/amd64"), "{error}");
    tally.ran();
    Ok(())
}
