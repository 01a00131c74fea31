//! A file or folder of a git repository, over https, ssh or from a folder of this machine.
//!
//! | module | purpose |
//! |---|---|
//! | `remote`, `wanted` | the remote, ref and path, checked before anything is sent |
//! | `program` | the program git: its settings, and one run |
//! | `session`, `refs` | a repository of ours that is filled from a server |
//! | `gateway` | between git and the server: our HTTP client, or ssh |
//! | `local` | a repository on this machine |
//! | `tree`, `objects` | the package at a path of a commit |
//!
//! The program git speaks the protocol and reads the objects. It has no settings but ours, nothing is checked out, and it reaches no
//! server by itself. Received objects stay in a private folder until the package is read. Servers that can leave out files send only
//! those at the path.
//!
//! A branch or tag needs one request (the capabilities of the server are remembered), and no more if the cache has its commit. A
//! commit that the cache has needs no request, and no git.

mod error;
mod gateway;
mod local;
mod objects;
mod program;
mod refs;
mod remote;
mod session;
mod tree;
mod wanted;

use std::path::Path;
use std::slice::from_ref;

use addons_render::package::Package;
use common::api::catalogue::GitSource;
use common::nearest::nearest;

pub use error::{GitError, Problem};

use crate::cache::{Cache, Note};
use crate::credentials::Credentials;
use crate::http::Redirects;
use crate::http::bound::TIME;
use crate::names::listed;
use crate::reach::Addresses;
use crate::scratch::Scratch;
use crate::url::without_credentials;
use crate::{Access, Fetched};
use gateway::{Advertisement, Gateway};
use objects::{Object, Objects, Oid};
use refs::Named;
use remote::{Remote, Way};
use session::Session;
use tree::Tree;
use wanted::Wanted;

/// The first version of git that can be used.
pub use program::OLDEST;

/// Bytes that a server may send for one commit.
const MAX_RECEIVED: u64 = 256 << 20;
/// Bytes of the list of refs.
const MAX_REFS: usize = 32 << 20;
/// Bytes of one object of the commit, at any path; GitHub allows 100 MB.
const MAX_OBJECT: usize = 128 << 20;
/// How deep a commit is searched below branches and tags, if the server does not send it by its id.
const COMMIT_DEPTH: u32 = 1000;
/// Names that an error lists.
const MAX_NAMES: usize = 8;
/// Bytes of the capabilities of a server, to be kept in the cache.
const MAX_CAPABILITIES: usize = 64 << 10;
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
        key: remote.key(access),
        remote,
    };
    let addresses = task.remote.check(access)?;
    if let Wanted::Commit(commit) = &task.wanted
        && let Some(fetched) = task.cached(commit)
    {
        return Ok(fetched);
    }
    if access.offline && !matches!(task.remote.way, Way::Local(_)) {
        return task.offline();
    }
    let ended = tokio::time::timeout(TIME, task.run(addresses)).await;
    ended.unwrap_or(Err(Problem::Timeout))
}

