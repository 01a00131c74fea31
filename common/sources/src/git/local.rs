//! Reads a repository on this machine in place.

use std::fs;
use std::path::{Path, PathBuf};

use super::program::Git;
use super::refs::Refs;
use super::{GitProblem, MAX_REFS};

/// Opens the repository at `path`, which is bare or has a work tree. It is not searched in parent folders.
///
/// # Errors
/// There is no repository, or git is not installed.
pub async fn open<'a>(path: &Path, home: &'a Path) -> Result<Git<'a>, GitProblem> {
    let failed = |source| GitProblem::Folder { source };
    let path = std::path::absolute(path).map_err(failed)?;
    let inner = path.join(".git");
    let repository = if inner.exists() { inner } else { path };
    // Because the repository is given explicitly, git also accepts one of another user, and runs nothing that
    // it configures.
    let git = Git::new(home, repository).await?;
    match git.run(&["rev-parse", "--git-dir"], &[], MAX_REFS).await {
        Ok(_) => Ok(git),
        Err(GitProblem::Protocol { source }) => Err(GitProblem::Open { source }),
        Err(other) => Err(other),
    }
}

/// The maximum number of repositories whose objects one repository may use (`objects/info/alternates`).
const MAX_ALTERNATES: usize = 32;

/// Returns the files and folders that git reads of a repository, including those to which its files point:
/// `.git` and `commondir` to the repository of a work tree, `alternates` to objects of other repositories.
/// Returns `None` if there are too many.
pub fn read_paths(path: &Path) -> Option<Vec<PathBuf>> {
    let inner = path.join(".git");
    let leads = |file: &Path, from: &Path, before: &str| -> Option<PathBuf> {
        let text = fs::read_to_string(file).ok()?;
        Some(from.join(text.strip_prefix(before)?.trim()))
    };
    let own = match leads(&inner, path, "gitdir:") {
        Some(elsewhere) => elsewhere,
        None if inner.exists() => inner,
        None => path.to_owned(),
    };
    let common = leads(&own.join("commondir"), &own, "");
    let (mut parts, mut objects) = (Vec::new(), Vec::new());
    for folder in std::iter::once(own).chain(common) {
        parts.extend(["HEAD", "refs", "packed-refs"].map(|name| folder.join(name)));
        objects.push(folder.join("objects"));
        parts.push(folder);
    }
    let mut at = 0;
    while let Some(folder) = objects.get(at).cloned() {
        at += 1;
        let text = fs::read_to_string(folder.join("info/alternates")).unwrap_or_default();
        let named = text.lines().map(str::trim).filter(|line| !line.is_empty());
        objects.extend(named.map(|line| folder.join(line)));
        if objects.len() > MAX_ALTERNATES {
            return None;
        }
    }
    parts.extend(objects);
    Some(parts)
}

/// Reads the refs of a repository.
///
/// # Errors
/// The refs cannot be read.
pub async fn refs(git: &Git<'_>) -> Result<Refs, GitProblem> {
    let arguments = ["show-ref", "--head", "--dereference"];
    match git.run(&arguments, &[], MAX_REFS).await {
        Ok(listing) => Ok(Refs::parse(&listing)),
        // `show-ref` fails if there are no refs.
        Err(GitProblem::Protocol { .. }) => Ok(Refs::parse(&[])),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files in a repository can point to other folders that git reads.
    #[test]
    fn paths_outside_the_repository_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let write = |path: &str, text: &str| {
            let path = at(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        fs::create_dir_all(at("plain/.git")).unwrap();
        write("tree/.git", "gitdir: /private/.git/worktrees/a\n");
        write("bare/commondir", "/private/.git\n");
        write("taking/objects/info/alternates", "/private/.git/objects\n");
        for (path, expected) in [
            ("plain", false),
            ("tree", true),
            ("bare", true),
            ("taking", true),
        ] {
            let parts = read_paths(&at(path)).unwrap();
            let leads = parts.iter().any(|part| part.starts_with("/private"));
            assert_eq!(leads, expected, "{path}: {parts:?}");
        }
        let many = "/private/objects\n".repeat(MAX_ALTERNATES + 1);
        write("many/objects/info/alternates", &many);
        assert_eq!(read_paths(&at("many")), None);
    }
}
