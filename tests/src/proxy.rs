//! An HTTP proxy in front of the API server that counts requests and breaks them.
//!
//! A client of the proxy is known by the bearer token in the kubeconfig that it was given; towards the API server it is
//! the user whom the test names, with that user's client certificate. The proxy has a thread of its own, so that a test
//! may block while a program talks through it.

pub mod fault;
mod server;
mod view;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use hyper::body::Bytes;
use tokio::sync::watch;

use crate::background::Background;
use crate::control_plane::ControlPlane;
use crate::control_plane::pki::{Credentials, User, write_kubeconfig};
use crate::guard::Folder;
pub use fault::{Action, Fault};
pub(crate) use server::acceptor;
use view::{Answers, Hidden};

/// A running proxy; dropped, it is gone.
pub struct Proxy {
    state: Arc<State>,
    url: String,
    authority: String,
    kubeconfig: PathBuf,
    folder: Folder,
    _thread: Background,
}

/// A request that came to the proxy, in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Name of the client.
    pub client: String,
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub uri: String,
    /// The client's name for itself.
    pub agent: String,
    /// What the client was answered; `None` while it waits, and where the connection was cut.
    pub status: Option<u16>,
    /// How many requests had come when it was answered: whoever waited for the answer is none of them.
    pub answered: Option<usize>,
    /// What was sent to the API server; empty where the proxy did not deliver it.
    pub body: Bytes,
}

/// What the connections share.
struct State {
    /// URL of the API server.
    server: String,
    roots: reqwest::Certificate,
    inner: Mutex<Inner>,
    /// Counts the stopped clients, so that their connections notice.
    stopped: watch::Sender<Vec<String>>,
    /// Parts of the paths that are stalled.
    stalled: watch::Sender<Vec<String>>,
    /// Changes when what is held up is let go.
    flowing: watch::Sender<()>,
}

#[derive(Default)]
struct Inner {
    /// Client → how to talk to the API server in its name.
    upstreams: BTreeMap<String, reqwest::Client>,
    faults: Vec<fault::Armed>,
    seen: Vec<Seen>,
    hits: usize,
    /// How far the clock of the server is behind.
    behind: Duration,
    answers: Answers,
    hidden: Vec<Hidden>,
}

impl Proxy {
    /// Starts a proxy on a free port; [`Proxy::kubeconfig`] is for a client `default`, the administrator.
    ///
    /// # Errors
    /// Where no port is free, or of the cryptography.
    pub fn start(cluster: &ControlPlane) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port for the proxy")?;
        listener.set_nonblocking(true)?;
        let url = format!("https://{}", listener.local_addr()?);
        let acceptor = server::acceptor(&cluster.authority().serving("proxy", &["127.0.0.1"])?)?;
        let authority = cluster.authority().certificate.clone();
        let state = Arc::new(State {
            server: cluster.server().to_owned(),
            roots: reqwest::Certificate::from_pem(authority.as_bytes())?,
            inner: Mutex::default(),
            stopped: watch::Sender::default(),
            stalled: watch::Sender::default(),
            flowing: watch::Sender::default(),
        });
        let serving = server::serve(listener, acceptor, Arc::clone(&state));
        let thread = Background::start("proxy", serving)?;
        let folder = Folder::new("kubectl-addons-proxy-")?;
        let mut proxy = Self {
            state,
            url,
            authority,
            kubeconfig: PathBuf::new(),
            folder,
            _thread: thread,
        };
        proxy.kubeconfig = proxy.client("default", cluster.admin())?;
        Ok(proxy)
    }

    /// The kubeconfig of the client `default`.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A kubeconfig for another client, who is `user` to the API server.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn client(&self, name: &str, user: &User) -> Result<PathBuf> {
        let pem = format!("{}{}", user.pair.certificate, user.pair.key);
        let upstream = reqwest::Client::builder()
            .tls_certs_only([self.state.roots.clone()])
            .identity(reqwest::Identity::from_pem(pem.as_bytes())?)
            // What the client asked for goes through as it is.
            .no_gzip()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        self.state
            .lock()
            .upstreams
            .insert(name.to_owned(), upstream);
        let path = self.folder.path().join(format!("{name}.kubeconfig"));
        write_kubeconfig(&path, &self.url, &self.authority, &Credentials::Token(name))?;
        Ok(path)
    }

    /// Arms a fault; it counts requests from now on. Of several that hit the same request the first one acts.
    pub fn fault(&self, fault: Fault) {
        self.state.lock().faults.push(fault.into());
    }

    /// Holds up what comes for requests whose path and query contain this, also for those that are being answered, until
    /// the proxy is healed: as a connection that is dead without anyone knowing.
    pub fn stall(&self, part: &str) {
        let add = |parts: &mut Vec<String>| parts.push(part.to_owned());
        self.state.stalled.send_modify(add);
    }

    /// Begins to keep the last answer to each read, for [`Action::Replay`], or stops and has those that were kept.
    pub fn remember(&self, is_kept: bool) {
        self.state.lock().answers.is_kept = is_kept;
    }

    /// From now on, watches whose path and query contain `path` do not bring these events (`ADDED`, `MODIFIED`, `DELETED`) of objects
    /// with this name; each counts among the [`Proxy::hits`].
    pub fn hide(&self, path: &str, events: &[&str], name: &str) {
        let events = events.iter().map(|event| (*event).to_owned());
        self.state.lock().hidden.push(Hidden {
            path: path.to_owned(),
            events: events.collect(),
            name: name.to_owned(),
        });
    }

    /// From now on, its answers say that it is so much earlier: as a server whose clock is wrong.
    pub fn set_behind(&self, by: Duration) {
        self.state.lock().behind = by;
    }

    /// Lets go what is held up.
    pub fn flow(&self) {
        self.state.stalled.send_replace(Vec::new());
        self.state.flowing.send_replace(());
    }

    /// Forgets all faults, hides nothing more, lets stopped clients back in and lets go what is held up; what was seen and kept stays.
    pub fn heal(&self) {
        let mut inner = self.state.lock();
        inner.faults.clear();
        inner.hidden.clear();
        drop(inner);
        self.flow();
        self.state.stopped.send_replace(Vec::new());
    }

    /// How many requests were broken so far.
    #[must_use]
    pub fn hits(&self) -> usize {
        self.state.lock().hits
    }

    /// Waits until this client was stopped by a fault.
    pub async fn stopped(&self, client: &str) {
        let mut stopped = self.state.stopped.subscribe();
        // The sender lives as long as the proxy.
        let _ = stopped
            .wait_for(|names| names.iter().any(|name| name == client))
            .await;
    }

    /// What came so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        self.state.lock().seen.clone()
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
