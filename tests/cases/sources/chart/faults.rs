//! Servers that are broken, exchanged or hostile.

use std::fs;

use addons_tests::servers::charts::{Charts, Fault, Options};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

use super::rig::{Rig, shelf};

/// Nine levels of nine: YAML's billion laughs.
fn laughs() -> Vec<u8> {
    let mut text = "entries:\n  web:\n  - &a0 {x: y}\n".to_owned();
    for level in 1..10 {
        let before = level - 1;
        let items = vec![format!("*a{before}"); 9].join(", ");
        text.push_str(&format!("  - &a{level} [{items}]\n"));
    }
    text.into_bytes()
}

#[tokio::test]
async fn what_a_server_can_do_wrong() -> Result<()> {
    let mut tally = Tally::new("sources::chart faults");
    let shelf = shelf()?;
    let archive = fs::read(shelf.path().join("web-1.0.0.tgz"))?;
    let other = fs::read(shelf.path().join("web-1.9.0.tgz"))?;
    let half = archive[..archive.len() / 2].to_vec();
    let (index, tgz) = ("/index.yaml", "/web-1.0.0.tgz");
    for (path, fault, words) in [
        (index, Fault::Truncate, "cannot be fetched"),
        (
            index,
            Fault::Other(b"<html></html>".to_vec()),
            "this is not the index of a chart repository",
        ),
        (
            index,
            Fault::Other(b"entries: [\n".to_vec()),
            "the index cannot be read as YAML, line",
        ),
        (
            index,
            Fault::Other(laughs()),
            "the index cannot be read as YAML, line",
        ),
        (index, Fault::Endless, "is larger than 64 MiB"),
        (
            index,
            Fault::Redirect("ftp://127.0.0.1/index.yaml".to_owned()),
            "it leads to another scheme",
        ),
        (
            index,
            Fault::Redirect("file:///etc/passwd".to_owned()),
            "it leads to another scheme",
        ),
        (
            index,
            Fault::Redirect(index.to_owned()),
            "too many redirects",
        ),
        (index, Fault::Status("304 Not Modified"), "304 Not Modified"),
        (tgz, Fault::Truncate, "cannot be fetched"),
        (tgz, Fault::Other(half.clone()), "the index says sha256:"),
        (
            tgz,
            Fault::Other(other),
            "the archive was replaced, or the index is out of date",
        ),
        (tgz, Fault::Endless, "is larger than 64 MiB"),
        (
            tgz,
            Fault::Status("403 Forbidden"),
            "the server answers 403 Forbidden",
        ),
    ] {
        let charts = Charts::serve(shelf.path(), &Options::default())?;
        let rig = Rig::new()?;
        charts.fault(path, fault.clone());
        let error = rig.error(&charts, "web", Some("1.0.0"), None).await?;
        let name = format!("{fault:.60?}");
        ensure!(error.contains(words), "{name}: {error}");
        ensure!(error.starts_with(charts.url()), "{name}: {error}");
        ensure!(
            error.lines().count() == 1 && error.len() < 600,
            "{name}: {error}"
        );
        // Nothing of it is kept.
        let offline = rig
            .offline()
            .error(&charts, "web", Some("1.0.0"), None)
            .await;
        ensure!(path == index || offline.is_ok(), "{name}: {offline:?}");
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
async fn without_a_digest_the_archive_has_to_be_one() -> Result<()> {
    let mut tally = Tally::new("sources::chart without digest");
    let shelf = shelf()?;
    let text = shelf.read_index()?;
    let text: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("digest:"))
        .collect();
    shelf.write_index(&text.join("\n"))?;
    let charts = Charts::serve(shelf.path(), &Options::default())?;
    let rig = Rig::new()?;
    let archive = fs::read(shelf.path().join("web-1.0.0.tgz"))?;
    let half = archive[..archive.len() / 2].to_vec();
    for (bytes, words) in [
        (half, "it is not a .tgz archive, or it is cut off"),
        (
            b"<html></html>".to_vec(),
            "it is not a .tgz archive, or it is cut off",
        ),
        (bomb()?, "it is larger than 64 MiB unpacked"),
    ] {
        charts.fault("/web-1.0.0.tgz", Fault::Other(bytes));
        let error = rig.error(&charts, "web", Some("1.0.0"), None).await?;
        ensure!(error.contains(words), "{error}");
        tally.ran();
    }
    // It is said, and asked for once.
    let fetched = rig.fetch(&charts, "web", Some("1.9.0"), None).await?;
    let resolved = fetched.resolved.unwrap_or_default();
    ensure!(
        resolved.ends_with(" (the index names no digest)"),
        "{resolved}"
    );
    let _ = charts.seen();
    let again = rig.fetch(&charts, "web", Some("~1.9"), None).await?;
    ensure!(again.resolved == Some(resolved) && charts.seen().len() == 1);
    tally.ran();
    Ok(())
}

/// 80 MB of zeros in 80 KB.
fn bomb() -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::fast(),
    ));
    let mut header = tar::Header::new_gnu();
    let zeros = vec![0; 80 << 20];
    header.set_size(zeros.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "web/Chart.yaml", zeros.as_slice())?;
    Ok(tar.into_inner()?.finish()?)
}
