//! A repository on this machine, read in place.

use std::path::Path;

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
