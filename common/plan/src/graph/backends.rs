//! Edges from backends to the objects that call them: Services and workloads come before webhook configurations, APIServices, and the
//! objects that a conversion webhook converts. The sources of their certificates come first.

use std::collections::BTreeMap;

use super::draft::DraftObject;
use super::references::secret_names;
use super::template::{read_text, workloads};
use super::weak::SoftEdges;
use super::{EdgeReason, NodeId, Until};
use crate::references::called_services;
use common::manifest::kinds::traits::defined_kind;

/// Namespace and name.
type Name<'a> = (&'a str, &'a str);

const CERT_MANAGER: &str = "cert-manager.io";

/// Adds all edges of backends and their certificates.
pub(super) fn add_backend_edges(weak: &mut SoftEdges<'_, '_>) {
    let called = find_called_objects(weak);
    if called.is_empty() {
        return;
    }
    add_certificate_edges(weak);
    let pods = workloads_by_service(weak);
    for (item, callers, services) in called {
        for service in services {
            let Some(id) = weak
                .draft
                .find_named("", "Service", Some(service.0), service.1)
            else {
                continue;
            };
            let behind = pods.get(&service).map_or(&[][..], Vec::as_slice);
            for caller in &callers {
                weak.add_into([id], *caller, Until::Applied, EdgeReason::Backend);
                let behind = behind.iter().copied();
                weak.add_into(behind, *caller, Until::Ready, EdgeReason::Backend);
            }
        }
        for (kind, annotation, until) in [
            (
                (CERT_MANAGER, "Certificate"),
                "/metadata/annotations/cert-manager.io~1inject-ca-from",
                Until::Ready,
            ),
            (
                ("", "Secret"),
                "/metadata/annotations/cert-manager.io~1inject-ca-from-secret",
                Until::Applied,
            ),
        ] {
            let name = read_text(item.object, annotation).and_then(|name| name.split_once('/'));
            let source = name.and_then(|(namespace, name)| {
                weak.draft.find_named(kind.0, kind.1, Some(namespace), name)
            });
            for caller in &callers {
                weak.add_into(source, *caller, until, EdgeReason::Backend);
            }
        }
    }
}

/// Returns the objects with a backend, the nodes that need it, and its Services.
///
/// A CRD does not wait for its conversion webhook: the backend starts when the CRDs exist, and nothing is converted before an object of the
/// kind is written. So only the objects wait.
fn find_called_objects<'a>(
    weak: &SoftEdges<'_, 'a>,
) -> Vec<(DraftObject<'a>, Vec<NodeId>, Vec<Name<'a>>)> {
    let draft = &weak.draft;
    let mut called = Vec::new();
    for (id, item) in draft.objects() {
        let services = called_services(item.key, item.object).into_iter();
        let services = services.filter_map(|service| Some((service.namespace?, service.name)));
        let services: Vec<Name<'a>> = services.collect();
        if services.is_empty() {
            continue;
        }
        let callers = match defined_kind(item.object) {
            Some((group, kind)) => draft
                .objects_of_kind(&group, &kind)
                .map(|(id, _)| id)
                .collect(),
            None => vec![id],
        };
        called.push((item, callers, services));
    }
    called
}

/// Maps each Service to the workloads whose pods it selects.
fn workloads_by_service<'a>(weak: &SoftEdges<'_, 'a>) -> BTreeMap<Name<'a>, Vec<NodeId>> {
    let mut by_namespace: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for (id, template) in workloads(weak.draft) {
        let workloads = by_namespace.entry(template.namespace).or_default();
        workloads.push((id, template));
    }
    let services = weak
        .draft
        .objects_of_kind("", "Service")
        .filter_map(|(_, item)| {
            let namespace = item.key.namespace.as_deref()?;
            let selector = item.object.pointer("/spec/selector")?.as_object()?;
            if selector.is_empty() {
                return None;
            }
            let workloads = by_namespace.get(namespace)?.iter();
            let selected = workloads.filter(|(_, template)| {
                let mut labels = selector.iter();
                labels
                    .all(|(key, value)| template.label(key) == value.as_str() && value.is_string())
            });
            let name = item.key.name.as_str();
            Some(((namespace, name), selected.map(|(id, _)| *id).collect()))
        });
    services.collect()
}

/// Adds edges for certificates of cert-manager: issuer → Certificate → the issuer or workload that uses its Secret. Without these edges, a
/// webhook configuration that matches everything would come before its own certificate.
fn add_certificate_edges(weak: &mut SoftEdges<'_, '_>) {
    let certificates: Vec<_> = weak
        .draft
        .objects_of_kind(CERT_MANAGER, "Certificate")
        .collect();
    let mut made: BTreeMap<Name<'_>, NodeId> = BTreeMap::new();
    for (id, item) in &certificates {
        let namespace = item.key.namespace.as_deref().unwrap_or_default();
        if let Some(secret) = read_text(item.object, "/spec/secretName") {
            made.entry((namespace, secret)).or_insert(*id);
        }
        let issuer = read_text(item.object, "/spec/issuerRef/name").and_then(|name| {
            let kind = read_text(item.object, "/spec/issuerRef/kind").unwrap_or("Issuer");
            let namespace = Some(namespace).filter(|_| kind == "Issuer");
            weak.draft.find_named(CERT_MANAGER, kind, namespace, name)
        });
        weak.add_into(issuer, *id, Until::Applied, EdgeReason::Backend);
    }
    if made.is_empty() {
        return;
    }
    let issuers: Vec<_> = weak.draft.objects_of_kind(CERT_MANAGER, "Issuer").collect();
    for (id, item) in issuers {
        let namespace = item.key.namespace.as_deref().unwrap_or_default();
        let secret = read_text(item.object, "/spec/ca/secretName");
        let certificate = secret.and_then(|secret| made.get(&(namespace, secret)));
        weak.add_into(
            certificate.copied(),
            id,
            Until::Applied,
            EdgeReason::Backend,
        );
    }
    for (id, template) in workloads(weak.draft) {
        let named = secret_names(&template).map(|secret| (template.namespace, secret));
        let feeding: Vec<_> = named.filter_map(|name| made.get(&name).copied()).collect();
        weak.add_into(feeding, id, Until::Applied, EdgeReason::Reference);
    }
}
