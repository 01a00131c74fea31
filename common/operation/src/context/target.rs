//! The two clusters of an operation, nearly always the same one: that of the records, and that of the objects, which the namespace of the
//! command stands for (semantics 6.3).

use std::sync::Arc;

use addons_engine::remote::{self, RemoteError};
use addons_engine::{Cluster, identity};
use common::api::installation::ClusterIdentity;
use common::target::{KubeconfigLocation, NamespaceCluster};
use tokio::sync::OnceCell;

use super::Context;
use crate::error::{NotLocal, OperationError};

/// The cluster that the namespace of a command stands for.
pub(super) enum ClusterTarget {
    /// The cluster of the records.
    Home,
    /// None. A command that only reads then reads the cluster of the records.
    None {
        /// Whether the namespace exists.
        exists: bool,
    },
    /// Another cluster. It is known before it is connected to: whoever may not read the Secret may still read the records.
    Remote {
        /// The Secret with its kubeconfig.
        location: KubeconfigLocation,
        cluster: OnceCell<Arc<Cluster>>,
    },
}

/// Identifies the cluster of the objects.
#[derive(Debug)]
pub(crate) struct ClusterUid {
    /// The uid of its kube-system, if it may be read.
    value: Option<String>,
    /// Whether a kubeconfig leads back to the cluster of the records.
    is_home: bool,
}

impl Context {
    /// Returns the cluster of the records and catalogues. Connecting sends no request.
    ///
    /// # Errors
    /// [`OperationError::Connect`].
    pub async fn home(&self) -> Result<&Cluster, OperationError> {
        Ok(self.shared_home().await?)
    }

    /// As [`Context::home`], shared.
    ///
    /// # Errors
    /// [`OperationError::Connect`].
    pub async fn shared_home(&self) -> Result<&Arc<Cluster>, OperationError> {
        let connect = || async {
            match &self.connect {
                Some(connect) => {
                    let cluster = connect().await.map_err(OperationError::Connect)?;
                    Ok(Arc::new(cluster))
                }
                None => Err(OperationError::NoCluster),
            }
        };
        self.home.get_or_try_init(connect).await
    }

    /// Returns the cluster of the objects: the one that the namespace of the command stands for, or that of the records if the namespace
    /// stands for none.
    ///
    /// # Errors
    /// [`OperationError::Connect`]; [`OperationError::Remote`] if the namespace stands for another cluster that cannot be connected to.
    pub async fn cluster(&self) -> Result<&Cluster, OperationError> {
        match self.target().await? {
            ClusterTarget::Home | ClusterTarget::None { .. } => self.home().await,
            ClusterTarget::Remote { location, cluster } => {
                Ok(self.connect_remote(location, cluster).await?)
            }
        }
    }

