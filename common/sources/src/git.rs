//! Fetches a file or folder of a git repository over https, over ssh or from a local folder.
//!
//! | module | purpose |
//! |---|---|
//! | `remote`, `revision` | parse and check the remote, ref and path before anything is sent |
//! | `program` | runs the program git with fixed settings |
//! | `session`, `refs` | a temporary repository that is filled from a server |
//! | `gateway` | connects git to the server with our HTTP client or with ssh |
//! | `local` | a repository on this machine |
//! | `tree`, `objects` | read the package at a path of a commit |
//!
//! The program git speaks the protocol and reads the objects. It only has the settings given here, checks
//! nothing out, and cannot reach a server by itself. Received objects stay in a private folder until the
//! package is read. If the server supports partial clones, it only sends the files at the path.
//!
//! A branch or tag needs one request, because the capabilities of the server are remembered, and no other if
//! the cache has its commit. A commit in the cache needs neither a request nor git.

mod error;
mod gateway;
mod local;
mod objects;
mod program;
mod refs;
mod remote;
mod revision;
mod session;
mod tree;

use std::path::Path;
use std::slice::from_ref;

use addons_render::package::Package;
use common::api::catalogue::GitSource;
use common::nearest::nearest;

pub use error::{GitError, GitProblem};

use crate::cache::{CacheNote, SourceCache};
use crate::credentials::Credentials;
use crate::http::Redirects;
use crate::http::bound::TIME;
use crate::names::list_names;
use crate::reach::Addresses;
use crate::scratch::Scratch;
use crate::url::redact_location;
use crate::{FetchedPackage, SourceAccess};
use gateway::{Advertisement, Gateway};
use objects::{GitObject, ObjectReader, Oid};
use refs::ResolvedRef;
use remote::{GitRemote, GitTransport};
use revision::GitRevision;
use session::FetchSession;
use tree::CommitTree;

/// The oldest supported version of git.
pub use program::OLDEST;

/// The maximum number of bytes that a server may send for one commit.
const MAX_RECEIVED: u64 = 256 << 20;
/// The maximum size of the list of refs in bytes.
const MAX_REFS: usize = 32 << 20;
/// The maximum size in bytes of one object of the commit, at any path. GitHub allows 100 MB.
const MAX_OBJECT: usize = 128 << 20;
/// How many commits of each branch and tag are fetched to find a commit that the server does not send by its
/// id.
const COMMIT_DEPTH: u32 = 1000;
/// The maximum number of names that an error lists.
const MAX_NAMES: usize = 8;
/// The maximum size in bytes of the capabilities of a server to store in the cache.
const MAX_CAPABILITIES: usize = 64 << 10;
/// The kind of the cache notes that record the package of a ref or commit at a path.
const NOTES: &str = "git";
/// The kind of the cache notes that record the capabilities of a server.
const SERVERS: &str = "git-server";

/// Fetches the file or folder that `source` names. The result has the commit as `resolved`.
///
/// # Errors
/// [`GitError`].
pub async fn fetch(
    source: &GitSource,
    access: &SourceAccess<'_>,
) -> Result<FetchedPackage, GitError> {
    let fetched = fetch_package(source, access).await;
    fetched.map_err(|problem| GitError {
        remote: redact_location(&source.remote),
        problem,
    })
}

async fn fetch_package(
    source: &GitSource,
    access: &SourceAccess<'_>,
) -> Result<FetchedPackage, GitProblem> {
    let remote = GitRemote::parse(&source.remote)?;
    let task = FetchTask {
        revision: GitRevision::parse(source)?,
        path: revision::parse_path(source)?,
        cache: access.cache.clone(),
        credentials: access.credentials.cloned(),
        key: remote.cache_key(access),
        remote,
    };
    let addresses = task.remote.check(access)?;
    if let GitRevision::Commit(commit) = &task.revision
        && let Some(fetched) = task.cached(commit)
    {
        return Ok(fetched);
    }
    if access.offline && !matches!(task.remote.transport, GitTransport::Local(_)) {
        return task.offline();
    }
    let ended = tokio::time::timeout(TIME, task.run(addresses)).await;
    ended.unwrap_or(Err(GitProblem::Timeout))
}

