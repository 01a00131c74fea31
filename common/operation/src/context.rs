//! What operations run against: one cluster, its sources and helm. Everything is read at most once, and only when it is
//! needed.

mod contents;
mod derived;
mod indexes;
mod policies;
mod pool;
mod target;
mod versions;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use addons_engine::{Cluster, secret, template_facts};
use addons_helm::Helm;
use addons_helm::template::TIMEOUT;
use addons_render::facts::{Facts, Overlays};
use addons_sources::cache::Cache;
use addons_sources::credentials::Credentials;
use addons_sources::reach::OpenedPlaces;
use addons_sources::{Access, Reach};
use common::catalogue::Catalogue;
use common::catalogue::author::Author;
use common::catalogue::select::{ClusterFacts, Rules};
use common::manifest::yaml::DuplicateKeys;
use futures::future::BoxFuture;
use semver::Version;
use tokio::sync::{Mutex, OnceCell, SemaphorePermit};

use crate::error::{OperationError, within};
use crate::event::{Event, Finding};
use crate::jail::{self, Jail};
use crate::kops::Records;
use crate::resolved::Resolved;
use target::{Target, Uid};

pub use contents::Contents;
pub use indexes::Index;

/// Settings of a [`Context`]. All of them are given: nothing is read from the environment.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of catalogues and of the records of catalogue entries.
    pub system_namespace: String,
    /// The only namespace whose installations are selected; `None` = every namespace.
    pub namespace: Option<String>,
    /// Which rules choose between versions.
    pub rules: Rules,
    /// Whether what is tolerated with a warning is an error: repeated keys, templates that print a missing value.
    pub strict: bool,
    /// Whether sources are read from the cache alone.
    pub offline: bool,
    /// Folder of what was fetched before; `None` = nothing is kept.
    pub cache: Option<PathBuf>,
    /// The helm to use; `None` = the first in `path`.
    pub helm: Option<PathBuf>,
    /// Where helm is searched: the value of PATH.
    pub path: Option<OsString>,
    /// Whether kustomizations of this machine are built, by the kubectl or kustomize in `path`: for whom a person works with.
    pub kustomize: bool,
    /// Whether the Secret with data of templates beside a record outside the system namespace is read: by a person, or with the rights of
    /// an account there (semantics 16).
    pub secret_data: bool,
    /// The processes in which the loop renders what others wrote. `None` = it is rendered in this process, and the memory of helm has no
    /// bound: a person runs the command.
    pub jail: Option<Jail>,
    /// The places and indexes that the command line opens to what others name.
    pub opened: Arc<OpenedPlaces>,
    /// How long all rendering may take; `None` = each add-on has only a bound of its own.
    pub timeout: Option<Duration>,
    /// Name of a lock's holder, as other clients will read it: `user@host (kubectl-addons, pid 4711)`.
    pub holder: String,
}

impl Settings {
    /// The namespace of the records of a command: the one that was asked for, else the system namespace (semantics 5).
    #[must_use]
    pub fn records_namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(&self.system_namespace)
    }
}

/// Where entries are chosen from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// All catalogues of the cluster.
    #[default]
    Catalogues,
    /// One AddonCatalogue of the cluster.
    Catalogue(String),
    /// Kops indexes or files of catalogues: as if they were one, in this order.
    Indexes(Vec<Index>),
    /// No entries: what is installed lies in a directory.
    Nothing,
}

/// An error of other code.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Makes the connection when it is first needed.
pub type Connect = Box<dyn Fn() -> BoxFuture<'static, Result<Cluster, BoxError>> + Send + Sync>;

/// The receiver of events.
pub(crate) type Events = Arc<dyn Fn(Event) + Send + Sync>;

