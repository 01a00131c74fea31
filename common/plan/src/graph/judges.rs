//! Edges from admission to the objects that it concerns: webhook configurations come before the objects that their rules match, APIServices
//! before the objects of their group.

use serde_json::Value;

use super::draft::{Draft, Item};
use super::selector::{Label, Selector, Verdict};
use super::template::{Template, list, text};
use super::weak::Weak;
use super::{NodeId, Reason, Until};
use crate::order::Rank;
use common::manifest::kinds::traits::is_built_in;

/// Adds edges from each APIService to the objects of its group and version.
pub(super) fn api_services(weak: &mut Weak<'_, '_>) {
    let services: Vec<_> = weak
        .draft
        .of_kind("apiregistration.k8s.io", "APIService")
        .filter(|(_, item)| {
            item.object
                .pointer("/spec/service")
                .is_some_and(Value::is_object)
        })
        .collect();
    for (service, item) in services {
        let group = text(item.object, "/spec/group");
        let version = text(item.object, "/spec/version");
        let (Some(group), Some(version)) = (group, version) else {
            continue;
        };
        let objects = weak.draft.of_group(group);
        let served: Vec<NodeId> = objects
            .filter(|(_, item)| item.target.version == version)
            .map(|(id, _)| id)
            .collect();
        weak.from(service, served, Until::Ready, Reason::ApiService);
    }
}

/// Adds edges from each webhook configuration to the objects that it matches. A validating webhook with failure policy Ignore adds none,
/// because the API server also accepts the object without it; a mutating one would fail to mutate the object.
pub(super) fn judges(weak: &mut Weak<'_, '_>) {
    for kind in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ] {
        let configurations: Vec<_> = weak
            .draft
            .of_kind("admissionregistration.k8s.io", kind)
            .collect();
        for (id, configuration) in configurations {
            let mutating = kind == "MutatingWebhookConfiguration";
            let webhooks = list(configuration.object, "/webhooks")
                .filter(|webhook| mutating || text(webhook, "/failurePolicy") != Some("Ignore"))
                .map(Webhook::new);
            let webhooks: Vec<Webhook<'_>> = webhooks.collect();
            if webhooks.is_empty() {
                continue;
            }
            let draft = &*weak.draft;
            let judged = draft.objects().filter(|(_, item)| {
                let mut webhooks = webhooks.iter();
                webhooks.any(|webhook| webhook.judges(item, &configuration, draft))
            });
            let judged: Vec<NodeId> = judged.map(|(id, _)| id).collect();
            weak.from(id, judged, Until::Ready, Reason::Judge);
        }
    }
}

/// One webhook of a configuration.
struct Webhook<'a> {
    rules: Vec<Rule<'a>>,
    namespaces: Selector<'a>,
    objects: Selector<'a>,
}

/// One rule of a webhook, as the API server's matcher reads it.
struct Rule<'a> {
    groups: Vec<&'a str>,
    /// Empty means any: with `matchPolicy: Equivalent`, the default, another version of a kind is converted and matches as well.
    versions: Vec<&'a str>,
    resources: Vec<&'a str>,
    scope: &'a str,
}

/// The request that a rule is compared with.
struct Request<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    namespaced: bool,
}

impl<'a> Webhook<'a> {
    fn new(webhook: &'a Value) -> Self {
        let exact = text(webhook, "/matchPolicy") == Some("Exact");
        let texts = |rule: &'a Value, field: &str| -> Vec<&'a str> {
            list(rule, field).filter_map(Value::as_str).collect()
        };
        let rules = list(webhook, "/rules")
            .filter(|rule| {
                let operations = texts(rule, "/operations");
                let writes = ["CREATE", "UPDATE", "*"];
                operations
                    .iter()
                    .any(|operation| writes.contains(operation))
            })
            .map(|rule| Rule {
                groups: texts(rule, "/apiGroups"),
                versions: if exact {
                    texts(rule, "/apiVersions")
                } else {
                    Vec::new()
                },
                resources: texts(rule, "/resources"),
                scope: text(rule, "/scope").unwrap_or("*"),
            });
        Self {
            rules: rules.collect(),
            namespaces: Selector::new(webhook.get("namespaceSelector")),
            objects: Selector::new(webhook.get("objectSelector")),
        }
    }

