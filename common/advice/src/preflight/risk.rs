//! Objects of a cluster that can block its upgrade: webhooks, aggregated APIs and stored versions, whoever owns them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::api_services::ApiServiceRisk;
use super::stored::StoredRisk;
use super::webhooks::WebhookRisk;
use common::api::installation::AddonInstallation;
use common::api::names::{InstallationName, LABEL_OWNER, owner_hash};

/// Installations by the value of their owner label.
#[derive(Clone, Debug, Default)]
pub struct OwnerIndex(BTreeMap<String, InstallationName>);

impl OwnerIndex {
    /// Returns the owners of these records.
    #[must_use]
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a AddonInstallation>) -> Self {
        let owners = records.into_iter().map(|record| {
            let name = name_of(record);
            (owner_hash(&name.namespace, &name.name), name)
        });
        Self(owners.collect())
    }

    /// Returns the installation that owns an object; `None` if none does.
    #[must_use]
    pub fn owner(&self, object: &Value) -> Option<InstallationName> {
        let label = object["metadata"]["labels"][LABEL_OWNER].as_str()?;
        self.0.get(label).cloned()
    }
}

/// An object that can block an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum Risk {
    /// An admission webhook.
    Webhook(WebhookRisk),
    /// An aggregated API.
    ApiService(ApiServiceRisk),
    /// A CRD with objects in an old version.
    StoredVersions(StoredRisk),
}

impl Risk {
    /// Returns whether the risk should be fixed before the upgrade begins; other risks are warnings.
    #[must_use]
    pub fn blocks(&self) -> bool {
        match self {
            Self::Webhook(risk) => risk.trouble.blocks(),
            Self::ApiService(_) => true,
            Self::StoredVersions(_) => false,
        }
    }

    /// Returns the installation that owns the object; `None` if none does.
    #[must_use]
    pub fn owner(&self) -> Option<&InstallationName> {
        match self {
            Self::Webhook(risk) => risk.owner.as_ref(),
            Self::ApiService(risk) => risk.owner.as_ref(),
            Self::StoredVersions(risk) => risk.owner.as_ref(),
        }
    }
}

/// Returns namespace and name of a record.
pub(super) fn name_of(record: &AddonInstallation) -> InstallationName {
    InstallationName {
        namespace: record.metadata.namespace.clone().unwrap_or_default(),
        name: record.metadata.name.clone().unwrap_or_default(),
    }
}

/// Returns a text value; empty if it is none.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
