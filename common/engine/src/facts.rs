//! Facts that the readiness of some objects depends on; read only for the objects that need them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use addons_plan::readiness::health_check::HealthCheck;
use addons_plan::readiness::{
    ContextNeed, Readiness, ReadinessContext, ReadyEndpoints, StorageClasses, assess_in,
    called_namespaces, find_context_need,
};
use common::manifest::key::{Gvk, ObjectKey};

use super::address::Collection;
use super::cluster::Cluster;
use super::listing;
use super::snapshot::read_all;

/// The facts that were read from a cluster.
#[derive(Debug, Default)]
pub struct ReadinessFacts {
    /// When waiting for the objects began.
    pub(super) begun: Option<Timestamp>,
    /// Group and kind → whether it has a subresource `status`.
    has_status: BTreeMap<(String, String), bool>,
    asked_classes: bool,
    classes: Option<StorageClasses>,
    endpoints: ReadyEndpoints,
    /// The namespaces whose endpoints are known, and those whose endpoints may not be read.
    listed: BTreeSet<String>,
    closed: BTreeSet<String>,
}

impl ReadinessFacts {
    /// Reads everything that the readiness of these objects, which have no health check, depends on: discovery, one LIST of the StorageClasses, and one each of Services
    /// and EndpointSlices for each namespace that a webhook configuration calls. Nothing is read that no object needs. Facts that cannot be
    /// read are left out of the assessment.
    pub async fn read(cluster: &Cluster, objects: impl Iterator<Item = &Value>) -> Self {
        let mut facts = Self::default();
        for object in objects {
            while let Some(need) = facts.missing_need(object, None) {
                match need {
                    ContextNeed::HasStatus => facts.read_has_status(cluster, object).await,
                    ContextNeed::Classes => facts.read_classes(cluster).await,
                    ContextNeed::Endpoints => {
                        for namespace in facts.unlisted_namespaces(object) {
                            facts
                                .set_services(&namespace, list_services(cluster, &namespace).await);
                            let slices = slices_collection(&namespace);
                            match listing::list_all::<Value>(cluster, &slices, None).await {
                                Ok(found) => facts.set_endpoints(&namespace, &found),
                                Err(_) => facts.mark_endpoints_unreadable(&namespace),
                            }
                        }
                    }
                }
            }
        }
        facts
    }

    /// Returns the readiness of an object by the health check for its kind, if there is one; `None` while a fact that it depends on is not
    /// known.
    #[must_use]
    pub fn assess(
        &self,
        object: &Value,
        check: Option<&HealthCheck>,
        now: Timestamp,
    ) -> Option<Readiness> {
        if self.missing_need(object, check).is_some() {
            return None;
        }
        let gvk = Gvk::of(object).unwrap_or_default();
        let has_status = self.has_status.get(&(gvk.group, gvk.kind));
        let readable = self.closed.is_disjoint(&called_namespaces(object));
        let ctx = ReadinessContext {
            now: Some(now),
            begun: self.begun,
            check,
            has_status: has_status.copied().unwrap_or(false),
            classes: self.classes.as_ref(),
            endpoints: readable.then_some(&self.endpoints),
        };
        Some(assess_in(object, &ctx))
    }

    /// Returns a fact that the readiness of an object depends on and that is not known.
    pub(super) fn missing_need(
        &self,
        object: &Value,
        check: Option<&HealthCheck>,
    ) -> Option<ContextNeed> {
        if check.is_some() {
            return None;
        }
        find_context_need(object).filter(|need| match need {
            ContextNeed::HasStatus => ObjectKey::from_object(object)
                .is_some_and(|key| !self.has_status.contains_key(&(key.group, key.kind))),
            ContextNeed::Classes => !self.asked_classes,
            ContextNeed::Endpoints => !self.unlisted_namespaces(object).is_empty(),
        })
    }

    pub(super) fn learn_has_status(&mut self, group: &str, kind: &str, has_status: bool) {
        let kind = (group.to_owned(), kind.to_owned());
        self.has_status.insert(kind, has_status);
    }

    pub(super) fn learn_classes(&mut self, classes: Option<StorageClasses>) {
        self.asked_classes = true;
        self.classes = classes;
    }

    pub(super) fn set_endpoints(&mut self, namespace: &str, slices: &[Value]) {
        self.listed.insert(namespace.to_owned());
        self.closed.remove(namespace);
        self.endpoints.replace_slices(namespace, slices);
    }

    /// Records the Services of a namespace; `None` if they cannot be read.
    pub(super) fn set_services(&mut self, namespace: &str, services: Option<BTreeSet<String>>) {
        if let Some(services) = services {
            self.endpoints.replace_services(namespace, services);
        }
    }

    pub(super) fn mark_endpoints_unreadable(&mut self, namespace: &str) {
        self.listed.insert(namespace.to_owned());
        self.closed.insert(namespace.to_owned());
    }

    pub(super) fn change_endpoints(&mut self, slice: &Value) {
        self.endpoints.update_slice(slice);
    }

    pub(super) fn remove_endpoints(&mut self, slice: &Value) {
        self.endpoints.remove_slice(slice);
    }

    fn unlisted_namespaces(&self, configuration: &Value) -> BTreeSet<String> {
        let called = called_namespaces(configuration);
        called.difference(&self.listed).cloned().collect()
    }

    async fn read_has_status(&mut self, cluster: &Cluster, object: &Value) {
        let gvk = Gvk::of(object).unwrap_or_default();
        let has_status = kind_has_status(cluster, &gvk.group, &gvk.kind).await;
        self.learn_has_status(&gvk.group, &gvk.kind, has_status);
    }

    async fn read_classes(&mut self, cluster: &Cluster) {
        self.learn_classes(list_classes(cluster).await);
    }
}

/// Returns whether a kind has a subresource `status`; `false` for an unknown kind.
pub(super) async fn kind_has_status(cluster: &Cluster, group: &str, kind: &str) -> bool {
    let needed = BTreeSet::from([(group.to_owned(), kind.to_owned())]);
    let Ok(kinds) = cluster.kinds(&needed).await else {
        return false;
    };
    kinds
        .preferred(group, kind)
        .is_some_and(|(_, info)| info.has_status)
}

/// Reads the StorageClasses; `None` if they cannot be read.
pub(super) async fn list_classes(cluster: &Cluster) -> Option<StorageClasses> {
    let classes =
        Collection::from_names("storage.k8s.io/v1", "StorageClass", "storageclasses", None);
    let found = listing::list_all::<Value>(cluster, &classes, None)
        .await
        .ok()?;
    Some(StorageClasses::from_objects(&found))
}

/// Reads the names of the Services in a namespace; `None` if they cannot be read.
pub(super) async fn list_services(cluster: &Cluster, namespace: &str) -> Option<BTreeSet<String>> {
    let services = Collection::from_names("v1", "Service", "services", Some(namespace));
    let found = read_all(cluster, &services).await.ok()??;
    Some(found.into_iter().map(|service| service.name).collect())
}

/// Returns the collection of EndpointSlices in a namespace.
pub(super) fn slices_collection(namespace: &str) -> Collection {
    Collection::from_names(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "endpointslices",
        Some(namespace),
    )
}
