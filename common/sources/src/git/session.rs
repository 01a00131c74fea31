//! A repository of ours that is filled from a server: refs, and the objects of one commit.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::gateway::Gateway;
use super::objects::Oid;
use super::program::Git;
use super::refs::Refs;
use super::wanted::Wanted;
use super::{MAX_RECEIVED, MAX_REFS, Problem};

/// The most branches and tags that are searched for a commit.
const MAX_TIPS: usize = 1000;
/// The server, in the settings of git.
const SERVER: &str = "server";
/// Leaves out the content of files, which is fetched when the path is known.
const WITHOUT_FILES: &str = "--filter=blob:none";

/// A fetch from one server.
pub struct Session<'a> {
    git: Git<'a>,
    gateway: &'a Gateway<'a>,
    /// Whether only the files at the path are fetched, by servers that can do that.
    is_partial: bool,
}

impl<'a> Session<'a> {
    /// An empty repository in `home`. Everything that git asks goes through the gateway.
    ///
    /// # Errors
    /// The repository cannot be created; there is no git.
    pub async fn new(
        gateway: &'a Gateway<'a>,
        home: &'a Path,
        is_partial: bool,
    ) -> Result<Self, Problem> {
        let repository = home.join(if is_partial { "partial" } else { "whole" });
        create(&repository).map_err(|source| Problem::Folder { source })?;
        let mut settings = vec![
            ("remote.server.url", gateway.url()),
            ("fetch.unpackLimit", "1".to_owned()),
            ("fetch.negotiationAlgorithm", "noop".to_owned()),
            ("fetch.recurseSubmodules", "false".to_owned()),
            ("protocol.version", "2".to_owned()),
        ];
        if is_partial {
            // git fetches by itself what is missing, such as the files that symlinks lead to.
            settings.push(("remote.server.promisor", "true".to_owned()));
        }
        settings.extend(gateway.settings());
        let git = Git::new(home, repository).await?;
        Ok(Self {
            git: git.speaking(gateway.protocol(), settings),
            gateway,
            is_partial,
        })
    }

    /// git for the repository.
    pub fn git(&self) -> &Git<'a> {
        &self.git
    }

    /// The branches, the tags or all refs of the server: one answer has the ref, and the names for an error.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn refs(&self, wanted: &Wanted) -> Result<Refs, Problem> {
        let mut arguments = vec!["ls-remote", "--quiet"];
        arguments.extend_from_slice(match wanted {
            Wanted::Head => &[],
            Wanted::Branch(_) => &["--heads"],
            Wanted::Tag(_) => &["--tags"],
            Wanted::Commit(_) => &["--heads", "--tags"],
        });
        arguments.push(SERVER);
        self.gateway.allow(MAX_REFS as u64);
        let listing = self.ask(&arguments, &[]).await?;
        Ok(Refs::parse(&listing))
    }

    /// Receives commits, `depth` of each line.
    ///
    /// # Errors
    /// Those of the connection; more bytes than [`MAX_RECEIVED`].
    pub async fn receive(&self, wants: &[Oid], depth: u32) -> Result<(), Problem> {
        let depth = format!("--depth={depth}");
        self.gateway.allow(MAX_RECEIVED);
        self.fetch(&[&depth], wants.iter().take(MAX_TIPS)).await
    }

    /// Receives objects that the server left out. They count to what it may send for the commit.
    ///
    /// # Errors
    /// As [`Session::receive`].
    pub async fn complete(&self, wants: impl Iterator<Item = &Oid>) -> Result<(), Problem> {
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
    ) -> Result<(), Problem> {
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
        self.ask(&arguments, wants.as_bytes()).await?;
        Ok(())
    }

    /// Runs git with the server.
    async fn ask(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, Problem> {
        // What is known of an earlier run that failed.
        self.gateway.failure();
        let ended = self.git.run(arguments, input, MAX_REFS).await;
        ended.map_err(|problem| self.cause(problem))
    }

    /// The cause of an error of git or of an object that it could not fetch: what the gateway saw, if anything.
    pub fn cause(&self, problem: Problem) -> Problem {
        match problem {
            Problem::Protocol { .. } | Problem::Object { .. } => {
                self.gateway.failure().unwrap_or(problem)
            }
            problem => problem,
        }
    }
}

/// Creates an empty repository, unless there is one, in a folder that is there. A program that ends has removed the folder: it
/// does not come back.
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