/// The fetch of one source.
struct FetchTask {
    remote: GitRemote,
    revision: GitRevision,
    path: Vec<String>,
    cache: SourceCache,
    credentials: Option<Credentials>,
    /// The remote and the reader in cache keys.
    key: String,
}

impl FetchTask {
    async fn run(&self, addresses: Addresses) -> Result<FetchedPackage, GitProblem> {
        let home =
            Scratch::new("kubectl-addons-git-").map_err(|source| GitProblem::Folder { source })?;
        if let GitTransport::Local(path) = &self.remote.transport {
            let git = local::open(path, home.path()).await?;
            let commit = match &self.revision {
                GitRevision::Commit(commit) => commit.clone(),
                wanted => local::refs(&git).await?.find(wanted)?.commit,
            };
            let tree = CommitTree::open(&git, &commit).await?;
            let package = tree.package(&self.path, None).await?;
            return Ok(self.to_fetched(&commit, package));
        }
        let credentials = self.credentials.as_ref();
        let gateway = Gateway::open(&self.remote, credentials, addresses, home.path()).await?;
        gateway
            .serve_while(self.fetch_from_server(&gateway, home.path()))
            .await
    }

    /// Fetches the package from a server, or from the cache if it has the commit.
    async fn fetch_from_server(
        &self,
        gateway: &Gateway<'_>,
        home: &Path,
    ) -> Result<FetchedPackage, GitProblem> {
        let named = match &self.revision {
            GitRevision::Commit(commit) => ResolvedRef {
                commit: commit.clone(),
                want: commit.clone(),
            },
            _ => self.resolve_ref(gateway, home).await?,
        };
        if let Some(fetched) = self.cached(&named.commit) {
            self.remember(&named.commit, &fetched.package);
            return Ok(fetched);
        }
        let package = match self.receive_package(gateway, home, &named, true).await {
            // Some servers support leaving out files, but do not send them by their ids.
            Err(
                GitProblem::Protocol { .. }
                | GitProblem::Connection { .. }
                | GitProblem::Object { .. },
            ) => self.receive_package(gateway, home, &named, false).await?,
            received => received?,
        };
        self.remember(&named.commit, &package);
        Ok(self.to_fetched(&named.commit, package))
    }

    /// Asks the server which commit a ref names. With the remembered capabilities of the server, this is one
    /// request.
    async fn resolve_ref(
        &self,
        gateway: &Gateway<'_>,
        home: &Path,
    ) -> Result<ResolvedRef, GitProblem> {
        let session = FetchSession::new(gateway, home, false).await?;
        let ask = async || session.refs(&self.revision).await?.find(&self.revision);
        if let Some(known) = self.remembered_server() {
            gateway.traffic.set_advertisement(Some(known));
            match ask().await {
                // The server may have changed or moved in the meantime.
                Err(
                    GitProblem::Protocol { .. }
                    | GitProblem::Status { .. }
                    | GitProblem::Missing { .. },
                ) => gateway.traffic.set_advertisement(None),
                found => return found,
            }
        }
        let found = ask().await;
        self.remember_server(gateway);
        found
    }

    /// Receives a commit and reads its package.
    async fn receive_package(
        &self,
        gateway: &Gateway<'_>,
        home: &Path,
        named: &ResolvedRef,
        is_partial: bool,
    ) -> Result<Package, GitProblem> {
        let session = FetchSession::new(gateway, home, is_partial).await?;
        match session.receive(from_ref(&named.want), 1).await {
            Err(refused @ (GitProblem::Protocol { .. } | GitProblem::Connection { .. }))
                if matches!(self.revision, GitRevision::Commit(_)) =>
            {
                self.receive_history(&session, &named.commit, refused)
                    .await?;
            }
            received => received?,
        }
        let package = async {
            let tree = CommitTree::open(session.git(), &named.commit).await?;
            tree.package(&self.path, Some(&session)).await
        };
        package.await.map_err(|problem| session.explain(problem))
    }

