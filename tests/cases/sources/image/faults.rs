//! What comes is not what was asked for: cut off, exchanged, endless, or made to do harm.

use std::time::{Duration, Instant};

use addons_tests::servers::http::{Answer, Server};
use addons_tests::servers::registry::front::{Fault, Front, Seen};
use addons_tests::servers::registry::{Door, Layer, Registry, digest};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use serde_json::json;

use super::{CONFIG, GZIP, Reader, TAR, gzip, layer, outcome, push_app, tar};

const APP: &str = "a.yaml:new b.yaml:b";

/// What the fault hits.
type Hits = fn(&Seen) -> bool;

#[tokio::test]
async fn on_the_way() -> Result<()> {
    let mut tally = Tally::new("sources::image::faults");
    let registry = Registry::start(Door::Open).await?;
    push_app(&registry, "team/app", "1").await?;
    for (name, hits, fault, expected) in faults().into_iter().chain(other_faults()) {
        let front = Front::start(Some(&registry), move |seen| {
            hits(seen).then(|| fault.clone())
        });
        let front = front.await?;
        let image = format!("{}/team/app:1", front.host);
        let found = outcome(Reader::new()?.fetch(&image, "/m").await);
        ensure!(found.contains(expected), "{name}: {found}");
        tally.ran();
    }
    Ok(())
}

/// A name, what is hit by which fault, and the files or words that come of it.
fn faults() -> Vec<(&'static str, Hits, Fault, &'static str)> {
    let blob: Hits = |seen| seen.path.contains("/blobs/");
    let at_first: Hits = |seen| seen.before < 2;
    let cut_once: Hits = |seen| seen.path.contains("/blobs/") && seen.before == 0;
    let first_manifests: Hits = |seen| seen.path.contains("/manifests/") && seen.before < 2;
    let around: Hits = |_| true;
    vec![
        ("429 at first", at_first, Fault::Status(429), APP),
        ("503 at first", at_first, Fault::Status(503), APP),
        (
            "429 for ever",
            around,
            Fault::Status(429),
            "answers 429 Too Many Requests",
        ),
        ("500 for a layer", blob, Fault::Status(500), "answers 500"),
        ("a layer is gone", blob, Fault::Status(404), "was not found"),
        (
            "a layer is cut",
            blob,
            Fault::Cut(b"half".to_vec()),
            "cannot be fetched",
        ),
        (
            "a layer is cut once",
            cut_once,
            Fault::Cut(vec![0x1f, 0x8b]),
            APP,
        ),
        (
            "a manifest is cut at first",
            first_manifests,
            Fault::Cut(b"{".to_vec()),
            APP,
        ),
        (
            "a layer is short",
            blob,
            Fault::Bytes(b"half".to_vec()),
            "only 4 bytes",
        ),
        (
            "a layer is none",
            blob,
            Fault::Bytes(Vec::new()),
            "only 0 bytes",
        ),
        ("a layer has no end", blob, Fault::Endless, "more than"),
    ]
}

/// The same for manifests and redirects.
fn other_faults() -> Vec<(&'static str, Hits, Fault, &'static str)> {
    let manifest: Hits = |seen| seen.path.contains("/manifests/");
    let blob: Hits = |seen| seen.path.contains("/blobs/");
    let nowhere = "ftp://127.0.0.1/x".to_owned();
    let around: Hits = |_| true;
    let forged = br#"{"schemaVersion": 2, "config": {"mediaType": "c", "digest": "d", "size": 1}, "layers": []}"#;
    vec![
        (
            "a manifest is cut",
            manifest,
            Fault::Cut(b"{\"a\":".to_vec()),
            "cannot be fetched",
        ),
        (
            "a manifest has no end",
            manifest,
            Fault::Endless,
            "it is larger than 4 MiB",
        ),
        (
            "no manifest",
            manifest,
            Fault::Bytes(b"<html>".to_vec()),
            "the manifest cannot be read",
        ),
        (
            "an empty manifest",
            manifest,
            Fault::Bytes(forged.to_vec()),
            "/ holds nothing",
        ),
        (
            "another scheme",
            blob,
            Fault::Redirect(nowhere),
            "it leads to another scheme",
        ),
        (
            "round and round",
            around,
            Fault::Redirect("/v2/".to_owned()),
            "too many redirects",
        ),
    ]
}

/// A registry that wants to be left alone for an hour is; one that wants a second gets it.
#[tokio::test]
async fn when_to_come_back() -> Result<()> {
    let mut tally = Tally::new("sources::image::when_to_come_back");
    for (seconds, requests) in [("3600", 1), ("1", 2)] {
        let server = Server::start(None, move |request| match request.before {
            0 => Answer::status(429).with("retry-after", seconds),
            _ => Answer::status(404),
        })?;
        let began = Instant::now();
        let found = outcome(
            Reader::new()?
                .fetch(&format!("{}/app:1", server.host()), "/m")
                .await,
        );
        assert_eq!(server.requests().len(), requests, "{seconds}: {found}");
        ensure!(requests == 1 || began.elapsed() >= Duration::from_secs(1));
        tally.ran();
    }
    Ok(())
}

