//! Checks the private registry of a catalogue or an installation: a text that rendering would refuse is refused when it is written.

use crate::verdict::AdmissionProblem;
use common::registry::Registry;

/// Returns the problem of a text that is not a registry.
#[must_use]
pub fn check_registry(registry: Option<&str>) -> Option<AdmissionProblem> {
    let error = registry?.parse::<Registry>().err()?;
    let message = error.to_string();
    Some(AdmissionProblem::invalid(
        "registry",
        "spec.registry",
        message,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_registry_is_refused() {
        for (registry, is_refused) in [
            (None, false),
            (Some("mirror.example.com/addons"), false),
            (Some("localhost:5000"), false),
            (Some("https://mirror.example.com"), true),
            (Some("mirror"), true),
            (Some(""), true),
        ] {
            let problem = check_registry(registry);
            assert_eq!(problem.is_some(), is_refused, "{registry:?}: {problem:?}");
        }
    }
}
