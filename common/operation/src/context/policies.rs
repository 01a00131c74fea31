//! Inputs for evaluating AddonPolicies, read once per command, and once per pass of a loop.

use std::collections::BTreeMap;

use addons_admission::Requester;
use addons_engine::{identity, local, policies};
use common::api::policy::AddonPolicy;
use tokio::sync::{Mutex, OnceCell};

use super::Context;
use crate::error::OperationError;

/// The policies and related objects that were read.
#[derive(Default)]
pub(super) struct PolicyCache {
    policies: OnceCell<Vec<AddonPolicy>>,
    labels: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
    requester: OnceCell<Requester>,
}

impl Context {
    /// Returns the policies.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub(crate) async fn policies(&self) -> Result<&[AddonPolicy], OperationError> {
        let list = || async { Ok(policies::list(self.home().await?).await?) };
        let policies = self.policies.policies.get_or_try_init(list).await;
        policies.map(Vec::as_slice)
    }

    /// Returns the labels of a namespace.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub(crate) async fn namespace_labels(
        &self,
        namespace: &str,
    ) -> Result<BTreeMap<String, String>, OperationError> {
        let mut known = self.policies.labels.lock().await;
        if let Some(labels) = known.get(namespace) {
            return Ok(labels.clone());
        }
        let labels = local::read_labels(self.home().await?, namespace).await?;
        known.insert(namespace.to_owned(), labels.clone());
        Ok(labels)
    }

    /// Returns the user who runs the command.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn requester(&self) -> Result<&Requester, OperationError> {
        let ask = || async { Ok(identity::whoami(self.home().await?).await?) };
        self.policies.requester.get_or_try_init(ask).await
    }

    /// Returns the holder of locks as records name it: the user as the API server sees it, then the process. Only the process if the server
    /// does not say who asks.
    pub(crate) async fn holder(&self) -> String {
        let process = &self.settings.holder;
        match self.requester().await {
            Ok(requester) if !requester.user.is_empty() => {
                format!("{}, {process}", requester.user)
            }
            _ => process.clone(),
        }
    }
}
