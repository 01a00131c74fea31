//! Reads the objects of a repository with `git cat-file --batch`. Nothing is checked out, and no filter runs.

use std::fmt;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use super::GitProblem;
use super::program::{Git, not_started};
use crate::child::RunningProgram;

/// The number of digits of an id.
const DIGITS: usize = 40;
/// The number of digits of a commit in a location.
const SHORT: usize = 12;
/// The maximum number of bytes of the line before an object.
const MAX_LINE: u64 = 256;

/// The id of an object: a SHA-1 in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(String);

impl Oid {
    /// Parses a full id.
    pub fn parse(text: &str) -> Option<Self> {
        let is_id = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| Self(text.to_ascii_lowercase()))
    }

    /// Converts an id from its binary form in a tree.
    pub fn of(bytes: &[u8]) -> Self {
        Self(common::text::encode_hex(bytes))
    }

    /// The short form for locations.
    pub fn short(&self) -> &str {
        self.0.get(..SHORT).unwrap_or(&self.0)
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The result of reading an object.
#[derive(Debug)]
pub enum GitObject {
    /// The object is missing or damaged.
    Missing,
    /// The object has more bytes than the limit and was not read.
    Larger,
    /// A commit.
    Commit(Vec<u8>),
    /// The entries of a folder.
    Tree(Vec<u8>),
    /// A file, or the target of a symlink.
    Blob(Vec<u8>),
    /// An annotated tag.
    Tag,
}

/// Reads the objects of one repository.
pub struct ObjectReader {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// The number of unread bytes of the last object.
    unread: u64,
    _running: RunningProgram,
}

impl ObjectReader {
    /// Starts git.
    ///
    /// # Errors
    /// Git cannot be started.
    pub fn open(git: &Git<'_>) -> Result<Self, GitProblem> {
        let failed = |source| not_started("git", source);
        let mut command = git.command(&["cat-file", "--batch"]);
        let mut running = RunningProgram::start(&mut command).map_err(failed)?;
        let (stdin, stdout, _) = running.pipes().map_err(failed)?;
        Ok(Self {
            stdin,
            stdout: BufReader::new(stdout),
            unread: 0,
            _running: running,
        })
    }

    /// Reads an object of at most `limit` bytes. Git exits at a damaged object, and all further objects count
    /// as missing.
    pub async fn read(&mut self, id: &Oid, limit: u64) -> GitObject {
        self.request(id, limit).await.unwrap_or(GitObject::Missing)
    }

    /// Requests an object. Git responds with `ID KIND SIZE`, the bytes and a line break, or with
    /// `ID missing`.
    async fn request(&mut self, id: &Oid, limit: u64) -> std::io::Result<GitObject> {
        let mut rest = (&mut self.stdout).take(self.unread);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
        self.unread = 0;
        self.stdin.write_all(format!("{id}\n").as_bytes()).await?;
        let mut line = String::new();
        let mut header = (&mut self.stdout).take(MAX_LINE);
        header.read_line(&mut line).await?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let (kind, size) = match words.as_slice() {
            [_, kind, size] => (*kind, size.parse::<u64>().unwrap_or(u64::MAX)),
            _ => return Ok(GitObject::Missing),
        };
        self.unread = size.saturating_add(1);
        if size > limit {
            return Ok(GitObject::Larger);
        }
        let mut bytes = Vec::new();
        let mut content = (&mut self.stdout).take(self.unread);
        content.read_to_end(&mut bytes).await?;
        self.unread = 0;
        if bytes.pop().is_none() || bytes.len() as u64 != size {
            return Ok(GitObject::Missing);
        }
        Ok(match kind {
            "commit" => GitObject::Commit(bytes),
            "tree" => GitObject::Tree(bytes),
            "blob" => GitObject::Blob(bytes),
            _ => GitObject::Tag,
        })
    }
}
