//! Servers that can leave out files: only those at the path are received.

use addons_tests::servers::git::{GitHttp, Options, Repository};
use addons_tests::tally::Tally;
use anyhow::Result;

use super::{At, Client, files};

/// A folder with a file and with symlinks to files elsewhere, beside a file that is too large for any commit.
fn repository() -> Result<(Repository, String)> {
    let repository = Repository::new()?;
    repository.write("a/x.yaml", "x: 1\n")?;
    repository.write("a/b/y.yaml", "y: 1\n")?;
    repository.write("shared/z.yaml", "z: 1\n")?;
    repository.link("a/z.yaml", "../shared/z.yaml")?;
    repository.link("a/far.yaml", "../link/z.yaml")?;
    repository.link("link", "shared")?;
    repository.write("large", vec![0; 129 << 20])?;
    let commit = repository.commit("first")?;
    Ok((repository, commit))
}

#[tokio::test]
async fn only_the_files_at_the_path() -> Result<()> {
    let mut tally = Tally::new("git::only_the_files_at_the_path");
    let (repository, commit) = repository()?;
    let options = Options {
        partial: true,
        ..Options::default()
    };
    let server = GitHttp::start(repository.root(), options).await?;
    let remote = server.remote();
    let want = [
        ("b/y.yaml", "y: 1\n"),
        ("far.yaml", "z: 1\n"),
        ("x.yaml", "x: 1\n"),
        ("z.yaml", "z: 1\n"),
    ];
    for at in [At::Head, At::Branch("main"), At::Commit(&commit)] {
        let fetched = Client::new()?.fetch(&remote, at, "a").await?;
        let want = want.map(|(path, text)| (path, text.to_owned()));
        assert_eq!(files(&fetched), want, "{at:?}");
        tally.ran();
    }
    server.seen();
    let client = Client::new()?;
    client.fetch(&remote, At::Branch("main"), "a/b").await?;
    let cold = server.seen().len();
    assert_eq!(
        cold, 4,
        "capabilities, refs, the commit with its folders, its files"
    );
    for path in ["a/x.yaml", "link/z.yaml"] {
        let fetched = client.fetch(&remote, At::Head, path).await?;
        assert!(fetched.package.as_file().is_some(), "{path}");
        tally.ran();
    }
    client
        .refused(&remote, At::Head, "a/w.yaml", &["did you mean"])
        .await?;
    client
        .refused(&remote, At::Head, "", &["more than 128 MiB"])
        .await?;
    tally.ran();
    Ok(())
}

/// Where the files are refused, the whole commit is received.
#[tokio::test]
async fn files_that_are_not_sent_by_their_ids() -> Result<()> {
    let mut tally = Tally::new("git::files_that_are_not_sent_by_their_ids");
    let repository = Repository::new()?;
    repository.write("a/x.yaml", "x: 1\n")?;
    let commit = repository.commit("first")?;
    let options = Options {
        partial: true,
        old: true,
        ..Options::default()
    };
    let server = GitHttp::start(repository.root(), options).await?;
    for at in [At::Head, At::Commit(&commit)] {
        for path in ["a", "a/x.yaml"] {
            let fetched = Client::new()?.fetch(&server.remote(), at, path).await?;
            assert_eq!(files(&fetched), [("x.yaml", "x: 1\n".to_owned())]);
            tally.ran();
        }
    }
    Ok(())
}
