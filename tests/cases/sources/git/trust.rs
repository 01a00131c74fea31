//! Who is told what: credentials, certificates and redirects.

use addons_sources::git::GitProblem;
use addons_tests::servers::git::{Fault, GitHttp, Options};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

use super::over_http::played;
use super::{At, Client, basic, files, secret};

#[tokio::test]
async fn credentials() -> Result<()> {
    let mut tally = Tally::new("git::credentials");
    let played = played()?;
    let options = Options {
        account: Some(("me", "hunter2")),
        ..Options::default()
    };
    let server = GitHttp::start(played.repository.root(), options).await?;
    let remote = server.remote();

    let client = Client::new()?;
    let error = client
        .refused(&remote, At::Head, "", &["401", "auth.secretRef"])
        .await?;
    assert!(
        matches!(error.problem, GitProblem::Denied { .. }),
        "{error:?}"
    );
    let wrong = Client::with(basic("me", "hunter2hunter2"))?;
    wrong
        .refused(&remote, At::Head, "", &["401", "is wrong"])
        .await?;
    // One that holds no more than an authority, say.
    Client::with(basic("", ""))?
        .refused(&remote, At::Head, "", &["401", "it wants credentials"])
        .await?;
    let right = Client::with(basic("me", "hunter2"))?;
    right.fetch(&remote, At::Head, "a").await?;
    server.seen();
    right.fetch(&remote, At::Head, "a").await?;
    let seen = server.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");

    // What one Secret may read is not in the cache for who has none.
    let stranger = Client {
        credentials: None,
        ..right
    };
    stranger
        .refused(&remote, At::Commit(&played.second), "a", &["401"])
        .await?;
    tally.ran();

    let options = Options {
        account: Some(("x-access-token", "hunter2")),
        ..Options::default()
    };
    let server = GitHttp::start(played.repository.root(), options).await?;
    Client::with(basic("", "hunter2"))?
        .fetch(&server.remote(), At::Head, "")
        .await?;
    tally.ran();
    Ok(())
}

