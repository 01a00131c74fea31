//! A connection to one cluster: client, version and served kinds.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use http::HeaderMap;
use http::header::{HeaderValue, USER_AGENT};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use common::manifest::key::Gvk;
use common::manifest::kinds::KindTable;

use super::blockers::SearchThrottle;
use super::discovery::{self, KindCache};
use super::error::EngineError;
use super::limits::ServerLimits;
use super::remote::Renewal;
use super::request::{ApiCall, JSON, server_time};

/// Options of a [`Cluster`].
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The directory in which discovery is cached between runs; `None` = no cache.
    pub cache_dir: Option<PathBuf>,
    /// Timeout of one request (not of a watch).
    pub request_timeout: Duration,
    /// Maximum number of requests in flight.
    pub concurrency: usize,
}

/// A connection to one cluster: HTTP/1.1, with one connection per request in flight and per watch.
pub struct Cluster {
    client: kube::Client,
    /// The client with our own rights, if `client` acts as a ServiceAccount.
    own: Option<kube::Client>,
    /// The cluster of the records, if it is another one (semantics 6.3).
    home: Option<Arc<Cluster>>,
    /// Limits for answers of the server, if its address came from a Secret (semantics 6.4).
    limits: Option<Arc<ServerLimits>>,
    /// Reads the credentials again, if they came from a Secret in the home cluster.
    renewal: Option<Arc<Renewal>>,
    config: Option<kube::Config>,
    options: ClusterOptions,
    /// URL of the server, for errors.
    pub(super) server: String,
    pub(super) permits: Semaphore,
    /// Whether the server has ever answered.
    pub(super) answered: AtomicBool,
    pub(super) clock: Clock,
    /// Limits the rate of searches for blockers, across operations.
    pub(super) blocker_searches: SearchThrottle,
    cache: Option<KindCache>,
    kinds: Mutex<KnownKinds>,
}

/// The served kinds known to this process.
#[derive(Clone, Default)]
struct KnownKinds {
    table: Option<Arc<KindTable>>,
    /// Whether CRDs have changed since. Then the table is used only for groups whose server does not answer now.
    is_stale: bool,
}

impl Cluster {
    /// Connects lazily: no request is sent yet.
    ///
    /// # Errors
    /// [`EngineError::Unreachable`] if the configuration is unusable (a broken certificate, an unsupported proxy).
    pub async fn new(config: kube::Config, options: ClusterOptions) -> Result<Self, EngineError> {
        let server = config.cluster_url.to_string();
        let server = server.trim_end_matches('/').to_owned();
        let cache = options.cache_dir.as_deref().map(|dir| {
            KindCache::new(
                dir,
                &server,
                config.root_cert.as_deref().unwrap_or_default(),
            )
        });
        let client = new_client(config.clone()).map_err(|error| EngineError::Unreachable {
            server: server.clone(),
            source: Box::new(error),
        })?;
        Ok(Self {
            config: Some(config),
            ..Self::build(client, server, options, cache)
        })
    }

    /// Uses an existing client (a fake API server, a client with further layers). Nothing is cached on disk.
    #[must_use]
    pub fn from_client(client: kube::Client, server: &str, options: ClusterOptions) -> Self {
        Self::build(client, server.to_owned(), options, None)
    }

    /// Returns the same cluster with the rights of a ServiceAccount. Records and credentials of sources are still read and written with our
    /// own rights (semantics 16.6).
    ///
    /// # Errors
    /// [`EngineError::Impersonating`] if another user is impersonated already; otherwise those of [`Cluster::new`].
    pub async fn acting_as(&self, namespace: &str, account: &str) -> Result<Self, EngineError> {
        let config = self.config.clone();
        let free = config.filter(|config| config.auth_info.impersonate.is_none());
        let mut config = free.ok_or(EngineError::Impersonating)?;
        // Without groups, the API server adds those of the ServiceAccount.
        config.auth_info.impersonate = Some(format!("system:serviceaccount:{namespace}:{account}"));
        config.auth_info.impersonate_groups = None;
        config.auth_info.impersonate_uid = None;
        let acting = Self::new(config, self.options.clone()).await?;
        Ok(Self {
            own: Some(self.client.clone()),
            limits: self.limits.clone(),
            ..acting
        })
    }

