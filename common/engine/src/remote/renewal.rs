//! Renews credentials of another cluster that expired during a connection: its Secret is read once more (semantics 6.3).

use std::sync::Arc;

use common::target::KubeconfigLocation;
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use kube::config::Config;
use tokio::sync::OnceCell;

use super::{CheckedKubeconfig, RemoteError, read_kubeconfig};
use crate::cluster::{Cluster, new_client};

/// The source of the kubeconfig of a connection, and its renewed client.
pub(crate) struct Renewal {
    home: Arc<Cluster>,
    namespace: String,
    location: KubeconfigLocation,
    /// The resourceVersion of the Secret when it was first read.
    revision: String,
    renewed: OnceCell<RenewedClient>,
}

struct RenewedClient {
    client: kube::Client,
    config: Config,
}

impl Renewal {
    pub(super) fn new(
        home: Arc<Cluster>,
        namespace: &str,
        location: &KubeconfigLocation,
        revision: String,
    ) -> Self {
        Self {
            home,
            namespace: namespace.to_owned(),
            location: location.clone(),
            revision,
            renewed: OnceCell::new(),
        }
    }

    pub(crate) fn client(&self) -> Option<&kube::Client> {
        Some(&self.renewed.get()?.client)
    }

    pub(crate) fn config(&self) -> Option<&Config> {
        Some(&self.renewed.get()?.config)
    }

    /// Reads the Secret again. Returns whether it has new credentials for the same server. A Secret that leads to another server is used by
    /// the next connection only, which compares the clusters.
    async fn renew(&self, before: &Config) -> bool {
        let renew = || async {
            let CheckedKubeconfig { config, revision } =
                read_kubeconfig(&self.home, &self.namespace, &self.location).await?;
            let is_same = config.cluster_url == before.cluster_url
                && config.root_cert == before.root_cert
                && config.tls_server_name == before.tls_server_name;
            let unusable = || RemoteError::unusable(&self.namespace, &self.location);
            if !is_same || revision == self.revision {
                return Err(unusable());
            }
            let client = new_client(config.clone()).map_err(|_| unusable())?;
            Ok(RenewedClient { client, config })
        };
        self.renewed.get_or_try_init(renew).await.is_ok()
    }
}

impl Cluster {
    /// Returns whether renewed credentials are in use.
    pub(crate) fn is_renewed(&self) -> bool {
        self.renewal()
            .is_some_and(|renewal| renewal.client().is_some())
    }

    /// Renews the credentials after a refusal. Returns whether there are new ones. It sends requests itself, so its future is boxed.
    pub(crate) fn renew(&self) -> BoxFuture<'_, bool> {
        match (self.renewal(), self.config()) {
            (Some(renewal), Some(before)) => renewal.renew(before).boxed(),
            _ => ready(false).boxed(),
        }
    }
}
