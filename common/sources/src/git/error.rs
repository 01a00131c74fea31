//! Why a repository cannot be read.

use std::error::Error;
use std::fmt;

use addons_render::package::PackageError;

use super::{COMMIT_DEPTH, MAX_OBJECT, MAX_RECEIVED};
use crate::credentials::CredentialsError;
use crate::http::HttpError;
use crate::http::bound::TIME;

/// Why a repository, a ref or a path in it cannot be read. No message holds credentials.
#[derive(Debug)]
pub struct GitError {
    /// The remote, without credentials.
    pub remote: String,
    /// What is wrong.
    pub problem: Problem,
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

/// What is wrong with a remote.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A Secret of the wrong type, or not for this host.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Not a remote.
    #[error("{why}")]
    Remote {
        /// What is wrong, and what to write.
        why: &'static str,
    },
    /// Files or keys of this machine that are not open to whoever names them.
    #[error("{why}")]
    Closed {
        /// What is wrong, and what to write.
        why: &'static str,
        /// The place that the user would have to open; `None` where that would not help.
        place: Option<String>,
    },
    /// A ref with none or more than one of its fields, or with an invalid name.
    #[error("{why}")]
    BadRef {
        /// What is wrong with it.
        why: String,
    },
    /// Not in the cache, and no server may be asked.
    #[error("{what} is not in the cache, and no server may be asked")]
    Offline {
        /// The ref and path.
        what: String,
    },
    /// The server wants credentials, or rejects them.
    #[error("the server denies access ({status}): {way_out}")]
    Denied {
        /// `401 Unauthorized`, or the message of ssh.
        status: String,
        /// What to do.
        way_out: String,
    },
    /// Not a repository.
    #[error("it is not a git repository ({status}), or these credentials may not read it")]
    Missing {
        /// The answer of the server.
        status: String,
    },
    /// Any other error status.
    #[error("the server answers {status}")]
    Status {
        /// `500 Internal Server Error`.
        status: String,
    },
    /// The server is not the one that `known_hosts` names.
    #[error(
        "the key of the host is not in known_hosts, or differs from it ({text}); ask the owner of the host \
         for its key (ssh-keyscan shows the one that it offers)"
    )]
    HostKey {
        /// The message of ssh.
        text: String,
    },
    /// A program that is not there.
    #[error("{program}: not found in PATH")]
    NoProgram {
        /// `git` or `ssh`.
        program: &'static str,
    },
    /// A git that lacks what is needed.
    #[error("git {version} is too old")]
    TooOld {
        /// Its version.
        version: String,
    },
    /// A program that cannot be started.
    #[error("{program}: cannot be started")]
    Program {
        /// `git` or `ssh`.
        program: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A branch or tag that does not exist.
    #[error("it has no {kind} {name:?}; {near}")]
    Ref {
        /// `branch` or `tag`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Names that exist.
        near: String,
    },
    /// HEAD names no commit.
    #[error("it has no commit yet, or its HEAD names a branch that does not exist; name a branch")]
    Unborn,
    /// A commit that cannot be fetched.
    #[error(
        "it does not hand out commit {commit}, and none of its branches and tags has it among the last {COMMIT_DEPTH}"
    )]
    Commit {
        /// Its full id.
        commit: String,
        /// The error when the commit was asked for by its id.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A ref names something other than a commit.
    #[error("{id} is not a commit")]
    NoCommit {
        /// The object.
        id: String,
    },
    /// A path that leads out of the tree, or is invalid.
    #[error("path {path:?} leads out of the repository; give a file or folder in its tree")]
    Outside {
        /// The path.
        path: String,
    },
    /// A path that does not exist.
    #[error("{path} does not exist; {near}")]
    Path {
        /// `COMMIT:PATH`.
        path: String,
        /// Names that exist.
        near: String,
    },
    /// A symlink that is not followed.
    #[error(
        "{path} is a symlink to {target:?}, which is not a file in the same repository; commit the file itself"
    )]
    Symlink {
        /// `COMMIT:PATH`.
        path: String,
        /// Its target.
        target: String,
    },
    /// A submodule.
    #[error(
        "{path} is a submodule, which is not fetched; name its repository as the source, or a path without it"
    )]
    Submodule {
        /// `COMMIT:PATH`.
        path: String,
    },
    /// A file in Git LFS.
    #[error("{path} is kept in Git LFS, which is not fetched; commit the file itself")]
    Lfs {
        /// `COMMIT:PATH`.
        path: String,
    },
    /// A file name that is not UTF-8.
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
    /// More bytes than `MAX_RECEIVED`.
    #[error("it sends more than {} MiB; the source of an add-on needs a smaller repository", MAX_RECEIVED >> 20)]
    TooLarge,
    /// No end within `TIME`.
    #[error("timed out after {} s", TIME.as_secs())]
    Timeout,
    /// No usable answer over http.
    #[error("it cannot be fetched")]
    Http {
        /// Why.
        #[source]
        source: HttpError,
    },
    /// No connection over ssh, or one that broke off.
    #[error("the connection failed")]
    Connection {
        /// Why, without URLs.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Not the git protocol, or cut off.
    #[error("the server does not speak the git protocol, or the connection broke off")]
    Protocol {
        /// The message of git.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// An object of more than `MAX_OBJECT`, or more objects than a list of that size names.
    #[error(
        "the commit has a file of more than {} MiB, or millions of files, though perhaps not at this path; the source \
         of an add-on needs a smaller repository",
        MAX_OBJECT >> 20
    )]
    LargeObject,
    /// An object that is missing or damaged.
    #[error("object {id} is missing or damaged")]
    Object {
        /// Its id.
        id: String,
    },
    /// A local repository that cannot be opened.
    #[error("it cannot be opened as a git repository")]
    Open {
        /// The message of git.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// No port of this machine for git.
    #[error("no port of this machine can be opened")]
    Loopback {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The temporary folder for objects.
    #[error("cannot create a temporary folder")]
    Folder {
        /// Why.
        #[source]
        source: std::io::Error,
    },
}
