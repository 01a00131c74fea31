//! The records of this cluster: all installations, read once.

use std::collections::BTreeSet;

use addons_engine::{Cluster, EngineError, local, record};
use addons_plan::claims::{self, Claims};
use addons_plan::snapshot::Snapshot;
use common::api::installation::AddonInstallation;
use common::api::names::{InstallationName, SYSTEM_NAMESPACE, owner_hash};
use common::nearest::nearest;
use common::pin;

use crate::context::{Context, ContextSettings};
use crate::error::{NotLocal, OperationError};

/// All installations of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The records.
    pub all: Vec<AddonInstallation>,
    /// Whether there may be more records, which the caller may not read.
    pub is_partial: bool,
    /// Whether our definitions are missing, and so there are no records.
    pub uninitialised: bool,
    /// The system namespace.
    pub system: String,
    /// The namespaces that stand for this cluster, as far as they are needed: the system namespace and, if records are elsewhere or another
    /// namespace was asked for, those with the label (semantics 6.1).
    pub local: BTreeSet<String>,
    /// Whether the namespace of the command does not exist.
    pub is_absent: bool,
    /// Whether the cluster of the command is not that of the records; `local` is then the namespace that stands for it.
    pub is_remote: bool,
}

impl Records {
    /// Reads the records with one LIST: of the namespace, for a command on another cluster, and else of the cluster. If the caller may not
    /// list those of the cluster, there is one LIST for each namespace of the command. Missing definitions mean that nothing is installed
    /// yet.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn read(ctx: &Context) -> Result<Self, OperationError> {
        let home = ctx.home().await?;
        let is_remote = ctx.is_remote().await?;
        // Records in other namespaces do not concern a remote cluster.
        let of = ctx.settings().namespace.as_deref().filter(|_| is_remote);
        let mut is_partial = false;
        let listed = match record::list(home, of).await {
            Err(error @ EngineError::Forbidden { .. }) => {
                is_partial = true;
                list_readable(home, ctx.settings(), error).await
            }
            other => other,
        };
        let (all, uninitialised) = match listed {
            Ok(all) => (all, false),
            Err(EngineError::NotInitialised) => (Vec::new(), true),
            Err(error @ EngineError::Forbidden { .. }) if ctx.settings().namespace.is_none() => {
                return Err(OperationError::NotListed(error));
            }
            Err(error) => return Err(error.into()),
        };
        let system = &ctx.settings().system_namespace;
        let mut local = BTreeSet::from([system.clone()]);
        let mut is_absent = false;
        match &ctx.settings().namespace {
            Some(asked) if asked == system => {}
            Some(asked) if is_remote => local = BTreeSet::from([asked.clone()]),
            Some(asked) => {
                is_absent = !ctx.has_namespace().await?;
                if ctx.has_cluster().await? {
                    local.insert(asked.clone());
                }
            }
            None if all.iter().all(|record| is_in_namespace(record, system)) => {}
            None => local.extend(local::list_namespaces(home).await?),
        }
        Ok(Self {
            all,
            is_partial,
            uninitialised,
            system: system.clone(),
            local,
            is_absent,
            is_remote,
        })
    }

    /// Refuses a namespace that does not stand for this cluster (semantics 6.1).
    ///
    /// # Errors
    /// [`OperationError::NotLocal`].
    pub fn check_local(&self, namespace: &str) -> Result<(), OperationError> {
        if self.local.contains(namespace) {
            return Ok(());
        }
        Err(NotLocal {
            asked: namespace.to_owned(),
            system: self.system.clone(),
            exists: !self.is_absent,
        }
        .into())
    }

    /// Returns the installations of which nothing was installed and nothing will be, because their namespace does not stand for a cluster:
    /// of `namespace`, or of all. Empty with another system namespace than the default one, because other namespaces may then be those of
    /// other clients, and if the caller may not list namespaces.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn find_misplaced(
        &self,
        ctx: &Context,
        namespace: Option<&str>,
    ) -> Result<Vec<InstallationName>, OperationError> {
        let is_new = |record: &&AddonInstallation| {
            let at = record.metadata.namespace.as_deref();
            record.installed().is_none()
                && at.is_some_and(|at| !self.local.contains(at) && at != self.system)
                && (namespace.is_none() || at == namespace)
        };
        let mut found: Vec<InstallationName> =
            self.all.iter().filter(is_new).map(name_of).collect();
        if found.is_empty() || self.is_remote || self.system != SYSTEM_NAMESPACE {
            return Ok(Vec::new());
        }
        let of_none = match local::list_of_no_cluster(ctx.home().await?).await {
            Err(EngineError::Forbidden { .. }) => BTreeSet::new(),
            listed => listed?,
        };
        found.retain(|name| of_none.contains(&name.namespace));
        Ok(found)
    }

    /// Returns the record with this namespace and name.
    #[must_use]
    pub fn get(&self, name: &InstallationName) -> Option<&AddonInstallation> {
        self.all.iter().find(|record| &name_of(record) == name)
    }

    /// Returns the records of a namespace or, if it is `None`, those of the namespaces that stand for this cluster.
    pub fn in_namespace<'a>(
        &'a self,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a AddonInstallation> {
        let all = self.all.iter();
        all.filter(move |record| is_selected(record, namespace, &self.local))
    }

    /// As [`Records::in_namespace`], and drops the other records.
    #[must_use]
    pub fn into_namespace(self, namespace: Option<&str>) -> Vec<AddonInstallation> {
        let Self { mut all, local, .. } = self;
        all.retain(|record| is_selected(record, namespace, &local));
        all
    }

    /// Returns the records with these names, as the user typed them.
    ///
    /// # Errors
    /// Those of [`Records::find`].
    pub fn find_all<'a>(
        &'a self,
        names: &[String],
        namespace: Option<&'a str>,
    ) -> Result<Vec<&'a AddonInstallation>, OperationError> {
        let names = names.iter();
        names.map(|name| self.find(name, namespace)).collect()
    }

    /// Returns the record with this name, in one namespace or in those that stand for this cluster.
    ///
    /// # Errors
    /// [`OperationError::UnknownInstallation`]; [`OperationError::Ambiguous`] if no namespace was given.
    pub fn find<'a>(
        &'a self,
        name: &str,
        namespace: Option<&'a str>,
    ) -> Result<&'a AddonInstallation, OperationError> {
        let is_meant = |record: &&AddonInstallation| record.metadata.name.as_deref() == Some(name);
        let found: Vec<&AddonInstallation> =
            self.in_namespace(namespace).filter(is_meant).collect();
        match found.as_slice() {
            [one] => Ok(one),
            [] => {
                if let (None, Some(elsewhere)) = (namespace, self.all.iter().find(is_meant)) {
                    self.check_local(&name_of(elsewhere).namespace)?;
                }
                // The user may have given the namespace of the objects instead of that of the record.
                let elsewhere = self.all.iter().find(is_meant).map(name_of);
                let names = self.in_namespace(namespace);
                let names = names.filter_map(|record| record.metadata.name.as_deref());
                Err(OperationError::UnknownInstallation {
                    offered: false,
                    name: name.to_owned(),
                    near: match elsewhere {
                        Some(one) => Some(format!("the one in namespace {}", one.namespace)),
                        None => nearest(name, names).map(str::to_owned),
                    },
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

    /// Whether the objects of a record are in the cluster of the command. A namespace that stands for no cluster may have records of a
    /// client with another system namespace, whose objects are in this cluster.
    fn is_in_cluster(&self, record: &AddonInstallation) -> bool {
        let at = record.metadata.namespace.as_deref().unwrap_or_default();
        self.local.contains(at) || !self.is_remote && !pin::is_in_other_cluster(record)
    }

    /// Returns the installations whose objects are in the cluster of the command.
    pub fn in_cluster(&self) -> impl Iterator<Item = &AddonInstallation> {
        self.all.iter().filter(|record| self.is_in_cluster(record))
    }

    /// Whether a record counts at its word for another installation (semantics 13.5).
    pub(crate) fn is_believed(&self, record: &AddonInstallation, by: &InstallationName) -> bool {
        let at = record.metadata.namespace.as_deref().unwrap_or_default();
        claims::is_believed(at, &by.namespace, &self.system)
    }

    /// Returns the values of the owner label of all installations.
    pub(crate) fn owners(&self) -> BTreeSet<String> {
        let names = self.in_cluster().map(name_of);
        names
            .map(|name| owner_hash(&name.namespace, &name.name))
            .collect()
    }

    /// Returns what the other installations of the cluster use, for the plan of `own`. Those in `except` are planned by the same command
    /// and do not count. `snapshot` has the live objects that prove records which do not count at their word (semantics 13.5).
    pub(crate) fn claims(
        &self,
        own: &InstallationName,
        except: &[InstallationName],
        snapshot: &Snapshot,
    ) -> Claims {
        let mut claims = Claims {
            is_partial: self.is_partial,
            owners: self.owners(),
            ..Claims::default()
        };
        let others = self.in_cluster().filter(|record| {
            let name = name_of(record);
            name != *own && !except.contains(&name)
        });
        let (believed, others): (Vec<_>, Vec<_>) =
            others.partition(|record| self.is_believed(record, own));
        for record in others {
            claims.add_proven(&name_of(record), record, snapshot);
        }
        for record in believed {
            claims.add(&name_of(record), record);
        }
        claims
    }
}

/// Returns the records of the namespaces that a command works on. If another namespace was asked for, those of the system namespace are
/// optional: they only tell what else is in use. `forbidden` is the error of the cluster-wide LIST.
async fn list_readable(
    cluster: &Cluster,
    settings: &ContextSettings,
    forbidden: EngineError,
) -> Result<Vec<AddonInstallation>, EngineError> {
    let system = record::list(cluster, Some(&settings.system_namespace)).await;
    let asked = settings.namespace.as_ref();
    let Some(asked) = asked.filter(|asked| **asked != settings.system_namespace) else {
        return match system {
            // Return the error of the cluster-wide LIST, which the caller asked for.
            Err(EngineError::Forbidden { .. }) if asked.is_none() => Err(forbidden),
            other => other,
        };
    };
    let mut all = record::list(cluster, Some(asked)).await?;
    match system {
        Ok(others) => all.extend(others),
        Err(EngineError::Forbidden { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(all)
}

/// Whether a command in this namespace selects a record; without one, it selects those of this cluster.
fn is_selected(
    record: &AddonInstallation,
    namespace: Option<&str>,
    local: &BTreeSet<String>,
) -> bool {
    match namespace {
        Some(namespace) => is_in_namespace(record, namespace),
        None => local.contains(record.metadata.namespace.as_deref().unwrap_or_default()),
    }
}

fn is_in_namespace(record: &AddonInstallation, namespace: &str) -> bool {
    record.metadata.namespace.as_deref() == Some(namespace)
}

/// Returns the namespace and name of a record.
#[must_use]
pub fn name_of(record: &AddonInstallation) -> InstallationName {
    InstallationName {
        namespace: record.metadata.namespace.clone().unwrap_or_default(),
        name: record.metadata.name.clone().unwrap_or_default(),
    }
}
