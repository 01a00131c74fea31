//! Contexts derived from others: for loops, which read repeatedly and act with the rights of others.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::Context;
use super::target::ClusterTarget;
use crate::error::OperationError;
use crate::render::jail::Jail;

impl Context {
    /// Returns the context for unattended use: kustomizations are not built, our own rights read no Secret for records outside the system
    /// namespace, and packages are rendered in separate processes. `program` is this program.
    #[must_use]
    pub fn unattended(mut self, program: PathBuf) -> Self {
        self.settings.kustomize = false;
        self.settings.secret_data = false;
        self.settings.jail = Some(Jail::new(program));
        self
    }

    /// Returns a context with the same connection and settings that has read nothing yet, and so sees changes.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self {
            connect: self.connect.clone(),
            home: Arc::clone(&self.home),
            pool: Arc::clone(&self.pool),
            files: Arc::clone(&self.files),
            target: Arc::clone(&self.target),
            cluster_uid: Arc::clone(&self.cluster_uid),
            events: self.events(),
            ..Self::build(None, self.settings.clone())
        }
    }

    /// Returns a fresh context whose requests to the cluster of the records do not queue behind those of others.
    ///
    /// # Errors
    /// Those of [`Context::home`].
    pub async fn with_separate_connection(&self) -> Result<Self, OperationError> {
        let apart = Arc::new(self.home().await?.with_own_permits().await);
        Ok(Self {
            home: Arc::new(OnceCell::new_with(Some(apart))),
            ..self.fresh()
        })
    }

    /// Returns a context with the rights of a ServiceAccount, except for records and credentials of catalogues (semantics 16.6). In another
    /// cluster, the rights are those of its kubeconfig. It shares the catalogues and policies that were already read.
    ///
    /// # Errors
    /// Those of [`addons_engine::Cluster::acting_as`].
    pub async fn acting_as(&self, namespace: &str, account: &str) -> Result<Self, OperationError> {
        let acting = Arc::new(self.home().await?.acting_as(namespace, account).await?);
        let target = match self.target().await? {
            ClusterTarget::Home | ClusterTarget::None { .. } => Arc::clone(&self.target),
            ClusterTarget::Remote { location, cluster } => {
                let cluster = self.connect_remote(location, cluster).await?;
                let cluster = Arc::new(cluster.with_home(Arc::clone(&acting)).await);
                Arc::new(OnceCell::new_with(Some(ClusterTarget::Remote {
                    location: location.clone(),
                    cluster: OnceCell::new_with(Some(cluster)),
                })))
            }
        };
        let mut context = self.fresh();
        context.settings.secret_data = true;
        Ok(Self {
            home: Arc::new(OnceCell::new_with(Some(acting))),
            target,
            catalogues: Arc::clone(&self.catalogues),
            policies: Arc::clone(&self.policies),
            version: self.version.clone(),
            ..context
        })
    }
}
