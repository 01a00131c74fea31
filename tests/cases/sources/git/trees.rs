//! Symlinks, submodules, LFS and odd names, in a repository of this machine.

use addons_sources::git::GitProblem;
use addons_tests::servers::git::Repository;
use addons_tests::tally::Tally;
use anyhow::Result;

use super::{At, Client, basic, files};

fn local() -> Result<Client> {
    Ok(Client {
        ambient: true,
        ..Client::new()?
    })
}

#[tokio::test]
async fn symlinks() -> Result<()> {
    let mut tally = Tally::new("git::symlinks");
    let repository = Repository::new()?;
    let remote = format!("file://{}", repository.path().display());
    repository.write("a/x.yaml", "x: 1\n")?;
    repository.write("shared/y.yaml", "y: 1\n")?;
    repository.link("a/near.yaml", "x.yaml")?;
    repository.link("a/far.yaml", "../shared/./y.yaml")?;
    repository.link("a/again.yaml", "far.yaml")?;
    repository.link("link", "a")?;
    repository.link("deep/through.yaml", "../link/x.yaml")?;
    repository.commit("fine")?;
    let client = local()?;
    let fetched = client.fetch(&remote, At::Head, "a").await?;
    let want = [
        ("again.yaml", "y: 1\n"),
        ("far.yaml", "y: 1\n"),
        ("near.yaml", "x: 1\n"),
        ("x.yaml", "x: 1\n"),
    ];
    assert_eq!(
        files(&fetched),
        want.map(|(path, text)| (path, text.to_owned()))
    );
    for (path, text) in [
        ("a/far.yaml", "y: 1\n"),
        ("deep/through.yaml", "x: 1\n"),
        ("link/near.yaml", "x: 1\n"),
    ] {
        let fetched = client.fetch(&remote, At::Head, path).await?;
        assert_eq!(
            fetched.package.as_file().expect("a file").bytes,
            text.as_bytes(),
            "{path}"
        );
        tally.ran();
    }

    for target in [
        "/etc/passwd",
        "../../etc/passwd",
        "../..",
        "gone.yaml",
        "../a",
        ".",
        "bad.yaml",
        "x.yaml/y",
        "..",
        "../../work/a/x.yaml",
    ] {
        repository.link("a/bad.yaml", target)?;
        repository.commit(target)?;
        for path in ["a", "a/bad.yaml"] {
            let error = client
                .refused(&remote, At::Head, path, &["is a symlink to"])
                .await?;
            assert!(
                matches!(error.problem, GitProblem::Symlink { .. }),
                "{target} {path}: {error:?}"
            );
            // Named itself as the path a symlink may lead to a folder, which then has the symlink in it.
            let is_folder = matches!(target, "../a" | "." | "..");
            if path == "a" || !is_folder {
                assert!(
                    error
                        .to_string()
                        .contains(&format!(":a/bad.yaml is a symlink to {target:?}")),
                    "{error}"
                );
            }
        }
        std::fs::remove_file(repository.work().join("a/bad.yaml"))?;
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
async fn what_is_elsewhere() -> Result<()> {
    let mut tally = Tally::new("git::what_is_elsewhere");
    let repository = Repository::new()?;
    let remote = repository.path().display().to_string();
    repository.write("a/x.yaml", "x: 1\n")?;
    repository.write(
        "lfs/chart.tgz",
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    )?;
    let commit = repository.commit("first")?;
    repository.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{commit},sub/module"),
    ])?;
    repository.git(&["commit", "--quiet", "-m", "submodule"])?;
    let client = local()?;
    client.fetch(&remote, At::Head, "a").await?;
    for (path, words) in [
        ("", "sub/module is a submodule"),
        ("sub", "sub/module is a submodule"),
        ("sub/module", "sub/module is a submodule"),
        ("sub/module/x", "does not exist"),
        ("lfs", "lfs/chart.tgz is kept in Git LFS"),
        ("lfs/chart.tgz", "lfs/chart.tgz is kept in Git LFS"),
    ] {
        if path.is_empty() {
            // Both are in the whole tree: whichever is found first.
            client
                .refused(&remote, At::Head, path, &["not fetched"])
                .await?;
        } else {
            client.refused(&remote, At::Head, path, &[words]).await?;
        }
        tally.ran();
    }

    let blob = repository.git_with(&["hash-object", "-w", "--stdin"], b"a: 1\n")?;
    for (name, words) in [
        (b"\xff.yaml".as_slice(), "not UTF-8"),
        (b"a\\b.yaml", "leads out of the package"),
    ] {
        let mut line = format!("100644 blob {blob}\t").into_bytes();
        line.extend(name);
        line.push(0);
        let tree = repository.git_with(&["mktree", "-z"], &line)?;
        let commit = repository.git(&["commit-tree", "-m", "odd", &tree])?;
        client
            .refused(&remote, At::Commit(&commit), "", &[words])
            .await?;
        client
            .refused(&remote, At::Commit(&tree), "", &["is not a commit"])
            .await?;
        tally.ran();
    }
    Ok(())
}

