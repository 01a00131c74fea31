//! A repository, made by the real git.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::guard::Folder;

/// A bare repository `repo.git` in a folder of its own, with a work tree beside it.
pub struct Repository {
    folder: Folder,
}

impl Repository {
    /// An empty repository with the branch `main`.
    ///
    /// # Errors
    /// Where git is missing.
    pub fn new() -> Result<Self> {
        let repository = Self {
            folder: Folder::new("addons-git-")?,
        };
        fs::create_dir(repository.work())?;
        repository.git(&["init", "--quiet", "--initial-branch=main"])?;
        Ok(repository)
    }

    /// The folder that a server serves; the repository is `repo.git` in it.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The repository.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.root().join("repo.git")
    }

    /// The work tree.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// Writes a file into the work tree.
    ///
    /// # Errors
    /// Of the disk.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> Result<()> {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().context("no folder")?)?;
        Ok(fs::write(path, bytes)?)
    }

    /// Makes a symlink in the work tree.
    ///
    /// # Errors
    /// Of the disk.
    pub fn link(&self, path: &str, target: &str) -> Result<()> {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().context("no folder")?)?;
        Ok(std::os::unix::fs::symlink(target, path)?)
    }

    /// Commits what is in the work tree; the commit's full id.
    ///
    /// # Errors
    /// Of git.
    pub fn commit(&self, message: &str) -> Result<String> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message])?;
        self.git(&["rev-parse", "HEAD"])
    }

    /// Runs git on it; what it prints.
    ///
    /// # Errors
    /// Of git, with its words.
    pub fn git(&self, arguments: &[&str]) -> Result<String> {
        self.git_with(arguments, &[])
    }

    /// Runs git on it with an input.
    ///
    /// # Errors
    /// Of git, with its words.
    pub fn git_with(&self, arguments: &[&str], input: &[u8]) -> Result<String> {
        let mut command = Command::new("git");
        isolated(&mut command);
        command
            .arg("--git-dir")
            .arg(self.path())
            .arg("--work-tree")
            .arg(self.work())
            .args(arguments)
            .current_dir(self.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().context("git")?;
        if let Some(mut stdin) = child.stdin.take() {
            // git may end before it has read everything.
            let _ = stdin.write_all(input);
        }
        let output = child.wait_with_output()?;
        let words = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "git {arguments:?}: {words}");
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// No settings of this machine, and an author.
pub(super) fn isolated(command: &mut Command) {
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.com")
        .env("GIT_COMMITTER_NAME", "A")
        .env("GIT_COMMITTER_EMAIL", "a@example.com");
}
