//! Extensions of the API: CustomResourceDefinition, APIService.

use serde_json::Value;

use super::Readiness;
use super::fields::{find_condition, text};

/// Established does not mean served: discovery follows a moment later, and the engine queries it. A name that is not accepted is a failure
/// only if objects cannot be reached by it: once a CRD is established, it is served by the names that were accepted before.
pub(super) fn assess_crd(object: &Value) -> Readiness {
    let names = find_condition(object, "NamesAccepted").filter(|names| names.is_false());
    let established = find_condition(object, "Established");
    if let Some(names) = names {
        let why = names.why();
        return match established {
            Some(established) if established.is_true() && is_served_as_named(object) => {
                Readiness::current(format!("established; a name is not accepted: {why}"))
            }
            _ => Readiness::failed(format!("names not accepted: {why}")),
        };
    }
    match established {
        Some(established) if established.is_true() => Readiness::current("established"),
        Some(established) if established.is_false() && established.reason() != "Installing" => {
            Readiness::failed(format!("not established: {}", established.why()))
        }
        _ => Readiness::in_progress("waiting: not yet established"),
    }
}

/// Whether a CRD is served with the kind and the plural that it asks for.
fn is_served_as_named(object: &Value) -> bool {
    ["kind", "plural"].iter().all(|name| {
        let asked = text(object, &["spec", "names", name]);
        text(object, &["status", "acceptedNames", name]) == asked
    })
}

/// kstatus calls every APIService current, but one that does not answer breaks namespaces and discovery.
pub(super) fn assess_api_service(object: &Value) -> Readiness {
    match find_condition(object, "Available") {
        Some(available) if available.is_true() => Readiness::current("available"),
        Some(available) => Readiness::in_progress(format!("waiting: {}", available.why())),
        None => Readiness::in_progress("waiting: not yet checked by the API server"),
    }
}
