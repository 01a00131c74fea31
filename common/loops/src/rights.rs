//! Determines whose rights the loop uses for an installation.

use addons_operation::{Context, OperationError, name_of};
use common::api::installation::AddonInstallation;

use crate::installation::ReconcileOptions;

/// The rights with which the objects of an installation are read and written (semantics 16.6).
pub(crate) enum Rights {
    /// The rights of the loop, or of the kubeconfig of another cluster.
    Own,
    /// The rights of this ServiceAccount in the namespace of the record.
    ServiceAccount(String),
    /// None: outside the system namespace, the record has to name an account.
    Missing,
}

impl Rights {
    /// Determines the rights for a record.
    ///
    /// # Errors
    /// What the namespace of the record stands for cannot be read.
    pub(crate) async fn for_record(
        ctx: &Context,
        record: &AddonInstallation,
        how: &ReconcileOptions,
    ) -> Result<Self, OperationError> {
        let is_of_system = name_of(record).namespace == ctx.settings().system_namespace;
        let default = how.account.as_ref().filter(|_| is_of_system);
        if let Some(account) = record.spec.service_account_name.as_ref().or(default) {
            return Ok(Self::ServiceAccount(account.clone()));
        }
        // In another cluster, the kubeconfig gives the rights; from this cluster, only the Secrets of `valuesFrom` are read. A record
        // with template data is refused later, because only some methods take it.
        let is_given = ctx.is_remote().await? && record.spec.values_from.is_empty();
        Ok(if is_of_system || is_given {
            Self::Own
        } else {
            Self::Missing
        })
    }
}
