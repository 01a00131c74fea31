//! The objects that an object names in its fields, and what follows if one of them does not exist.

use serde_json::Value;

use crate::graph::template::{WorkloadTemplate, list_items, read_text};
use common::manifest::key::ObjectKey;

/// Group of roles and bindings.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// An object that another one names.
#[derive(Clone, Debug)]
pub(crate) struct ReferencedObject<'a> {
    /// Its group.
    pub group: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace; `None` for a cluster-scoped object.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
    /// The path of the field that names it.
    pub field: String,
    /// What follows if it does not exist.
    pub absence: Absence,
}

/// What follows if a named object does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Absence {
    /// Nothing is wrong: the field allows it, or another object may take its place.
    Allowed,
    /// Pods do not start.
    HoldsPods,
    /// Images are pulled without credentials.
    PullsWithout,
    /// A binding gives no rights.
    GivesNoRights,
    /// A binding has no effect.
    BindsNothing,
    /// The API server cannot call a Service.
    CannotCall,
    /// A token Secret is deleted.
    DeletesToken,
}

impl Absence {
    /// Describes what follows.
    pub(crate) fn words(self) -> Option<&'static str> {
        match self {
            Self::Allowed => None,
            Self::HoldsPods => Some("pods do not start without it"),
            Self::PullsWithout => Some("images are pulled without it"),
            Self::GivesNoRights => Some("the binding gives no rights without it"),
            Self::BindsNothing => Some("the binding has no effect without it"),
            Self::CannotCall => Some("the API server has nothing to call"),
            Self::DeletesToken => Some("the cluster deletes the token without it"),
        }
    }

    /// Returns the absence, or [`Absence::Allowed`] if the reference is optional.
    fn unless_optional(self, reference: &Value) -> Self {
        match reference.get("optional").and_then(Value::as_bool) {
            Some(true) => Self::Allowed,
            _ => self,
        }
    }
}

impl ReferencedObject<'_> {
    /// Returns the key of the object.
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey {
            group: self.group.to_owned(),
            kind: self.kind.to_owned(),
            namespace: self.namespace.map(str::to_owned),
            name: self.name.to_owned(),
        }
    }
}

/// Collects the objects that must be applied before `object`, because it names them.
pub(crate) fn collect_references<'a>(
    key: &'a ObjectKey,
    object: &'a Value,
    named: &mut Vec<ReferencedObject<'a>>,
) {
    if let Some(template) = WorkloadTemplate::from_object(key, object) {
        collect_template_references(&template, named);
    }
    let namespace = key.namespace.as_deref();
    let mut name = |group, kind, namespace, pointer: &str, absence| {
        named.extend(named_at(object, group, kind, namespace, pointer, absence));
    };
    let allowed = Absence::Allowed;
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "PersistentVolumeClaim") => {
            // A claim may be bound to a volume of a class that does not exist.
            let pointer = "/spec/storageClassName";
            name("storage.k8s.io", "StorageClass", None, pointer, allowed);
            name("", "PersistentVolume", None, "/spec/volumeName", allowed);
        }
        ("", "PersistentVolume") => {
            let pointer = "/spec/storageClassName";
            name("storage.k8s.io", "StorageClass", None, pointer, allowed);
        }
        ("", "Secret") => {
            let pointer = "/metadata/annotations/kubernetes.io~1service-account.name";
            let is_token = object["type"] == "kubernetes.io/service-account-token";
            let absence = if is_token {
                Absence::DeletesToken
            } else {
                allowed
            };
            name("", "ServiceAccount", namespace, pointer, absence);
        }
        ("apps", "StatefulSet") => {
            name("", "Service", namespace, "/spec/serviceName", allowed);
            for claim in list_items(object, "/spec/volumeClaimTemplates") {
                let (group, kind) = ("storage.k8s.io", "StorageClass");
                let pointer = "/spec/storageClassName";
                named.extend(named_at(claim, group, kind, None, pointer, allowed));
            }
        }
        ("networking.k8s.io" | "extensions", "Ingress") => {
            // Controllers also serve classes without an object.
            let pointer = "/spec/ingressClassName";
            name("networking.k8s.io", "IngressClass", None, pointer, allowed);
        }
        (ADMISSION, "ValidatingAdmissionPolicyBinding") => {
            let (kind, absence) = ("ValidatingAdmissionPolicy", Absence::BindsNothing);
            name(ADMISSION, kind, None, "/spec/policyName", absence);
        }
        (ADMISSION, "MutatingAdmissionPolicyBinding") => {
            let (kind, absence) = ("MutatingAdmissionPolicy", Absence::BindsNothing);
            name(ADMISSION, kind, None, "/spec/policyName", absence);
        }
        _ => {}
    }
}

