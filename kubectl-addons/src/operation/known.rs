//! What this cluster has recorded: all installations, read once.

use std::collections::BTreeMap;

use addons_engine::{EngineError, record};
use common::api::installation::AddonInstallation;
use common::manifest::key::ObjectKey;
use common::plan::InstallationName;
use common::plan::inventory::Inventory;

use crate::session::Session;

/// All installations of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The records.
    pub records: Vec<AddonInstallation>,
    /// Whether our definitions are missing: then there is none.
    pub uninitialised: bool,
}

impl Known {
    /// Reads them: one LIST. Missing definitions mean that nothing is installed yet.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn read(session: &Session) -> Result<Self, anyhow::Error> {
        match record::list(session.cluster().await?, None).await {
            Ok(records) => Ok(Self {
                records,
                uninitialised: false,
            }),
            Err(EngineError::NotInitialised) => Ok(Self {
                records: Vec::new(),
                uninitialised: true,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// The record of this name.
    pub fn get(&self, name: &InstallationName) -> Option<&AddonInstallation> {
        self.records.iter().find(|record| &name_of(record) == name)
    }

    /// Which other installation has recorded which object: an object has one owner (semantics 5).
    pub fn claims(&self, except: &InstallationName) -> BTreeMap<ObjectKey, InstallationName> {
        let mut claims = BTreeMap::new();
        for record in &self.records {
            let name = name_of(record);
            if &name == except {
                continue;
            }
            if let Some(status) = &record.status {
                let keys = Inventory::from_groups(&status.inventory)
                    .objects
                    .into_keys();
                claims.extend(keys.map(|key| (key, name.clone())));
            }
        }
        claims
    }
}

/// Namespace and name of a record.
pub fn name_of(record: &AddonInstallation) -> InstallationName {
    InstallationName {
        namespace: record.metadata.namespace.clone().unwrap_or_default(),
        name: record.metadata.name.clone().unwrap_or_default(),
    }
}
