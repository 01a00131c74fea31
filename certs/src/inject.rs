//! Reads and patches the `caBundle` of our two webhook configurations, which tells the API server which authority to trust.
//!
//! This module works on values only. A caller with a client reads the configurations and sends the patches.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

/// Name of both webhook configurations (`deploy/base`).
pub const CONFIGURATION: &str = "kubectl-addons";
/// Name of the Service that both configurations call (`deploy/base`).
pub const SERVICE: &str = "addons-webhook";

/// The entries of a webhook configuration that call our Service, and the resourceVersion that was read.
#[derive(Clone, Debug)]
pub struct InjectedConfiguration {
    version: Value,
    entries: Vec<WebhookEntry>,
}

/// A webhook of the configuration that calls our Service.
#[derive(Clone, Debug)]
struct WebhookEntry {
    index: usize,
    bundle: Option<String>,
}

impl InjectedConfiguration {
    /// Reads a Validating- or MutatingWebhookConfiguration. Entries that call another Service are ignored.
    #[must_use]
    pub fn read(object: &Value, namespace: &str) -> Self {
        let webhooks = object.pointer("/webhooks").and_then(Value::as_array);
        let webhooks = webhooks.into_iter().flatten().enumerate();
        let entries = webhooks.filter_map(|(index, webhook)| {
            let service = webhook.pointer("/clientConfig/service")?;
            let is_ours = service["name"] == SERVICE && service["namespace"] == namespace;
            let bundle = webhook.pointer("/clientConfig/caBundle");
            is_ours.then(|| WebhookEntry {
                index,
                bundle: bundle.and_then(Value::as_str).map(str::to_owned),
            })
        });
        Self {
            version: object
                .pointer("/metadata/resourceVersion")
                .cloned()
                .unwrap_or_default(),
            entries: entries.collect(),
        }
    }

    /// Returns whether every entry trusts the certificates in this PEM text.
    #[must_use]
    pub fn trusts(&self, certificate_pem: &str) -> bool {
        let wanted = parse_certificates(certificate_pem.as_bytes());
        self.entries.iter().all(|entry| {
            let bundle = entry
                .bundle
                .as_ref()
                .and_then(|text| STANDARD.decode(text).ok());
            bundle.is_some_and(|pem| parse_certificates(&pem).is_superset(&wanted))
        })
    }

    /// Returns the JSON patch that makes every entry trust exactly these authorities (PEM), or `None` if nothing changes.
    ///
    /// The patch includes the resourceVersion, so the API server refuses it (409) if the configuration has changed since it was read.
    #[must_use]
    pub fn patch(&self, authorities_pem: &str) -> Option<Value> {
        let bundle = STANDARD.encode(authorities_pem);
        let mut operations = vec![json!({
            "op": "replace", "path": "/metadata/resourceVersion", "value": self.version,
        })];
        let stale = self.entries.iter();
        let stale = stale.filter(|entry| entry.bundle.as_ref() != Some(&bundle));
        operations.extend(stale.map(|WebhookEntry { index, .. }| {
            json!({
                "op": "add", "path": format!("/webhooks/{index}/clientConfig/caBundle"), "value": bundle,
            })
        }));
        (operations.len() > 1).then_some(Value::Array(operations))
    }
}

/// Returns the certificates of a PEM text. Unreadable ones are skipped.
fn parse_certificates(pem: &[u8]) -> BTreeSet<Vec<u8>> {
    CertificateDer::pem_slice_iter(pem)
        .filter_map(Result::ok)
        .map(|certificate| certificate.to_vec())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Authority;
    use std::time::Duration;

    const NAMESPACE: &str = "kubectl-addons";

    fn pem() -> String {
        let lifetime = Duration::from_secs(60);
        let authority = Authority::new("a", jiff::Timestamp::now(), lifetime).unwrap();
        authority.certificate_pem().to_owned()
    }

    /// Entries that call us, us in another namespace, and by a URL.
    fn configuration(bundles: [Option<&str>; 2]) -> Value {
        let entry = |namespace: &str, bundle: Option<&str>| {
            let mut config = json!({"service": {"name": SERVICE, "namespace": namespace}});
            if let Some(bundle) = bundle {
                config["caBundle"] = STANDARD.encode(bundle).into();
            }
            json!({"name": "x", "clientConfig": config})
        };
        json!({
            "metadata": {"name": CONFIGURATION, "resourceVersion": "7"},
            "webhooks": [
                entry(NAMESPACE, bundles[0]), entry("other", None), entry(NAMESPACE, bundles[1]),
                {"name": "url", "clientConfig": {"url": "https://127.0.0.1/x"}},
            ],
        })
    }

    #[test]
    fn only_entries_that_call_us_and_lack_the_bundle_are_patched() {
        let read = |bundles| InjectedConfiguration::read(&configuration(bundles), NAMESPACE);
        let add = |index: usize| json!({"op": "add", "path": format!("/webhooks/{index}/clientConfig/caBundle"), "value": "UEVN"});
        let version = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"});
        for (bundles, expected) in [
            ([None, None], Some(json!([version, add(0), add(2)]))),
            ([Some("PEM"), Some("other")], Some(json!([version, add(2)]))),
            ([Some("PEM"), Some("PEM")], None),
        ] {
            assert_eq!(read(bundles).patch("PEM"), expected, "{bundles:?}");
        }
        let nothing = InjectedConfiguration::read(&json!({"metadata": {}}), NAMESPACE);
        assert_eq!(nothing.patch("PEM"), None);
    }

    #[test]
    fn a_certificate_is_carried_where_every_entry_has_it() {
        let (one, two) = (pem(), pem());
        let both = format!("{two}\n# a comment\n{one}");
        for (bundles, carried) in [
            ([Some(&*one), Some(&*both)], true),
            ([Some(&*one), Some(&*two)], false),
            ([Some(&*one), None], false),
            ([Some(&*one), Some("junk")], false),
        ] {
            let read = InjectedConfiguration::read(&configuration(bundles), NAMESPACE);
            assert_eq!(read.trusts(&one), carried, "{bundles:?}");
        }
    }

    #[test]
    fn every_entry_of_the_deployed_configurations_calls_us() {
        let deployed = include_str!("../../deploy/base/webhooks.yaml");
        let count = |line: &str| {
            deployed
                .lines()
                .filter(|found| found.trim() == line)
                .count()
        };
        assert!(count("clientConfig:") >= 4);
        assert_eq!(count("clientConfig:"), count(&format!("name: {SERVICE}")));
        assert_eq!(count(&format!("name: {CONFIGURATION}")), 2);
        assert!(
            !deployed.contains("caBundle:"),
            "applying it again would reset what was set"
        );
    }
}
