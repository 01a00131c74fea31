//! Edges from admission to the objects that it concerns: webhook configurations come before the objects that their rules match, APIServices
//! before the objects of their group.

use serde_json::Value;

use super::draft::{DraftObject, GraphDraft};
use super::selector::{LabelLookup, SelectorMatch, WebhookSelector};
use super::template::{WorkloadTemplate, list_items, read_text};
use super::weak::SoftEdges;
use super::{EdgeReason, NodeId, Until};
use crate::order::ObjectRank;
use common::manifest::kinds::traits::is_built_in;

/// Adds edges from each APIService to the objects of its group and version.
pub(super) fn add_api_service_edges(weak: &mut SoftEdges<'_, '_>) {
    let services: Vec<_> = weak
        .draft
        .objects_of_kind("apiregistration.k8s.io", "APIService")
        .filter(|(_, item)| {
            item.object
                .pointer("/spec/service")
                .is_some_and(Value::is_object)
        })
        .collect();
    for (service, item) in services {
        let group = read_text(item.object, "/spec/group");
        let version = read_text(item.object, "/spec/version");
        let (Some(group), Some(version)) = (group, version) else {
            continue;
        };
        let objects = weak.draft.objects_of_group(group);
        let served: Vec<NodeId> = objects
            .filter(|(_, item)| item.target.version == version)
            .map(|(id, _)| id)
            .collect();
        weak.add_from(service, served, Until::Ready, EdgeReason::ApiService);
    }
}

/// Adds edges from each webhook configuration to the objects that it matches. A validating webhook with failure policy Ignore adds none,
/// because the API server also accepts the object without it; a mutating one would fail to mutate the object.
pub(super) fn add_webhook_edges(weak: &mut SoftEdges<'_, '_>) {
    for kind in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ] {
        let configurations: Vec<_> = weak
            .draft
            .objects_of_kind("admissionregistration.k8s.io", kind)
            .collect();
        for (id, configuration) in configurations {
            let mutating = kind == "MutatingWebhookConfiguration";
            let webhooks = list_items(configuration.object, "/webhooks")
                .filter(|webhook| {
                    mutating || read_text(webhook, "/failurePolicy") != Some("Ignore")
                })
                .map(AdmissionWebhook::new);
            let webhooks: Vec<AdmissionWebhook<'_>> = webhooks.collect();
            if webhooks.is_empty() {
                continue;
            }
            let draft = &*weak.draft;
            let judged = draft.objects().filter(|(_, item)| {
                let mut webhooks = webhooks.iter();
                webhooks.any(|webhook| webhook.must_precede(item, &configuration, draft))
            });
            let judged: Vec<NodeId> = judged.map(|(id, _)| id).collect();
            weak.add_from(id, judged, Until::Ready, EdgeReason::Judge);
        }
    }
}

/// One webhook of a configuration.
struct AdmissionWebhook<'a> {
    rules: Vec<WebhookRule<'a>>,
    namespaces: WebhookSelector<'a>,
    objects: WebhookSelector<'a>,
}

/// One rule of a webhook, as the API server's matcher reads it.
struct WebhookRule<'a> {
    groups: Vec<&'a str>,
    /// Empty means any: with `matchPolicy: Equivalent`, the default, another version of a kind is converted and matches as well.
    versions: Vec<&'a str>,
    resources: Vec<&'a str>,
    scope: &'a str,
}

/// The request that a rule is compared with.
struct MatchRequest<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    namespaced: bool,
}

impl<'a> AdmissionWebhook<'a> {
    fn new(webhook: &'a Value) -> Self {
        let exact = read_text(webhook, "/matchPolicy") == Some("Exact");
        let texts = |rule: &'a Value, field: &str| -> Vec<&'a str> {
            list_items(rule, field).filter_map(Value::as_str).collect()
        };
        let rules = list_items(webhook, "/rules")
            .filter(|rule| {
                let operations = texts(rule, "/operations");
                let writes = ["CREATE", "UPDATE", "*"];
                operations
                    .iter()
                    .any(|operation| writes.contains(operation))
            })
            .map(|rule| WebhookRule {
                groups: texts(rule, "/apiGroups"),
                versions: if exact {
                    texts(rule, "/apiVersions")
                } else {
                    Vec::new()
                },
                resources: texts(rule, "/resources"),
                scope: read_text(rule, "/scope").unwrap_or("*"),
            });
        Self {
            rules: rules.collect(),
            namespaces: WebhookSelector::new(webhook.get("namespaceSelector")),
            objects: WebhookSelector::new(webhook.get("objectSelector")),
        }
    }

    /// Whether the webhook has to come before an object, because it matches the object or its pods.
    ///
    /// CRDs and namespaces never wait for a webhook, nor do the accounts, roles and settings of the configuration's own add-on: its backend
    /// may read them without naming them, and would never be ready. For the same reason, workloads of that add-on wait only if the
    /// selectors certainly match. Objects of Kubernetes itself in kube-system wait for no webhook either, because its backend needs them.
    /// (In kops' many-addons, the load balancer's webhook matches every Service: the cluster's DNS would wait for a controller that asks it
    /// for addresses.)
    fn must_precede(
        &self,
        item: &DraftObject<'a>,
        configuration: &DraftObject<'_>,
        draft: &GraphDraft<'a>,
    ) -> bool {
        let own = item.part == configuration.part;
        let exempt = item.key.group == "admissionregistration.k8s.io";
        if exempt
            || item.rank <= ObjectRank::Definitions
            || (own && item.rank < ObjectRank::Workloads)
        {
            return false;
        }
        if is_built_in(&item.key.group) && item.key.namespace.as_deref() == Some("kube-system") {
            return false;
        }
        let doubtless = own && item.rank == ObjectRank::Workloads;
        let namespace = item.key.namespace.as_deref();
        let object = MatchRequest {
            group: &item.key.group,
            version: &item.target.version,
            resource: &item.target.plural,
            namespaced: namespace.is_some(),
        };
        let labels = item.object.pointer("/metadata/labels");
        let pods = WorkloadTemplate::from_object(item.key, item.object).map(|template| {
            let request = MatchRequest {
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
                    .evaluate(|key| find_label(labels, key, LabelLookup::Missing))
                    == SelectorMatch::Yes
                && match self.matches_namespace(namespace, draft) {
                    SelectorMatch::Yes => true,
                    SelectorMatch::Perhaps => !doubtless,
                    SelectorMatch::No => false,
                }
        })
    }

    /// Whether the webhook selects the namespace of an object. Only its name and the labels that the command itself sets are known.
    fn matches_namespace(&self, namespace: Option<&str>, draft: &GraphDraft<'a>) -> SelectorMatch {
        let Some(name) = namespace else {
            return SelectorMatch::Yes;
        };
        let known = draft.find_named("", "Namespace", None, name);
        let labels = known
            .and_then(|id| draft.items.get(id))
            .and_then(|item| item.object.pointer("/metadata/labels"));
        self.namespaces.evaluate(|key| match key {
            "kubernetes.io/metadata.name" => LabelLookup::Value(name),
            _ => find_label(labels, key, LabelLookup::Unknown),
        })
    }
}

fn find_label<'l>(
    labels: Option<&'l Value>,
    key: &str,
    otherwise: LabelLookup<'l>,
) -> LabelLookup<'l> {
    let value = labels.and_then(|labels| labels.get(key)?.as_str());
    value.map_or(otherwise, LabelLookup::Value)
}

impl WebhookRule<'_> {
    fn matches(&self, request: &MatchRequest<'_>) -> bool {
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