/// Collects the objects that pods name.
pub(crate) fn collect_template_references<'a>(
    template: &WorkloadTemplate<'a>,
    named: &mut Vec<ReferencedObject<'a>>,
) {
    let (spec, path) = (template.spec, template.path);
    let pods = Absence::HoldsPods;
    let mut local = |kind, name: Option<&'a str>, absence, field: String| {
        named.extend(name.map(|name| ReferencedObject {
            group: "",
            kind,
            namespace: Some(template.namespace),
            name,
            field: format!("{path}.{field}"),
            absence,
        }));
    };
    let account = Some(template.service_account());
    local("ServiceAccount", account, pods, "serviceAccountName".into());
    for secret in list_items(spec, "/imagePullSecrets") {
        let absence = Absence::PullsWithout;
        let name = read_text(secret, "/name");
        local("Secret", name, absence, "imagePullSecrets".into());
    }
    for volume in list_items(spec, "/volumes") {
        let at = item_path("volumes", volume);
        for (kind, source, name) in [
            ("ConfigMap", "configMap", "name"),
            ("Secret", "secret", "secretName"),
            (
                "PersistentVolumeClaim",
                "persistentVolumeClaim",
                "claimName",
            ),
        ] {
            if let Some(found) = volume.get(source) {
                let absence = pods.unless_optional(found);
                let field = format!("{at}.{source}.{name}");
                let name = found.get(name).and_then(Value::as_str);
                local(kind, name.filter(|name| !name.is_empty()), absence, field);
            }
        }
        let pointer = "/csi/nodePublishSecretRef/name";
        let field = format!("{at}.csi.nodePublishSecretRef.name");
        local("Secret", read_text(volume, pointer), pods, field);
        for source in list_items(volume, "/projected/sources") {
            for (kind, field) in [("ConfigMap", "configMap"), ("Secret", "secret")] {
                if let Some(found) = source.get(field) {
                    let absence = pods.unless_optional(found);
                    let field = format!("{at}.projected.sources.{field}.name");
                    local(kind, read_text(found, "/name"), absence, field);
                }
            }
        }
    }
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec
            .get(containers)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let at = item_path(containers, container);
            for variable in list_items(container, "/env") {
                let at = format!("{at}.{}.valueFrom", item_path("env", variable));
                for (kind, source) in [("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")]
                {
                    if let Some(found) = variable.get("valueFrom").and_then(|it| it.get(source)) {
                        let absence = pods.unless_optional(found);
                        let field = format!("{at}.{source}.name");
                        local(kind, read_text(found, "/name"), absence, field);
                    }
                }
            }
            for variables in list_items(container, "/envFrom") {
                for (kind, source) in [("ConfigMap", "configMapRef"), ("Secret", "secretRef")] {
                    if let Some(found) = variables.get(source) {
                        let absence = pods.unless_optional(found);
                        let field = format!("{at}.envFrom.{source}.name");
                        local(kind, read_text(found, "/name"), absence, field);
                    }
                }
            }
        }
    }
    for (group, kind, field) in [
        ("scheduling.k8s.io", "PriorityClass", "priorityClassName"),
        ("node.k8s.io", "RuntimeClass", "runtimeClassName"),
    ] {
        let name = spec.get(field).and_then(Value::as_str);
        let name = name.filter(|name| !name.is_empty());
        named.extend(name.map(|name| ReferencedObject {
            group,
            kind,
            namespace: None,
            name,
            field: format!("{path}.{field}"),
            absence: pods,
        }));
    }
}

