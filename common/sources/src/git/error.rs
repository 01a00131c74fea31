//! Why a repository cannot be read.

use common::render::package::PackageError;

use super::{COMMIT_DEPTH, MAX_OBJECT, MAX_RECEIVED};
use crate::credentials::CredentialsError;
use crate::http::HttpError;
use crate::http::bound::TIME;
use crate::url::UrlError;

/// Why a repository, a ref or a path in it cannot be read. Every message names the remote; none holds credentials.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// A user name or password in the URL.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A Secret of the wrong type, or not for this host.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Not a remote.
    #[error("{remote}: {why}")]
    Remote {
        /// As given.
        remote: String,
        /// What is wrong, and what to write.
        why: &'static str,
    },
    /// A ref with none or more than one of its fields, or with an invalid name.
    #[error("{remote}: {why}")]
    BadRef {
        /// As given.
        remote: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not in the cache, and no server may be asked.
    #[error(
        "{remote}: {what} is not in the cache, and --offline asks no server; run this once without --offline"
    )]
    Offline {
        /// As given.
        remote: String,
        /// The ref and path.
        what: String,
    },
    /// The server wants credentials, or rejects them.
    #[error("{remote}: the server denies access ({status}): {way_out}")]
    Denied {
        /// As given.
        remote: String,
        /// `401 Unauthorized`, or the message of ssh.
        status: String,
        /// What to do.
        way_out: String,
    },
    /// Not a repository.
    #[error("{remote} is not a git repository ({status}), or these credentials may not read it")]
    Missing {
        /// As given.
        remote: String,
        /// The answer of the server.
        status: String,
    },
    /// Any other error status.
    #[error("{remote}: the server answers {status}")]
    Status {
        /// As given.
        remote: String,
        /// `500 Internal Server Error`.
        status: String,
    },
    /// The server is not the one that `known_hosts` names.
    #[error(
        "{remote}: the key of the host is not in known_hosts, or differs from it ({text}); ask the owner of the host \
         for its key (ssh-keyscan shows the one that it offers)"
    )]
    HostKey {
        /// As given.
        remote: String,
        /// The message of ssh.
        text: String,
    },
    /// A program cannot be started.
    #[error(
        "{remote}: the program {program} cannot be started; install OpenSSH's client, or use https://"
    )]
    Program {
        /// As given.
        remote: String,
        /// `ssh`.
        program: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A branch or tag that does not exist.
    #[error("{remote} has no {kind} {name:?}; {near}")]
    Ref {
        /// As given.
        remote: String,
        /// `branch` or `tag`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Names that exist.
        near: String,
    },
    /// HEAD names no commit.
    #[error(
        "{remote} has no commit yet, or its HEAD names a branch that does not exist; name a branch"
    )]
    Unborn {
        /// As given.
        remote: String,
    },
    /// A commit that cannot be fetched.
    #[error(
        "{remote} does not hand out commit {commit}, and none of its branches and tags has it among the last {COMMIT_DEPTH}"
    )]
    Commit {
        /// As given.
        remote: String,
        /// Its full id.
        commit: String,
        /// The error when the commit was asked for by its id.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A ref names something other than a commit.
    #[error("{remote}: {id} is not a commit")]
    NoCommit {
        /// As given.
        remote: String,
        /// The object.
        id: String,
    },
    /// A path that leads out of the tree, or is invalid.
    #[error(
        "path {path:?} leads out of the repository {remote}; give a file or folder in its tree"
    )]
    Outside {
        /// As given.
        remote: String,
        /// The path.
        path: String,
    },
    /// A path that does not exist.
    #[error("{location} does not exist; {near}")]
    Path {
        /// `REMOTE@COMMIT:PATH`.
        location: String,
        /// Names that exist.
        near: String,
    },
    /// A symlink that is not followed.
    #[error(
        "{location} is a symlink to {target:?}, which is not a file in the same repository; commit the file itself"
    )]
    Symlink {
        /// `REMOTE@COMMIT:PATH`.
        location: String,
        /// Its target.
        target: String,
    },
    /// A submodule.
    #[error(
        "{location} is a submodule, which is not fetched; name its repository as the source, or a path without it"
    )]
    Submodule {
        /// `REMOTE@COMMIT:PATH`.
        location: String,
    },
    /// A file in Git LFS.
    #[error("{location} is kept in Git LFS, which is not fetched; commit the file itself")]
    Lfs {
        /// `REMOTE@COMMIT:PATH`.
        location: String,
    },
    /// A file name that is not UTF-8.
    #[error("{location}: a file name in it is not UTF-8")]
    Name {
        /// `REMOTE@COMMIT:PATH`.
        location: String,
    },
    /// The files cannot be a package.
    #[error("{location}: {source}; name a smaller folder as path")]
    Package {
        /// `REMOTE@COMMIT:PATH`.
        location: String,
        /// Why.
        source: PackageError,
    },
    /// More bytes than `MAX_RECEIVED`.
    #[error("{remote} sends more than {} MiB; the source of an add-on needs a smaller repository", MAX_RECEIVED >> 20)]
    TooLarge {
        /// As given.
        remote: String,
    },
    /// No end within `TIME`.
    #[error("{remote}: timed out after {} s", TIME.as_secs())]
    Timeout {
        /// As given.
        remote: String,
    },
    /// No usable answer over http.
    #[error("{remote} cannot be fetched")]
    Http {
        /// As given.
        remote: String,
        /// Why.
        #[source]
        source: HttpError,
    },
    /// No connection over ssh, or one that broke off.
    #[error("{remote}: the connection failed")]
    Connection {
        /// As given.
        remote: String,
        /// Why, without URLs.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Not the git protocol, or cut off.
    #[error("{remote}: the server does not speak the git protocol, or the connection broke off")]
    Protocol {
        /// As given.
        remote: String,
        /// The error of gix.
        #[source]
        source: gix::Error,
    },
    /// An object of more than `MAX_OBJECT`, or more objects than a list of that size names.
    #[error(
        "{remote}: the commit has a file of more than {} MiB, or millions of files, though perhaps not at this path; the source \
         of an add-on needs a smaller repository",
        MAX_OBJECT >> 20
    )]
    LargeObject {
        /// As given.
        remote: String,
    },
    /// An object that is missing or damaged.
    #[error("{remote}: object {id} is missing or damaged")]
    Object {
        /// As given.
        remote: String,
        /// Its id.
        id: String,
    },
    /// A local repository that cannot be opened.
    #[error("{remote} cannot be opened as a git repository")]
    Open {
        /// As given.
        remote: String,
        /// Why.
        #[source]
        source: gix::Error,
    },
    /// The temporary folder for objects.
    #[error("{remote}: cannot create a temporary folder")]
    Folder {
        /// As given.
        remote: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}
