//! Errors of reading a repository.

use std::error::Error;
use std::fmt;

use addons_render::package::PackageError;

use super::{COMMIT_DEPTH, MAX_OBJECT, MAX_RECEIVED};
use crate::credentials::CredentialsError;
use crate::http::HttpError;
use crate::http::bound::TIME;

/// Why a repository, a ref or a path in it cannot be read. No message contains credentials.
#[derive(Debug)]
pub struct GitError {
    /// The remote, without credentials.
    pub remote: String,
    /// What is wrong.
    pub problem: GitProblem,
}

impl fmt::Display for GitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.remote, self.problem)
    }
}

impl Error for GitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.problem.source()
    }
}

/// What is wrong with a repository, a ref or a path.
#[derive(Debug, thiserror::Error)]
pub enum GitProblem {
    /// The Secret has the wrong type or is not for this host.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The remote is invalid.
    #[error("{why}")]
    Remote {
        /// What is wrong, and what to write instead.
        why: &'static str,
    },
    /// The author of the source may not use files or keys of this machine.
    #[error("{why}")]
    Closed {
        /// What is wrong, and what to write instead.
        why: &'static str,
        /// The place that the user would have to open; `None` if that would not help.
        place: Option<String>,
    },
    /// The ref does not have exactly one field, or has an invalid name.
    #[error("{why}")]
    BadRef {
        /// What is wrong with the ref.
        why: String,
    },
    /// The content is not in the cache, and requests are not allowed.
    #[error("{what} is not in the cache, and no server may be asked")]
    Offline {
        /// The ref and the path.
        what: String,
    },
    /// The server requires credentials, or refuses them.
    #[error("the server denies access ({status}): {way_out}")]
    Denied {
        /// `401 Unauthorized`, or the message of ssh.
        status: String,
        /// What the user can do.
        way_out: String,
    },
    /// The server has no such repository.
    #[error("it is not a git repository ({status}), or these credentials may not read it")]
    Missing {
        /// The response of the server.
        status: String,
    },
    /// The server responds with another error status.
    #[error("the server answers {status}")]
    Status {
        /// `500 Internal Server Error`.
        status: String,
    },
    /// The key of the server is not in `known_hosts` or differs from it.
    #[error(
        "the key of the host is not in known_hosts, or differs from it ({text}); ask the owner of the host \
         for its key (ssh-keyscan shows the one that it offers)"
    )]
    HostKey {
        /// The message of ssh.
        text: String,
    },
    /// A program is not installed.
    #[error("{program}: not found in PATH")]
    NoProgram {
        /// `git` or `ssh`.
        program: &'static str,
    },
    /// The version of git is not supported.
    #[error("git {version} is too old")]
    TooOld {
        /// The version.
        version: String,
    },
    /// A program cannot be started.
    #[error("{program}: cannot be started")]
    Program {
        /// `git` or `ssh`.
        program: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The branch or tag does not exist.
    #[error("it has no {kind} {name:?}; {near}")]
    Ref {
        /// `branch` or `tag`.
        kind: &'static str,
        /// The name of the ref.
        name: String,
        /// A similar name, or the names that exist.
        near: String,
    },
    /// HEAD does not name a commit.
    #[error("it has no commit yet, or its HEAD names a branch that does not exist; name a branch")]
    Unborn,
    /// The commit cannot be fetched.
    #[error(
        "it does not hand out commit {commit}, and none of its branches and tags has it among the last {COMMIT_DEPTH}"
    )]
    Commit {
        /// The full id.
        commit: String,
        /// The error when the commit was requested by its id.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The ref does not name a commit.
    #[error("{id} is not a commit")]
    NoCommit {
        /// The id of the object.
        id: String,
    },
    /// The path leads out of the tree or is invalid.
    #[error("path {path:?} leads out of the repository; give a file or folder in its tree")]
    Outside {
        /// The path.
        path: String,
    },
    /// The path does not exist.
    #[error("{path} does not exist; {near}")]
    Path {
        /// `COMMIT:PATH`.
        path: String,
        /// A similar name, or the names that exist.
        near: String,
    },
    /// A symlink cannot be followed.
    #[error(
        "{path} is a symlink to {target:?}, which is not a file in the same repository; commit the file itself"
    )]
    Symlink {
        /// `COMMIT:PATH`.
        path: String,
        /// The target of the symlink.
        target: String,
    },
    /// The path is or contains a submodule.
    #[error(
        "{path} is a submodule, which is not fetched; name its repository as the source, or a path without it"
    )]
    Submodule {
        /// `COMMIT:PATH`.
        path: String,
    },
    /// A file is stored in Git LFS.
    #[error("{path} is kept in Git LFS, which is not fetched; commit the file itself")]
    Lfs {
        /// `COMMIT:PATH`.
        path: String,
    },
    /// A file name is not UTF-8.
    #[error("{path}: a file name in it is not UTF-8")]
    Name {
        /// `COMMIT:PATH`.
        path: String,
    },
    /// The files cannot be a package.
    #[error("{path}: {source}; name a smaller folder as path")]
    Package {
        /// `COMMIT:PATH`.
        path: String,
        /// Why.
        source: PackageError,
    },
    /// The server sends more than `MAX_RECEIVED` bytes.
    #[error("it sends more than {} MiB; the source of an add-on needs a smaller repository", MAX_RECEIVED >> 20)]
    TooLarge,
    /// The fetch did not end within `TIME`.
    #[error("timed out after {} s", TIME.as_secs())]
    Timeout,
    /// The server gave no usable response over http.
    #[error("it cannot be fetched")]
    Http {
        /// Why.
        #[source]
        source: HttpError,
    },
    /// The connection over ssh failed or broke off.
    #[error("the connection failed")]
    Connection {
        /// Why, without URLs.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server does not speak the git protocol, or the connection broke off.
    #[error("the server does not speak the git protocol, or the connection broke off")]
    Protocol {
        /// The message of git.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// An object exceeds `MAX_OBJECT`. The list of objects can exceed it too, with millions of objects.
    #[error(
        "the commit has a file of more than {} MiB, or millions of files, though perhaps not at this path; the source \
         of an add-on needs a smaller repository",
        MAX_OBJECT >> 20
    )]
    LargeObject,
    /// An object is missing or damaged.
    #[error("object {id} is missing or damaged")]
    Object {
        /// The id of the object.
        id: String,
    },
    /// A local repository cannot be opened.
    #[error("it cannot be opened as a git repository")]
    Open {
        /// The message of git.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// No local port can be opened for git.
    #[error("no port of this machine can be opened")]
    Loopback {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The temporary folder for objects cannot be created.
    #[error("cannot create a temporary folder")]
    Folder {
        /// Why.
        #[source]
        source: std::io::Error,
    },
}
