//! Which cluster it is: a plan that is executed later is executed on the same one.

use addons_engine::identity;
use common::plan::file;

use crate::context::Context;
use crate::error::OperationError;

/// The namespace that every cluster has, and that is never deleted.
const KUBE_SYSTEM: &str = "kube-system";

impl Context {
    /// The identity of the cluster, for plans that are executed later: kube-system, or the namespace of the command where the
    /// caller may not read that.
    ///
    /// # Errors
    /// Those of the requests.
    pub async fn identity(&self) -> Result<file::ClusterFacts, OperationError> {
        match self.identity_by(KUBE_SYSTEM).await {
            Err(error) if error.is_forbidden() => {
                let asked = self.settings().namespace.as_ref();
                let namespace = asked.unwrap_or(&self.settings().system_namespace);
                self.identity_by(namespace).await
            }
            other => other,
        }
    }

    /// The identity of the cluster by one of its namespaces.
    pub(crate) async fn identity_by(
        &self,
        namespace: &str,
    ) -> Result<file::ClusterFacts, OperationError> {
        let cluster = self.cluster().await?;
        Ok(file::ClusterFacts {
            namespace: namespace.to_owned(),
            uid: identity::namespace_uid(cluster, namespace).await?,
            version: cluster.kubernetes_version().await?,
        })
    }
}