/// Nothing that a repository configures is run, and it cannot have objects fetched.
#[tokio::test]
async fn settings_of_a_repository() -> Result<()> {
    let mut tally = Tally::new("git::settings_of_a_repository");
    let repository = Repository::new()?;
    repository.write("x.yaml", "x: 1\n")?;
    repository.write("y.yaml", "y: 1\n")?;
    repository.commit("first")?;
    let marker = repository.root().join("ran");
    let program = repository.root().join("program");
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\n", marker.display()))?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode)?;
    let program = program.display().to_string();
    let helper = format!("ext::{program}");
    for (key, value) in [
        ("core.fsmonitor", program.as_str()),
        ("core.pager", &program),
        ("pager.cat-file", &program),
        ("core.sshCommand", &program),
        ("core.alternateRefsCommand", &program),
        ("uploadpack.packObjectsHook", &program),
        ("alias.cat-file", &format!("!{program}")),
        ("protocol.allow", "always"),
        ("remote.origin.url", &helper),
        ("remote.origin.promisor", "true"),
        ("extensions.partialClone", "origin"),
        ("core.repositoryFormatVersion", "1"),
    ] {
        repository.git(&["config", key, value])?;
    }
    let hooks = repository.path().join("hooks");
    std::fs::create_dir_all(&hooks)?;
    for hook in ["post-checkout", "reference-transaction", "pre-auto-gc"] {
        std::fs::copy(&program, hooks.join(hook))?;
    }
    // One file is missing.
    let id = repository.git(&["rev-parse", "HEAD:y.yaml"])?;
    let (folder, name) = id.split_at(2);
    std::fs::remove_file(repository.path().join("objects").join(folder).join(name))?;
    let _ = std::fs::remove_file(&marker);
    let remote = repository.path().display().to_string();
    let client = local()?;
    let fetched = client.fetch(&remote, At::Head, "x.yaml").await?;
    assert_eq!(files(&fetched), [("x.yaml", "x: 1\n".to_owned())]);
    for path in ["", "y.yaml"] {
        client
            .refused(&remote, At::Head, path, &["missing or damaged"])
            .await?;
        tally.ran();
    }
    assert!(!marker.exists());
    // The same repository does run it for a git that is not restrained.
    let _ = repository.git(&["-c", "protocol.ext.allow=always", "cat-file", "-p", &id]);
    assert!(marker.exists());
    tally.ran();
    Ok(())
}

/// A folder of this machine is read where it lies, by who may.
#[tokio::test]
async fn folders() -> Result<()> {
    let mut tally = Tally::new("git::folders");
    let repository = Repository::new()?;
    repository.write("x.yaml", "x: 1\n")?;
    let commit = repository.commit("first")?;
    repository.git(&["tag", "-m", "annotated", "v1"])?;
    let path = repository.path().display().to_string();
    let client = local()?;
    for at in [
        At::Head,
        At::Branch("main"),
        At::Tag("v1"),
        At::Commit(&commit),
    ] {
        let fetched = client.fetch(&path, at, "x.yaml").await?;
        assert_eq!(fetched.resolved.as_ref(), Some(&commit), "{at:?}");
        assert_eq!(fetched.location, format!("{path}@{}:x.yaml", &commit[..12]));
        tally.ran();
    }
    client
        .refused(&path, At::Branch("mian"), "", &["did you mean \"main\"?"])
        .await?;
    client
        .refused(&path, At::Tag("x-y-z"), "", &["there are: v1"])
        .await?;
    let gone = format!("{path}/gone");
    client
        .refused(&gone, At::Head, "", &["cannot be opened"])
        .await?;
    let stranger = Client::new()?;
    for remote in [path.clone(), format!("file://{path}")] {
        stranger
            .refused(
                &remote,
                At::Head,
                "",
                &["cannot name files of this machine"],
            )
            .await?;
        tally.ran();
    }
    let with = Client {
        credentials: Some(basic("me", "hunter2")?),
        ..local()?
    };
    with.refused(&path, At::Head, "", &["cannot be used for a folder"])
        .await?;
    tally.ran();
    Ok(())
}
