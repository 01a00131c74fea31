//! What operations run against: one cluster, its sources and helm. Everything is read at most once, when it is first needed.

mod contents;
mod derived;
pub(crate) mod identity;
mod indexes;
mod policies;
mod pool;
mod profile;
mod target;
mod versions;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use addons_engine::{Cluster, namespace, secret, template_facts};
use addons_helm::Helm;
use addons_helm::template::TIMEOUT;
use addons_render::facts::{FactOverlays, TemplateFacts};
use addons_sources::cache::SourceCache;
use addons_sources::credentials::Credentials;
use addons_sources::reach::OpenedPlaces;
use addons_sources::{Reach, SourceAccess};
use common::catalogue::author::Author;
use common::catalogue::select::{ClusterVersions, SelectionRules};
use common::catalogue::{Catalogue, CatalogueEntry};
use common::expression::profile::Profile;
use common::manifest::yaml::DuplicateKeys;
use futures::future::BoxFuture;
use semver::Version;
use tokio::sync::{Mutex, OnceCell, SemaphorePermit};

use crate::error::{BoxError, OperationError, within};
use crate::event::{Finding, OperationEvent};
use crate::render::jail::{self, Jail};
use crate::tools::OtherTool;
use target::{ClusterTarget, ClusterUid};

pub use contents::CatalogueContents;
pub use indexes::IndexLocation;

/// Settings of a [`Context`]. All of them are passed in: nothing is read from the environment.
#[derive(Clone, Debug)]
pub struct ContextSettings {
    /// The namespace of catalogues and of the records of catalogue entries.
    pub system_namespace: String,
    /// The only namespace whose installations are selected; `None` = every namespace.
    pub namespace: Option<String>,
    /// Which rules choose between versions.
    pub rules: SelectionRules,
    /// Whether problems that are otherwise warnings are errors: repeated keys, templates that print a missing value.
    pub strict: bool,
    /// Whether sources are read only from the cache.
    pub offline: bool,
    /// The folder of the cache; `None` = nothing is cached.
    pub cache: Option<PathBuf>,
    /// The helm to use; `None` = the first in `path`.
    pub helm: Option<PathBuf>,
    /// Where helm is searched: the value of PATH.
    pub path: Option<OsString>,
    /// Build local kustomizations with the kubectl or kustomize in `path`. Only set for interactive use.
    pub kustomize: bool,
    /// Whether the Secret with template data beside a record outside the system namespace is read. Only set for interactive use, or with
    /// the rights of an account of that namespace (semantics 16.5, 16.6).
    pub secret_data: bool,
    /// The processes in which the loop renders content of others. `None` = it is rendered in this process, and helm has no memory limit: a
    /// person runs the command.
    pub jail: Option<Jail>,
    /// The places and indexes that the command line opens to what others name (semantics 16.4).
    pub opened: Arc<OpenedPlaces>,
    /// The time limit for all rendering together; `None` = only each add-on has a limit.
    pub timeout: Option<Duration>,
    /// This process as the holder of locks, without the user as the API server sees it: `user@host (kubectl-addons, pid 4711)`.
    pub holder: String,
    /// The other tools with which add-ons are shared.
    pub tools: &'static [&'static dyn OtherTool],
}

impl ContextSettings {
    /// Returns the namespace of the records of a command: the one that was asked for, else the system namespace (semantics 5).
    #[must_use]
    pub fn records_namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(&self.system_namespace)
    }
}

/// What entries are chosen from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Offer {
    /// All catalogues of the cluster.
    #[default]
    Catalogues,
    /// One AddonCatalogue of the cluster.
    Catalogue(String),
    /// Kops indexes or catalogue files, as if they were one, in this order.
    Indexes(Vec<IndexLocation>),
    /// One chart or manifest that the user names, and no catalogue lists.
    Entry(Box<CatalogueEntry>),
    /// Nothing: the add-ons are in a directory, which has no entries.
    Nothing,
}

/// Connects to the cluster when it is first needed.
pub type Connect = Box<dyn Fn() -> BoxFuture<'static, Result<Cluster, BoxError>> + Send + Sync>;

/// The annotations of an object.
pub(crate) type Annotations = BTreeMap<String, String>;

