//! Lists of registries that come in pages: of tags, and of what refers to a manifest.

use addons_sources::registry::{RegistryAccessError, RegistryClient, reference};
use addons_tests::servers::http::{Answer, Seen, Server};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use serde_json::json;

use super::image::{Reader, text};

const SUBJECT: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

/// A registry whose lists have this many pages, with one entry on each.
fn registry(pages: usize) -> Result<Server> {
    // Fails only where one was installed before.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Server::start(None, move |seen: &Seen| {
        let (path, query) = seen.uri.split_once('?').unwrap_or((&seen.uri, ""));
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        let number = pairs.find(|(key, _)| key == "page");
        let number = number.and_then(|(_, value)| value.parse::<usize>().ok());
        let number = number.unwrap_or(1);
        let page = if path.ends_with("/tags/list") {
            json!({"tags": [format!("v{number}")]})
        } else if path.contains("/referrers/") {
            json!({"manifests": [{"digest": format!("sha256:{number:064x}")}]})
        } else {
            return Answer::status(404);
        };
        let answer = Answer::ok(page.to_string());
        match number < pages {
            true => answer.with(
                "link",
                format!("<{path}?page={}>; rel=\"next\"", number + 1),
            ),
            false => answer,
        }
    })
}

/// How many entries were found, or the error.
fn outcome<T>(listed: Result<Vec<T>, RegistryAccessError>) -> String {
    match listed {
        Ok(entries) => entries.len().to_string(),
        Err(error) => text(&error),
    }
}

/// A signature on a page that nobody reads would be one that does not count, and an export would leave it behind.
#[tokio::test]
async fn every_page_is_read_or_the_list_is_an_error() -> Result<()> {
    let mut tally = Tally::new("sources::pages");
    for (pages, tags, referrers) in [
        (1, "1", "1"),
        (3, "3", "3"),
        (50, "50", "50"),
        (
            51,
            "/team/app: the list of its tags has too many pages",
            "/team/app@sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a: the list of its \
             referrers has too many pages",
        ),
    ] {
        let server = registry(pages)?;
        let reader = Reader::new()?;
        let name = reference(&format!("{}/team/app:1", server.host()))?;
        let mut registry = RegistryClient::open(&name, true, &reader.access())?;
        let found = outcome(registry.tags().await);
        ensure!(found.ends_with(tags), "{pages} pages of tags: {found}");
        let found = outcome(registry.referrers(SUBJECT).await);
        ensure!(
            found.ends_with(referrers),
            "{pages} pages of referrers: {found}"
        );
        tally.ran();
    }
    Ok(())
}

/// A registry that is too busy for a list is not one without lists: what is in it would be left out without a word.
#[tokio::test]
async fn a_list_that_is_refused_for_now_is_an_error() -> Result<()> {
    let mut tally = Tally::new("sources::pages::refused");
    // Fails only where one was installed before.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    for (status, expected) in [
        (404, "0"),
        (405, "0"),
        (501, "0"),
        (408, "the registry answers 408 Request Timeout"),
        (429, "the registry answers 429 Too Many Requests"),
    ] {
        let server = Server::start(None, move |seen: &Seen| {
            let is_list = seen.uri.contains("/referrers/");
            Answer::status(if is_list { status } else { 404 })
        })?;
        let reader = Reader::new()?;
        let name = reference(&format!("{}/team/app:1", server.host()))?;
        let mut registry = RegistryClient::open(&name, true, &reader.access())?;
        let found = outcome(registry.referrers(SUBJECT).await);
        ensure!(found.ends_with(expected), "{status}: {found}");
        // Asked anew, for the error says nothing about the list.
        let lists = registry.lists_referrers(SUBJECT).await;
        ensure!(lists.is_err() == (expected != "0"), "{status}: {lists:?}");
        tally.ran();
    }
    Ok(())
}

/// Whether there is a list at all is known from its first page.
#[tokio::test]
async fn one_page_says_that_there_is_a_list() -> Result<()> {
    let server = registry(51)?;
    let reader = Reader::new()?;
    let name = reference(&format!("{}/team/app:1", server.host()))?;
    let mut registry = RegistryClient::open(&name, true, &reader.access())?;
    ensure!(registry.lists_referrers(SUBJECT).await?);
    assert_eq!(server.requests().len(), 1);
    Ok(())
}
