//! Where answers lead: no other scheme but from http to https, no end in sight, the machine's own services; and proxies.

use std::process::Command;

use addons_tests::binaries;
use addons_tests::control_plane::pki::Authority;
use addons_tests::servers::http::{Answer, Seen, Server};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

use crate::sources::reader::{PASSWORD, Reader, secret};

#[tokio::test]
async fn what_is_followed() -> Result<()> {
    let mut tally = Tally::new("url::what_is_followed");
    let server = Server::start(None, |request: &Seen| match request.uri.as_str() {
        "/five" => Answer::moved("/4"),
        "/4" => Answer::moved("/3"),
        "/3" => Answer::moved("/2"),
        "/2" => Answer::moved("/1"),
        "/1" => Answer::moved("/sub/end.yaml?sig=1"),
        "/six" => Answer::moved("/five"),
        "/loop" => Answer::moved("/loop"),
        "/nowhere" => Answer::moved("http://[h/"),
        "/sub/end.yaml?sig=1" => Answer::ok("a: 1\n"),
        to => Answer::moved(to.trim_start_matches('/')),
    })?;
    let document = Reader::new()?.read(&server.url("/five")).await?;
    ensure!(
        document.location == server.url("/sub/end.yaml?..."),
        "{document:?}"
    );
    tally.ran();
    for (path, words, requests) in [
        ("/six", "too many redirects (more than 5)", 1),
        ("/loop", "too many redirects (more than 5)", 6),
        ("/nowhere", "it leads to something that is not a URL", 1),
        (
            "/file:///etc/passwd",
            "the redirect to file:///etc/passwd is not followed: it leads to another scheme",
            1,
        ),
        (
            "/ftp://h/a.yaml",
            "the redirect to ftp://h/a.yaml is not followed: it leads to another scheme",
            1,
        ),
        (
            "/s3://bucket/a.yaml",
            "the redirect to s3://bucket/a.yaml is not followed: it leads to another scheme",
            1,
        ),
        (
            &format!("/ftp://me:{PASSWORD}@h/a.yaml?sig={PASSWORD}"),
            "the redirect to ftp://h/a.yaml?... is not followed",
            1,
        ),
    ] {
        // The last one's own location is the one that holds it.
        let reader = Reader::new()?;
        let error = reader.read(&server.url(path)).await.err();
        let refusal = error.map(|error| format!("{error:#}")).unwrap_or_default();
        ensure!(refusal.contains(words), "{path}: {refusal}");
        let seen = server.requests();
        let seen = seen.iter().filter(|request| request.uri == path).count();
        ensure!(seen == requests, "{path}: {seen} requests");
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
async fn to_tls_and_never_back() -> Result<()> {
    let mut tally = Tally::new("url::to_tls_and_never_back");
    let plain = Server::start(None, |_| Answer::ok("a: 1\n"))?;
    let authority = Authority::new("ours")?;
    let back = plain.url("/back");
    let tls = Server::start(
        Some(&authority.serving("web", &["127.0.0.1"])?),
        move |request: &Seen| match request.uri.as_str() {
            "/back" => Answer::moved(&back),
            _ => Answer::ok("a: 1\n"),
        },
    )?;
    let to = tls.url("/a.yaml");
    let door = Server::start(None, move |_| Answer::moved(&to))?;
    let data = [("password", PASSWORD), ("ca.crt", &authority.certificate)];
    let reader = Reader::with(&secret("kubernetes.io/basic-auth", &data, "127.0.0.1"))?;
    ensure!(reader.text(&door.url("/a.yaml")).await? == "a: 1\n");
    ensure!(
        !tls.requests()
            .iter()
            .any(|request| request.headers.contains_key("authorization"))
    );
    tally.ran();
    let refusal = reader.refusal(&tls.url("/back")).await?;
    let expected = format!(
        "the redirect to {} is not followed: it leads to another scheme",
        plain.url("/back")
    );
    ensure!(refusal.contains(&expected), "{refusal}");
    ensure!(plain.requests().is_empty());
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn not_to_the_services_of_the_machine() -> Result<()> {
    let mut tally = Tally::new("url::not_to_the_services_of_the_machine");
    let server = Server::start(None, |_| Answer::moved("http://169.254.7.7/"))?;
    let reader = Reader::new()?;
    // Not the address of a real service: a test that fails must not ask that.
    for url in [
        "http://169.254.7.7/",
        "http://2851997447/",
        "http://0xa9fe0707/",
        "http://[::ffff:169.254.7.7]/",
        "http://[fe80::1]/",
        &server.url("/"),
    ] {
        let refusal = reader.refusal(url).await?;
        ensure!(
            refusal.contains("a link-local address, which a catalogue or an installation in the cluster may not name"),
            "{refusal}"
        );
        tally.ran();
    }
    Ok(())
}

/// The settings of a process are its environment, so a process of its own is asked.
#[test]
fn proxies_of_the_environment() -> Result<()> {
    let mut tally = Tally::new("url::proxies_of_the_environment");
    let index =
        "kind: Addons\nspec:\n  addons:\n  - {name: web, version: 1.0.0, manifest: web.yaml}\n";
    let server = Server::start(None, move |_| Answer::ok(index))?;
    let proxy = Server::start(None, move |_| Answer::ok(index))?;
    let home = tempfile::tempdir()?;
    let search = |url: &str, variables: &[(&str, &str)]| -> Result<()> {
        let output = Command::new(binaries::plugin()?)
            .args(["search", "--k8s", "1.36", "--channel", url])
            .env_clear()
            .env("HOME", home.path())
            .envs(variables.iter().copied())
            .output()?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    };
    let through = proxy.url("");
    search(
        "http://example.test/index.yaml",
        &[("HTTP_PROXY", &through)],
    )?;
    let asked = |server: &Server| {
        let requests = server.requests().into_iter();
        requests.map(|request| request.uri).collect::<Vec<_>>()
    };
    ensure!(
        asked(&proxy) == ["http://example.test/index.yaml"],
        "{:?}",
        asked(&proxy)
    );
    tally.ran();
    let url = server.url("/index.yaml");
    search(&url, &[("HTTP_PROXY", &through), ("NO_PROXY", "127.0.0.1")])?;
    ensure!(asked(&server) == ["/index.yaml"] && asked(&proxy).len() == 1);
    tally.ran();
    Ok(())
}
