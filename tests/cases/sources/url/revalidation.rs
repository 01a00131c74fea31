//! What has not moved is asked for once and sent never; offline nobody is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use addons_tests::servers::http::{Answer, Server};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

use crate::sources::reader::Reader;

#[tokio::test]
async fn one_question_with_a_warm_cache() -> Result<()> {
    let mut tally = Tally::new("url::one_question_with_a_warm_cache");
    let edition = Arc::new(AtomicUsize::new(1));
    let current = Arc::clone(&edition);
    let server = Server::start(None, move |request| {
        let edition = current.load(Ordering::SeqCst);
        let text = format!("edition: {edition}\n");
        match request.uri.as_str() {
            "/etag" => Answer::tagged(request, &format!("\"{edition}\""), text),
            "/date" => {
                let date = format!("Thu, 0{edition} Jan 2026 00:00:00 GMT");
                match request.headers.get("if-modified-since") {
                    Some(known) if *known == date => Answer::status(304),
                    _ => Answer::ok(text).with("last-modified", date),
                }
            }
            _ => Answer::ok(text),
        }
    })?;
    for (path, statuses) in [
        ("/etag", "a known, a new"),
        ("/date", "a known, a new"),
        ("/plain", ""),
    ] {
        edition.store(1, Ordering::SeqCst);
        let reader = Reader::new()?;
        let url = server.url(path);
        ensure!(reader.text(&url).await? == "edition: 1\n");
        ensure!(
            reader.text(&url).await? == "edition: 1\n",
            "{path}: {statuses}"
        );
        edition.store(2, Ordering::SeqCst);
        ensure!(reader.text(&url).await? == "edition: 2\n");
        let asked = server.requests();
        let asked = asked.iter().filter(|request| request.uri == path);
        let conditions = asked.map(|request| {
            let mut known = ["if-none-match", "if-modified-since"].into_iter();
            known.find_map(|name| request.headers.get(name)).cloned()
        });
        let expected = match path {
            "/etag" => [None, Some("\"1\""), Some("\"1\"")],
            "/date" => {
                let date = Some("Thu, 01 Jan 2026 00:00:00 GMT");
                [None, date, date]
            }
            _ => [None; 3],
        };
        let conditions: Vec<_> = conditions.collect();
        ensure!(
            conditions.iter().map(Option::as_deref).eq(expected),
            "{path}: {conditions:?}"
        );
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
async fn offline_only_the_cache_is_asked() -> Result<()> {
    let mut tally = Tally::new("url::offline_only_the_cache_is_asked");
    let server = Server::start(None, |request| Answer::tagged(request, "\"1\"", "a: 1\n"))?;
    let mut reader = Reader::new()?;
    let (known, unknown) = (server.url("/a.yaml?sig=1"), server.url("/b.yaml"));
    let location = reader.read(&known).await?.location;
    ensure!(location == server.url("/a.yaml?..."), "{location}");
    reader.offline = true;
    let again = reader.read(&known).await?;
    ensure!(
        again.bytes == b"a: 1\n" && again.location == location,
        "{again:?}"
    );
    tally.ran();
    let refusal = reader.refusal(&unknown).await?;
    let expected = format!("{unknown} is not in the cache, and no server may be asked");
    ensure!(refusal == expected, "{refusal}");
    ensure!(server.requests().len() == 1);
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn an_answer_that_nothing_is_known_of() -> Result<()> {
    // Nothing was asked on a condition.
    let server = Server::start(None, |_| Answer::status(304))?;
    let url = server.url("/a.yaml");
    let refusal = Reader::new()?.refusal(&url).await?;
    ensure!(
        refusal == format!("{url}: the server answers 304 Not Modified"),
        "{refusal}"
    );
    Ok(())
}

/// A redirect that leads back to something older: its date is no reason to keep what was there before. Some servers name the
/// edition in the query alone.
#[tokio::test]
async fn another_place_is_not_asked_whether_it_moved() -> Result<()> {
    let mut tally = Tally::new("url::another_place_is_not_asked_whether_it_moved");
    for place in ["/", "/files?edition="] {
        let back = Arc::new(AtomicUsize::new(0));
        let current = Arc::clone(&back);
        let server = Server::start(None, move |request| match request.uri.as_str() {
            "/latest" if current.load(Ordering::SeqCst) == 0 => Answer::moved(format!("{place}2")),
            "/latest" => Answer::moved(format!("{place}1")),
            path => match request.headers.get("if-modified-since") {
                // As web servers do: not modified since then.
                Some(_) => Answer::status(304),
                None => Answer::ok(format!("edition: {}\n", path.trim_start_matches(place)))
                    .with("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
            },
        })?;
        let reader = Reader::new()?;
        let url = server.url("/latest");
        ensure!(reader.text(&url).await? == "edition: 2\n");
        ensure!(reader.text(&url).await? == "edition: 2\n");
        let asked = server.requests();
        let last = asked.last().map(|request| &request.headers);
        ensure!(last.is_some_and(|headers| headers.contains_key("if-modified-since")));
        back.store(1, Ordering::SeqCst);
        ensure!(reader.text(&url).await? == "edition: 1\n", "{place}");
        tally.ran();
    }
    Ok(())
}
