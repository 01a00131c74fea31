//! Servers that break, lie, or never end.

use addons_sources::git::GitProblem;
use addons_tests::servers::git::{Fault, GitHttp, Options, Repository};
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::Result;

use super::{At, Client};

fn repository() -> Result<(Repository, String)> {
    let repository = Repository::new()?;
    for number in 0..50 {
        repository.write(&format!("{number}.yaml"), format!("number: {number}\n"))?;
    }
    let commit = repository.commit("first")?;
    Ok((repository, commit))
}

#[tokio::test]
async fn answers() -> Result<()> {
    let mut tally = Tally::new("git::answers");
    let (repository, commit) = repository()?;
    let server = GitHttp::start(repository.root(), Options::default()).await?;
    let remote = server.remote();
    for (fault, words) in [
        (Fault::Status(500), "the server answers 500"),
        (Fault::Status(403), "the server denies access"),
        (Fault::Status(404), "is not a git repository"),
        (Fault::Page, "does not speak the git protocol"),
    ] {
        server.breaks(fault);
        Client::new()?
            .refused(&remote, At::Head, "", &[words])
            .await?;
        tally.ran();
    }
    // Wherever an answer to a POST ends: in the refs, in the pack.
    for at in [At::Branch("main"), At::Commit(&commit)] {
        for length in [0, 1, 4, 30, 60, 200, 1000] {
            server.breaks(Fault::Truncate(length));
            Client::new()?.refused(&remote, at, "", &[&remote]).await?;
            tally.ran();
        }
    }
    // One that broke leaves nothing behind.
    server.breaks(Fault::None);
    let client = Client::new()?;
    client.fetch(&remote, At::Head, "").await?;
    server.breaks(Fault::Truncate(10));
    client.refused(&remote, At::Head, "", &[&remote]).await?;
    server.breaks(Fault::None);
    client.fetch(&remote, At::Head, "").await?;
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn a_server_that_does_not_listen() -> Result<()> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port();
    let remote = format!("http://127.0.0.1:{port}/repo.git");
    let error = Client::new()?
        .refused(&remote, At::Head, "", &["cannot be fetched"])
        .await?;
    assert!(
        matches!(error.problem, GitProblem::Http { .. }),
        "{error:?}"
    );
    Ok(())
}

/// A pack without end stops at 256 MiB; where refs are asked for, it is no answer.
#[tokio::test]
async fn endless() -> Result<()> {
    let mut tally = Tally::new("git::endless");
    let (repository, commit) = repository()?;
    let server = GitHttp::start(repository.root(), Options::default()).await?;
    server.breaks(Fault::Endless);
    let error = Client::new()?
        .refused(
            &server.remote(),
            At::Commit(&commit),
            "",
            &["sends more than 256 MiB"],
        )
        .await?;
    assert!(matches!(error.problem, GitProblem::TooLarge), "{error:?}");
    tally.ran();
    Client::new()?
        .refused(&server.remote(), At::Head, "", &[&server.remote()])
        .await?;
    tally.ran();
    Ok(())
}

/// A fetch that nobody waits for any more ends at once, though the server says nothing.
#[tokio::test]
async fn interrupted() -> Result<()> {
    let mut tally = Tally::new("git::interrupted");
    let (repository, _) = repository()?;
    let server = GitHttp::start(repository.root(), Options::default()).await?;
    server.breaks(Fault::Silent);
    let (client, remote) = (Client::new()?, server.remote());
    let asked = until("a request", async || {
        Ok(match server.seen().len() {
            0 => Err("none".to_owned()),
            _ => Ok(()),
        })
    });
    tokio::select! {
        ended = client.fetch(&remote, At::Head, "") => panic!("it ended: {ended:?}"),
        asked = asked => asked?,
    }
    until("the end of the connection", async || {
        Ok(match server.open() {
            0 => Ok(()),
            open => Err(format!("{open} are open")),
        })
    })
    .await?;
    tally.ran();
    Ok(())
}