/// One cluster, its sources and helm.
pub struct Context {
    settings: Settings,
    connect: Option<Arc<Connect>>,
    home: Arc<OnceCell<Arc<Cluster>>>,
    target: Arc<OnceCell<Target>>,
    pool: Arc<pool::Pool>,
    version: OnceCell<ClusterFacts>,
    kkp: OnceCell<Option<Version>>,
    pub(crate) cluster_uid: Arc<OnceCell<Uid>>,
    events: Events,
    catalogues: Arc<contents::Catalogues>,
    files: Arc<contents::Files>,
    policies: Arc<policies::Known>,
    indexes: Mutex<BTreeMap<(String, Author), Arc<Catalogue>>>,
    credentials: Mutex<BTreeMap<(String, String), Arc<Credentials>>>,
    template_facts: OnceCell<Facts>,
    overlays: Mutex<BTreeMap<String, Overlays>>,
    pub(crate) kops: Records,
    helm: OnceCell<Helm>,
    api_versions: OnceCell<Vec<String>>,
    fetched: Cache,
    /// When the first rendering began: people may think about a question before it. A way back begins anew.
    rendering: std::sync::Mutex<Option<Instant>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            system_namespace: common::api::names::SYSTEM_NAMESPACE.to_owned(),
            namespace: None,
            rules: Rules::Auto,
            strict: false,
            offline: false,
            cache: None,
            helm: None,
            path: None,
            kustomize: false,
            secret_data: true,
            jail: None,
            opened: Arc::default(),
            timeout: None,
            holder: common::api::names::CLIENT.to_owned(),
        }
    }
}

impl Context {
    /// With a cluster.
    #[must_use]
    pub fn new(cluster: Cluster, settings: Settings) -> Self {
        Self {
            home: Arc::new(OnceCell::new_with(Some(Arc::new(cluster)))),
            ..Self::build(None, settings)
        }
    }

    /// With a cluster that is connected to when it is first needed: reading an index for a named version of
    /// Kubernetes needs none.
    #[must_use]
    pub fn connecting(connect: Connect, settings: Settings) -> Self {
        Self::build(Some(connect), settings)
    }

    /// Sends every event to `events`.
    #[must_use]
    pub fn on_event(mut self, events: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.events = Arc::new(events);
        self
    }

