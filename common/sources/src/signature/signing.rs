//! Signs digests with a private key, as `cosign sign --key` does without a transparency log.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::api::catalogue::SignaturePolicy;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;
use sigstore_verify::crypto::KeyPair;

use super::evidence::{IN_TOTO, SIGNED};
use super::{SignerError, TrustedSigner};

/// The media type of the bundles that a [`SigningKey`] makes.
pub const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// Why a file is not a key to sign with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeyError {
    /// The key is encrypted with a password.
    #[error("the key is encrypted, and only keys without a password are read")]
    Encrypted,
    /// The text is not a private key in PKCS #8 format.
    #[error("it is not a private key in PEM format (PKCS #8, -----BEGIN PRIVATE KEY-----)")]
    Format,
    /// The key is of a kind that cannot sign.
    #[error("the key cannot sign: {why}; only ECDSA keys of the curve P-256 can")]
    Kind {
        /// Why.
        why: String,
    },
}

/// A private key, and the signer whose key it is.
#[derive(Debug)]
pub struct SigningKey {
    key: KeyPair,
    public: String,
}

impl SigningKey {
    /// Reads a private key in PEM format.
    ///
    /// # Errors
    /// [`SigningKeyError`].
    pub fn from_pem(text: &str) -> Result<Self, SigningKeyError> {
        let is_begin = |line: &&str| line.trim_start().starts_with("-----BEGIN ");
        let head = text.lines().find(is_begin).unwrap_or_default();
        if head.contains("ENCRYPTED") {
            return Err(SigningKeyError::Encrypted);
        }
        let der = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes());
        let der = der.map_err(|_| SigningKeyError::Format)?;
        let key = KeyPair::from_pkcs8_der(der.secret_pkcs8_der());
        Self::from_pair(key.map_err(cannot_sign)?)
    }

    fn from_pair(key: KeyPair) -> Result<Self, SigningKeyError> {
        let public = key.public_key_der().map_err(cannot_sign)?.to_pem();
        Ok(Self { key, public })
    }

    /// Returns the policy that requires signatures by this key.
    #[must_use]
    pub fn policy(&self) -> SignaturePolicy {
        SignaturePolicy {
            required: true,
            key: Some(self.public.clone()),
            keyless: None,
        }
    }

    /// Returns the signer whose signatures this key makes.
    ///
    /// # Errors
    /// [`SignerError`] if the public key cannot be used.
    pub fn signer(&self) -> Result<TrustedSigner, SignerError> {
        TrustedSigner::new(&self.policy())
    }

    /// Returns the text of a Sigstore bundle that signs a digest.
    ///
    /// # Errors
    /// [`SigningKeyError::Kind`].
    pub fn bundle(&self, digest: &str) -> Result<String, SigningKeyError> {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {"sha256": digest.trim_start_matches("sha256:")}}],
            "predicateType": SIGNED,
            "predicate": {},
        });
        let payload = statement.to_string();
        let signed = format!(
            "DSSEv1 {} {IN_TOTO} {} {payload}",
            IN_TOTO.len(),
            payload.len()
        );
        let signature = self.key.sign(signed.as_bytes()).map_err(cannot_sign)?;
        let bundle = json!({
            "mediaType": BUNDLE_TYPE,
            "verificationMaterial": {"publicKey": {"hint": ""}},
            "dsseEnvelope": {
                "payload": STANDARD.encode(&payload),
                "payloadType": IN_TOTO,
                "signatures": [{"sig": STANDARD.encode(signature.as_bytes())}],
            },
        });
        Ok(bundle.to_string())
    }
}

fn cannot_sign(error: sigstore_verify::crypto::Error) -> SigningKeyError {
    SigningKeyError::Kind {
        why: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::Evidence;
    use super::*;

    #[test]
    fn a_bundle_verifies_its_digest_and_no_other() {
        let pair = KeyPair::generate_ecdsa_p256().unwrap();
        let key = SigningKey::from_pair(pair).unwrap();
        let signer = key.signer().unwrap();
        let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let evidence = Evidence::Bundle {
            bundle: key.bundle(&digest("a")).unwrap(),
        };
        evidence.verify(&digest("a"), &signer).unwrap();
        assert!(evidence.verify(&digest("b"), &signer).is_err());
    }

    #[test]
    fn other_files_are_refused_by_what_they_are() {
        let pem = |kind: &str| format!("-----BEGIN {kind}-----\nMAA=\n-----END {kind}-----\n");
        for (text, expected) in [
            ("a: b\n".to_owned(), SigningKeyError::Format),
            (pem("PUBLIC KEY"), SigningKeyError::Format),
            (pem("EC PRIVATE KEY"), SigningKeyError::Format),
            (
                pem("ENCRYPTED SIGSTORE PRIVATE KEY"),
                SigningKeyError::Encrypted,
            ),
        ] {
            let found = SigningKey::from_pem(&text).map(drop);
            assert_eq!(found, Err(expected), "{text}");
        }
        let found = SigningKey::from_pem(&pem("PRIVATE KEY")).map(drop);
        assert!(matches!(found, Err(SigningKeyError::Kind { .. })));
    }
}
