//! Edges from named objects to the objects that name them. Otherwise pods wait for a mount, and objects of an unknown class are ignored.

use serde_json::Value;

use super::draft::{Draft, Item};
use super::template::{Template, list, text};
use super::{NodeId, Reason, Until};
use common::manifest::key::Gvk;

/// An object that another one names.
struct Named<'a> {
    group: &'static str,
    kind: &'static str,
    namespace: Option<&'a str>,
    name: &'a str,
}

/// Adds edges from each named object to the one that names it. Applied is enough.
pub(super) fn references(draft: &mut Draft<'_>) {
    let mut edges: Vec<(NodeId, NodeId)> = Vec::new();
    let mut named = Vec::new();
    for (id, item) in draft.objects() {
        of(&item, &mut named);
        for named in named.drain(..) {
            if let Some(from) = draft.named(named.group, named.kind, named.namespace, named.name) {
                edges.push((from, id));
            }
        }
        edges.extend(scale_target(draft, &item).map(|from| (from, id)));
    }
    for (from, to) in edges {
        draft.edge(from, to, Until::Applied, Reason::Reference);
    }
}

/// Returns the names of the Secrets that pods read.
pub(super) fn secrets<'a>(template: &Template<'a>) -> impl Iterator<Item = &'a str> {
    let mut named = Vec::new();
    of_template(template, &mut named);
    let secrets = named.into_iter().filter(|named| named.kind == "Secret");
    secrets.map(|named| named.name)
}

fn of<'a>(item: &Item<'a>, named: &mut Vec<Named<'a>>) {
    if let Some(template) = Template::of(item) {
        of_template(&template, named);
    }
    let namespace = item.key.namespace.as_deref();
    let object = item.object;
    let mut name = |group, kind, namespace, name: Option<&'a str>| {
        named.extend(name.map(|name| Named {
            group,
            kind,
            namespace,
            name,
        }));
    };
    let storage_class = ("storage.k8s.io", "StorageClass");
    match (item.key.group.as_str(), item.key.kind.as_str()) {
        ("", "PersistentVolumeClaim") => {
            let class = text(object, "/spec/storageClassName");
            name(storage_class.0, storage_class.1, None, class);
            name(
                "",
                "PersistentVolume",
                None,
                text(object, "/spec/volumeName"),
            );
        }
        ("", "PersistentVolume") => {
            let class = text(object, "/spec/storageClassName");
            name(storage_class.0, storage_class.1, None, class);
        }
        ("", "Secret") => {
            let account = text(
                object,
                "/metadata/annotations/kubernetes.io~1service-account.name",
            );
            name("", "ServiceAccount", namespace, account);
        }
        ("apps", "StatefulSet") => {
            name("", "Service", namespace, text(object, "/spec/serviceName"));
            for claim in list(object, "/spec/volumeClaimTemplates") {
                let class = text(claim, "/spec/storageClassName");
                name(storage_class.0, storage_class.1, None, class);
            }
        }
        ("networking.k8s.io" | "extensions", "Ingress") => {
            let class = text(object, "/spec/ingressClassName");
            name("networking.k8s.io", "IngressClass", None, class);
        }
        ("admissionregistration.k8s.io", kind) => {
            let policy = match kind {
                "ValidatingAdmissionPolicyBinding" => "ValidatingAdmissionPolicy",
                "MutatingAdmissionPolicyBinding" => "MutatingAdmissionPolicy",
                _ => return,
            };
            let group = "admissionregistration.k8s.io";
            name(group, policy, None, text(object, "/spec/policyName"));
        }
        _ => {}
    }
}

fn of_template<'a>(template: &Template<'a>, named: &mut Vec<Named<'a>>) {
    let spec = template.spec;
    let mut local = |kind, name: Option<&'a str>| {
        named.extend(name.map(|name| Named {
            group: "",
            kind,
            namespace: Some(template.namespace),
            name,
        }));
    };
    local("ServiceAccount", Some(template.account()));
    for secret in list(spec, "/imagePullSecrets") {
        local("Secret", text(secret, "/name"));
    }
    for volume in list(spec, "/volumes") {
        local("ConfigMap", text(volume, "/configMap/name"));
        local("Secret", text(volume, "/secret/secretName"));
        local("Secret", text(volume, "/csi/nodePublishSecretRef/name"));
        let claim = text(volume, "/persistentVolumeClaim/claimName");
        local("PersistentVolumeClaim", claim);
        for source in list(volume, "/projected/sources") {
            local("ConfigMap", text(source, "/configMap/name"));
            local("Secret", text(source, "/secret/name"));
        }
    }
    let containers = ["/initContainers", "/containers", "/ephemeralContainers"];
    for container in containers.iter().flat_map(|field| list(spec, field)) {
        for variable in list(container, "/env") {
            let config_map = text(variable, "/valueFrom/configMapKeyRef/name");
            local("ConfigMap", config_map);
            local("Secret", text(variable, "/valueFrom/secretKeyRef/name"));
        }
        for variables in list(container, "/envFrom") {
            local("ConfigMap", text(variables, "/configMapRef/name"));
            local("Secret", text(variables, "/secretRef/name"));
        }
    }
    let classes = [
        ("scheduling.k8s.io", "PriorityClass", "/priorityClassName"),
        ("node.k8s.io", "RuntimeClass", "/runtimeClassName"),
    ];
    for (group, kind, field) in classes {
        named.extend(text(spec, field).map(|name| Named {
            group,
            kind,
            namespace: None,
            name,
        }));
    }
}

/// Finds the scale target of a HorizontalPodAutoscaler. Another autoscaler does not count, because two of them could scale each other.
fn scale_target(draft: &Draft<'_>, item: &Item<'_>) -> Option<NodeId> {
    let autoscaler = ("autoscaling", "HorizontalPodAutoscaler");
    if (item.key.group.as_str(), item.key.kind.as_str()) != autoscaler {
        return None;
    }
    let target = item.object.pointer("/spec/scaleTargetRef")?;
    let version = target.get("apiVersion").and_then(Value::as_str);
    let gvk = Gvk::new(version.unwrap_or_default(), text(target, "/kind")?);
    if gvk.group == item.key.group {
        return None;
    }
    let namespace = item.key.namespace.as_deref();
    draft.named(&gvk.group, &gvk.kind, namespace, text(target, "/name")?)
}
