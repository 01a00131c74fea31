//! The signers whose signatures are accepted.

use std::fmt;

use common::api::catalogue::SignaturePolicy;
use common::api::installation::{Signature, SignatureMethod};
use common::manifest::digest::sha256;
use sigstore_verify::crypto::{KeyAlgorithm, VerificationKey};
use sigstore_verify::trust_root::TrustedRoot;
use sigstore_verify::types::DerPublicKey;
use sigstore_verify::{VerificationPolicy, Verifier};

/// Why a policy does not name a valid signer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignerError {
    /// The policy has neither a key nor an identity, or both.
    #[error("exactly one of key and keyless is needed")]
    NotOne,
    /// The key is not a public key.
    #[error("key: it is not a public key in PEM format, as cosign.pub has it: {why}")]
    Key {
        /// Why.
        why: String,
    },
    /// The trusted root is invalid.
    #[error("trustedRoot: it is not a trusted root of Sigstore: {why}")]
    TrustedRoot {
        /// Why.
        why: String,
    },
}

/// A signer whose signatures are accepted.
pub enum TrustedSigner {
    /// The owner of a key.
    Key(Box<PublicKey>),
    /// An identity with a certificate that was valid at the time of signing.
    Keyless(Box<KeylessIdentity>),
}

/// A public key.
pub struct PublicKey {
    pub(super) key: VerificationKey,
    /// `sha256:…` of the DER form.
    fingerprint: String,
}

/// An identity, its issuer and the trusted root.
pub struct KeylessIdentity {
    pub(super) verifier: Verifier,
    pub(super) policy: VerificationPolicy,
    identity: String,
    issuer: String,
    /// The hex sha256 of the trusted root.
    root: String,
}

impl TrustedSigner {
    /// Returns the signer that a policy names.
    ///
    /// # Errors
    /// [`SignerError`].
    pub fn new(policy: &SignaturePolicy) -> Result<Self, SignerError> {
        match (&policy.key, &policy.keyless) {
            (Some(pem), None) => {
                let wrong = |why: String| SignerError::Key { why };
                let der = DerPublicKey::from_pem(pem).map_err(|error| wrong(error.to_string()))?;
                let algorithm =
                    KeyAlgorithm::from_spki(&der).map_err(|error| wrong(error.to_string()))?;
                let key = VerificationKey::from_der(&der, algorithm.default_signing_scheme());
                Ok(Self::Key(Box::new(PublicKey {
                    key: key.map_err(|error| wrong(error.to_string()))?,
                    fingerprint: format!("sha256:{}", sha256(der.as_bytes())),
                })))
            }
            (None, Some(keyless)) => {
                let wrong = |why: String| SignerError::TrustedRoot { why };
                let root = TrustedRoot::from_json(&keyless.trusted_root);
                let root = root.map_err(|error| wrong(error.to_string()))?;
                let verifier = Verifier::new(&root).map_err(|error| wrong(error.to_string()))?;
                let identity = keyless.identity.as_str();
                let mut policy = VerificationPolicy::new(identity, keyless.issuer.as_str());
                // A Sigstore instance without logs cannot prove a log entry. The administrator chose the
                // instance by its trusted root.
                if root.ctlogs.is_empty() {
                    policy = policy.skip_sct();
                }
                if root.tlogs.is_empty() {
                    policy = policy.skip_tlog_unsafe();
                }
                Ok(Self::Keyless(Box::new(KeylessIdentity {
                    verifier,
                    policy,
                    identity: keyless.identity.clone(),
                    issuer: keyless.issuer.clone(),
                    root: sha256(keyless.trusted_root.as_bytes()),
                })))
            }
            _ => Err(SignerError::NotOne),
        }
    }

    /// Whether the signer is a key.
    pub(super) fn is_key(&self) -> bool {
        matches!(self, Self::Key(_))
    }

    /// Identifies the signer in cache keys.
    pub(super) fn id(&self) -> String {
        match self {
            Self::Key(key) => key.fingerprint.clone(),
            Self::Keyless(who) => format!("{} {} {}", who.root, who.issuer, who.identity),
        }
    }

    /// Returns the record of a digest that this signer signed.
    pub(super) fn signature(&self, digest: &str) -> Signature {
        let digest = digest.to_owned();
        match self {
            Self::Key(key) => Signature {
                digest,
                method: SignatureMethod::Key,
                signer: key.fingerprint.clone(),
                issuer: None,
            },
            Self::Keyless(who) => Signature {
                digest,
                method: SignatureMethod::Keyless,
                signer: who.identity.clone(),
                issuer: Some(who.issuer.clone()),
            },
        }
    }
}

impl fmt::Display for TrustedSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "the key {}", key.fingerprint),
            Self::Keyless(who) => write!(f, "{} of {}", who.identity, who.issuer),
        }
    }
}
