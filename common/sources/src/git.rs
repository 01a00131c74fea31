//! A file or folder of a git repository, over https, ssh or from a folder of this machine.
//!
//! | module | purpose |
//! |---|---|
//! | `remote`, `wanted` | the remote, ref and path, checked before anything is sent |
//! | `session` | the protocol: refs, and the objects of one commit |
//! | `http`, `ssh`, `wire` | the transports: with limits, and cancelled with the caller |
//! | `local` | a repository on this machine |
//! | `tree` | the package at a path of a commit |
//!
//! gix speaks the protocol and reads the objects. The program git and its configuration are not used, nothing is checked out,
//! and the only credentials are those of the Secret. Received objects stay in a private folder until the package is read.
//!
//! A branch or tag needs one request (`ls-refs`; the capabilities of the server are remembered), and no more if the cache has
//! its commit. A commit that the cache has needs no request.

mod error;
mod http;
mod local;
mod remote;
mod session;
mod ssh;
mod tree;
mod wanted;
mod wire;

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use common::api::catalogue::GitSource;
use common::nearest::nearest;
use common::render::package::Package;
use gix::ObjectId;
use gix::objs::Exists as _;

pub use error::{GitError, Problem};

use crate::cache::{Cache, Note};
use crate::credentials::Credentials;
use crate::http::Redirects;
use crate::http::bound::TIME;
use crate::names::listed;
use crate::scratch::Scratch;
use crate::url::without_credentials;
use crate::{Access, Fetched};
use http::Advertisement;
use remote::{Remote, Way};
use session::Session;
use tree::Tree;
use wanted::Wanted;
use wire::Wire;

/// Bytes that a server may send for one commit.
const MAX_RECEIVED: u64 = 256 << 20;
/// Bytes of the list of refs.
const MAX_REFS: u64 = 32 << 20;
/// Bytes of one object of the commit, at any path; GitHub allows 100 MB.
const MAX_OBJECT: usize = 128 << 20;
/// How deep a commit is searched below branches and tags, if the server does not send it by its id.
const COMMIT_DEPTH: u32 = 1000;
/// Names that an error lists.
const MAX_NAMES: usize = 8;
/// Digits of a commit in a location.
const SHORT: usize = 12;
/// The kinds of the notes in the cache: the package of a ref or commit at a path, and the capabilities of a server.
const NOTES: &str = "git";
const SERVERS: &str = "git-server";

/// Reads the file or folder that `source` names. `resolved` is the commit.
///
/// # Errors
/// [`GitError`].
pub async fn fetch(source: &GitSource, access: &Access<'_>) -> Result<Fetched, GitError> {
    let fetched = read(source, access).await;
    fetched.map_err(|problem| GitError {
        remote: without_credentials(&source.remote),
        problem,
    })
}

async fn read(source: &GitSource, access: &Access<'_>) -> Result<Fetched, Problem> {
    let remote = Remote::parse(&source.remote)?;
    let task = Task {
        wanted: Wanted::of(source)?,
        path: wanted::path(source)?,
        cache: access.cache.clone(),
        credentials: access.credentials.cloned(),
        key: remote.key(access.credentials),
        remote,
    };
    task.remote.check(access)?;
    if let Wanted::Commit(commit) = task.wanted
        && let Some(fetched) = task.cached(commit)
    {
        return Ok(fetched);
    }
    if access.offline && !matches!(task.remote.way, Way::Local(_)) {
        return task.offline();
    }
    let (wire, waiting) = Wire::new(access.reach);
    let ended =
        tokio::time::timeout(TIME, tokio::task::spawn_blocking(move || task.run(&wire))).await;
    drop(waiting);
    match ended {
        Ok(Ok(fetched)) => fetched,
        Ok(Err(source)) => Err(Problem::Connection {
            source: Box::new(source),
        }),
        Err(_) => Err(Problem::Timeout),
    }
}

/// One fetch, run on its own thread.
struct Task {
    remote: Remote,
    wanted: Wanted,
    path: Vec<String>,
    cache: Cache,
    credentials: Option<Credentials>,
    /// The remote in the keys of the cache.
    key: String,
}

impl Task {
    fn run(&self, wire: &Arc<Wire>) -> Result<Fetched, Problem> {
        if let Way::Local(path) = &self.remote.way {
            let (objects, commit) = local::open(path, &self.wanted)?;
            return Ok(self.fetched(commit, self.package(&objects, commit)?));
        }
        let failed = |source| Problem::Folder { source };
        let folder = Scratch::new("kubectl-addons-git-").map_err(failed)?;
        let commit = match self.wanted {
            Wanted::Commit(commit) => {
                self.receive_commit(wire, commit, folder.path())?;
                commit
            }
            _ => {
                let (mut session, named) = self.find(wire, folder.path())?;
                if let Some(fetched) = self.cached(named.commit) {
                    self.keep(named.commit, &fetched.package);
                    return Ok(fetched);
                }
                session.receive(&[named.want], NonZeroU32::MIN, folder.path())?;
                named.commit
            }
        };
        let objects = objects(&folder.path().join("objects")).map_err(failed)?;
        let package = self.package(&objects, commit)?;
        self.keep(commit, &package);
        Ok(self.fetched(commit, package))
    }

    /// Asks which commit a ref names; with the remembered capabilities of the server this is one request.
    fn find(&self, wire: &Arc<Wire>, folder: &Path) -> Result<(Session, session::Named), Problem> {
        if let Some(known) = self.known_server() {
            let asked = self
                .open(wire, Some(known), folder)
                .and_then(|mut session| {
                    let named = session.find(&self.wanted)?;
                    Ok((session, named))
                });
            match asked {
                // The server may have changed or moved since then.
                Err(
                    Problem::Protocol { .. } | Problem::Status { .. } | Problem::Missing { .. },
                ) => {}
                asked => return asked,
            }
        }
        let mut session = self.open(wire, None, folder)?;
        if let Some(Advertisement { bytes, base, .. }) = session.advertisement() {
            let note = Note {
                digest: self.cache.put(&bytes),
                location: Some(base),
                ..Note::default()
            };
            self.cache.set_note(SERVERS, &self.key, &note);
        }
        let named = session.find(&self.wanted)?;
        Ok((session, named))
    }

