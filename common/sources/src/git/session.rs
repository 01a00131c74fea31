//! A temporary repository that receives refs and the objects of one commit from a server.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::gateway::Gateway;
use super::objects::Oid;
use super::program::Git;
use super::refs::Refs;
use super::revision::GitRevision;
use super::{GitProblem, MAX_RECEIVED, MAX_REFS};

/// The maximum number of branches and tags whose history is fetched to find a commit.
const MAX_TIPS: usize = 1000;
/// The name of the server in the settings of git.
const SERVER: &str = "server";
/// The option that leaves out the content of files, which is fetched once the files at the path are known.
const WITHOUT_FILES: &str = "--filter=blob:none";

/// A temporary repository and its connection to a server.
pub struct FetchSession<'a> {
    git: Git<'a>,
    gateway: &'a Gateway<'a>,
    /// Whether to fetch only the files at the path, if the server supports that.
    is_partial: bool,
}

impl<'a> FetchSession<'a> {
    /// Creates an empty repository in `home`. All requests of git go through the gateway.
    ///
    /// # Errors
    /// The repository cannot be created, or git is not installed.
    pub async fn new(
        gateway: &'a Gateway<'a>,
        home: &'a Path,
        is_partial: bool,
    ) -> Result<Self, GitProblem> {
        let repository = home.join(if is_partial { "partial" } else { "whole" });
        create(&repository).map_err(|source| GitProblem::Folder { source })?;
        let mut settings = vec![
            ("remote.server.url", gateway.url()),
            ("fetch.unpackLimit", "1".to_owned()),
            ("fetch.negotiationAlgorithm", "noop".to_owned()),
            ("fetch.recurseSubmodules", "false".to_owned()),
            ("protocol.version", "2".to_owned()),
        ];
        if is_partial {
            // Git fetches missing objects by itself, such as the files to which symlinks point.
            settings.push(("remote.server.promisor", "true".to_owned()));
        }
        settings.extend(gateway.settings());
        let git = Git::new(home, repository).await?;
        Ok(Self {
            git: git.with_protocol(gateway.protocol(), settings),
            gateway,
            is_partial,
        })
    }

    /// The program git for the repository.
    pub fn git(&self) -> &Git<'a> {
        &self.git
    }

    /// Lists the branches, the tags or all refs of the server, depending on the revision. The list has the
    /// ref as well as the names for an error.
    ///
    /// # Errors
    /// Errors of the connection.
    pub async fn refs(&self, wanted: &GitRevision) -> Result<Refs, GitProblem> {
        let mut arguments = vec!["ls-remote", "--quiet"];
        arguments.extend_from_slice(match wanted {
            GitRevision::Head => &[],
            GitRevision::Branch(_) => &["--heads"],
            GitRevision::Tag(_) => &["--tags"],
            GitRevision::Commit(_) => &["--heads", "--tags"],
        });
        arguments.push(SERVER);
        self.gateway.allow(MAX_REFS as u64);
        let listing = self.run_with_server(&arguments, &[]).await?;
        Ok(Refs::parse(&listing))
    }

    /// Receives the history of `wants` with `depth` commits each.
    ///
    /// # Errors
    /// Errors of the connection, or more bytes than [`MAX_RECEIVED`].
    pub async fn receive(&self, wants: &[Oid], depth: u32) -> Result<(), GitProblem> {
        let depth = format!("--depth={depth}");
        self.gateway.allow(MAX_RECEIVED);
        self.fetch(&[&depth], wants.iter().take(MAX_TIPS)).await
    }

    /// Receives objects that the server left out. They count towards the limit for the commit.
    ///
    /// # Errors
    /// Errors of [`FetchSession::receive`].
    pub async fn receive_missing(
        &self,
        wants: impl Iterator<Item = &Oid>,
    ) -> Result<(), GitProblem> {
        let wants: BTreeSet<&Oid> = wants.collect();
        match self.is_partial && !wants.is_empty() {
            true => self.fetch(&[], wants).await,
            false => Ok(()),
        }
    }

    async fn fetch(
        &self,
        options: &[&str],
        wants: impl IntoIterator<Item = &Oid>,
    ) -> Result<(), GitProblem> {
        let mut arguments = vec![
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--stdin",
        ];
        arguments.extend(options);
        if self.is_partial {
            arguments.push(WITHOUT_FILES);
        }
        arguments.push(SERVER);
        let wants: String = wants.into_iter().map(|id| format!("{id}\n")).collect();
        self.run_with_server(&arguments, wants.as_bytes()).await?;
        Ok(())
    }

    /// Runs git with a connection to the server.
    async fn run_with_server(
        &self,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, GitProblem> {
        // Discard the failure of an earlier run.
        self.gateway.traffic.failure();
        let ended = self.git.run(arguments, input, MAX_REFS).await;
        ended.map_err(|problem| self.explain(problem))
    }

    /// Replaces an error of git, or a missing object, by its cause if the gateway knows one.
    pub fn explain(&self, problem: GitProblem) -> GitProblem {
        match problem {
            GitProblem::Protocol { .. } | GitProblem::Object { .. } => {
                self.gateway.traffic.failure().unwrap_or(problem)
            }
            problem => problem,
        }
    }
}

/// Creates an empty repository unless it exists. The parent folder must exist: if it was removed because the
/// program ends, it is not created again.
fn create(repository: &Path) -> std::io::Result<()> {
    for folder in [
        repository,
        &repository.join("objects"),
        &repository.join("refs"),
    ] {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    fs::write(repository.join("HEAD"), "ref: refs/heads/none\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_removed_stays_removed() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        assert!(create(&home.join("whole")).is_err());
        assert!(!home.exists());
        fs::create_dir(&home).unwrap();
        create(&home.join("whole")).unwrap();
        create(&home.join("whole")).unwrap();
    }
}
