//! The `caBundle` of our two webhook configurations, by which the API server knows which authority to trust.
//!
//! The patches are values; a caller with a client sends them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Name of both webhook configurations (`deploy/base`).
pub const CONFIGURATION: &str = "kubectl-addons";
/// The only entry of the mutating configuration.
pub const MUTATE: &str = "mutate.kubectl-addons.dev";
/// Entry of the validating configuration for our own kinds.
pub const VALIDATE: &str = "validate.kubectl-addons.dev";
/// Entry of the validating configuration for namespaces that stand for a cluster.
pub const CLUSTERS: &str = "clusters.kubectl-addons.dev";
/// Entry of the validating configuration for namespaces that hold core installations.
pub const NAMESPACES: &str = "namespaces.kubectl-addons.dev";

/// The strategic merge patches of one bundle.
///
/// The lists are merged by name, so nothing has to be read before, and selectors or policies set by others stay.
#[derive(Clone, Debug, PartialEq)]
pub struct CaBundle {
    /// For the MutatingWebhookConfiguration [`CONFIGURATION`].
    pub mutating: Value,
    /// For the ValidatingWebhookConfiguration [`CONFIGURATION`].
    pub validating: Value,
}

/// The patches for trusting `authorities_pem`: one or, during a rotation of the authority, several certificates.
#[must_use]
pub fn ca_bundle(authorities_pem: &str) -> CaBundle {
    let bundle = STANDARD.encode(authorities_pem);
    let patch = |names: &[&str]| {
        let webhooks: Vec<Value> = names
            .iter()
            .map(|name| json!({"name": name, "clientConfig": {"caBundle": bundle}}))
            .collect();
        json!({ "webhooks": webhooks })
    };
    CaBundle {
        mutating: patch(&[MUTATE]),
        validating: patch(&[VALIDATE, CLUSTERS, NAMESPACES]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_both_configurations_gets_the_bundle() {
        let bundle = ca_bundle("PEM\n");
        let entry = |name: &str| json!({"name": name, "clientConfig": {"caBundle": "UEVNCg=="}});
        assert_eq!(bundle.mutating, json!({"webhooks": [entry(MUTATE)]}));
        assert_eq!(
            bundle.validating,
            json!({"webhooks": [entry(VALIDATE), entry(CLUSTERS), entry(NAMESPACES)]})
        );
    }

    #[test]
    fn the_names_are_those_of_the_deployed_configurations() {
        let deployed = include_str!("../../deploy/base/webhooks.yaml");
        let names: Vec<&str> = deployed
            .lines()
            .filter_map(|line| line.strip_prefix("- name: "))
            .collect();
        assert_eq!(names, [MUTATE, VALIDATE, CLUSTERS, NAMESPACES]);
        let configurations = format!("\n  name: {CONFIGURATION}\n");
        assert_eq!(deployed.matches(&configurations).count(), 2);
    }
}
