//! Whose signatures count.

use std::fmt;

use common::api::catalogue::SignaturePolicy;
use common::api::installation::Signature;
use common::manifest::digest::sha256;
use sigstore_verify::crypto::{KeyAlgorithm, VerificationKey};
use sigstore_verify::trust_root::TrustedRoot;
use sigstore_verify::types::DerPublicKey;
use sigstore_verify::{VerificationPolicy, Verifier};

/// Why a policy names no one whose signatures could count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignerError {
    /// Neither a key nor an identity, or both.
    #[error("exactly one of key and keyless is needed")]
    NotOne,
    /// Not a public key.
    #[error("key: it is not a public key in PEM format, as cosign.pub has it: {why}")]
    Key {
        /// Why.
        why: String,
    },
    /// Not a trusted root.
    #[error("trustedRoot: it is not a trusted root of Sigstore: {why}")]
    TrustedRoot {
        /// Why.
        why: String,
    },
}

/// Whose signatures count.
pub enum Signer {
    /// The owner of a key.
    Key(Box<Key>),
    /// An identity, by a certificate that was valid when it signed.
    Keyless(Box<Identity>),
}

/// A public key.
pub struct Key {
    pub(super) key: VerificationKey,
    /// `sha256:…` of its DER form.
    fingerprint: String,
}

/// An identity and who vouches for it.
pub struct Identity {
    pub(super) verifier: Verifier,
    pub(super) policy: VerificationPolicy,
    identity: String,
    issuer: String,
    /// The sha256 of the trusted root.
    root: String,
}

impl Signer {
    /// The signer that a policy names.
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
                Ok(Self::Key(Box::new(Key {
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
                // An instance without logs cannot prove that they have an entry. The administrator chose that instance by its root.
                if root.ctlogs.is_empty() {
                    policy = policy.skip_sct();
                }
                if root.tlogs.is_empty() {
                    policy = policy.skip_tlog_unsafe();
                }
                Ok(Self::Keyless(Box::new(Identity {
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

    /// Whether it is a key.
    pub(super) fn is_key(&self) -> bool {
        matches!(self, Self::Key(_))
    }

    /// What tells it from others, for the keys of the cache.
    pub(super) fn id(&self) -> String {
        match self {
            Self::Key(key) => key.fingerprint.clone(),
            Self::Keyless(who) => format!("{} {} {}", who.root, who.issuer, who.identity),
        }
    }

    /// What is recorded of a digest that it signed.
    pub(super) fn signature(&self, digest: &str) -> Signature {
        let digest = digest.to_owned();
        match self {
            Self::Key(key) => Signature {
                digest,
                method: Signature::KEY.to_owned(),
                signer: key.fingerprint.clone(),
                issuer: None,
            },
            Self::Keyless(who) => Signature {
                digest,
                method: Signature::KEYLESS.to_owned(),
                signer: who.identity.clone(),
                issuer: Some(who.issuer.clone()),
            },
        }
    }
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "the key {}", key.fingerprint),
            Self::Keyless(who) => write!(f, "{} of {}", who.identity, who.issuer),
        }
    }
}
