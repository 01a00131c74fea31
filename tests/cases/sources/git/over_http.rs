//! Refs, paths, and how many requests they take.

use addons_sources::git::GitProblem;
use addons_tests::servers::git::{GitHttp, Options, Repository};
use addons_tests::tally::Tally;
use anyhow::Result;

use super::{At, Client, files};

/// Two commits on main, the first of them tagged, and a branch beside.
pub struct Played {
    pub repository: Repository,
    first: String,
    pub second: String,
    beside: String,
}

pub fn played() -> Result<Played> {
    let repository = Repository::new()?;
    repository.write("a/x.yaml", "x: 1\n")?;
    repository.write("a/b/y.yaml", "y: 1\n")?;
    repository.write("top.yaml", "top: 1\n")?;
    let first = repository.commit("first")?;
    repository.git(&["tag", "v1"])?;
    repository.git(&["tag", "-m", "annotated", "v1-signed"])?;
    repository.git(&["checkout", "--quiet", "-b", "release/1"])?;
    repository.write("a/x.yaml", "x: beside\n")?;
    let beside = repository.commit("beside")?;
    repository.git(&["checkout", "--quiet", "main"])?;
    repository.write("a/x.yaml", "x: 2\n")?;
    let second = repository.commit("second")?;
    // So that the first commit is no tip.
    repository.write("a/x.yaml", "x: 2\n")?;
    Ok(Played {
        repository,
        first,
        second,
        beside,
    })
}

