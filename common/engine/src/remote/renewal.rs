//! Credentials of another cluster that expired while we are connected: its Secret is read once more (semantics 6).

use std::sync::Arc;

use common::target::Location;
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use kube::config::Config;
use tokio::sync::OnceCell;

use super::{Checked, RemoteError, read};
use crate::cluster::{Cluster, client};

/// Where the kubeconfig of a connection came from, and what it was replaced by.
pub(crate) struct Renewal {
    home: Arc<Cluster>,
    namespace: String,
    location: Location,
    /// Of the Secret as it was read first.
    revision: String,
    renewed: OnceCell<Renewed>,
}

struct Renewed {
    client: kube::Client,
    config: Config,
}

impl Renewal {
    pub(super) fn new(
        home: Arc<Cluster>,
        namespace: &str,
        location: &Location,
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

    /// Whether there are other credentials than at first, for the same server. A Secret that leads elsewhere now is for the next
    /// connection, whose cluster is compared with that of the records.
    async fn renew(&self, before: &Config) -> bool {
        let renew = || async {
            let Checked { config, revision } =
                read(&self.home, &self.namespace, &self.location).await?;
            let is_same = config.cluster_url == before.cluster_url
                && config.root_cert == before.root_cert
                && config.tls_server_name == before.tls_server_name;
            let unusable = || RemoteError::unusable(&self.namespace, &self.location);
            if !is_same || revision == self.revision {
                return Err(unusable());
            }
            let client = client(config.clone()).map_err(|_| unusable())?;
            Ok(Renewed { client, config })
        };
        self.renewed.get_or_try_init(renew).await.is_ok()
    }
}

impl Cluster {
    /// Whether the credentials are no longer the first ones.
    pub(crate) fn is_renewed(&self) -> bool {
        self.renewal()
            .is_some_and(|renewal| renewal.client().is_some())
    }

    /// After a refusal of the first credentials: whether there are others by now. It sends requests itself, and is boxed for that.
    pub(crate) fn renew(&self) -> BoxFuture<'_, bool> {
        match (self.renewal(), self.config()) {
            (Some(renewal), Some(before)) => renewal.renew(before).boxed(),
            _ => ready(false).boxed(),
        }
    }
}
