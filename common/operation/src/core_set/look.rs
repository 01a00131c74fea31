//! What is read of each cluster that has a core set: this one, and those that labelled namespaces stand for.

use std::collections::BTreeSet;

use addons_engine::{core_set, local, record};
use common::api::installation::AddonInstallation;
use common::core_set::change::{CoreChange, changes, is_guarded, is_released};

use super::{ClusterCore, Texts};
use crate::context::Context;
use crate::error::OperationError;

/// What was read of a cluster.
#[derive(Debug)]
pub struct Look {
    /// The records of the namespace that stands for it.
    pub records: Vec<AddonInstallation>,
    /// Its core set.
    pub state: State,
}

/// The core set of a cluster.
#[derive(Debug)]
pub enum State {
    /// There are neither rules nor a list, and no core installation is from them.
    Unused,
    /// The cluster is being deleted: nothing holds its records any more.
    Deleting {
        /// Whether its namespace says so already, or is being deleted itself.
        is_marked: bool,
    },
    /// It was looked for.
    Found(ClusterCore),
}

impl Look {
    /// What becomes of the records; nothing where the core set is not known.
    #[must_use]
    pub fn changes(&self) -> Vec<CoreChange<'_>> {
        match &self.state {
            State::Found(ClusterCore { set: Ok(set), .. }) => {
                changes(set, &self.records.iter().collect::<Vec<_>>())
            }
            _ => Vec::new(),
        }
    }

    /// Whether something is to be released that no person has released.
    #[must_use]
    pub fn releases(&self) -> bool {
        let is_new = |change: &CoreChange<'_>| match change {
            CoreChange::Release { record } => !is_released(record),
            _ => false,
        };
        self.changes().iter().any(is_new)
    }
}

/// A context for each cluster that may have a core set: that of the namespace of the command, else this one and those that labelled
/// namespaces stand for.
///
/// # Errors
/// The namespaces cannot be read.
pub async fn contexts(ctx: &Context) -> Result<Vec<Context>, OperationError> {
    let mut contexts = vec![ctx.fresh()];
    if ctx.settings().namespace.is_none() {
        let others = local::of_other_clusters(ctx.home().await?).await?;
        contexts.extend(others.iter().map(|namespace| ctx.of_namespace(namespace)));
    }
    Ok(contexts)
}

/// Looks at the cluster of a context. `deleted`: the namespaces whose cluster is being deleted; `account`: the ServiceAccount of the
/// system namespace that reads the facts of this cluster.
///
/// # Errors
/// The records or a fact cannot be read.
pub async fn look(
    ctx: &Context,
    texts: &Texts,
    deleted: &BTreeSet<String>,
    account: Option<&str>,
) -> Result<Look, OperationError> {
    let home = ctx.home().await?;
    let namespace = ctx.settings().records_namespace();
    let is_system = *namespace == ctx.settings().system_namespace;
    let records = record::list(home, Some(namespace)).await?;
    let found = core_set::home(home, namespace).await?.unwrap_or_default();
    let is_deleted = deleted.contains(namespace);
    let state = if found.is_marked || (found.is_going || is_deleted) && !is_system {
        State::Deleting {
            is_marked: found.is_marked || found.is_going,
        }
    } else if texts.is_missing() && !records.iter().any(is_guarded) {
        State::Unused
    } else {
        let facts = match account.filter(|_| is_system) {
            Some(account) => ctx.acting_as(namespace, account).await?,
            None => ctx.fresh(),
        };
        State::Found(ClusterCore::read(&facts, texts.clone()).await?)
    };
    Ok(Look { records, state })
}