    /// Receives one commit: by its id if the server allows that, else with the history of branches and tags.
    fn receive_commit(
        &self,
        wire: &Arc<Wire>,
        commit: ObjectId,
        folder: &Path,
    ) -> Result<(), Problem> {
        let alone = self
            .open(wire, None, folder)?
            .receive(&[commit], NonZeroU32::MIN, folder);
        let refused = match alone {
            Err(refused @ (Problem::Protocol { .. } | Problem::Connection { .. })) => refused,
            ended => return ended,
        };
        let mut session = self.open(wire, None, folder)?;
        let tips = session.tips()?;
        let depth = NonZeroU32::new(COMMIT_DEPTH).unwrap_or(NonZeroU32::MIN);
        if !tips.is_empty() {
            session.receive(&tips, depth, folder)?;
        }
        let found = objects(&folder.join("objects")).is_ok_and(|objects| objects.exists(&commit));
        found.then_some(()).ok_or_else(|| Problem::Commit {
            commit: commit.to_string(),
            source: Box::new(refused),
        })
    }

    fn open(
        &self,
        wire: &Arc<Wire>,
        known: Option<Advertisement>,
        folder: &Path,
    ) -> Result<Session, Problem> {
        Session::open(wire, &self.remote, self.credentials.as_ref(), known, folder)
    }

    /// The capabilities of the server from an earlier run.
    fn known_server(&self) -> Option<Advertisement> {
        let (note, bytes) = self.cache.noted(SERVERS, &self.key)?;
        let base = note.location?;
        let Way::Http(url) = &self.remote.way else {
            return None;
        };
        // The stored location is judged like a redirect.
        let (from, to) = (
            url.to_bstring().to_string().parse().ok()?,
            base.parse().ok()?,
        );
        if Redirects::SameHost.refusal(&from, &to).is_some() {
            return None;
        }
        Some(Advertisement {
            bytes,
            base,
            is_cut: false,
        })
    }

    /// The package of a commit, if the cache has it.
    fn cached(&self, commit: ObjectId) -> Option<Fetched> {
        let key = self.note_key(&commit.to_string());
        let (_, bytes) = self.cache.noted(NOTES, &key)?;
        let package = Package::from_bytes(&bytes).ok()?;
        Some(self.fetched(commit, package))
    }

    /// The package of the ref at the last fetch.
    fn offline(&self) -> Result<Fetched, Problem> {
        let commit = match self.wanted {
            Wanted::Commit(commit) => Some(commit),
            _ => {
                let note = self
                    .cache
                    .note(NOTES, &self.note_key(&self.wanted.full_name()));
                let resolved = note.and_then(|note| note.resolved);
                resolved.and_then(|commit| ObjectId::from_hex(commit.as_bytes()).ok())
            }
        };
        let cached = commit.and_then(|commit| self.cached(commit));
        cached.ok_or_else(|| {
            let name = match (&self.wanted, self.wanted.parts()) {
                (_, Some((kind, _, name))) => format!("{kind} {name}"),
                (Wanted::Commit(commit), None) => format!("commit {commit}"),
                _ => "its main branch".to_owned(),
            };
            let what = match self.path.join("/").as_str() {
                "" => name,
                path => format!("{path} of {name}"),
            };
            Problem::Offline { what }
        })
    }

    fn keep(&self, commit: ObjectId, package: &Package) {
        let note = Note {
            digest: self.cache.put(&package.to_bytes()),
            resolved: Some(commit.to_string()),
            ..Note::default()
        };
        self.cache
            .set_note(NOTES, &self.note_key(&commit.to_string()), &note);
        // For runs that use only the cache.
        if !matches!(self.wanted, Wanted::Commit(_)) {
            self.cache
                .set_note(NOTES, &self.note_key(&self.wanted.full_name()), &note);
        }
    }

    fn note_key(&self, name: &str) -> String {
        format!("{}\n{name}\n{}", self.key, self.path.join("/"))
    }

    fn package(&self, objects: &gix::odb::Handle, commit: ObjectId) -> Result<Package, Problem> {
        Tree::of(objects, commit)?.package(&self.path)
    }

    fn fetched(&self, commit: ObjectId, package: Package) -> Fetched {
        let mut location = self.location(commit);
        if !self.path.is_empty() {
            location = format!("{location}:{}", self.path.join("/"));
        }
        Fetched {
            package,
            location,
            resolved: Some(commit.to_string()),
        }
    }

    fn location(&self, commit: ObjectId) -> String {
        format!("{}@{}", self.remote.name, commit.to_hex_with_len(SHORT))
    }
}

/// The object database in a folder.
fn objects(folder: &Path) -> std::io::Result<gix::odb::Handle> {
    let options = gix::odb::store::init::Options {
        alloc_limit_bytes: Some(MAX_OBJECT),
        ..Default::default()
    };
    gix::odb::at_opts(folder, gix::hash::Kind::Sha1, None, options)
}

/// The names that exist instead of `name`.
fn near(name: &str, names: &[&str]) -> String {
    if let Some(near) = nearest(name, names.iter().copied()) {
        return format!("did you mean {near:?}?");
    }
    match names {
        [] => "there are none".to_owned(),
        names => format!("there are: {}", listed(names.iter(), MAX_NAMES, "")),
    }
}
