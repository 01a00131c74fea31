//! Which cluster it is: a plan that is executed later is executed on the same one.

use addons_engine::identity::{self, KUBE_SYSTEM};
use addons_plan::file;
use common::api::installation::AddonInstallation;
use common::pin::{self, OtherCluster};

use crate::context::Context;
use crate::error::OperationError;
use crate::records::name_of;

impl Context {
    /// The identity of the cluster, for plans that are executed later: kube-system, or the namespace of the command where the
    /// caller may not read that.
    ///
    /// # Errors
    /// Those of the requests.
    pub async fn identity(&self) -> Result<file::ClusterFacts, OperationError> {
        match self.identity_by(KUBE_SYSTEM).await {
            Err(error) if error.is_forbidden() => {
                self.identity_by(self.settings().records_namespace()).await
            }
            other => other,
        }
    }

    /// Whether a record belongs to another cluster: one request, where it says its own.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn other_cluster(
        &self,
        record: &AddonInstallation,
    ) -> Result<Option<OtherCluster>, OperationError> {
        let status = record.status.as_ref();
        if status.is_none_or(|status| status.cluster.is_none()) {
            return Ok(None);
        }
        let found = self.cluster_identity().await?;
        let other = pin::check(&name_of(record), status, found.as_ref()).err();
        if other.is_none() {
            self.check_other().await?;
        }
        Ok(other)
    }

    /// Whether the namespace of these records leads to another cluster than before, as far as they say: one request, where one is
    /// pinned.
    ///
    /// # Errors
    /// Those of the request.
    pub(crate) async fn strayed(
        &self,
        records: &[AddonInstallation],
    ) -> Result<Option<OtherCluster>, OperationError> {
        let is_pinned = |record: &AddonInstallation| {
            let status = record.status.as_ref();
            status.is_some_and(|status| status.cluster.is_some())
        };
        if !records.iter().any(is_pinned) {
            return Ok(None);
        }
        let found = self.cluster_identity().await?;
        Ok(pin::strayed(records, found.as_ref()))
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
