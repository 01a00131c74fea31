//! Advice if values cannot be read from Secrets.

use addons_operation::error::ValuesFromError;
use common::api::names::LABEL_VALUES;
use common::values::secret::SecretValuesError;

pub(super) fn values_hints(error: &ValuesFromError) -> Vec<String> {
    let (looks, index) = match error {
        ValuesFromError::NoSecret {
            installation,
            index,
            ..
        } => (
            format!("look:   kubectl get secrets -n {}", installation.namespace),
            index,
        ),
        ValuesFromError::NoKey {
            installation,
            name,
            index,
            ..
        } => (
            format!(
                "look:   kubectl describe secret {name} -n {}",
                installation.namespace
            ),
            index,
        ),
        ValuesFromError::NotValues { why, .. } => return secret_hints(why),
        ValuesFromError::NoValues { .. } => return Vec::new(),
    };
    let fix = format!(
        "fix:    create it, or set spec.valuesFrom[{index}].secretKeyRef.optional of the installation"
    );
    vec![looks, fix]
}

pub(super) fn secret_hints(why: &SecretValuesError) -> Vec<String> {
    match why {
        SecretValuesError::Unlabelled { namespace, name } => vec![format!(
            "fix:    kubectl label secret {name} -n {namespace} {LABEL_VALUES}=true"
        )],
        SecretValuesError::Kubeconfig { .. } => Vec::new(),
    }
}