/// The receiver of events.
pub(crate) type EventSink = Arc<dyn Fn(OperationEvent) + Send + Sync>;

/// One cluster, its sources and helm.
pub struct Context {
    settings: ContextSettings,
    connect: Option<Arc<Connect>>,
    home: Arc<OnceCell<Arc<Cluster>>>,
    target: Arc<OnceCell<ClusterTarget>>,
    pool: Arc<pool::Pool>,
    version: OnceCell<ClusterVersions>,
    kkp: OnceCell<Option<Version>>,
    /// What expressions of entries read, as far as it was needed.
    profile: Mutex<Option<Arc<Profile>>>,
    pub(crate) cluster_uid: Arc<OnceCell<ClusterUid>>,
    events: EventSink,
    catalogues: Arc<contents::CatalogueCache>,
    files: Arc<contents::CatalogueFileCache>,
    policies: Arc<policies::PolicyCache>,
    indexes: Mutex<BTreeMap<(String, Author), Arc<Catalogue>>>,
    credentials: Mutex<BTreeMap<(String, String), Arc<Credentials>>>,
    template_facts: OnceCell<TemplateFacts>,
    overlays: Mutex<BTreeMap<String, FactOverlays>>,
    annotations: Mutex<BTreeMap<String, Arc<Annotations>>>,
    helm: OnceCell<Helm>,
    api_versions: OnceCell<Vec<String>>,
    fetched: SourceCache,
    /// When the first rendering began, which excludes the time of questions before it. A rollback resets it.
    rendering: std::sync::Mutex<Option<Instant>>,
}

impl Default for ContextSettings {
    fn default() -> Self {
        Self {
            system_namespace: common::api::names::SYSTEM_NAMESPACE.to_owned(),
            namespace: None,
            rules: SelectionRules::Auto,
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
            tools: &[],
        }
    }
}

impl Context {
    /// Creates a context with a cluster.
    #[must_use]
    pub fn new(cluster: Cluster, settings: ContextSettings) -> Self {
        Self {
            home: Arc::new(OnceCell::new_with(Some(Arc::new(cluster)))),
            ..Self::build(None, settings)
        }
    }

    /// Creates a context that connects to its cluster when that is first needed: reading an index for a given version of Kubernetes needs
    /// no cluster.
    #[must_use]
    pub fn connecting(connect: Connect, settings: ContextSettings) -> Self {
        Self::build(Some(connect), settings)
    }

    /// Sends every event to `events`.
    #[must_use]
    pub fn on_event(mut self, events: impl Fn(OperationEvent) + Send + Sync + 'static) -> Self {
        self.events = Arc::new(events);
        self
    }