/// Nothing is sent to a host that the Secret does not name, and nothing of another type.
#[tokio::test]
async fn credentials_that_are_not_sent() -> Result<()> {
    let mut tally = Tally::new("git::credentials that are not sent");
    let played = played()?;
    let server = GitHttp::start(played.repository.root(), Options::default()).await?;
    let remote = server.remote();
    let data = [("password", b"hunter2".as_slice())];
    let elsewhere = Client::with(secret("kubernetes.io/basic-auth", "example.com", &data))?;
    elsewhere
        .refused(&remote, At::Head, "", &["may not be sent to 127.0.0.1"])
        .await?;
    let docker = [(".dockerconfigjson", b"{}".as_slice())];
    let docker = Client::with(secret(
        "kubernetes.io/dockerconfigjson",
        "127.0.0.1",
        &docker,
    ))?;
    docker
        .refused(
            &remote,
            At::Head,
            "",
            &["cannot be used for git over https", "basic-auth"],
        )
        .await?;
    let in_url = server.remote().replace("http://", "http://me:hunter2@");
    Client::new()?
        .refused(&in_url, At::Head, "", &["user name or password in a URL"])
        .await?;
    let plain = Client::with(secret("kubernetes.io/basic-auth", "example.com", &data))?;
    plain
        .refused(
            "http://example.com/a.git",
            At::Head,
            "",
            &["over plain HTTP"],
        )
        .await?;
    assert_eq!(server.seen().len(), 0);
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn certificates() -> Result<()> {
    let mut tally = Tally::new("git::certificates");
    let played = played()?;
    let options = || Options {
        account: Some(("me", "hunter2")),
        tls: true,
        ..Options::default()
    };
    let server = GitHttp::start(played.repository.root(), options()).await?;
    let other = GitHttp::start(played.repository.root(), options()).await?;
    let with = |ca: &[u8]| {
        let data = [
            ("username", b"me".as_slice()),
            ("password", b"hunter2"),
            ("ca.crt", ca),
        ];
        Client::with(secret("kubernetes.io/basic-auth", "127.0.0.1", &data))
    };
    let remote = server.remote();
    let fetched = with(server.authority.as_bytes())?
        .fetch(&remote, At::Head, "a/x.yaml")
        .await?;
    assert_eq!(files(&fetched), [("x.yaml", "x: 2\n".to_owned())]);
    server.seen();
    let error = with(other.authority.as_bytes())?
        .refused(&remote, At::Head, "", &["certificate"])
        .await?;
    assert!(
        matches!(error.problem, GitProblem::Http { .. }),
        "{error:?}"
    );
    let error = Client::with(basic("me", "hunter2"))?
        .refused(&remote, At::Head, "", &["certificate"])
        .await?;
    assert!(
        matches!(error.problem, GitProblem::Http { .. }),
        "{error:?}"
    );
    with(b"no certificate")?
        .refused(&remote, At::Head, "", &["ca.crt", "kubectl-addons/git"])
        .await?;
    assert_eq!(
        server.seen().len(),
        0,
        "nothing is sent to who cannot prove itself"
    );
    for _ in 0..4 {
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
async fn redirects() -> Result<()> {
    let mut tally = Tally::new("git::redirects");
    let played = played()?;
    let account = Some(("me", "hunter2"));
    let plain = Options {
        account,
        ..Options::default()
    };
    let server = GitHttp::start(played.repository.root(), plain.clone()).await?;
    let target = GitHttp::start(played.repository.root(), plain.clone()).await?;
    let tls = Options { tls: true, ..plain };
    let secure = GitHttp::start(played.repository.root(), tls.clone()).await?;
    let secure_target = GitHttp::start(played.repository.root(), tls).await?;
    let data = [
        ("username", b"me".as_slice()),
        ("password", b"hunter2"),
        ("ca.crt", secure.authority.as_bytes()),
    ];
    let client = Client::with(secret(
        "kubernetes.io/basic-auth",
        "127.0.0.1,localhost",
        &data,
    ))?;

    // On the same host it is followed, the credentials with it, and remembered.
    let moved = format!("{}/moved/repo.git", server.url);
    client.fetch(&moved, At::Branch("main"), "").await?;
    server.seen();
    client.fetch(&moved, At::Branch("main"), "").await?;
    let seen = server.seen();
    ensure!(
        seen.len() == 1 && seen[0].path.starts_with("/repo.git/"),
        "{seen:?}"
    );
    tally.ran();

    // http to https is fine.
    server.breaks(Fault::Redirect(secure.url.clone()));
    client.fetch(&server.remote(), At::Head, "").await?;
    ensure!(!secure.seen().is_empty());
    tally.ran();

    let localhost = |url: &str| url.replace("127.0.0.1", "localhost");
    for (from, to, why) in [
        (&server, target.url.clone(), "to another port"),
        (&server, localhost(&target.url), "to another host"),
        (&server, localhost(&secure_target.url), "to another host"),
        (&secure, target.url.clone(), "to another scheme"),
        (&server, "file:///etc".to_owned(), "to another scheme"),
        (&server, server.url.clone(), "too many redirects"),
        (
            &server,
            server.url.replace("://", "://you:pw@"),
            "to a URL with a user name or password",
        ),
    ] {
        from.breaks(Fault::Redirect(to.clone()));
        let remote = format!("{}/repo.git", from.url);
        // What the server said before is remembered for this remote, so another client asks.
        let fresh = Client {
            credentials: client.credentials.clone(),
            ..Client::new()?
        };
        fresh
            .refused(&remote, At::Head, "", &["redirect", why])
            .await?;
        tally.ran();
    }
    for server in [&target, &secure_target] {
        assert_eq!(
            server.seen().len(),
            0,
            "no request arrives elsewhere, with credentials or without"
        );
    }
    Ok(())
}