    /// Returns the same cluster with limits for its answers, because its address came from a Secret whose writer controls the server.
    pub(super) fn with_limits(self) -> Self {
        Self {
            limits: Some(Arc::default()),
            ..self
        }
    }

    /// Returns the limits for answers; `None` if a person or the deployment named the server.
    pub(super) fn limits(&self) -> Option<&ServerLimits> {
        self.limits.as_deref()
    }

    /// Returns the same cluster with its installations recorded in another one: records, locks, catalogues, and the Secrets and data beside
    /// a record are read and written there, objects here (semantics 6.3).
    pub(super) fn with_records_in(self, home: Arc<Self>, renewal: Arc<Renewal>) -> Self {
        Self {
            home: Some(home),
            renewal: Some(renewal),
            ..self
        }
    }

    /// Returns the same connection with another `home` for its records. `home` may act as a ServiceAccount, which does not exist in this
    /// cluster (semantics 16.6).
    pub async fn with_home(&self, home: Arc<Self>) -> Self {
        Self {
            home: Some(home),
            ..self.with_own_permits().await
        }
    }

    /// Returns the same connection with its own limit of requests in flight, so that it does not wait for others.
    pub async fn with_own_permits(&self) -> Self {
        Self {
            own: self.own.clone(),
            home: self.home.clone(),
            limits: self.limits.clone(),
            renewal: self.renewal.clone(),
            config: self.config.clone(),
            answered: AtomicBool::new(self.answered.load(Ordering::Relaxed)),
            kinds: Mutex::new(self.kinds.lock().await.clone()),
            cache: self.cache.clone(),
            ..Self::build(
                self.client.clone(),
                self.server.clone(),
                self.options.clone(),
                None,
            )
        }
    }

    /// Returns the cluster that holds the records of installations in this one; usually this cluster itself.
    #[must_use]
    pub fn home(&self) -> &Self {
        self.home.as_deref().unwrap_or(self)
    }

    /// Returns whether the records are in another cluster.
    pub(super) fn is_remote(&self) -> bool {
        self.home.is_some()
    }

    fn build(
        client: kube::Client,
        server: String,
        options: ClusterOptions,
        cache: Option<KindCache>,
    ) -> Self {
        Self {
            client,
            own: None,
            home: None,
            limits: None,
            renewal: None,
            config: None,
            server,
            permits: Semaphore::new(options.concurrency.max(1)),
            options,
            answered: AtomicBool::new(false),
            clock: Clock::default(),
            blocker_searches: SearchThrottle::default(),
            cache,
            kinds: Mutex::default(),
        }
    }

    /// Returns the client, for reads outside the engine.
    #[must_use]
    pub fn client(&self) -> &kube::Client {
        let renewed = self.renewal().and_then(Renewal::client);
        renewed.unwrap_or(&self.client)
    }

    /// Returns the client with our own rights.
    pub(super) fn own_client(&self) -> &kube::Client {
        self.own.as_ref().unwrap_or_else(|| self.client())
    }

    pub(super) fn renewal(&self) -> Option<&Renewal> {
        self.renewal.as_deref()
    }

    /// Returns whether an error means that a cluster other than that of the records is unusable: it does not answer, or does not accept the
    /// credentials.
    #[must_use]
    pub fn is_remote_failure(&self, error: &EngineError) -> bool {
        let lost = match error {
            EngineError::Unreachable { server, .. } | EngineError::Unauthorized { server } => {
                server
            }
            _ => return false,
        };
        self.is_remote() && *lost == self.server
    }

    /// Returns the configuration of the client, for programs that connect by themselves; `None` if a client was passed in.
    #[must_use]
    pub fn config(&self) -> Option<&kube::Config> {
        let renewed = self.renewal().and_then(Renewal::config);
        renewed.or(self.config.as_ref())
    }

    pub(super) fn options(&self) -> &ClusterOptions {
        &self.options
    }

