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
    #[schemars(length(max = 64))]
    pub method: String,
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
    /// The [`Signature::method`] of a signature with a key.
    pub const KEY: &str = "key";
    /// The [`Signature::method`] of a keyless signature by an identity.
    pub const KEYLESS: &str = "keyless";
    /// The [`Signature::method`] of content that the catalogue pins.
    pub const HASH: &str = "manifestHash";

    /// Creates the signature of content that the catalogue itself pins. `hash` is its sha256 in hex.
    #[must_use]
    pub fn from_hash(hash: &str) -> Self {
        Self {
            digest: format!("sha256:{}", hash.to_ascii_lowercase()),
            method: Self::HASH.to_owned(),
            signer: String::new(),
            issuer: None,
        }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.method.as_str(), &self.issuer) {
            (Self::KEY, _) => write!(f, "key {}", self.signer),
            (_, Some(issuer)) => write!(f, "{} ({issuer})", self.signer),
            (method, None) if self.signer.is_empty() => f.write_str(method),
            (_, None) => f.write_str(&self.signer),
        }
    }
}
