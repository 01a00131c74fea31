//! git over ssh: keys, known hosts, and what is refused before ssh is started.

use addons_sources::credentials::{Credentials, CredentialsError};
use addons_sources::git::GitProblem;
use addons_tests::guard::Folder;
use addons_tests::servers::git::{Repository, Sshd, ssh_key};
use addons_tests::tally::Tally;
use anyhow::Result;
use tokio::io::AsyncReadExt as _;

use super::{At, Client, basic, files, secret};

fn ssh(key: &[u8], known_hosts: &str) -> Result<Credentials, CredentialsError> {
    let data = [
        ("ssh-privatekey", key),
        ("known_hosts", known_hosts.as_bytes()),
    ];
    secret("kubernetes.io/ssh-auth", "127.0.0.1", &data)
}

#[tokio::test]
async fn keys_and_hosts() -> Result<()> {
    let mut tally = Tally::new("git::keys_and_hosts");
    let folder = Folder::new("addons-keys-")?;
    let (mine, public) = ssh_key(folder.path(), "mine")?;
    let (theirs, other) = ssh_key(folder.path(), "theirs")?;
    let server = match Sshd::start(&public)? {
        Ok(server) => server,
        Err(why) => {
            tally.left_out(format!("all cases of git over ssh: {why}"));
            return Ok(());
        }
    };
    let repository = Repository::new()?;
    repository.write("a/it's.yaml", "x: 1\n")?;
    let first = repository.commit("first")?;
    repository.write("a/it's.yaml", "x: 2\n")?;
    let second = repository.commit("second")?;
    let remote = server.remote(&repository.path());
    let (mine, theirs) = (std::fs::read(mine)?, std::fs::read(theirs)?);
    let hosts = server.known_hosts.as_str();

    // Editors of Secrets take the last line break away.
    let trimmed = mine.trim_ascii_end();
    for key in [&mine, trimmed] {
        let fetched = Client::with(ssh(key, hosts))?
            .fetch(&remote, At::Branch("main"), "a")
            .await?;
        assert_eq!(files(&fetched), [("it's.yaml", "x: 2\n".to_owned())]);
        assert_eq!(fetched.resolved.as_ref(), Some(&second));
        tally.ran();
    }
    let mut client = Client::with(ssh(&mine, hosts))?;
    let fetched = client.fetch(&remote, At::Commit(&first), "a").await?;
    assert_eq!(files(&fetched), [("it's.yaml", "x: 1\n".to_owned())]);
    client.fetch(&remote, At::Head, "a").await?;
    let before = server.accepted();
    client.fetch(&remote, At::Head, "a").await?;
    assert_eq!(server.accepted() - before, 1, "a warm cache asks once");
    client.fetch(&remote, At::Commit(&first), "a").await?;
    client.offline = true;
    client.fetch(&remote, At::Head, "a").await?;
    assert_eq!(
        server.accepted() - before,
        1,
        "neither what is pinned nor offline asks"
    );
    client.offline = false;
    tally.ran();

    let changed = format!("[127.0.0.1]:{} {other}\n", server.port);
    wrong_keys(&remote, [&mine, &theirs], [hosts, &changed], &mut tally).await?;
    let gone = server.remote(&repository.root().join("gone's.git"));
    let error = client
        .refused(&gone, At::Head, "", &["is not a git repository"])
        .await?;
    assert!(
        matches!(error.problem, GitProblem::Missing { .. }),
        "{error:?}"
    );
    client
        .refused(&remote, At::Branch("mian"), "", &["did you mean \"main\"?"])
        .await?;
    let never = "0123456789abcdef0123456789abcdef01234567";
    client
        .refused(
            &remote,
            At::Commit(never),
            "",
            &["does not hand out commit"],
        )
        .await?;
    tally.ran();

    refused_without_a_connection(&client, &server, &remote).await?;
    tally.ran();
    Ok(())
}

/// Another host key, then another user key.
async fn wrong_keys(
    remote: &str,
    [mine, theirs]: [&[u8]; 2],
    [hosts, changed]: [&str; 2],
    tally: &mut Tally,
) -> Result<()> {
    for (hosts, what) in [(changed, "another key"), ("", "an unknown host")] {
        let error = Client::with(ssh(mine, hosts))?
            .refused(remote, At::Head, "", &["known_hosts"])
            .await?;
        assert!(
            matches!(error.problem, GitProblem::HostKey { .. }),
            "{what}: {error:?}"
        );
        tally.ran();
    }
    for (key, what) in [(theirs, "another key"), (b"no key", "no key")] {
        let error = Client::with(ssh(key, hosts))?
            .refused(remote, At::Head, "", &["auth.secretRef"])
            .await?;
        assert!(
            matches!(error.problem, GitProblem::Denied { .. }),
            "{what}: {error:?}"
        );
        tally.ran();
    }
    Ok(())
}

/// What can be refused without a connection is.
async fn refused_without_a_connection(client: &Client, server: &Sshd, remote: &str) -> Result<()> {
    let before = server.accepted();
    Client::new()?
        .refused(remote, At::Head, "", &["kubernetes.io/ssh-auth"])
        .await?;
    Client::with(basic("me", "hunter2"))?
        .refused(remote, At::Head, "", &["cannot be used for git over ssh"])
        .await?;
    let elsewhere = remote.replace("127.0.0.1", "localhost");
    client
        .refused(&elsewhere, At::Head, "", &["may not be sent to localhost"])
        .await?;
    client
        .refused(
            "ssh://-oProxyCommand=id/x",
            At::Head,
            "",
            &["option of ssh"],
        )
        .await?;
    assert_eq!(server.accepted(), before);
    Ok(())
}

#[tokio::test]
async fn a_server_that_does_not_listen() -> Result<()> {
    let folder = Folder::new("addons-keys-")?;
    let (key, _) = ssh_key(folder.path(), "mine")?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port();
    let client = Client::with(ssh(&std::fs::read(key)?, ""))?;
    let remote = format!("ssh://git@127.0.0.1:{port}/repo.git");
    let error = client
        .refused(&remote, At::Head, "", &["the connection failed", "refused"])
        .await?;
    assert!(
        matches!(error.problem, GitProblem::Connection { .. }),
        "{error:?}"
    );
    Ok(())
}

/// ssh ends with the fetch that nobody waits for any more, though the server says nothing.
#[tokio::test]
async fn interrupted() -> Result<()> {
    let mut tally = Tally::new("git::interrupted over ssh");
    let folder = Folder::new("addons-keys-")?;
    let (key, _) = ssh_key(folder.path(), "mine")?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let remote = format!("ssh://git@{}/repo.git", listener.local_addr()?);
    let client = Client::with(ssh(&std::fs::read(key)?, ""))?;
    let (mut stream, _) = tokio::select! {
        ended = client.fetch(&remote, At::Head, "") => panic!("it ended: {ended:?}"),
        accepted = listener.accept() => accepted?,
    };
    // What ssh said before it was killed, and then the end: before its own patience ends, which is 10 s.
    let mut said = Vec::new();
    let end = stream.read_to_end(&mut said);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(8), end).await?;
    assert!(said.is_empty() || said.starts_with(b"SSH-2.0"), "{ended:?}");
    tally.ran();
    Ok(())
}
