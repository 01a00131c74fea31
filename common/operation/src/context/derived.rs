//! Contexts made of others: for loops, which read again and again, and act with the rights of others.

use std::sync::Arc;

use tokio::sync::OnceCell;

use super::Context;
use crate::error::OperationError;

impl Context {
    /// The same connection and settings, and nothing read yet: what changed meanwhile is seen.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self {
            connect: self.connect.clone(),
            home: Arc::clone(&self.home),
            target: Arc::clone(&self.target),
            cluster_uid: Arc::clone(&self.cluster_uid),
            events: self.events(),
            ..Self::build(None, self.settings.clone())
        }
    }

    /// The same with the rights of a ServiceAccount, but for records and credentials of catalogues (semantics 16). The catalogues
    /// and policies are those that were read already.
    ///
    /// # Errors
    /// Those of [`addons_engine::Cluster::acting_as`].
    pub async fn acting_as(&self, namespace: &str, account: &str) -> Result<Self, OperationError> {
        let acting = self.cluster().await?.acting_as(namespace, account).await?;
        Ok(Self {
            home: Arc::new(OnceCell::new_with(Some(Arc::new(acting)))),
            catalogues: self.catalogues.clone(),
            policies: Arc::clone(&self.policies),
            version: self.version.clone(),
            ..self.fresh()
        })
    }
}
