//! Webhook configurations: ready when every Service that they call has a ready endpoint and they have the certificate to verify it with.
//! kstatus calls them current as soon as they exist, and then the next write fails.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Readiness;
use super::fields::{field, text};

/// The Services that exist, and those with a ready endpoint, updated from EndpointSlices as they are listed and watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadyEndpoints {
    /// Per namespace and slice, the Service whose ready endpoints the slice has.
    slices: BTreeMap<String, BTreeMap<String, String>>,
    /// Per namespace, its Services, if known.
    services: BTreeMap<String, BTreeSet<String>>,
}

impl ReadyEndpoints {
    /// Replaces the known Services of a namespace.
    pub fn replace_services(&mut self, namespace: &str, services: BTreeSet<String>) {
        self.services.insert(namespace.to_owned(), services);
    }

    /// Whether a Service is known not to exist.
    fn is_missing_service(&self, namespace: &str, service: &str) -> bool {
        let services = self.services.get(namespace);
        services.is_some_and(|services| !services.contains(service))
    }

    /// Replaces the known slices of a namespace with `slices`.
    pub fn replace_slices(&mut self, namespace: &str, slices: &[Value]) {
        self.slices.insert(namespace.to_owned(), BTreeMap::new());
        for slice in slices {
            self.update_slice(slice);
        }
    }

    /// Updates a slice that was added or changed.
    pub fn update_slice(&mut self, slice: &Value) {
        self.remove_slice(slice);
        let service = text(slice, &["metadata", "labels", "kubernetes.io/service-name"]);
        let endpoints = field(slice, &["endpoints"]).and_then(Value::as_array);
        let has_ready = endpoints.is_some_and(|endpoints| endpoints.iter().any(is_ready));
        if has_ready && !service.is_empty() {
            let (namespace, name) = names(slice);
            let slices = self.slices.entry(namespace.to_owned()).or_default();
            slices.insert(name.to_owned(), service.to_owned());
        }
    }

    /// Removes a slice that was deleted.
    pub fn remove_slice(&mut self, slice: &Value) {
        let (namespace, name) = names(slice);
        if let Some(slices) = self.slices.get_mut(namespace) {
            slices.remove(name);
        }
    }

    pub(super) fn has_ready_endpoint(&self, namespace: &str, service: &str) -> bool {
        let slices = self.slices.get(namespace);
        slices.is_some_and(|slices| slices.values().any(|of| of == service))
    }
}

/// Returns the namespaces of the Services that a webhook configuration calls.
#[must_use]
pub fn called_namespaces(configuration: &Value) -> BTreeSet<String> {
    let services = webhooks(configuration).filter_map(service);
    services
        .map(|(namespace, _)| namespace.to_owned())
        .collect()
}

/// Assesses a webhook configuration. Without `endpoints`, which the client may not be allowed to read, only the certificate is checked. Two
/// webhooks are not waited for, because their backend may come with an add-on that needs this one: a validating one whose failures are
/// ignored, which denies nothing while no backend answers, and one whose Service does not exist, because a Service of the add-on itself is
/// applied before.
pub(super) fn assess_configuration(
    object: &Value,
    endpoints: Option<&ReadyEndpoints>,
) -> Readiness {
    let is_validating = text(object, &["kind"]) == "ValidatingWebhookConfiguration";
    let mut passed = None;
    for webhook in webhooks(object) {
        let Some(missing) = describe_missing(webhook, endpoints) else {
            continue;
        };
        let is_ignored = text(webhook, &["failurePolicy"]) == "Ignore";
        let message = if is_validating && is_ignored {
            format!("{missing} yet, which is ignored")
        } else if let Some((namespace, service)) = find_missing_service(webhook, endpoints) {
            let name = text(webhook, &["name"]);
            let until = match is_ignored {
                true => "nothing answers until it does",
                false => "what it judges is refused until it does",
            };
            format!("{name} calls {namespace}/Service {service}, which does not exist: {until}")
        } else {
            return Readiness::in_progress(format!("waiting: {missing} yet"));
        };
        passed.get_or_insert(message);
    }
    Readiness::current(passed.unwrap_or_else(|| "ready".to_owned()))
}

/// Returns the Service that a webhook calls, if it does not exist.
fn find_missing_service<'a>(
    webhook: &'a Value,
    endpoints: Option<&ReadyEndpoints>,
) -> Option<(&'a str, &'a str)> {
    let endpoints = endpoints?;
    service(webhook).filter(|(namespace, service)| endpoints.is_missing_service(namespace, service))
}

/// Describes what a webhook lacks before it can be called.
fn describe_missing(webhook: &Value, endpoints: Option<&ReadyEndpoints>) -> Option<String> {
    // A webhook with a URL may have a publicly trusted certificate.
    let (namespace, name) = service(webhook)?;
    if text(webhook, &["clientConfig", "caBundle"]).is_empty() {
        return Some(format!("{} has no caBundle", text(webhook, &["name"])));
    }
    let is_served = endpoints.is_none_or(|endpoints| endpoints.has_ready_endpoint(namespace, name));
    (!is_served).then(|| format!("{namespace}/Service {name} has no ready endpoints"))
}

/// Whether an endpoint is ready. A missing condition counts as ready: the API documents that its state is then unknown.
fn is_ready(endpoint: &Value) -> bool {
    let addresses = field(endpoint, &["addresses"]).and_then(Value::as_array);
    addresses.is_some_and(|addresses| !addresses.is_empty())
        && field(endpoint, &["conditions", "ready"]) != Some(&Value::Bool(false))
}

fn names(slice: &Value) -> (&str, &str) {
    let name = |name| text(slice, &["metadata", name]);
    (name("namespace"), name("name"))
}

fn webhooks(configuration: &Value) -> impl Iterator<Item = &Value> {
    let webhooks = field(configuration, &["webhooks"]).and_then(Value::as_array);
    webhooks.into_iter().flatten()
}

fn service(webhook: &Value) -> Option<(&str, &str)> {
    let service = field(webhook, &["clientConfig", "service"])?;
    Some((text(service, &["namespace"]), text(service, &["name"])))
}
