//! The records of this cluster: all installations, read once.

use std::collections::BTreeMap;

use addons_engine::{EngineError, record};
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::nearest::nearest;
use common::plan::inventory::Inventory;

use crate::context::Context;
use crate::error::OperationError;

/// All installations of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The records.
    pub all: Vec<AddonInstallation>,
    /// Whether our definitions are missing: then there are no records.
    pub uninitialised: bool,
}

impl Records {
    /// Reads them: one LIST. Missing definitions mean that nothing is installed yet.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn read(ctx: &Context) -> Result<Self, OperationError> {
        match record::list(ctx.cluster().await?, None).await {
            Ok(all) => Ok(Self {
                all,
                uninitialised: false,
            }),
            Err(EngineError::NotInitialised) => Ok(Self {
                all: Vec::new(),
                uninitialised: true,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// The record of this namespace and name.
    #[must_use]
    pub fn get(&self, name: &InstallationName) -> Option<&AddonInstallation> {
        self.all.iter().find(|record| &name_of(record) == name)
    }

    /// The records of a namespace; all of them where none is given.
    pub fn within<'a>(
        &'a self,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a AddonInstallation> {
        self.all
            .iter()
            .filter(move |record| is_within(record, namespace))
    }

    /// The record with a name that the user gave, in one namespace or in any.
    ///
    /// # Errors
    /// [`OperationError::UnknownInstallation`]; [`OperationError::Ambiguous`] where no namespace was given.
    pub fn find<'a>(
        &'a self,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<&'a AddonInstallation, OperationError> {
        let is_meant = |record: &&AddonInstallation| {
            record.metadata.name.as_deref() == Some(name) && is_within(record, namespace)
        };
        let found: Vec<&AddonInstallation> = self.all.iter().filter(is_meant).collect();
        match found.as_slice() {
            [one] => Ok(one),
            [] => {
                let names = self.all.iter();
                let names = names.filter_map(|record| record.metadata.name.as_deref());
                Err(OperationError::UnknownInstallation {
                    name: name.to_owned(),
                    near: nearest(name, names).map(str::to_owned),
                })
            }
            several => {
                let namespaces = several.iter().map(|record| name_of(record).namespace);
                Err(OperationError::Ambiguous {
                    name: name.to_owned(),
                    namespaces: namespaces.collect(),
                })
            }
        }
    }

    /// Which other installation has recorded each object: an object has one owner (semantics 5).
    pub(crate) fn claims(
        &self,
        except: &InstallationName,
    ) -> BTreeMap<ObjectKey, InstallationName> {
        let mut claims = BTreeMap::new();
        for record in &self.all {
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

fn is_within(record: &AddonInstallation, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| record.metadata.namespace.as_deref() == Some(namespace))
}

/// Namespace and name of a record.
#[must_use]
pub fn name_of(record: &AddonInstallation) -> InstallationName {
    InstallationName {
        namespace: record.metadata.namespace.clone().unwrap_or_default(),
        name: record.metadata.name.clone().unwrap_or_default(),
    }
}