    /// Whether the webhook has to come before an object, because it matches the object or its pods.
    ///
    /// CRDs and namespaces never wait for a webhook, nor do the accounts, roles and settings of the configuration's own add-on: its backend
    /// may read them without naming them, and would never be ready. For the same reason, workloads of that add-on wait only if the
    /// selectors certainly match. Objects of Kubernetes itself in kube-system wait for no webhook either, because its backend needs them.
    /// (In kops' many-addons, the load balancer's webhook matches every Service: the cluster's DNS would wait for a controller that asks it
    /// for addresses.)
    fn judges(&self, item: &Item<'a>, configuration: &Item<'_>, draft: &Draft<'a>) -> bool {
        let own = item.part == configuration.part;
        let exempt = item.key.group == "admissionregistration.k8s.io";
        if exempt || item.rank <= Rank::Definitions || (own && item.rank < Rank::Workloads) {
            return false;
        }
        if is_built_in(&item.key.group) && item.key.namespace.as_deref() == Some("kube-system") {
            return false;
        }
        let doubtless = own && item.rank == Rank::Workloads;
        let namespace = item.key.namespace.as_deref();
        let object = Request {
            group: &item.key.group,
            version: &item.target.version,
            resource: &item.target.plural,
            namespaced: namespace.is_some(),
        };
        let labels = item.object.pointer("/metadata/labels");
        let pods = Template::of(item).map(|template| {
            let request = Request {
                group: "",
                version: "v1",
                resource: "pods",
                namespaced: true,
            };
            (
                request,
                template
                    .metadata
                    .and_then(|metadata| metadata.get("labels")),
            )
        });
        let mut asked = std::iter::once((object, labels)).chain(pods);
        asked.any(|(request, labels)| {
            self.rules.iter().any(|rule| rule.matches(&request))
                && self
                    .objects
                    .verdict(|key| label(labels, key, Label::Missing))
                    == Verdict::Yes
                && match self.in_namespace(namespace, draft) {
                    Verdict::Yes => true,
                    Verdict::Perhaps => !doubtless,
                    Verdict::No => false,
                }
        })
    }

    /// Whether the webhook selects the namespace of an object. Only its name and the labels that the command itself sets are known.
    fn in_namespace(&self, namespace: Option<&str>, draft: &Draft<'a>) -> Verdict {
        let Some(name) = namespace else {
            return Verdict::Yes;
        };
        let known = draft.named("", "Namespace", None, name);
        let labels = known
            .and_then(|id| draft.items.get(id))
            .and_then(|item| item.object.pointer("/metadata/labels"));
        self.namespaces.verdict(|key| match key {
            "kubernetes.io/metadata.name" => Label::Value(name),
            _ => label(labels, key, Label::Unknown),
        })
    }
}

fn label<'l>(labels: Option<&'l Value>, key: &str, otherwise: Label<'l>) -> Label<'l> {
    let value = labels.and_then(|labels| labels.get(key)?.as_str());
    value.map_or(otherwise, Label::Value)
}

impl Rule<'_> {
    fn matches(&self, request: &Request<'_>) -> bool {
        let any = |list: &[&str], value: &str| list.contains(&"*") || list.contains(&value);
        let whole = |resource: &&str| match resource.split_once('/') {
            None => *resource == "*" || *resource == request.resource,
            Some((resource, "*")) => resource == "*" || resource == request.resource,
            Some(_) => false,
        };
        let scope = match self.scope {
            "Cluster" => !request.namespaced,
            "Namespaced" => request.namespaced,
            _ => true,
        };
        scope
            && any(&self.groups, request.group)
            && (self.versions.is_empty() || any(&self.versions, request.version))
            && self.resources.iter().any(whole)
    }
}
