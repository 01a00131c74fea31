//! A repository on this machine, read in place.

use std::fs;
use std::path::{Path, PathBuf};

use super::program::Git;
use super::refs::Refs;
use super::{MAX_REFS, Problem};

/// git for the repository at `path`: bare, or with a work tree around it. It is not searched for in folders above.
///
/// # Errors
/// There is no repository, or no git.
pub async fn open<'a>(path: &Path, home: &'a Path) -> Result<Git<'a>, Problem> {
    let failed = |source| Problem::Folder { source };
    let path = std::path::absolute(path).map_err(failed)?;
    let inner = path.join(".git");
    let repository = if inner.exists() { inner } else { path };
    // Named outright, a repository may also belong to another user: git runs nothing that it configures.
    let git = Git::new(home, repository).await?;
    match git.run(&["rev-parse", "--git-dir"], &[], MAX_REFS).await {
        Ok(_) => Ok(git),
        Err(Problem::Protocol { source }) => Err(Problem::Open { source }),
        Err(other) => Err(other),
    }
}

/// The most repositories whose objects one repository may use (`objects/info/alternates`).
const MAX_ALTERNATES: usize = 32;

/// The files and folders that git reads of a repository, also where its files lead to others: `.git` and `commondir` to the repository of
/// a work tree, `alternates` to objects of others. `None` for too many.
pub fn parts(path: &Path) -> Option<Vec<PathBuf>> {
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

/// Its refs.
///
/// # Errors
/// They cannot be read.
pub async fn refs(git: &Git<'_>) -> Result<Refs, Problem> {
    let arguments = ["show-ref", "--head", "--dereference"];
    match git.run(&arguments, &[], MAX_REFS).await {
        Ok(listing) => Ok(Refs::parse(&listing)),
        // It fails where there is none.
        Err(Problem::Protocol { .. }) => Ok(Refs::parse(&[])),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of a repository lead to what it reads elsewhere.
    #[test]
    fn what_is_read_elsewhere_is_found() {
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
            let parts = parts(&at(path)).unwrap();
            let leads = parts.iter().any(|part| part.starts_with("/private"));
            assert_eq!(leads, expected, "{path}: {parts:?}");
        }
        let many = "/private/objects\n".repeat(MAX_ALTERNATES + 1);
        write("many/objects/info/alternates", &many);
        assert_eq!(parts(&at("many")), None);
    }
}
