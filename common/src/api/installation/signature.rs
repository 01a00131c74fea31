//! The signature or hash that vouched for the content of an installation.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What vouched for the content, if the catalogue requires signatures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    /// The signed digest, `sha256:…`: of the manifest in the registry, or of the pinned content.
    #[schemars(length(max = 128))]
    pub digest: String,
    /// How it was verified: `key`, `keyless` or `manifestHash`.
    #[schemars(with = "String", length(max = 64))]
    pub method: SignatureMethod,
    /// The signer: `sha256:…` of the public key, or the identity in the certificate; empty for a hash.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 2048))]
    pub signer: String,
    /// The OIDC issuer of the identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub issuer: Option<String>,
}

impl Signature {
    /// Creates the signature of content that the catalogue itself pins. `hash` is its sha256 in hex.
    #[must_use]
    pub fn from_hash(hash: &str) -> Self {
        Self {
            digest: format!("sha256:{}", hash.to_ascii_lowercase()),
            method: SignatureMethod::ManifestHash,
            signer: String::new(),
            issuer: None,
        }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.method, &self.issuer) {
            (SignatureMethod::Key, _) => write!(f, "key {}", self.signer),
            (_, Some(issuer)) => write!(f, "{} ({issuer})", self.signer),
            (method, None) if self.signer.is_empty() => method.fmt(f),
            (_, None) => f.write_str(&self.signer),
        }
    }
}

/// How the content of an installation was verified. A method of another release is kept as it was read, so that it is written back
/// unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum SignatureMethod {
    /// A signature with a key.
    Key,
    /// A keyless signature by an identity.
    Keyless,
    /// A hash in the catalogue, which pins the content.
    ManifestHash,
    /// The provenance file of a chart. `verify` prints it; records do not contain it.
    Provenance,
    /// A method of another release.
    Other(String),
}

impl SignatureMethod {
    fn as_str(&self) -> &str {
        match self {
            Self::Key => "key",
            Self::Keyless => "keyless",
            Self::ManifestHash => "manifestHash",
            Self::Provenance => "provenance",
            Self::Other(text) => text,
        }
    }
}

impl From<String> for SignatureMethod {
    fn from(text: String) -> Self {
        match text.as_str() {
            "key" => Self::Key,
            "keyless" => Self::Keyless,
            "manifestHash" => Self::ManifestHash,
            "provenance" => Self::Provenance,
            _ => Self::Other(text),
        }
    }
}

impl From<SignatureMethod> for String {
    fn from(method: SignatureMethod) -> Self {
        match method {
            SignatureMethod::Other(text) => text,
            known => known.as_str().to_owned(),
        }
    }
}

impl fmt::Display for SignatureMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_method_of_a_record_is_written_back() {
        for text in [
            "key",
            "keyless",
            "manifestHash",
            "provenance",
            "witness",
            "",
        ] {
            let read: SignatureMethod = serde_json::from_value(json!(text)).unwrap();
            let is_other = matches!(read, SignatureMethod::Other(_));
            assert_eq!(is_other, matches!(text, "witness" | ""), "{text}");
            assert_eq!(json!(read), text);
        }
    }
}