/// The token of a large layer expires while that is read: the rest is asked for with a new one.
#[tokio::test]
async fn a_token_that_expires_on_the_way() -> Result<()> {
    let mut tally = Tally::new("sources::image::expired");
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let blob = tar(&[("m/a.yaml", "a")])?;
    let manifest = json!({
        "schemaVersion": 2,
        "config": {"mediaType": CONFIG, "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": TAR, "digest": digest(&blob), "size": blob.len()}],
    });
    for (fresh, expected, asked) in [
        ("Bearer number1", "a.yaml:a", 3),
        // One that is refused whatever it brings.
        ("Bearer none", "refuses requests without credentials", 4),
    ] {
        let (blob, manifest) = (blob.clone(), manifest.to_string());
        let server = Server::start(None, move |request| {
            let host = request.headers.get("host").map_or("", String::as_str);
            let challenge = format!("Bearer realm=\"http://{host}/token\",service=\"x\"");
            let token = request.headers.get("authorization").map(String::as_str);
            let is_blob = request.uri.contains("/blobs/");
            match token {
                None if request.uri.starts_with("/token?") => {
                    let token = format!("number{}", request.before);
                    Answer::ok(json!({"token": token}).to_string())
                }
                Some(_) if !is_blob => Answer::ok(manifest.clone()),
                Some(_) if request.before == 0 => {
                    let half = blob.get(..blob.len() / 2).unwrap_or_default();
                    Answer::chunks([half.to_vec().into()]).cut()
                }
                Some(token) if token == fresh => Answer::ok(blob.clone()),
                _ => Answer::status(401).with("www-authenticate", challenge),
            }
        })?;
        let image = format!("{}/app:1", server.host());
        let found = outcome(Reader::new()?.fetch(&image, "/m").await);
        ensure!(found.contains(expected), "{found}");
        let requests = server.requests();
        let blobs = requests.iter().filter(|seen| seen.uri.contains("/blobs/"));
        assert_eq!(blobs.count(), asked, "{requests:?}");
        tally.ran();
    }
    Ok(())
}

/// Bytes of the right size, and other ones; a manifest of another digest.
#[tokio::test]
async fn exchanged() -> Result<()> {
    let mut tally = Tally::new("sources::image::exchanged");
    let registry = Registry::start(Door::Open).await?;
    let bytes = gzip(&tar(&[("m/a.yaml", "a")])?)?;
    let layers = [layer(GZIP, bytes.clone())];
    let digest = registry.push("app", "1", CONFIG, &layers).await?;
    let mut other = bytes.clone();
    if let Some(last) = other.last_mut() {
        *last ^= 1;
    }
    let mut nonsense = bytes;
    nonsense.fill(b'x');
    for exchanged in [other, nonsense] {
        let front = Front::start(Some(&registry), move |seen| {
            let is_blob = seen.path.contains("/blobs/");
            is_blob.then(|| Fault::Bytes(exchanged.clone()))
        });
        let front = front.await?;
        let found = outcome(
            Reader::new()?
                .fetch(&format!("{}/app:1", front.host), "/m")
                .await,
        );
        ensure!(found.contains("has digest"), "{found}");
        tally.ran();
    }
    let front = Front::start(Some(&registry), |_| Some(Fault::Bytes(b"{}".to_vec()))).await?;
    let image = format!("{}/app@{digest}", front.host);
    let found = outcome(Reader::new()?.fetch(&image, "/m").await);
    ensure!(found.contains("has digest"), "{found}");
    tally.ran();
    Ok(())
}

/// Archives made to do harm, in a registry, which does not look into them.
#[tokio::test]
async fn made_to_do_harm() -> Result<()> {
    let mut tally = Tally::new("sources::image::harm");
    let registry = Registry::start(Door::Open).await?;
    let raw = |name: &[u8], kind: tar::EntryType, size: u64| -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        if let Some(place) = header.as_old_mut().name.get_mut(..name.len()) {
            place.copy_from_slice(name);
        }
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_cksum();
        header.as_bytes().to_vec()
    };
    let zeros = [
        raw(b"m/zeros", tar::EntryType::Regular, 48 << 20),
        vec![0; 48 << 20],
    ]
    .concat();
    let rows = [
        ("bomb", gzip(&zeros)?, "a decompression bomb"),
        (
            "slip",
            gzip(&raw(b"../../etc/passwd", tar::EntryType::Regular, 0))?,
            "\"../../etc/passwd\" leads out of the image",
        ),
        (
            "pax",
            gzip(&raw(b"pax", tar::EntryType::XHeader, 4 << 30))?,
            "more than 1 MiB",
        ),
        (
            "name",
            gzip(&raw(b"name", tar::EntryType::GNULongName, 4 << 30))?,
            "more than 1 MiB",
        ),
        (
            "end",
            gzip(&raw(b"m/a", tar::EntryType::Regular, 9))?,
            "its archive is damaged",
        ),
        (
            "noise",
            b"no gzip at all".to_vec(),
            "its archive is damaged",
        ),
        ("empty", gzip(&[0; 1024])?, "there is no /m"),
    ];
    for (name, bytes, expected) in rows {
        let layers: [Layer; 1] = [layer(GZIP, bytes)];
        registry.push(name, "1", CONFIG, &layers).await?;
        let image = format!("{}/{name}:1", registry.host);
        let found = outcome(Reader::new()?.fetch(&image, "/m").await);
        ensure!(found.contains(expected), "{name}: {found}");
        tally.ran();
    }
    // An absolute name is one of the image, and a device is nothing.
    let mut odd = raw(b"/m/a.yaml", tar::EntryType::Regular, 0);
    odd.extend(raw(b"m/null", tar::EntryType::Char, 0));
    odd.extend([0; 1024]);
    registry
        .push("odd", "1", CONFIG, &[layer(GZIP, gzip(&odd)?)])
        .await?;
    let found = Reader::new()?
        .fetch(&format!("{}/odd:1", registry.host), "/m")
        .await?;
    assert_eq!(super::files(&found), "a.yaml:");
    tally.ran();
    Ok(())
}