    /// Returns how many steps are worth running at the same time.
    pub(super) fn concurrency(&self) -> usize {
        self.options.concurrency.max(1)
    }

    /// Waits until all requests in flight are answered. Until the result is dropped, no request except renewals of locks begins.
    pub async fn pause_requests(&self) -> [Option<SemaphorePermit<'_>>; 2] {
        let home = self.home.as_deref();
        [
            self.all_permits().await,
            match home {
                Some(home) => home.all_permits().await,
                None => None,
            },
        ]
    }

    async fn all_permits(&self) -> Option<SemaphorePermit<'_>> {
        let all = u32::try_from(self.concurrency()).unwrap_or(u32::MAX);
        // The semaphore is never closed, and is fair: later requests wait.
        self.permits.acquire_many(all).await.ok()
    }

    /// Returns the server's time, because locks are compared across machines whose clocks differ.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns a time that no write of the operation is later than, to the record or to the objects: the clocks of their API servers may
    /// differ.
    pub(super) fn latest_now(&self) -> Timestamp {
        self.now().max(self.home().now())
    }

    /// Returns the `gitVersion` of the server, such as `v1.36.3`.
    ///
    /// # Errors
    /// Those of the request; [`EngineError::NotKubernetes`] if the answer is not that of an API server.
    pub async fn kubernetes_version(&self) -> Result<String, EngineError> {
        const VERSION: &str = "/version";
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct VersionResponse {
            git_version: String,
        }
        let call = ApiCall::path(VERSION, JSON);
        let answer = match self
            .send::<VersionResponse>(call)
            .await
            .map_err(|error| (error.code(), error))
        {
            Ok(answer) => return Ok(answer.object.git_version),
            Err((Some(404), _)) => "HTTP 404",
            Err((Some(200..300), _)) => "something else than a version",
            Err((_, error)) => return Err(error),
        };
        Err(EngineError::NotKubernetes {
            server: self.server.clone(),
            answer: format!("GET {VERSION} says: {answer}"),
        })
    }

    /// Returns the served kinds from the cache on disk, refreshed if one of `needed` (group, kind) is not in it. A kind that is not served
    /// after the refresh is missing in the table.
    ///
    /// # Errors
    /// Those of discovery; single API groups that do not answer are not an error.
    pub async fn kinds(
        &self,
        needed: &BTreeSet<(String, String)>,
    ) -> Result<Arc<KindTable>, EngineError> {
        self.kinds_in_versions(needed, &[]).await
    }

    /// Like [`Cluster::kinds`], for kinds that are needed in certain versions: a version that is missing in the cache may be new.
    ///
    /// # Errors
    /// As [`Cluster::kinds`].
    pub async fn kinds_in_versions(
        &self,
        needed: &BTreeSet<(String, String)>,
        versions: &[Gvk],
    ) -> Result<Arc<KindTable>, EngineError> {
        let complete = |table: &KindTable| {
            needed
                .iter()
                .all(|(group, kind)| table.preferred(group, kind).is_some())
                && versions.iter().all(|gvk| table.get(gvk).is_some())
        };
        // Held during discovery, so that concurrent callers share one.
        let mut known = self.kinds.lock().await;
        self.load_kinds(&mut known);
        if let Some(table) = known.table.as_ref().filter(|table| complete(table))
            && !known.is_stale
        {
            return Ok(Arc::clone(table));
        }
        let mut table = discovery::discover(self).await?;
        // A group that does not answer now may still be served, so its former entries are kept.
        if let Some(before) = &known.table {
            table.keep_silent_kinds(before);
        }
        if let Some(cache) = &self.cache {
            cache.store(&table, self.now());
        }
        known.is_stale = false;
        Ok(Arc::clone(known.table.insert(Arc::new(table))))
    }

    /// Returns the kinds that are served now: always asks the server.
    ///
    /// # Errors
    /// As [`Cluster::kinds`].
    pub async fn kinds_now(&self) -> Result<Arc<KindTable>, EngineError> {
        self.forget_kinds().await;
        self.kinds(&BTreeSet::new()).await
    }

    /// Discards the served kinds in this process and on disk, because CRDs were created or deleted.
    pub async fn forget_kinds(&self) {
        let mut known = self.kinds.lock().await;
        self.load_kinds(&mut known);
        known.is_stale = true;
        if let Some(cache) = &self.cache {
            cache.remove();
        }
    }

    /// Loads the kinds from the cache on disk, if this process knows none.
    fn load_kinds(&self, known: &mut KnownKinds) {
        if known.table.is_none() {
            let cached = self.cache.as_ref().and_then(|cache| cache.load(self.now()));
            known.table = cached.map(Arc::new);
        }
    }

    /// Discards the served kinds if a list or watch fails because its version is not served: the table is older than the CRD.
    pub(super) async fn forget_unserved(&self, error: &EngineError) {
        if error.is_unserved() {
            self.forget_kinds().await;
        }
    }
}

