//! Extensions of the API: CustomResourceDefinition, APIService.

use serde_json::Value;

use super::Readiness;
use super::fields::condition;

/// Established does not mean served: discovery follows a moment later, and the engine asks it.
pub(super) fn crd(object: &Value) -> Readiness {
    if let Some(names) = condition(object, "NamesAccepted")
        && names.is_false()
    {
        return Readiness::failed(format!("names not accepted: {}", names.why()));
    }
    match condition(object, "Established") {
        Some(established) if established.is_true() => Readiness::current("established"),
        Some(established) if established.is_false() && established.reason() != "Installing" => {
            Readiness::failed(format!("not established: {}", established.why()))
        }
        _ => Readiness::in_progress("waiting: not yet established"),
    }
}

/// For kstatus every APIService is current; one that does not answer breaks namespaces and discovery.
pub(super) fn api_service(object: &Value) -> Readiness {
    match condition(object, "Available") {
        Some(available) if available.is_true() => Readiness::current("available"),
        Some(available) => Readiness::in_progress(format!("waiting: {}", available.why())),
        None => Readiness::in_progress("waiting: not yet checked by the API server"),
    }
}
