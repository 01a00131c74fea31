//! The signatures that the sources of a catalogue must have.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The signatures that the OCI sources and charts of a catalogue must have: made either with a key, or keyless by an identity. A
/// source that cannot be signed must be pinned by a sha256 `manifestHash` instead.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = kube::core::Rule::new("has(self.key) != has(self.keyless)")
    .message("exactly one of key and keyless is needed"))]
pub struct SignaturePolicy {
    /// Whether unsigned content is refused. Otherwise, it is installed with a warning.
    #[serde(default = "yes")]
    pub required: bool,
    /// The public key in PEM, as `cosign generate-key-pair` writes it to cosign.pub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 8192),
        regex(pattern = r"^\s*-----BEGIN PUBLIC KEY-----\s")
    )]
    pub key: Option<String>,
    /// The identity that signs with certificates of a Sigstore instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyless: Option<Keyless>,
}

/// An identity, and the Sigstore instance that vouches for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Keyless {
    /// The exact name in the certificate: an e-mail address, or the URL of a workflow.
    #[schemars(length(min = 1, max = 2048))]
    pub identity: String,
    /// The exact OIDC issuer in the certificate, such as `https://accounts.google.com`.
    #[schemars(length(min = 1, max = 2048))]
    pub issuer: String,
    /// The trusted root of the Sigstore instance: the JSON text of its `trusted_root.json`.
    #[schemars(length(min = 2, max = 65536))]
    pub trusted_root: String,
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_names_a_key_is_required_unless_it_says_otherwise() {
        for (written, expected) in [
            (json!({"key": "k"}), true),
            (json!({"key": "k", "required": true}), true),
            (json!({"key": "k", "required": false}), false),
        ] {
            let policy: SignaturePolicy = serde_json::from_value(written).unwrap();
            assert_eq!(policy.required, expected);
        }
    }
}