/// Returns a client with our user agent, and without retries and timeouts of its own.
pub(super) fn new_client(mut config: kube::Config) -> Result<kube::Client, kube::Error> {
    config.default_retry = false;
    config.read_timeout = None;
    config.headers.push((
        USER_AGENT,
        HeaderValue::from_static(concat!("kubectl-addons/", env!("CARGO_PKG_VERSION"))),
    ));
    kube::Client::try_from(config)
}

/// The local clock, corrected if it certainly differs from the server's.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// How far the server's clock is ahead, in milliseconds.
    skew: AtomicI64,
}

impl Clock {
    /// The resolution of the Date header, in milliseconds.
    const SECOND: i64 = 1000;
    /// Maximum error of [`Cluster::now`] in milliseconds, if an answer begins within half a second.
    pub(super) const ERROR: u64 = Self::SECOND.unsigned_abs() + 500;

    /// Learns the server's time from a response that begins now. `sent`: when the request was sent.
    pub(super) fn observe(&self, headers: &HeaderMap, sent: Timestamp) {
        if let Some(server) = server_time(headers) {
            let known = self.skew.load(Ordering::Relaxed);
            let learned = Self::learn(known, server, sent, Timestamp::now());
            self.skew.store(learned, Ordering::Relaxed);
        }
    }

    /// Returns the new skew. The server wrote its time, rounded down, between the request and the beginning of the answer. The known skew
    /// stays if it is possible, so a slow answer does not make it worse.
    fn learn(known: i64, server: Timestamp, sent: Timestamp, begun: Timestamp) -> i64 {
        let server = server.as_millisecond();
        let least = server - begun.as_millisecond();
        let most = server + Self::SECOND - sent.as_millisecond();
        if (least..=most).contains(&known) {
            known
        } else {
            i64::midpoint(least, most)
        }
    }

    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        let skew = SignedDuration::from_millis(self.skew.load(Ordering::Relaxed));
        now.checked_add(skew).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds since the epoch.
    fn at(seconds: f64) -> Timestamp {
        Timestamp::from_millisecond((seconds * 1000.0) as i64).unwrap()
    }

    #[test]
    fn only_what_is_certainly_wrong_is_corrected() {
        for (known, server, sent, begun, learned) in [
            // The server says 100: it is anything up to 101.
            (0, 100.0, 100.2, 100.4, 0),
            (0, 100.0, 99.2, 100.9, 0),
            // It is ahead by 90 s, less what the answer took, and more by the rest of its second.
            (0, 190.0, 100.0, 100.2, 90_400),
            (90_400, 191.0, 101.0, 101.3, 90_400),
            (90_400, 100.0, 100.0, 100.2, 400),
            (0, 10.0, 100.0, 100.2, -89_600),
            // A slow answer does not say when the server wrote it.
            (0, 100.0, 100.0, 108.0, 0),
            (0, 108.0, 100.0, 108.0, 0),
            (90_400, 100.0, 100.0, 108.0, -3_500),
        ] {
            let found = Clock::learn(known, at(server), at(sent), at(begun));
            assert_eq!(found, learned, "{known} {server} {sent} {begun}");
        }
    }
}