    fn build(connect: Option<Connect>, settings: Settings) -> Self {
        let folder = settings.cache.as_ref();
        Self {
            fetched: Cache::new(folder.map(|folder| folder.join("sources"))),
            settings,
            connect: connect.map(Arc::new),
            home: Arc::default(),
            target: Arc::default(),
            pool: Arc::default(),
            cluster_uid: Arc::default(),
            version: OnceCell::new(),
            kkp: OnceCell::new(),
            events: Arc::new(drop),
            catalogues: Arc::default(),
            files: Arc::default(),
            policies: Arc::default(),
            indexes: Mutex::new(BTreeMap::new()),
            credentials: Mutex::new(BTreeMap::new()),
            template_facts: OnceCell::new(),
            overlays: Mutex::new(BTreeMap::new()),
            kops: Records::default(),
            helm: OnceCell::new(),
            api_versions: OnceCell::new(),
            rendering: std::sync::Mutex::default(),
        }
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How long the templates or the chart of an add-on may take, from now on.
    pub(crate) fn time_to_render(&self) -> Duration {
        let mut rendering = self
            .rendering
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let begun = rendering.get_or_insert_with(Instant::now);
        let left = self.settings.timeout;
        let left = left.map(|timeout| timeout.saturating_sub(begun.elapsed()));
        left.unwrap_or(TIMEOUT).min(TIMEOUT)
    }

    /// A way back has the whole time again.
    pub(crate) fn start_again(&self) {
        *self
            .rendering
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Access to a source, without credentials from a Secret.
    #[must_use]
    pub fn access<'a>(&'a self, reach: &'a Reach) -> Access<'a> {
        Access {
            cache: &self.fetched,
            offline: self.settings.offline,
            hash: None,
            reach,
            credentials: None,
            kustomize: self.kustomize(),
        }
    }

    /// Where programs are searched that build kustomizations, the value of PATH; `None` where they are not built.
    #[must_use]
    pub fn kustomize(&self) -> Option<&OsStr> {
        let path = self.settings.path.as_deref();
        path.filter(|_| self.settings.kustomize)
    }

    /// Held while an installation is rendered by another process, where that is bounded as a whole.
    pub(crate) async fn slot(&self, resolved: &Resolved) -> Option<SemaphorePermit<'_>> {
        let jail = self.settings.jail.as_ref()?;
        jail.slot(resolved.wanted.spec.is_guard()).await
    }

    /// How a repeated key in a manifest is handled.
    #[must_use]
    pub fn duplicate_keys(&self) -> DuplicateKeys {
        if self.settings.strict {
            DuplicateKeys::Error
        } else {
            DuplicateKeys::LastWins
        }
    }

    pub(crate) fn events(&self) -> Events {
        Arc::clone(&self.events)
    }

    pub(crate) fn emit(&self, event: Event) {
        (self.events)(event);
    }

    pub(crate) fn find(&self, finding: Finding) {
        self.emit(Event::Found(finding));
    }

    /// The credentials of a Secret, read once.
    ///
    /// # Errors
    /// The Secret is missing, or holds no credentials.
    pub(crate) async fn credentials(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Credentials>, OperationError> {
        let mut known = self.credentials.lock().await;
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(credentials) = known.get(&key) {
            return Ok(Arc::clone(credentials));
        }
        let cluster = within(self.home().await, || {
            format!("the source needs Secret {namespace}/{name} of the cluster")
        })?;
        let secret = if namespace == self.settings.system_namespace {
            secret::of_source(cluster, namespace, name).await?
        } else {
            secret::get(cluster, namespace, name).await?
        };
        let secret = secret.ok_or_else(|| OperationError::NoCredentials {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })?;
        let credentials = Arc::new(Credentials::read(&secret)?);
        known.insert(key, Arc::clone(&credentials));
        Ok(credentials)
    }

    /// The facts of the cluster, for templates.
    pub(crate) async fn template_facts(&self) -> Result<&Facts, OperationError> {
        let read = || async { Ok(template_facts::read(self.cluster().await?).await?) };
        self.template_facts.get_or_try_init(read).await
    }

    /// The facts that users add, in the namespace of an installation.
    pub(crate) async fn overlays(&self, namespace: &str) -> Result<Overlays, OperationError> {
        let mut known = self.overlays.lock().await;
        if let Some(overlays) = known.get(namespace) {
            return Ok(overlays.clone());
        }
        let is_of_system = namespace == self.settings.system_namespace;
        let cluster = self.cluster().await?;
        let overlays = template_facts::overlays(cluster, namespace, is_of_system).await?;
        known.insert(namespace.to_owned(), overlays.clone());
        Ok(overlays)
    }

    /// The helm that renders charts.
    pub(crate) async fn helm(&self) -> Result<&Helm, OperationError> {
        let (named, path) = (self.settings.helm.as_deref(), self.settings.path.as_deref());
        let memory = self.settings.jail.as_ref().map(|_| jail::MEMORY);
        let find = || async {
            let helm = Helm::find(named, path).await?;
            Ok::<_, OperationError>(Helm { memory, ..helm })
        };
        self.helm.get_or_try_init(find).await
    }

    /// Everything that the cluster serves, as charts ask for it. The discovery cache is not used: a chart
    /// renders other objects where a kind is not served.
    pub(crate) async fn api_versions(&self) -> Result<&[String], OperationError> {
        let read = || async {
            let cluster = self.cluster().await?;
            let kinds = cluster.kinds_now().await?;
            Ok::<_, OperationError>(kinds.api_versions())
        };
        Ok(self.api_versions.get_or_try_init(read).await?)
    }
}
