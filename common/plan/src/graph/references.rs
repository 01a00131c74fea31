//! Edges from named objects to the objects that name them. Otherwise pods wait for a mount, and objects of an unknown class are ignored.

use serde_json::Value;

use super::draft::{DraftObject, GraphDraft};
use super::template::{WorkloadTemplate, list_items, read_text};
use super::{EdgeReason, NodeId, Until};
use common::manifest::key::Gvk;

/// An object that another one names.
struct ReferencedObject<'a> {
    group: &'static str,
    kind: &'static str,
    namespace: Option<&'a str>,
    name: &'a str,
}

/// Adds edges from each named object to the one that names it. Applied is enough.
pub(super) fn add_reference_edges(draft: &mut GraphDraft<'_>) {
    let mut edges: Vec<(NodeId, NodeId)> = Vec::new();
    let mut named = Vec::new();
    for (id, item) in draft.objects() {
        collect_references(&item, &mut named);
        for named in named.drain(..) {
            if let Some(from) =
                draft.find_named(named.group, named.kind, named.namespace, named.name)
            {
                edges.push((from, id));
            }
        }
        edges.extend(find_scale_target(draft, &item).map(|from| (from, id)));
    }
    for (from, to) in edges {
        draft.add_edge(from, to, Until::Applied, EdgeReason::Reference);
    }
}

/// Returns the names of the Secrets that pods read.
pub(super) fn secret_names<'a>(template: &WorkloadTemplate<'a>) -> impl Iterator<Item = &'a str> {
    let mut named = Vec::new();
    collect_template_references(template, &mut named);
    let secrets = named.into_iter().filter(|named| named.kind == "Secret");
    secrets.map(|named| named.name)
}

fn collect_references<'a>(item: &DraftObject<'a>, named: &mut Vec<ReferencedObject<'a>>) {
    if let Some(template) = WorkloadTemplate::from_item(item) {
        collect_template_references(&template, named);
    }
    let namespace = item.key.namespace.as_deref();
    let object = item.object;
    let mut name = |group, kind, namespace, name: Option<&'a str>| {
        named.extend(name.map(|name| ReferencedObject {
            group,
            kind,
            namespace,
            name,
        }));
    };
    let storage_class = ("storage.k8s.io", "StorageClass");
    match (item.key.group.as_str(), item.key.kind.as_str()) {
        ("", "PersistentVolumeClaim") => {
            let class = read_text(object, "/spec/storageClassName");
            name(storage_class.0, storage_class.1, None, class);
            name(
                "",
                "PersistentVolume",
                None,
                read_text(object, "/spec/volumeName"),
            );
        }
        ("", "PersistentVolume") => {
            let class = read_text(object, "/spec/storageClassName");
            name(storage_class.0, storage_class.1, None, class);
        }
        ("", "Secret") => {
            let account = read_text(
                object,
                "/metadata/annotations/kubernetes.io~1service-account.name",
            );
            name("", "ServiceAccount", namespace, account);
        }
        ("apps", "StatefulSet") => {
            name(
                "",
                "Service",
                namespace,
                read_text(object, "/spec/serviceName"),
            );
            for claim in list_items(object, "/spec/volumeClaimTemplates") {
                let class = read_text(claim, "/spec/storageClassName");
                name(storage_class.0, storage_class.1, None, class);
            }
        }
        ("networking.k8s.io" | "extensions", "Ingress") => {
            let class = read_text(object, "/spec/ingressClassName");
            name("networking.k8s.io", "IngressClass", None, class);
        }
        ("admissionregistration.k8s.io", kind) => {
            let policy = match kind {
                "ValidatingAdmissionPolicyBinding" => "ValidatingAdmissionPolicy",
                "MutatingAdmissionPolicyBinding" => "MutatingAdmissionPolicy",
                _ => return,
            };
            let group = "admissionregistration.k8s.io";
            name(group, policy, None, read_text(object, "/spec/policyName"));
        }
        _ => {}
    }
}

fn collect_template_references<'a>(
    template: &WorkloadTemplate<'a>,
    named: &mut Vec<ReferencedObject<'a>>,
) {
    let spec = template.spec;
    let mut local = |kind, name: Option<&'a str>| {
        named.extend(name.map(|name| ReferencedObject {
            group: "",
            kind,
            namespace: Some(template.namespace),
            name,
        }));
    };
    local("ServiceAccount", Some(template.service_account()));
    for secret in list_items(spec, "/imagePullSecrets") {
        local("Secret", read_text(secret, "/name"));
    }
    for volume in list_items(spec, "/volumes") {
        local("ConfigMap", read_text(volume, "/configMap/name"));
        local("Secret", read_text(volume, "/secret/secretName"));
        local(
            "Secret",
            read_text(volume, "/csi/nodePublishSecretRef/name"),
        );
        let claim = read_text(volume, "/persistentVolumeClaim/claimName");
        local("PersistentVolumeClaim", claim);
        for source in list_items(volume, "/projected/sources") {
            local("ConfigMap", read_text(source, "/configMap/name"));
            local("Secret", read_text(source, "/secret/name"));
        }
    }
    let containers = ["/initContainers", "/containers", "/ephemeralContainers"];
    for container in containers.iter().flat_map(|field| list_items(spec, field)) {
        for variable in list_items(container, "/env") {
            let config_map = read_text(variable, "/valueFrom/configMapKeyRef/name");
            local("ConfigMap", config_map);
            local(
                "Secret",
                read_text(variable, "/valueFrom/secretKeyRef/name"),
            );
        }
        for variables in list_items(container, "/envFrom") {
            local("ConfigMap", read_text(variables, "/configMapRef/name"));
            local("Secret", read_text(variables, "/secretRef/name"));
        }
    }
    let classes = [
        ("scheduling.k8s.io", "PriorityClass", "/priorityClassName"),
        ("node.k8s.io", "RuntimeClass", "/runtimeClassName"),
    ];
    for (group, kind, field) in classes {
        named.extend(read_text(spec, field).map(|name| ReferencedObject {
            group,
            kind,
            namespace: None,
            name,
        }));
    }
}

/// Finds the scale target of a HorizontalPodAutoscaler. Another autoscaler does not count, because two of them could scale each other.
fn find_scale_target(draft: &GraphDraft<'_>, item: &DraftObject<'_>) -> Option<NodeId> {
    let autoscaler = ("autoscaling", "HorizontalPodAutoscaler");
    if (item.key.group.as_str(), item.key.kind.as_str()) != autoscaler {
        return None;
    }
    let target = item.object.pointer("/spec/scaleTargetRef")?;
    let version = target.get("apiVersion").and_then(Value::as_str);
    let gvk = Gvk::new(version.unwrap_or_default(), read_text(target, "/kind")?);
    if gvk.group == item.key.group {
        return None;
    }
    let namespace = item.key.namespace.as_deref();
    draft.find_named(
        &gvk.group,
        &gvk.kind,
        namespace,
        read_text(target, "/name")?,
    )
}
