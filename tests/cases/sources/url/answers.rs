//! What servers do wrong: what is tried again, what is refused, and with how many requests.

use std::io::Write as _;

use addons_tests::control_plane::pki::Authority;
use addons_tests::servers::http::{Answer, Seen, Server};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Bytes;

use crate::sources::reader::{Reader, secret};

const MIB: usize = 1 << 20;

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// The path names the fault; after `/then/` the second answer is a good one.
fn answer(request: &Seen, bomb: &Bytes, packed: &Bytes) -> Answer {
    let path = match request.uri.strip_prefix("/then") {
        Some(_) if request.before > 0 => return Answer::ok("a: 1\n"),
        Some(path) => path,
        None => &request.uri,
    };
    let piece = || Bytes::from(vec![b'#'; MIB]);
    match path {
        "/404" => Answer::status(404),
        "/500" => Answer::status(500),
        "/503" => Answer::status(503),
        "/429" => Answer::status(429).with("retry-after", "0"),
        "/tomorrow" => Answer::status(429).with("retry-after", "86400"),
        "/hang-up" => Answer::none(),
        "/short" => Answer::chunks(["a:".into()])
            .with("content-length", "5")
            .cut(),
        "/chunks" => Answer::chunks(["a:".into()]).cut(),
        "/short-gzip" => {
            let half = packed.slice(..packed.len() / 2);
            Answer::ok(half).with("content-encoding", "gzip")
        }
        "/gzip" => Answer::ok(packed.clone()).with("content-encoding", "gzip"),
        "/announced" => Answer::chunks(std::iter::repeat_with(piece))
            .with("content-length", (16 * MIB + 1).to_string()),
        "/endless" | "/endless.tgz" => Answer::chunks(std::iter::repeat_with(piece)),
        "/bomb" => Answer::ok(bomb.clone()).with("content-encoding", "gzip"),
        "/20-mib.tgz" => Answer::ok(vec![0; 20 * MIB]),
        _ => Answer::ok("a: 1\n"),
    }
}

