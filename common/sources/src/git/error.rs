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
    /// What is no remote.
    #[error("{remote}: {why}")]
    Remote {
        /// As given.
        remote: String,
        /// What is wrong with it, and what goes.
        why: &'static str,
    },
    /// A ref with none or more than one of its fields, or one that can be none.
    #[error("{remote}: {why}")]
    BadRef {
        /// As given.
        remote: String,
        /// What is wrong with it.
        why: String,
    },
    /// Only the cache is asked, and it does not have it.
    #[error("{remote}: {what} is not in the cache, and --offline asks nobody; run once without it")]
    Offline {
        /// As given.
        remote: String,
        /// The ref and path.
        what: String,
    },
    /// The server wants to know who asks, or does not let them.
    #[error("{remote}: the server refuses to answer ({status}): {way_out}")]
    Denied {
        /// As given.
        remote: String,
        /// `401 Unauthorized`, or what ssh says.
        status: String,
        /// What to look at.
        way_out: String,
    },
    /// Nothing there.
    #[error("{remote} is no git repository ({status}), or one that these credentials may not see")]
    Missing {
        /// As given.
        remote: String,
        /// What the server says.
        status: String,
    },
    /// Any other answer than wanted.
    #[error("{remote}: the server answers {status}")]
    Status {
        /// As given.
        remote: String,
        /// `500 Internal Server Error`.
        status: String,
    },
    /// The server is not the one that `known_hosts` names.
    #[error(
        "{remote}: the key of the host is not in known_hosts, or is another one ({text}); ask its owner for the right \
         one (ssh-keyscan shows what it offers)"
    )]
    HostKey {
        /// As given.
        remote: String,
        /// What ssh says.
        text: String,
    },
    /// A program of this machine.
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
    /// A branch or tag that is not there.
    #[error("{remote} has no {kind} {name:?}; {near}")]
    Ref {
        /// As given.
        remote: String,
        /// `branch` or `tag`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Those that there are.
        near: String,
    },
    /// HEAD leads nowhere.
    #[error(
        "{remote} has no commit yet, or its HEAD names a branch that is not there; give a branch"
    )]
    Unborn {
        /// As given.
        remote: String,
    },
    /// A commit that is not there.
    #[error(
        "{remote} does not hand out commit {commit}, and none of its branches and tags has it among the last {COMMIT_DEPTH}"
    )]
    Commit {
        /// As given.
        remote: String,
        /// Its full id.
        commit: String,
        /// What the server said when it was asked for that commit alone.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What a ref names is no commit.
    #[error("{remote}: {id} is no commit")]
    NoCommit {
        /// As given.
        remote: String,
        /// The object.
        id: String,
    },
    /// A path that leads out of the tree, or can be none.
    #[error(
        "path {path:?} leads out of the repository {remote}; give a file or folder in its tree"
    )]
    Outside {
        /// As given.
        remote: String,
        /// The path.
        path: String,
    },
    /// A path that is not in the tree.
    #[error("{location}: nothing is there; {near}")]
    Path {
        /// `REMOTE@COMMIT:PATH`.
        location: String,
        /// What there is.
        near: String,
    },
    /// A symlink that is not followed.
    #[error(
        "{location} is a symlink to {target:?}, which is no file in the same repository; put the file there"
    )]
    Symlink {
        /// `REMOTE@COMMIT:PATH`.
        location: String,
        /// Where it leads.
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
    /// A file that is kept elsewhere.
    #[error("{location} is kept in Git LFS, which is not fetched; commit the file itself")]
    Lfs {
        /// `REMOTE@COMMIT:PATH`.
        location: String,
    },
    /// A name that is no text.
    #[error("{location}: a file name in it is not UTF-8")]
    Name {
        /// `REMOTE@COMMIT:PATH`.
        location: String,
    },
    /// What a package cannot hold.
    #[error("{location}: {source}; name a smaller folder as path")]
    Package {
        /// `REMOTE@COMMIT:PATH`.
        location: String,
        /// Which rule.
        source: PackageError,
    },
    /// The server sends too much.
    #[error("{remote} sends more than {} MiB; the source of an add-on needs a smaller repository", MAX_RECEIVED >> 20)]
    TooLarge {
        /// As given.
        remote: String,
    },
    /// No end within `TIME`.
    #[error("{remote} is not read after {} s", TIME.as_secs())]
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
    /// No connection over ssh, or one that broke.
    #[error("{remote}: the connection fails")]
    Connection {
        /// As given.
        remote: String,
        /// Why, without URLs.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What is no git protocol, or is cut short.
    #[error("{remote}: what the server sends is no git protocol, or breaks off")]
    Protocol {
        /// As given.
        remote: String,
        /// gix' words.
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
    /// The folder for what is received.
    #[error("{remote}: no temporary folder for it")]
    Folder {
        /// As given.
        remote: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}
