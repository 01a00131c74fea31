//! Connects to another cluster, whose kubeconfig is in a Secret of the namespace that stands for it (semantics 6.1).

mod renewal;

use std::net::IpAddr;
use std::sync::Arc;

use http::Uri;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

use common::address::{AddressScope, scope};
use common::api::names::{CLUSTER_LOCAL, LABEL_CLUSTER};
use common::target::kubeconfig::{self, KubeconfigError};
use common::target::{
    KEYS, KubeconfigLocation, NamespaceCluster, NamespaceClusterError, cluster_from_labels,
};

use super::cluster::Cluster;
use super::error::EngineError;
use super::secret;
use super::snapshot::{namespace_collection, read_one};
pub(super) use renewal::Renewal;

/// Why another cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The labels do not say which cluster the namespace stands for.
    #[error(transparent)]
    Standing(#[from] NamespaceClusterError),
    /// The Secret does not exist. This never means this cluster.
    #[error(
        "namespace {namespace} stands for another cluster, whose kubeconfig is to be in Secret {secret}: there is no such Secret"
    )]
    NoSecret {
        /// The namespace.
        namespace: String,
        /// Name of the Secret.
        secret: String,
    },
    /// The Secret has no kubeconfig.
    #[error("Secret {namespace}/{secret} has no key {}, where the kubeconfig is to be", KEYS.join(" or "))]
    NoKey {
        /// The namespace.
        namespace: String,
        /// Name of the Secret.
        secret: String,
    },
    /// The kubeconfig is refused.
    #[error("the kubeconfig in Secret {namespace}/{secret}, key {key}")]
    Kubeconfig {
        /// The namespace.
        namespace: String,
        /// Name of the Secret.
        secret: String,
        /// The key.
        key: &'static str,
        /// The reason.
        source: KubeconfigError,
    },
    /// It leads to the cluster of the records, whose objects may have other owners.
    #[error(
        "namespace {namespace} is to stand for another cluster, but the kubeconfig in Secret {secret} leads to this one: label the \
         namespace {LABEL_CLUSTER}={CLUSTER_LOCAL} instead"
    )]
    SameCluster {
        /// The namespace.
        namespace: String,
        /// Name of the Secret.
        secret: String,
    },
    /// A certificate or key in it is invalid. The library's error is left out, because it may repeat a part of it.
    #[error(
        "the certificates or keys of the kubeconfig in Secret {namespace}/{secret} cannot be used"
    )]
    Unusable {
        /// The namespace.
        namespace: String,
        /// Name of the Secret.
        secret: String,
    },
    /// The server of the records refuses a request, or cannot be reached.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl RemoteError {
    fn unusable(namespace: &str, location: &KubeconfigLocation) -> Self {
        Self::Unusable {
            namespace: namespace.to_owned(),
            secret: location.secret.clone(),
        }
    }
}

/// A kubeconfig that passed the checks, and the revision of its Secret.
struct CheckedKubeconfig {
    config: Config,
    revision: String,
}

/// Returns which cluster a namespace of the home cluster stands for, with one GET.
///
/// # Errors
/// Those of the request; [`NamespaceClusterError`].
pub async fn read_standing(
    home: &Cluster,
    namespace: &str,
) -> Result<NamespaceCluster, RemoteError> {
    match read_one(home, &namespace_collection(), namespace).await? {
        Some(found) => Ok(cluster_from_labels(namespace, &found.labels)?),
        None => Ok(NamespaceCluster::NoNamespace),
    }
}

/// Returns a connection to the cluster that a Secret of the home cluster leads to. The records of its installations are in the home
/// cluster. No request is sent to it yet.
///
/// # Errors
/// [`RemoteError`].
pub async fn connect(
    home: &Arc<Cluster>,
    namespace: &str,
    location: &KubeconfigLocation,
) -> Result<Cluster, RemoteError> {
    let CheckedKubeconfig { config, revision } = read_kubeconfig(home, namespace, location).await?;
    let cluster = Cluster::new(config, home.options().clone()).await;
    let cluster = cluster.map_err(|_| RemoteError::unusable(namespace, location))?;
    let renewal = Renewal::new(Arc::clone(home), namespace, location, revision);
    let cluster = cluster.with_limits();
    Ok(cluster.with_records_in(Arc::clone(home), Arc::new(renewal)))
}

/// Returns a connection to the same cluster as a cluster of its own, which holds the records of its installations itself.
///
/// # Errors
/// [`RemoteError`].
pub async fn connect_alone(
    home: &Cluster,
    namespace: &str,
    location: &KubeconfigLocation,
) -> Result<Cluster, RemoteError> {
    let CheckedKubeconfig { config, .. } = read_kubeconfig(home, namespace, location).await?;
    let cluster = Cluster::new(config, home.options().clone()).await;
    let cluster = cluster.map_err(|_| RemoteError::unusable(namespace, location))?;
    Ok(cluster.with_limits())
}

/// Reads the Secret, and checks its kubeconfig.
async fn read_kubeconfig(
    home: &Cluster,
    namespace: &str,
    location: &KubeconfigLocation,
) -> Result<CheckedKubeconfig, RemoteError> {
    let (of, secret) = (namespace, location.secret.clone());
    let namespace = namespace.to_owned();
    let Some(found) = secret::get_with_own_rights(home, of, &secret).await? else {
        return Err(RemoteError::NoSecret { namespace, secret });
    };
    let data = found.data.unwrap_or_default();
    let mut keys = KEYS.into_iter();
    let Some((key, text)) = keys.find_map(|key| Some((key, data.get(key)?))) else {
        return Err(RemoteError::NoKey { namespace, secret });
    };
    let refused = |source| RemoteError::Kubeconfig {
        namespace,
        secret,
        key,
        source,
    };
    let checked = match kubeconfig::read_kubeconfig(&text.0) {
        Ok(checked) => checked,
        Err(source) => return Err(refused(source)),
    };
    let unusable = || RemoteError::unusable(of, location);
    let kubeconfig: Kubeconfig = serde_json::from_value(checked).map_err(|_| unusable())?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let config = config.map_err(|_| unusable())?;
    let is_near = is_on_this_machine(&home.server).await;
    for address in resolve_addresses(config.cluster_url.host().unwrap_or_default()).await {
        if let Err(source) = kubeconfig::check_address(address, is_near) {
            return Err(refused(source));
        }
    }
    Ok(CheckedKubeconfig {
        config,
        revision: found.metadata.resource_version.unwrap_or_default(),
    })
}

/// Returns whether a server is on this machine.
async fn is_on_this_machine(server: &str) -> bool {
    let host = server.parse::<Uri>();
    let host = host.ok().and_then(|url| url.host().map(str::to_owned));
    let found = resolve_addresses(&host.unwrap_or_default()).await;
    found
        .iter()
        .any(|address| scope(*address) == AddressScope::Machine)
}

/// Returns the addresses of a host; none if its name cannot be resolved, because no connection is possible then.
async fn resolve_addresses(host: &str) -> Vec<IpAddr> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((host, 0)).await;
    found.into_iter().flatten().map(|it| it.ip()).collect()
}