    /// Receives the history of branches and tags to find a commit that the server refuses to send by its id.
    async fn receive_history(
        &self,
        session: &FetchSession<'_>,
        commit: &Oid,
        refused: GitProblem,
    ) -> Result<(), GitProblem> {
        let tips = session.refs(&self.revision).await?.tips();
        if !tips.is_empty() {
            session.receive(&tips, COMMIT_DEPTH).await?;
        }
        match ObjectReader::open(session.git())?.read(commit, 0).await {
            GitObject::Missing => Err(GitProblem::Commit {
                commit: commit.to_string(),
                source: Box::new(refused),
            }),
            _ => Ok(()),
        }
    }

    /// Stores the capabilities of the server in the cache.
    fn remember_server(&self, gateway: &Gateway<'_>) {
        let known = gateway.traffic.advertisement();
        let known =
            known.filter(|known| known.is_lasting() && known.bytes.len() <= MAX_CAPABILITIES);
        if let Some(Advertisement { bytes, base }) = known {
            let note = CacheNote {
                digest: self.cache.put(&bytes),
                location: Some(base),
                ..CacheNote::default()
            };
            self.cache.set_note(SERVERS, &self.key, &note);
        }
    }

    /// Returns the capabilities of the server from an earlier run.
    fn remembered_server(&self) -> Option<Advertisement> {
        let (note, bytes) = self.cache.lookup(SERVERS, &self.key)?;
        let base = note.location?;
        let GitTransport::Http(url) = &self.remote.transport else {
            return None;
        };
        // The stored location is checked like a redirect.
        let to = base.parse().ok()?;
        match Redirects::SameHost.refusal(url, &to) {
            Some(_) => None,
            None => Some(Advertisement { bytes, base }),
        }
    }

    /// Returns the package of a commit from the cache.
    fn cached(&self, commit: &Oid) -> Option<FetchedPackage> {
        let key = self.note_key(&commit.to_string());
        let (_, bytes) = self.cache.lookup(NOTES, &key)?;
        let package = Package::from_bytes(&bytes).ok()?;
        Some(self.to_fetched(commit, package))
    }

    /// Returns the package of the last fetch of the ref from the cache.
    fn offline(&self) -> Result<FetchedPackage, GitProblem> {
        let commit = match &self.revision {
            GitRevision::Commit(commit) => Some(commit.clone()),
            _ => {
                let note = self
                    .cache
                    .note(NOTES, &self.note_key(&self.revision.full_name()));
                let resolved = note.and_then(|note| note.resolved);
                resolved.and_then(|commit| Oid::parse(&commit))
            }
        };
        let cached = commit.and_then(|commit| self.cached(&commit));
        cached.ok_or_else(|| {
            let name = match (&self.revision, self.revision.parts()) {
                (_, Some((kind, _, name))) => format!("{kind} {name}"),
                (GitRevision::Commit(commit), None) => format!("commit {commit}"),
                _ => "its main branch".to_owned(),
            };
            let what = match self.path.join("/").as_str() {
                "" => name,
                path => format!("{path} of {name}"),
            };
            GitProblem::Offline { what }
        })
    }

    fn remember(&self, commit: &Oid, package: &Package) {
        let note = CacheNote {
            digest: self.cache.put(&package.to_bytes()),
            resolved: Some(commit.to_string()),
            ..CacheNote::default()
        };
        self.cache
            .set_note(NOTES, &self.note_key(&commit.to_string()), &note);
        // Used by runs without network.
        if !matches!(self.revision, GitRevision::Commit(_)) {
            self.cache
                .set_note(NOTES, &self.note_key(&self.revision.full_name()), &note);
        }
    }

    fn note_key(&self, name: &str) -> String {
        format!("{}\n{name}\n{}", self.key, self.path.join("/"))
    }

    fn to_fetched(&self, commit: &Oid, package: Package) -> FetchedPackage {
        let mut location = format!("{}@{}", self.remote.name, commit.short());
        if !self.path.is_empty() {
            location = format!("{location}:{}", self.path.join("/"));
        }
        FetchedPackage {
            package,
            location,
            resolved: Some(commit.to_string()),
        }
    }
}

/// Suggests the name nearest to `name`, or lists the names that exist.
fn suggest_names(name: &str, names: &[&str]) -> String {
    if let Some(near) = nearest(name, names.iter().copied()) {
        return format!("did you mean {near:?}?");
    }
    match names {
        [] => "there are none".to_owned(),
        names => format!("there are: {}", list_names(names.iter(), MAX_NAMES, "")),
    }
}