/// One fetch.
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
    async fn run(&self, addresses: Addresses) -> Result<Fetched, Problem> {
        let home =
            Scratch::new("kubectl-addons-git-").map_err(|source| Problem::Folder { source })?;
        if let Way::Local(path) = &self.remote.way {
            let git = local::open(path, home.path()).await?;
            let commit = match &self.wanted {
                Wanted::Commit(commit) => commit.clone(),
                wanted => local::refs(&git).await?.find(wanted)?.commit,
            };
            let tree = Tree::of(&git, &commit).await?;
            let package = tree.package(&self.path, None).await?;
            return Ok(self.fetched(&commit, package));
        }
        let credentials = self.credentials.as_ref();
        let gateway = Gateway::open(&self.remote, credentials, addresses, home.path()).await?;
        gateway.during(self.ask(&gateway, home.path())).await
    }

    /// Asks a server.
    async fn ask(&self, gateway: &Gateway<'_>, home: &Path) -> Result<Fetched, Problem> {
        let named = match &self.wanted {
            Wanted::Commit(commit) => Named {
                commit: commit.clone(),
                want: commit.clone(),
            },
            _ => self.find(gateway, home).await?,
        };
        if let Some(fetched) = self.cached(&named.commit) {
            self.keep(&named.commit, &fetched.package);
            return Ok(fetched);
        }
        let package = match self.receive(gateway, home, &named, true).await {
            // Some servers leave out files, but do not send them by their ids.
            Err(Problem::Protocol { .. } | Problem::Connection { .. } | Problem::Object { .. }) => {
                self.receive(gateway, home, &named, false).await?
            }
            received => received?,
        };
        self.keep(&named.commit, &package);
        Ok(self.fetched(&named.commit, package))
    }

    /// Asks which commit a ref names; with the remembered capabilities of the server this is one request.
    async fn find(&self, gateway: &Gateway<'_>, home: &Path) -> Result<Named, Problem> {
        let session = Session::new(gateway, home, false).await?;
        let ask = async || session.refs(&self.wanted).await?.find(&self.wanted);
        if let Some(known) = self.known_server() {
            gateway.set_advertisement(Some(known));
            match ask().await {
                // The server may have changed or moved since then.
                Err(
                    Problem::Protocol { .. } | Problem::Status { .. } | Problem::Missing { .. },
                ) => gateway.set_advertisement(None),
                found => return found,
            }
        }
        let found = ask().await;
        self.keep_server(gateway);
        found
    }

    /// Receives a commit, and its package.
    async fn receive(
        &self,
        gateway: &Gateway<'_>,
        home: &Path,
        named: &Named,
        is_partial: bool,
    ) -> Result<Package, Problem> {
        let session = Session::new(gateway, home, is_partial).await?;
        match session.receive(from_ref(&named.want), 1).await {
            Err(refused @ (Problem::Protocol { .. } | Problem::Connection { .. }))
                if matches!(self.wanted, Wanted::Commit(_)) =>
            {
                self.search(&session, &named.commit, refused).await?;
            }
            received => received?,
        }
        let package = async {
            let tree = Tree::of(session.git(), &named.commit).await?;
            tree.package(&self.path, Some(&session)).await
        };
        package.await.map_err(|problem| session.cause(problem))
    }

    /// Receives a commit that the server refuses to send by its id, with the history of branches and tags.
    async fn search(
        &self,
        session: &Session<'_>,
        commit: &Oid,
        refused: Problem,
    ) -> Result<(), Problem> {
        let tips = session.refs(&self.wanted).await?.tips();
        if !tips.is_empty() {
            session.receive(&tips, COMMIT_DEPTH).await?;
        }
        match Objects::open(session.git())?.read(commit, 0).await {
            Object::Missing => Err(Problem::Commit {
                commit: commit.to_string(),
                source: Box::new(refused),
            }),
            _ => Ok(()),
        }
    }

    /// Remembers the capabilities of the server.
    fn keep_server(&self, gateway: &Gateway<'_>) {
        let known = gateway.advertisement();
        let known =
            known.filter(|known| known.is_lasting() && known.bytes.len() <= MAX_CAPABILITIES);
        if let Some(Advertisement { bytes, base }) = known {
            let note = Note {
                digest: self.cache.put(&bytes),
                location: Some(base),
                ..Note::default()
            };
            self.cache.set_note(SERVERS, &self.key, &note);
        }
    }

    /// The capabilities of the server from an earlier run.
    fn known_server(&self) -> Option<Advertisement> {
        let (note, bytes) = self.cache.noted(SERVERS, &self.key)?;
        let base = note.location?;
        let Way::Http(url) = &self.remote.way else {
            return None;
        };
        // The stored location is judged like a redirect.
        let to = base.parse().ok()?;
        match Redirects::SameHost.refusal(url, &to) {
            Some(_) => None,
            None => Some(Advertisement { bytes, base }),
        }
    }

    /// The package of a commit, if the cache has it.
    fn cached(&self, commit: &Oid) -> Option<Fetched> {
        let key = self.note_key(&commit.to_string());
        let (_, bytes) = self.cache.noted(NOTES, &key)?;
        let package = Package::from_bytes(&bytes).ok()?;
        Some(self.fetched(commit, package))
    }

    /// The package of the ref at the last fetch.
    fn offline(&self) -> Result<Fetched, Problem> {
        let commit = match &self.wanted {
            Wanted::Commit(commit) => Some(commit.clone()),
            _ => {
                let note = self
                    .cache
                    .note(NOTES, &self.note_key(&self.wanted.full_name()));
                let resolved = note.and_then(|note| note.resolved);
                resolved.and_then(|commit| Oid::parse(&commit))
            }
        };
        let cached = commit.and_then(|commit| self.cached(&commit));
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

    fn keep(&self, commit: &Oid, package: &Package) {
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

    fn fetched(&self, commit: &Oid, package: Package) -> Fetched {
        let mut location = format!("{}@{}", self.remote.name, commit.short());
        if !self.path.is_empty() {
            location = format!("{location}:{}", self.path.join("/"));
        }
        Fetched {
            package,
            location,
            resolved: Some(commit.to_string()),
        }
    }
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