    fn build(connect: Option<Connect>, settings: ContextSettings) -> Self {
        let folder = settings.cache.as_ref();
        Self {
            fetched: SourceCache::new(folder.map(|folder| folder.join("sources"))),
            settings,
            connect: connect.map(Arc::new),
            home: Arc::default(),
            target: Arc::default(),
            pool: Arc::default(),
            cluster_uid: Arc::default(),
            version: OnceCell::new(),
            kkp: OnceCell::new(),
            profile: Mutex::default(),
            events: Arc::new(drop),
            catalogues: Arc::default(),
            files: Arc::default(),
            policies: Arc::default(),
            indexes: Mutex::new(BTreeMap::new()),
            credentials: Mutex::new(BTreeMap::new()),
            template_facts: OnceCell::new(),
            overlays: Mutex::new(BTreeMap::new()),
            annotations: Mutex::new(BTreeMap::new()),
            helm: OnceCell::new(),
            api_versions: OnceCell::new(),
            rendering: std::sync::Mutex::default(),
        }
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &ContextSettings {
        &self.settings
    }

    /// Whether a person runs the command, and not a loop.
    pub(crate) fn is_run_by_person(&self) -> bool {
        self.settings.jail.is_none()
    }

    /// Returns how long rendering one add-on may take from now on.
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

    /// Gives a rollback the whole time limit again.
    pub(crate) fn restart_render_time(&self) {
        *self
            .rendering
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the access to a source, without credentials from a Secret.
    #[must_use]
    pub fn access<'a>(&'a self, reach: &'a Reach) -> SourceAccess<'a> {
        SourceAccess {
            cache: &self.fetched,
            offline: self.settings.offline,
            hash: None,
            reach,
            credentials: None,
            kustomize: self.kustomize(),
        }
    }

    /// Returns the PATH in which kustomize is looked up, or `None` if kustomizations are not built.
    #[must_use]
    pub fn kustomize(&self) -> Option<&OsStr> {
        let path = self.settings.path.as_deref();
        path.filter(|_| self.settings.kustomize)
    }

    /// Waits for a slot for rendering in another process, if these are limited. The slot is held while the installation is rendered.
    pub(crate) async fn acquire_slot(&self, is_guard: bool) -> Option<SemaphorePermit<'_>> {
        let jail = self.settings.jail.as_ref()?;
        jail.acquire_slot(is_guard).await
    }

    /// Returns how a repeated key in a manifest is handled.
    #[must_use]
    pub fn duplicate_keys(&self) -> DuplicateKeys {
        if self.settings.strict {
            DuplicateKeys::Error
        } else {
            DuplicateKeys::LastWins
        }
    }

    pub(crate) fn events(&self) -> EventSink {
        Arc::clone(&self.events)
    }

    pub(crate) fn emit(&self, event: OperationEvent) {
        (self.events)(event);
    }

    pub(crate) fn report_finding(&self, finding: Finding) {
        self.emit(OperationEvent::Finding(finding));
    }

    /// Returns the credentials of a Secret, which is read once.
    ///
    /// # Errors
    /// The Secret is missing, or has no credentials.
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
            secret::get_with_own_rights(cluster, namespace, name).await?
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

    /// Returns the annotations of a namespace, which are read once; none if it does not exist.
    ///
    /// # Errors
    /// The namespace cannot be read.
    pub(crate) async fn namespace_annotations(
        &self,
        name: &str,
    ) -> Result<Arc<Annotations>, OperationError> {
        let mut known = self.annotations.lock().await;
        if let Some(annotations) = known.get(name) {
            return Ok(Arc::clone(annotations));
        }
        let read = namespace::annotations(self.cluster().await?, name).await?;
        let read = Arc::new(read);
        known.insert(name.to_owned(), Arc::clone(&read));
        Ok(read)
    }

    /// Returns the facts of the cluster, for templates.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn template_facts(&self) -> Result<&TemplateFacts, OperationError> {
        let read = || async { Ok(template_facts::read(self.cluster().await?).await?) };
        self.template_facts.get_or_try_init(read).await
    }

    /// Returns the template data that users add in the namespace of an installation.
    pub(crate) async fn overlays(&self, namespace: &str) -> Result<FactOverlays, OperationError> {
        let mut known = self.overlays.lock().await;
        if let Some(overlays) = known.get(namespace) {
            return Ok(overlays.clone());
        }
        let is_of_system = namespace == self.settings.system_namespace;
        let cluster = self.cluster().await?;
        let overlays = template_facts::read_overlays(cluster, namespace, is_of_system).await?;
        known.insert(namespace.to_owned(), overlays.clone());
        Ok(overlays)
    }

    /// Returns the helm that renders charts.
    pub(crate) async fn helm(&self) -> Result<&Helm, OperationError> {
        let (named, path) = (self.settings.helm.as_deref(), self.settings.path.as_deref());
        let memory = self.settings.jail.as_ref().map(|_| jail::MEMORY);
        let find = || async {
            let helm = Helm::find(named, path).await?;
            Ok::<_, OperationError>(Helm { memory, ..helm })
        };
        self.helm.get_or_try_init(find).await
    }

    /// Returns all API versions that the cluster serves, for charts. It bypasses the discovery cache, because a chart renders other objects
    /// if a kind is not served.
    pub(crate) async fn api_versions(&self) -> Result<&[String], OperationError> {
        let read = || async {
            let cluster = self.cluster().await?;
            let kinds = cluster.kinds_now().await?;
            Ok::<_, OperationError>(kinds.api_versions())
        };
        Ok(self.api_versions.get_or_try_init(read).await?)
    }
}
