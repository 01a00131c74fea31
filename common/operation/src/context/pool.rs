//! The other clusters that a loop works on: each is connected to once, until its kubeconfig may be another one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use super::target::{Target, Uid};
use super::{Context, Settings};

/// What namespaces stand for, as far as it was asked for.
#[derive(Default)]
pub(super) struct Pool(Mutex<BTreeMap<String, Connection>>);

/// What one namespace stands for.
#[derive(Clone, Default)]
struct Connection {
    target: Arc<OnceCell<Target>>,
    uid: Arc<OnceCell<Uid>>,
}

impl Pool {
    fn connections(&self) -> MutexGuard<'_, BTreeMap<String, Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    /// The same catalogues and policies, read once for all clusters, for the cluster that this namespace stands for.
    #[must_use]
    pub fn of_namespace(&self, namespace: &str) -> Self {
        let connection = self
            .pool
            .connections()
            .entry(namespace.to_owned())
            .or_default()
            .clone();
        let settings = Settings {
            namespace: Some(namespace.to_owned()),
            ..self.settings.clone()
        };
        Self {
            connect: self.connect.clone(),
            home: Arc::clone(&self.home),
            pool: Arc::clone(&self.pool),
            target: connection.target,
            cluster_uid: connection.uid,
            catalogues: Arc::clone(&self.catalogues),
            files: Arc::clone(&self.files),
            policies: Arc::clone(&self.policies),
            events: self.events(),
            ..Self::build(None, settings)
        }
    }

    /// What a namespace stands for is looked up again, by whoever asks next. `secret`: only where that one leads there, or nothing
    /// is known to. Returns whether it will be.
    pub fn forget_cluster(&self, namespace: &str, secret: Option<&str>) -> bool {
        let mut connections = self.pool.connections();
        let connection = connections.get(namespace);
        let target = connection.and_then(|connection| connection.target.get());
        let leads_by_another = match (target, secret) {
            (Some(Target::Remote { secret: leads, .. }), Some(changed)) => leads != changed,
            _ => false,
        };
        if !leads_by_another {
            connections.remove(namespace);
        }
        !leads_by_another
    }

    /// The same for all namespaces.
    pub fn forget_clusters(&self) {
        self.pool.connections().clear();
    }
}