#[tokio::test]
async fn faults_and_how_often_they_are_asked() -> Result<()> {
    let mut tally = Tally::new("url::faults_and_how_often_they_are_asked");
    let bomb = Bytes::from(gzip(&vec![0; 64 * MIB])?);
    let packed = Bytes::from(gzip(b"a: 1\n")?);
    let server = Server::start(None, move |request| answer(request, &bomb, &packed))?;
    let cases = [
        ("/404", Err("the server answers 404 Not Found"), 1),
        (
            "/500",
            Err("the server answers 500 Internal Server Error"),
            4,
        ),
        ("/then/503", Ok(()), 2),
        ("/429", Err("the server answers 429 Too Many Requests"), 4),
        ("/then/429", Ok(()), 2),
        (
            "/tomorrow",
            Err("429 Too Many Requests and asks to come back in 86400 s; run this again then"),
            1,
        ),
        ("/hang-up", Err("cannot be fetched: "), 4),
        ("/short", Err("cannot be fetched: "), 4),
        ("/then/short", Ok(()), 2),
        ("/chunks", Err("cannot be fetched: "), 4),
        ("/then/chunks", Ok(()), 2),
        ("/short-gzip", Err("cannot be fetched: "), 4),
        ("/then/short-gzip", Ok(()), 2),
        ("/gzip", Ok(()), 1),
        ("/announced", Err("is larger than 16 MiB"), 1),
        ("/endless", Err("is larger than 16 MiB"), 1),
        ("/endless.tgz", Err("is larger than 64 MiB"), 1),
        ("/bomb", Err("is larger than 16 MiB"), 1),
    ];
    // At once, for they wait between their tries.
    let all = cases.map(async |(path, expected, requests)| {
        let reader = Reader::new()?;
        let url = server.url(path);
        match expected {
            Ok(()) => ensure!(reader.text(&url).await? == "a: 1\n", "{path}"),
            Err(words) => {
                let refusal = reader.refusal(&url).await?;
                ensure!(
                    refusal.contains(words) && refusal.contains(&url),
                    "{path}: {refusal}"
                );
            }
        }
        let seen = server.requests();
        let seen = seen.iter().filter(|request| request.uri == path).count();
        ensure!(seen == requests, "{path}: {seen} requests");
        Ok(())
    });
    for result in futures::future::join_all(all).await {
        result?;
        tally.ran();
    }
    let archive = Reader::new()?.read(&server.url("/20-mib.tgz")).await?;
    ensure!(archive.bytes.len() == 20 * MIB);
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn half_an_answer_is_not_kept() -> Result<()> {
    let server = Server::start(None, |_| {
        Answer::chunks(["a:".into()])
            .with("etag", "\"1\"")
            .with("content-length", "5")
            .cut()
    })?;
    let mut reader = Reader::new()?;
    let url = server.url("/a.yaml");
    reader.refusal(&url).await?;
    reader.offline = true;
    let refusal = reader.refusal(&url).await?;
    ensure!(refusal.contains("is not in the cache"), "{refusal}");
    Ok(())
}

#[tokio::test]
async fn a_server_that_does_not_listen() -> Result<()> {
    let gone = Server::start(None, |_| Answer::ok(""))?.url("/a.yaml");
    let refusal = Reader::new()?.refusal(&gone).await?;
    ensure!(
        refusal.starts_with(&format!("{gone} cannot be fetched: ")),
        "{refusal}"
    );
    ensure!(refusal.contains("refused"), "{refusal}");
    Ok(())
}

#[tokio::test]
async fn certificates() -> Result<()> {
    let mut tally = Tally::new("url::certificates");
    let authority = Authority::new("ours")?;
    let server = Server::start(Some(&authority.serving("web", &["127.0.0.1"])?), |_| {
        Answer::ok("a: 1\n")
    })?;
    let url = server.url("/a.yaml");
    let with = |authority: &str| {
        let data = [("username", ""), ("password", ""), ("ca.crt", authority)];
        Reader::with(&secret("kubernetes.io/basic-auth", &data, "127.0.0.1"))
    };
    let reader = with(&authority.certificate)?;
    ensure!(reader.text(&url).await? == "a: 1\n");
    // A Secret without user and password proves nothing.
    let requests = server.requests();
    ensure!(
        requests
            .iter()
            .all(|request| !request.headers.contains_key("authorization"))
    );
    tally.ran();
    let other = Authority::new("another")?.certificate;
    for (reader, words) in [
        (
            Reader::new()?,
            "the certificate of the server cannot be trusted",
        ),
        (
            with(&other)?,
            "the certificate of the server cannot be trusted",
        ),
        (
            with("no PEM")?,
            "key ca.crt of Secret addons/token holds no certificate in PEM",
        ),
    ] {
        let refusal = reader.refusal(&url).await?;
        ensure!(refusal.contains(words), "{refusal}");
        tally.ran();
    }
    ensure!(server.requests().len() == 1);
    Ok(())
}

#[tokio::test]
async fn files_are_for_the_user_of_this_machine() -> Result<()> {
    let mut tally = Tally::new("url::files_are_for_the_user_of_this_machine");
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.yaml");
    std::fs::write(&path, "a: 1\n")?;
    let path = path.to_string_lossy();
    let mut reader = Reader::new()?;
    for location in [
        path.to_string(),
        format!("file://{path}"),
        format!("FILE://{path}"),
    ] {
        reader.ambient = true;
        ensure!(reader.text(&location).await? == "a: 1\n");
        reader.ambient = false;
        let refusal = reader.refusal(&location).await?;
        ensure!(
            refusal.contains("cannot name files of this machine"),
            "{refusal}"
        );
        tally.ran();
    }
    for (location, words) in [
        (
            "ftp://h/a.yaml",
            "ftp://h/a.yaml: ftp:// is not supported; use a file, ",
        ),
        ("http://[h/a.yaml", "http://[h/a.yaml is not a valid URL: "),
        (
            "https://u:hunter2-is-secret@h/a.yaml",
            "https://h/a.yaml: a user name or password in a URL",
        ),
        (
            "https://u:hunter2-is-secret@[h/a.yaml",
            "https://[h/a.yaml is not a valid URL: ",
        ),
    ] {
        let refusal = reader.refusal(location).await?;
        ensure!(refusal.starts_with(words), "{refusal}");
        tally.ran();
    }
    Ok(())
}
