//! The identity of a cluster: a plan that is executed later must be executed on the same cluster.

use addons_engine::identity::{self, KUBE_SYSTEM};
use addons_plan::file;
use common::api::installation::AddonInstallation;
use common::pin::{self, OtherCluster};

use super::Context;
use crate::error::OperationError;
use crate::records::name_of;

impl Context {
    /// Returns the identity of the cluster for plan files: that of kube-system, or of the namespace of the command if the caller may not
    /// read kube-system.
    ///
    /// # Errors
    /// Those of the requests.
    pub async fn identity(&self) -> Result<file::PlanFileCluster, OperationError> {
        match self.identity_by_namespace(KUBE_SYSTEM).await {
            Err(error) if error.is_forbidden() => {
                self.identity_by_namespace(self.settings().records_namespace())
                    .await
            }
            other => other,
        }
    }

    /// Returns the other cluster that a record belongs to, if any. It sends one request if the record names a cluster.
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
            self.check_not_same_cluster().await?;
        }
        Ok(other)
    }

    /// Returns the other cluster that the namespace of these records leads to, if they are pinned to one. It sends one request if a record
    /// is pinned.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn cluster_strayed_to(
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
        Ok(pin::find_other_cluster(records, found.as_ref()))
    }

    /// Returns the identity of the cluster by one of its namespaces.
    pub(crate) async fn identity_by_namespace(
        &self,
        namespace: &str,
    ) -> Result<file::PlanFileCluster, OperationError> {
        let cluster = self.cluster().await?;
        Ok(file::PlanFileCluster {
            namespace: namespace.to_owned(),
            uid: identity::namespace_uid(cluster, namespace).await?,
            version: cluster.kubernetes_version().await?,
        })
    }
}