/// Returns the role of a RoleBinding or ClusterRoleBinding.
pub(crate) fn role_of_binding<'a>(
    key: &'a ObjectKey,
    object: &'a Value,
) -> Option<ReferencedObject<'a>> {
    if !is_binding(key) {
        return None;
    }
    let (kind, namespace) = match read_text(object, "/roleRef/kind")? {
        "ClusterRole" => ("ClusterRole", None),
        "Role" => ("Role", key.namespace.as_deref()),
        _ => return None,
    };
    let absence = Absence::GivesNoRights;
    named_at(object, RBAC, kind, namespace, "/roleRef/name", absence)
}

/// Returns the ServiceAccounts that a RoleBinding or ClusterRoleBinding gives rights.
pub(crate) fn accounts_of_binding<'a>(
    key: &'a ObjectKey,
    object: &'a Value,
) -> impl Iterator<Item = ReferencedObject<'a>> {
    let subjects = is_binding(key).then(|| list_items(object, "/subjects"));
    let subjects = subjects.into_iter().flatten();
    let accounts = subjects.filter(|it| read_text(it, "/kind") == Some("ServiceAccount"));
    accounts.filter_map(|subject| {
        Some(ReferencedObject {
            group: "",
            kind: "ServiceAccount",
            namespace: Some(read_text(subject, "/namespace").or(key.namespace.as_deref())?),
            name: read_text(subject, "/name")?,
            field: "subjects".to_owned(),
            absence: Absence::GivesNoRights,
        })
    })
}

/// Returns the Services that the API server calls for a webhook configuration, an APIService, or the conversion of a CRD.
pub(crate) fn called_services<'a>(
    key: &'a ObjectKey,
    object: &'a Value,
) -> Vec<ReferencedObject<'a>> {
    let service = |holder: &'a Value, pointer: &str, field: String| {
        let service = holder.pointer(pointer)?;
        Some(ReferencedObject {
            group: "",
            kind: "Service",
            namespace: Some(read_text(service, "/namespace")?),
            name: read_text(service, "/name")?,
            field,
            absence: Absence::CannotCall,
        })
    };
    match (key.group.as_str(), key.kind.as_str()) {
        (ADMISSION, "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            let webhooks = list_items(object, "/webhooks");
            let called = webhooks.filter_map(|webhook| {
                let field = format!("{}.clientConfig.service", item_path("webhooks", webhook));
                service(webhook, "/clientConfig/service", field)
            });
            called.collect()
        }
        ("apiregistration.k8s.io", "APIService") => {
            let called = service(object, "/spec/service", "spec.service".to_owned());
            called.into_iter().collect()
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let pointer = "/spec/conversion/webhook/clientConfig/service";
            let field = "spec.conversion.webhook.clientConfig.service".to_owned();
            service(object, pointer, field).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the Secrets with which the pods of a ServiceAccount pull images.
pub(crate) fn pull_secrets_of_account<'a>(
    key: &'a ObjectKey,
    object: &'a Value,
) -> impl Iterator<Item = ReferencedObject<'a>> {
    let is_account = (key.group.as_str(), key.kind.as_str()) == ("", "ServiceAccount");
    let secrets = is_account.then(|| list_items(object, "/imagePullSecrets"));
    secrets.into_iter().flatten().filter_map(|secret| {
        Some(ReferencedObject {
            group: "",
            kind: "Secret",
            namespace: Some(key.namespace.as_deref()?),
            name: read_text(secret, "/name")?,
            field: "imagePullSecrets".to_owned(),
            absence: Absence::PullsWithout,
        })
    })
}

fn is_binding(key: &ObjectKey) -> bool {
    key.group == RBAC && matches!(&*key.kind, "RoleBinding" | "ClusterRoleBinding")
}

/// Returns the object that the field at a JSON pointer names.
fn named_at<'a>(
    object: &'a Value,
    group: &'static str,
    kind: &'static str,
    namespace: Option<&'a str>,
    pointer: &str,
    absence: Absence,
) -> Option<ReferencedObject<'a>> {
    Some(ReferencedObject {
        group,
        kind,
        namespace,
        name: read_text(object, pointer)?,
        field: pointer
            .trim_start_matches('/')
            .replace('/', ".")
            .replace("~1", "/"),
        absence,
    })
}

/// Returns the path of a named item of a list: `volumes[data]`.
fn item_path(list: &str, item: &Value) -> String {
    match read_text(item, "/name") {
        Some(name) => format!("{list}[{name}]"),
        None => list.to_owned(),
    }
}