#[tokio::test]
async fn refs_and_paths() -> Result<()> {
    let mut tally = Tally::new("git::refs_and_paths");
    let played = played()?;
    for old in [false, true] {
        let options = Options {
            old,
            ..Options::default()
        };
        let server = GitHttp::start(played.repository.root(), options).await?;
        let remote = server.remote();
        let x = |text: &str| {
            vec![
                ("b/y.yaml", "y: 1\n".to_owned()),
                ("x.yaml", text.to_owned()),
            ]
        };
        for (at, commit, want) in [
            (At::Head, &played.second, x("x: 2\n")),
            (At::Branch("main"), &played.second, x("x: 2\n")),
            (At::Branch("release/1"), &played.beside, x("x: beside\n")),
            (At::Tag("v1"), &played.first, x("x: 1\n")),
            (At::Tag("v1-signed"), &played.first, x("x: 1\n")),
            (At::Commit(&played.second), &played.second, x("x: 2\n")),
            (At::Commit(&played.first), &played.first, x("x: 1\n")),
        ] {
            let fetched = Client::new()?.fetch(&remote, at, "a").await?;
            assert_eq!(files(&fetched), want, "{at:?}");
            assert_eq!(fetched.resolved.as_ref(), Some(commit), "{at:?}");
            assert_eq!(fetched.location, format!("{remote}@{}:a", &commit[..12]));
            tally.ran();
        }
        let client = Client::new()?;
        let whole = client.fetch(&remote, At::Head, "").await?;
        let paths: Vec<&str> = files(&whole).iter().map(|(path, _)| *path).collect();
        assert_eq!(paths, ["a/b/y.yaml", "a/x.yaml", "top.yaml"]);
        let file = client.fetch(&remote, At::Head, "a/b/y.yaml").await?;
        let file = file.package.as_file().expect("a file");
        assert_eq!(
            (file.path.as_str(), file.bytes.as_slice()),
            ("y.yaml", b"y: 1\n".as_slice())
        );
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
async fn what_is_not_there() -> Result<()> {
    let mut tally = Tally::new("git::what_is_not_there");
    let played = played()?;
    // A commit that exists, but that nothing leads to.
    let lost = played
        .repository
        .git(&["commit-tree", "-m", "lost", "main^{tree}"])?;
    let never = "0123456789abcdef0123456789abcdef01234567";
    for old in [false, true] {
        let options = Options {
            old,
            ..Options::default()
        };
        let server = GitHttp::start(played.repository.root(), options).await?;
        let remote = server.remote();
        let client = Client::new()?;
        for (at, path, words) in [
            (
                At::Branch("mian"),
                "",
                ["no branch \"mian\"", "did you mean \"main\"?"],
            ),
            (
                At::Branch("far-from-it"),
                "",
                ["no branch", "main, release/1"],
            ),
            (At::Tag("main"), "", ["no tag \"main\"", "v1, v1-signed"]),
            (
                At::Head,
                "a/z.yaml",
                ["a/z.yaml", "did you mean \"x.yaml\"?"],
            ),
            (At::Head, "top.yaml/x", ["top.yaml/x does not exist", ""]),
            (
                At::Head,
                "elsewhere",
                ["elsewhere does not exist", "there are: a, top.yaml"],
            ),
            (At::Head, "../x", ["leads out of the repository", "../x"]),
            (
                At::Commit(never),
                "",
                ["does not hand out commit 0123456789abcdef", "the last 1000"],
            ),
        ] {
            client.refused(&remote, at, path, &words).await?;
            tally.ran();
        }
        if old {
            client
                .refused(&remote, At::Commit(&lost), "", &["does not hand out"])
                .await?;
            tally.ran();
        }
        let remote = format!("{}/other.git", server.url);
        let error = client
            .refused(&remote, At::Head, "", &["is not a git repository (404"])
            .await?;
        assert!(
            matches!(error.problem, GitProblem::Missing { .. }),
            "{error:?}"
        );
        tally.ran();
    }
    let empty = Repository::new()?;
    let server = GitHttp::start(empty.root(), Options::default()).await?;
    Client::new()?
        .refused(&server.remote(), At::Head, "", &["no commit yet"])
        .await?;
    tally.ran();
    Ok(())
}

/// With a warm cache a branch is one request, and what is pinned is none.
#[tokio::test]
async fn requests() -> Result<()> {
    let mut tally = Tally::new("git::requests");
    let played = played()?;
    for old in [false, true] {
        let options = Options {
            old,
            ..Options::default()
        };
        let server = GitHttp::start(played.repository.root(), options).await?;
        let remote = server.remote();
        let mut client = Client::new()?;
        let cold = client.fetch(&remote, At::Branch("main"), "a").await?;
        tally.note(format!(
            "cold, {} v2: {} requests",
            if old { "without" } else { "with" },
            server.seen().len()
        ));
        let warm = client.fetch(&remote, At::Branch("main"), "a").await?;
        assert_eq!(server.seen().len(), 1, "a warm cache");
        assert_eq!(
            (&cold.package, &cold.resolved, &cold.location),
            (&warm.package, &warm.resolved, &warm.location)
        );
        let pinned = client
            .fetch(&remote, At::Commit(&played.second), "a")
            .await?;
        assert_eq!(server.seen().len(), 0, "a pinned commit that the cache has");
        assert_eq!(cold.package, pinned.package);

        played
            .repository
            .write("a/x.yaml", format!("moved: {old}\n"))?;
        let third = played.repository.commit("moved")?;
        let moved = client.fetch(&remote, At::Branch("main"), "a").await?;
        assert_eq!(moved.resolved, Some(third.clone()));
        assert_eq!(files(&moved)[1].1, format!("moved: {old}\n"));
        server.seen();

        client.offline = true;
        for at in [At::Branch("main"), At::Commit(&third)] {
            let offline = client.fetch(&remote, at, "a").await?;
            assert_eq!(offline.resolved.as_ref(), Some(&third), "what it was last");
            assert_eq!(offline.package, moved.package);
        }
        client
            .refused(
                &remote,
                At::Branch("main"),
                "b",
                &[
                    "b of branch main is not in the cache",
                    "no server may be asked",
                ],
            )
            .await?;
        client
            .refused(&remote, At::Tag("v1"), "a", &["tag v1"])
            .await?;
        assert_eq!(server.seen().len(), 0, "offline");
        tally.ran();
        played
            .repository
            .git(&["reset", "--quiet", "--hard", &played.second])?;
    }
    Ok(())
}
