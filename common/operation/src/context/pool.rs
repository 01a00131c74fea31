//! Connections to the other clusters that a loop works on. Each is kept until its kubeconfig may have changed, or its namespace maps to
//! another cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use common::target::{NamespaceCluster, cluster_from_labels};
use tokio::sync::OnceCell;

use super::target::{ClusterTarget, ClusterUid};
use super::{Context, ContextSettings};

/// The clusters that namespaces map to, as far as they were looked up.
#[derive(Default)]
pub(super) struct Pool(Mutex<BTreeMap<String, Connection>>);

/// The cluster that one namespace maps to.
#[derive(Clone, Default)]
struct Connection {
    target: Arc<OnceCell<ClusterTarget>>,
    uid: Arc<OnceCell<ClusterUid>>,
}

impl Pool {
    fn connections(&self) -> MutexGuard<'_, BTreeMap<String, Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    /// Returns a context for the cluster of this namespace, with the same catalogues and policies, which are read once for all clusters.
    #[must_use]
    pub fn for_namespace(&self, namespace: &str) -> Self {
        let connection = self
            .pool
            .connections()
            .entry(namespace.to_owned())
            .or_default()
            .clone();
        let settings = ContextSettings {
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

    /// As [`Context::for_namespace`], for the beginning of a pass: forgets the cluster that the namespace mapped to, unless it still does
    /// (semantics 6.1). If none was looked up yet, it sends no request.
    pub async fn for_namespace_now(&self, namespace: &str) -> Self {
        let known = self.for_namespace(namespace);
        let is_same = match known.target.get() {
            None => true,
            // If it cannot be read now, the next caller gets the error.
            Some(found) => matches!(known.standing().await, Ok(now) if is_same_target(found, &now)),
        };
        self.or_fresh(known, is_same)
    }

    /// As [`Context::for_namespace_now`], for a namespace whose labels were just read.
    #[must_use]
    pub fn for_labelled_namespace(
        &self,
        namespace: &str,
        labels: &BTreeMap<String, String>,
    ) -> Self {
        let known = self.for_namespace(namespace);
        let is_same = match (known.target.get(), cluster_from_labels(namespace, labels)) {
            (None, _) => true,
            (Some(found), Ok(now)) => is_same_target(found, &now),
            (Some(_), Err(_)) => false,
        };
        self.or_fresh(known, is_same)
    }

    /// Returns `known`, or a fresh context if the namespace now maps to another cluster. In both cases the uid of a remote cluster is read
    /// again: the same address may lead to a cluster that was recreated.
    fn or_fresh(&self, known: Self, is_same: bool) -> Self {
        let namespace = known.settings.records_namespace();
        if !is_same {
            self.forget_cluster(namespace, None);
        } else if matches!(known.target.get(), Some(ClusterTarget::Remote { .. })) {
            let mut connections = self.pool.connections();
            connections.entry(namespace.to_owned()).or_default().uid = Arc::default();
        } else {
            return known;
        }
        self.for_namespace(namespace)
    }

    /// Forgets the cluster of a namespace, so that the next caller looks it up again; with `secret`, only if the namespace uses this Secret
    /// or no cluster is known. Returns whether it was forgotten.
    pub fn forget_cluster(&self, namespace: &str, secret: Option<&str>) -> bool {
        let mut connections = self.pool.connections();
        let connection = connections.get(namespace);
        let target = connection.and_then(|connection| connection.target.get());
        let leads_by_another = match (target, secret) {
            (Some(ClusterTarget::Remote { location, .. }), Some(changed)) => {
                location.secret != changed
            }
            _ => false,
        };
        if !leads_by_another {
            connections.remove(namespace);
        }
        !leads_by_another
    }

    /// Forgets the clusters of all other namespaces.
    pub fn retain_clusters(&self, is_kept: impl Fn(&str) -> bool) {
        let mut connections = self.pool.connections();
        connections.retain(|namespace, _| is_kept(namespace));
    }

    /// Forgets the clusters of all namespaces.
    pub fn forget_clusters(&self) {
        self.pool.connections().clear();
    }
}

/// Whether a namespace still maps to the cluster that was found.
fn is_same_target(found: &ClusterTarget, now: &NamespaceCluster) -> bool {
    match (found, now) {
        (ClusterTarget::Remote { location, .. }, NamespaceCluster::OtherCluster(now)) => {
            location == now
        }
        (ClusterTarget::Home, NamespaceCluster::ThisCluster)
        | (ClusterTarget::None { exists: true }, NamespaceCluster::NoCluster)
        | (ClusterTarget::None { exists: false }, NamespaceCluster::NoNamespace) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use addons_engine::Cluster;
    use common::api::names::{CLUSTER_LOCAL, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET};
    use futures::FutureExt as _;

    use super::*;
    use crate::error::BoxError;

    fn context() -> Context {
        let connect = || async { Err::<Cluster, _>(BoxError::from("no cluster")) }.boxed();
        Context::connecting(Box::new(connect), ContextSettings::default())
    }

    #[test]
    fn clusters_of_namespaces_that_are_gone_are_forgotten() {
        let ctx = context();
        let [shop, gone] = ["shop", "gone"].map(|namespace| ctx.for_namespace(namespace).target);
        ctx.retain_clusters(|namespace| namespace == "shop");
        assert!(Arc::ptr_eq(&shop, &ctx.for_namespace("shop").target));
        assert!(!Arc::ptr_eq(&gone, &ctx.for_namespace("gone").target));
    }

    /// Whether what `shop` was found to stand for is still known, once its labels were read.
    fn is_known(found: ClusterTarget, labels: &[(&str, &str)]) -> bool {
        let ctx = context();
        let before = ctx.for_namespace("shop");
        assert!(before.target.set(found).is_ok());
        let labels = labels.iter();
        let labels = labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let now = ctx.for_labelled_namespace("shop", &labels.collect());
        Arc::ptr_eq(&before.target, &now.target)
    }

    #[test]
    fn a_relabelled_namespace_is_looked_up_again() {
        let local = (LABEL_CLUSTER, CLUSTER_LOCAL);
        let remote = (LABEL_KUBECONFIG_SECRET, "green");
        assert!(is_known(ClusterTarget::Home, &[local]));
        assert!(!is_known(ClusterTarget::Home, &[remote]));
        assert!(!is_known(ClusterTarget::Home, &[local, remote]));
        assert!(!is_known(ClusterTarget::None { exists: true }, &[remote]));
        let none = ClusterTarget::None { exists: true };
        assert!(is_known(none, &[]));
        assert!(!is_known(ClusterTarget::Home, &[]));
    }

    #[test]
    fn what_was_found_is_compared_with_what_is_asked() {
        let none = |exists| ClusterTarget::None { exists };
        assert!(is_same_target(
            &ClusterTarget::Home,
            &NamespaceCluster::ThisCluster
        ));
        assert!(is_same_target(&none(true), &NamespaceCluster::NoCluster));
        assert!(is_same_target(&none(false), &NamespaceCluster::NoNamespace));
        for other in [NamespaceCluster::NoCluster, NamespaceCluster::NoNamespace] {
            assert!(!is_same_target(&ClusterTarget::Home, &other));
        }
        assert!(!is_same_target(&none(true), &NamespaceCluster::ThisCluster));
    }
}
