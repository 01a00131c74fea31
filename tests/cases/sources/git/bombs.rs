//! Small repositories that would grow.

use addons_sources::git::GitProblem;
use addons_tests::servers::git::{GitHttp, Options, Repository};
use addons_tests::tally::Tally;
use anyhow::Result;

use super::{At, Client};

/// A commit of a tree whose objects are there already.
fn commit(repository: &Repository, tree: &str) -> Result<()> {
    let commit = repository.git(&["commit-tree", "-m", "bomb", tree])?;
    repository.git(&["update-ref", "refs/heads/main", &commit])?;
    Ok(())
}

/// A repository with a file of zeros, and a small one.
fn large(mib: usize) -> Result<Repository> {
    let repository = Repository::new()?;
    let big = repository.git_with(&["hash-object", "-w", "--stdin"], &vec![0; mib << 20])?;
    let small = repository.git_with(&["hash-object", "-w", "--stdin"], b"a: 1\n")?;
    let tree = format!("100644 blob {big}\tbig\n100644 blob {small}\tsmall.yaml\n");
    commit(
        &repository,
        &repository.git_with(&["mktree"], tree.as_bytes())?,
    )?;
    Ok(repository)
}

#[tokio::test]
async fn large_files() -> Result<()> {
    let mut tally = Tally::new("git::large_files");
    // More than a package holds; it is not even unpacked to see that.
    let repository = large(65)?;
    let client = Client {
        ambient: true,
        ..Client::new()?
    };
    let remote = repository.path().display().to_string();
    for path in ["", "big"] {
        client
            .refused(
                &remote,
                At::Head,
                path,
                &["its files have more than 64 MiB", ":big"],
            )
            .await?;
        tally.ran();
    }
    client.fetch(&remote, At::Head, "small.yaml").await?;
    // More than any file of a commit may have, though the path that is asked for lies elsewhere: a megabyte on the way.
    let repository = large(129)?;
    let server = GitHttp::start(repository.root(), Options::default()).await?;
    let error = Client::new()?
        .refused(
            &server.remote(),
            At::Head,
            "small.yaml",
            &["more than 128 MiB"],
        )
        .await?;
    assert!(
        matches!(error.problem, GitProblem::LargeObject),
        "{error:?}"
    );
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn many_files() -> Result<()> {
    let mut tally = Tally::new("git::many_files");
    let repository = Repository::new()?;
    let blob = repository.git_with(&["hash-object", "-w", "--stdin"], b"a: 1\n")?;
    let of = |count: usize| {
        let lines = (0..count).map(|number| format!("100644 blob {blob}\t{number:05}.yaml\n"));
        repository.git_with(&["mktree"], lines.collect::<String>().as_bytes())
    };
    let server = GitHttp::start(repository.root(), Options::default()).await?;
    commit(&repository, &of(10_000)?)?;
    let fetched = Client::new()?.fetch(&server.remote(), At::Head, "").await?;
    assert_eq!(fetched.package.files().len(), 10_000);
    commit(&repository, &of(10_001)?)?;
    Client::new()?
        .refused(&server.remote(), At::Head, "", &["more than 10000 files"])
        .await?;
    tally.ran();

    // Each folder names the one below it ten times; ten of them are ten billion folders in a few hundred bytes.
    for leaf in [of(1)?, repository.git_with(&["mktree"], b"")?] {
        let mut tree = leaf;
        for _ in 0..10 {
            let lines = (0..10).map(|number| format!("040000 tree {tree}\t{number}\n"));
            tree = repository.git_with(&["mktree"], lines.collect::<String>().as_bytes())?;
        }
        commit(&repository, &tree)?;
        Client::new()?
            .refused(&server.remote(), At::Head, "", &["more than 10000 files"])
            .await?;
        tally.ran();
    }
    // Folders that add up to a path that no package has, and a name that no file system takes: many would be gigabytes.
    let leaf = of(1)?;
    let long = repository.git_with(
        &["mktree"],
        format!("040000 tree {leaf}\t{}\n", "n".repeat(900)).as_bytes(),
    )?;
    let half = repository.git_with(
        &["mktree"],
        format!("040000 tree {long}\t{}\n", "n".repeat(200)).as_bytes(),
    )?;
    let huge = repository.git_with(
        &["mktree"],
        format!("040000 tree {leaf}\t{}\n", "n".repeat(1 << 20)).as_bytes(),
    )?;
    for tree in [half, huge] {
        commit(&repository, &tree)?;
        Client::new()?
            .refused(
                &server.remote(),
                At::Head,
                "",
                &["has more than 1024 bytes"],
            )
            .await?;
        tally.ran();
    }
    // Each folder holds one, two hundred deep.
    let mut tree = of(1)?;
    for _ in 0..200 {
        tree = repository.git_with(&["mktree"], format!("040000 tree {tree}\td\n").as_bytes())?;
    }
    commit(&repository, &tree)?;
    Client::new()?
        .refused(&server.remote(), At::Head, "", &["more than 10000 files"])
        .await?;
    tally.ran();
    Ok(())
}
