//! User names and passwords go to the hosts that their Secret names, and nowhere else.

use addons_tests::servers::http::{Answer, Seen, Server};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::Secret;

use crate::sources::reader::{PASSWORD, Reader, secret};

fn ours(password: &str, hosts: &str) -> Secret {
    let data = [("username", "me"), ("password", password)];
    secret("kubernetes.io/basic-auth", &data, hosts)
}

fn expected() -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("me:{PASSWORD}")))
}

/// A server for those who have the password.
fn closed() -> Result<Server> {
    Server::start(None, |request| match request.headers.get("authorization") {
        None => Answer::status(401),
        Some(given) if *given == expected() => Answer::tagged(request, "\"1\"", "a: 1\n"),
        Some(_) => Answer::status(403),
    })
}

#[tokio::test]
async fn with_without_and_with_wrong_ones() -> Result<()> {
    let mut tally = Tally::new("url::with_without_and_with_wrong_ones");
    let server = closed()?;
    let url = server.url("/a.yaml");
    for hosts in [
        "127.0.0.1".to_owned(),
        server.host(),
        format!("example.test, {}", server.host()),
    ] {
        let reader = Reader::with(&ours(PASSWORD, &hosts))?;
        ensure!(reader.text(&url).await? == "a: 1\n", "{hosts}");
        reader.keeps_no_secret()?;
        tally.ran();
    }
    let before = server.requests().len();
    for (reader, words, requests) in [
        (
            Reader::new()?,
            "the server answers 401 Unauthorized without credentials; the source's auth.secretRef can name a Secret of type \
             kubernetes.io/basic-auth",
            1,
        ),
        (
            Reader::with(&ours("hunter1", "127.0.0.1"))?,
            "the server answers 403 Forbidden to the credentials of Secret addons/token; correct them",
            1,
        ),
        (
            Reader::with(&ours(PASSWORD, "example.test"))?,
            "Secret addons/token may not be sent to 127.0.0.1",
            0,
        ),
        (
            Reader::with(&secret(
                "kubernetes.io/dockerconfigjson",
                &[(".dockerconfigjson", "{}")],
                "127.0.0.1",
            ))?,
            "Secret addons/token has a type that cannot be used for an http(s) URL, which takes kubernetes.io/basic-auth",
            0,
        ),
    ] {
        let asked = server.requests().len();
        let refusal = reader.refusal(&url).await?;
        ensure!(refusal.contains(words), "{refusal}");
        let asked = server.requests().len() - asked;
        ensure!(asked == requests, "{asked} requests: {refusal}");
        tally.ran();
    }
    ensure!(server.requests().len() == before + 2);
    Ok(())
}

#[tokio::test]
async fn never_without_tls_but_on_this_machine() -> Result<()> {
    let reader = Reader::with(&ours(PASSWORD, "example.test"))?;
    let refusal = reader.refusal("http://example.test/a.yaml").await?;
    let expected = "http://example.test/a.yaml: Secret addons/token is not sent to example.test over plain HTTP; \
         use https://, and for a registry leave out plainHTTP";
    ensure!(refusal == expected, "{refusal}");
    Ok(())
}

#[tokio::test]
async fn what_a_secret_opened_is_not_for_others() -> Result<()> {
    let server = closed()?;
    let url = server.url("/a.yaml");
    let mut reader = Reader::with(&ours(PASSWORD, "127.0.0.1"))?;
    ensure!(reader.text(&url).await? == "a: 1\n");
    let credentials = reader.credentials.take();
    let refusal = reader.refusal(&url).await?;
    ensure!(refusal.contains("401 Unauthorized"), "{refusal}");
    reader.offline = true;
    let refusal = reader.refusal(&url).await?;
    ensure!(refusal.contains("is not in the cache"), "{refusal}");
    reader.credentials = credentials;
    ensure!(reader.text(&url).await? == "a: 1\n");
    ensure!(server.requests().len() == 2);
    Ok(())
}

#[tokio::test]
async fn no_other_host_gets_them() -> Result<()> {
    let mut tally = Tally::new("url::no_other_host_gets_them");
    let other = Server::start(None, |_| Answer::ok("a: 1\n"))?;
    let port = other.url("/other-port");
    let name = other.url("/other-name").replace("127.0.0.1", "localhost");
    let (to_port, to_name) = (port, name);
    let server = Server::start(None, move |request: &Seen| match request.uri.as_str() {
        "/other-port" => Answer::moved(&to_port),
        "/other-name" => Answer::moved(&to_name),
        "/same" => Answer::moved("/there"),
        _ => Answer::ok("a: 1\n"),
    })?;
    // Even where the Secret names the other one as well.
    let reader = Reader::with(&ours(PASSWORD, "127.0.0.1 localhost"))?;
    for path in ["/other-port", "/other-name", "/same"] {
        ensure!(reader.text(&server.url(path)).await? == "a: 1\n", "{path}");
        tally.ran();
    }
    let given = |server: &Server| {
        let requests = server.requests().into_iter();
        let requests = requests.map(|request| {
            let given = request.headers.contains_key("authorization");
            (request.uri, given)
        });
        requests.collect::<Vec<_>>()
    };
    let all = |paths: &[&str], given| {
        let paths = paths.iter();
        paths
            .map(|path| ((*path).to_owned(), given))
            .collect::<Vec<_>>()
    };
    ensure!(
        given(&other) == all(&["/other-port", "/other-name"], false),
        "{:?}",
        given(&other)
    );
    let ours = all(&["/other-port", "/other-name", "/same", "/there"], true);
    ensure!(given(&server) == ours, "{:?}", given(&server));
    Ok(())
}
