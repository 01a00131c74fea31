//! A connection to one cluster: client, version, served kinds.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::manifest::kinds::KindTable;

use super::error::EngineError;

/// How a [`Cluster`] talks.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Where discovery is kept between runs; `None` = nowhere.
    pub cache_dir: Option<PathBuf>,
    /// Bound of one request (not of a watch).
    pub request_timeout: Duration,
    /// Requests in flight at most.
    pub concurrency: usize,
}

/// A connection to one cluster.
pub struct Cluster {
    client: kube::Client,
    options: ClusterOptions,
}

impl Cluster {
    /// Connects; sends nothing yet.
    pub async fn new(config: kube::Config, options: ClusterOptions) -> Result<Self, EngineError> {
        let _ = config;
        let _ = options;
        todo!()
    }

    /// The client, for reads that need no engine.
    #[must_use]
    pub fn client(&self) -> &kube::Client {
        let _ = &self.options;
        &self.client
    }

    /// `gitVersion` of the server, e.g. `v1.36.3`; asked once.
    pub async fn kubernetes_version(&self) -> Result<String, EngineError> {
        todo!()
    }

    /// The served kinds: from the cache on disk, refreshed where one of `needed` (group, kind) is not in it.
    /// A needed kind that is not served after a refresh is simply not in the table.
    pub async fn kinds(
        &self,
        needed: &BTreeSet<(String, String)>,
    ) -> Result<Arc<KindTable>, EngineError> {
        let _ = needed;
        todo!()
    }
}