    /// Returns the connection to another cluster, which the first call makes.
    pub(super) async fn connect_remote<'c>(
        &self,
        location: &KubeconfigLocation,
        cluster: &'c OnceCell<Arc<Cluster>>,
    ) -> Result<&'c Arc<Cluster>, OperationError> {
        let connect = || async {
            let home = self.shared_home().await?;
            let namespace = self.settings.records_namespace();
            let connected = remote::connect(home, namespace, location).await?;
            Ok::<_, OperationError>(Arc::new(connected))
        };
        cluster.get_or_try_init(connect).await
    }

    /// Returns why the caller cannot work on the cluster of the objects: it is another one, and the Secret with its kubeconfig may not be
    /// read. `None` if the caller can, as far as rights in this cluster are concerned.
    ///
    /// # Errors
    /// As [`Context::cluster`], for any other reason.
    pub async fn why_out_of_reach(&self) -> Result<Option<OperationError>, OperationError> {
        // The cluster of the records is not connected to for this.
        if self.settings.namespace.is_none() {
            return Ok(None);
        }
        match self.cluster().await {
            Ok(_) => Ok(None),
            Err(error) if error.is_forbidden() && self.is_remote().await? => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    /// Whether the namespace of the command stands for a cluster: this one, or another.
    ///
    /// # Errors
    /// As [`Context::cluster`].
    pub(crate) async fn has_cluster(&self) -> Result<bool, OperationError> {
        Ok(!matches!(self.target().await?, ClusterTarget::None { .. }))
    }

    /// Whether the namespace of the command exists.
    ///
    /// # Errors
    /// As [`Context::cluster`].
    pub(crate) async fn has_namespace(&self) -> Result<bool, OperationError> {
        Ok(!matches!(
            self.target().await?,
            ClusterTarget::None { exists: false }
        ))
    }

    /// Refuses a namespace of the command that stands for no cluster (semantics 6.1).
    ///
    /// # Errors
    /// [`OperationError::NotLocal`]; as [`Context::cluster`].
    pub async fn check_cluster(&self) -> Result<(), OperationError> {
        let system = &self.settings.system_namespace;
        if self.has_cluster().await? {
            return Ok(());
        }
        Err(NotLocal {
            asked: self.settings.namespace.as_ref().unwrap_or(system).clone(),
            system: system.clone(),
            exists: self.has_namespace().await?,
        }
        .into())
    }

    /// Whether the objects are in another cluster than the records. That cluster is not connected to.
    ///
    /// # Errors
    /// As [`Context::standing`].
    pub async fn is_remote(&self) -> Result<bool, OperationError> {
        Ok(matches!(self.target().await?, ClusterTarget::Remote { .. }))
    }

    /// Returns the identity of the cluster of the objects as records store it, or `None` if its kube-system may not be read.
    ///
    /// # Errors
    /// As [`Context::cluster`], and those of the request.
    pub(crate) async fn cluster_identity(&self) -> Result<Option<ClusterIdentity>, OperationError> {
        let uid = self.uid().await?.value.clone();
        let secret = match self.target().await? {
            ClusterTarget::Home | ClusterTarget::None { .. } => None,
            ClusterTarget::Remote { location, .. } => Some(location.secret.clone()),
        };
        Ok(uid.map(|kube_system_uid| ClusterIdentity {
            kube_system_uid,
            kubeconfig_secret: secret,
        }))
    }

    /// Refuses a remote cluster that is this one, according to the uid of its kube-system: its objects would get a second owner (semantics
    /// 6.3).
    ///
    /// # Errors
    /// [`RemoteError::SameCluster`]; those of the request.
    pub(crate) async fn check_not_same_cluster(&self) -> Result<(), OperationError> {
        match self.target().await? {
            ClusterTarget::Remote { location, .. } if self.uid().await?.is_home => {
                Err(OperationError::Remote(RemoteError::SameCluster {
                    namespace: self.settings.records_namespace().to_owned(),
                    secret: location.secret.clone(),
                }))
            }
            _ => Ok(()),
        }
    }

    async fn uid(&self) -> Result<&ClusterUid, OperationError> {
        let read = || async {
            let value = identity::cluster_uid(self.cluster().await?).await?;
            let is_home = self.is_remote().await?
                && value.is_some()
                && identity::cluster_uid(self.home().await?).await? == value;
            Ok::<_, OperationError>(ClusterUid { value, is_home })
        };
        self.cluster_uid.get_or_try_init(read).await
    }

    pub(super) async fn target(&self) -> Result<&ClusterTarget, OperationError> {
        let find = || async {
            match self.standing().await? {
                NamespaceCluster::ThisCluster => Ok(ClusterTarget::Home),
                NamespaceCluster::NoCluster => Ok(ClusterTarget::None { exists: true }),
                NamespaceCluster::NoNamespace => Ok(ClusterTarget::None { exists: false }),
                NamespaceCluster::OtherCluster(location) => {
                    Ok::<_, OperationError>(ClusterTarget::Remote {
                        location,
                        cluster: OnceCell::new(),
                    })
                }
            }
        };
        self.target.get_or_try_init(find).await
    }

    /// Returns which cluster the namespace of the command stands for, without connecting to it. It is read again with every call.
    ///
    /// # Errors
    /// Those of the connection and of the requests; the labels do not say which cluster it is.
    pub async fn standing(&self) -> Result<NamespaceCluster, OperationError> {
        let namespace = self.settings.records_namespace();
        if namespace == self.settings.system_namespace {
            return Ok(NamespaceCluster::ThisCluster);
        }
        Ok(remote::read_standing(self.shared_home().await?, namespace).await?)
    }
}

impl From<RemoteError> for OperationError {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Engine(error) => error.into(),
            error => Self::Remote(error),
        }
    }
}
