//! The objects of a repository, read with `git cat-file --batch`: nothing is checked out, and no filter runs.

use std::fmt;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use super::Problem;
use super::program::{Git, not_started};
use crate::child::Running;

/// Digits of an id.
const DIGITS: usize = 40;
/// Digits of a commit in a location.
const SHORT: usize = 12;
/// Bytes of the line before an object.
const MAX_LINE: u64 = 256;

/// The id of an object: a SHA-1 in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(String);

impl Oid {
    /// Reads a whole id.
    pub fn parse(text: &str) -> Option<Self> {
        let is_id = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| Self(text.to_ascii_lowercase()))
    }

    /// An id as it stands in a tree.
    pub fn of(bytes: &[u8]) -> Self {
        Self(common::hex::of(bytes))
    }

    /// Its beginning, for locations.
    pub fn short(&self) -> &str {
        self.0.get(..SHORT).unwrap_or(&self.0)
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An object.
#[derive(Debug)]
pub enum Object {
    /// It is not there, or damaged.
    Missing,
    /// It has more bytes than wanted, and was not read.
    Larger,
    /// A commit.
    Commit(Vec<u8>),
    /// The list of a folder.
    Tree(Vec<u8>),
    /// A file, or the target of a symlink.
    Blob(Vec<u8>),
    /// An annotated tag.
    Tag,
}

/// The objects of one repository.
pub struct Objects {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// Bytes of the last object that were not read.
    unread: u64,
    _running: Running,
}

impl Objects {
    /// Starts git.
    ///
    /// # Errors
    /// git cannot be started.
    pub fn open(git: &Git<'_>) -> Result<Self, Problem> {
        let failed = |source| not_started("git", source);
        let mut command = git.command(&["cat-file", "--batch"]);
        let mut running = Running::start(&mut command).map_err(failed)?;
        let (stdin, stdout, _) = running.pipes().map_err(failed)?;
        Ok(Self {
            stdin,
            stdout: BufReader::new(stdout),
            unread: 0,
            _running: running,
        })
    }

    /// Reads an object of at most `limit` bytes. git ends at a damaged one, and all others are missing from then on.
    pub async fn read(&mut self, id: &Oid, limit: u64) -> Object {
        self.ask(id, limit).await.unwrap_or(Object::Missing)
    }

    /// git answers `ID KIND SIZE`, then the bytes and a line break; or `ID missing`.
    async fn ask(&mut self, id: &Oid, limit: u64) -> std::io::Result<Object> {
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
            _ => return Ok(Object::Missing),
        };
        self.unread = size.saturating_add(1);
        if size > limit {
            return Ok(Object::Larger);
        }
        let mut bytes = Vec::new();
        let mut content = (&mut self.stdout).take(self.unread);
        content.read_to_end(&mut bytes).await?;
        self.unread = 0;
        if bytes.pop().is_none() || bytes.len() as u64 != size {
            return Ok(Object::Missing);
        }
        Ok(match kind {
            "commit" => Object::Commit(bytes),
            "tree" => Object::Tree(bytes),
            "blob" => Object::Blob(bytes),
            _ => Object::Tag,
        })
    }
}
