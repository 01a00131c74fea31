//! Verifies the evidence that a digest was signed, from its bytes alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sigstore_verify::types::{
    Bundle, DsseEnvelope, Sha256Hash, SignatureBytes, SignatureContent, Statement,
};

use common::entrance;

use super::signer::{PublicKey, TrustedSigner};

/// The type of the payload of signatures and attestations in bundles.
pub(super) const IN_TOTO: &str = "application/vnd.in-toto+json";
/// The predicate type with which cosign attests a signature and nothing else.
pub(super) const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";
/// The type of the payload of the older tag.
const IMAGE_SIGNATURE: &str = "cosign container image signature";

/// The evidence that a digest was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Evidence {
    /// A Sigstore bundle.
    Bundle {
        /// The JSON text of the bundle.
        bundle: String,
    },
    /// A layer of the older tag.
    Simple {
        /// The content of the layer, which was signed.
        payload: String,
        /// The signature in base64.
        signature: String,
    },
}

/// Why a signature is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureFlaw {
    /// The text is not UTF-8.
    #[error("the text is not valid UTF-8")]
    Text,
    /// A part of the signature cannot be read.
    #[error("the {what} cannot be read: {why}")]
    Malformed {
        /// `bundle`, `payload`, …
        what: &'static str,
        /// Why.
        why: String,
    },
    /// The signature is for another digest.
    #[error("it is the signature of another digest")]
    OtherDigest,
    /// The statement is an attestation of the content, for example by its builder or scanner.
    #[error("it is an attestation ({predicate}) and not a signature")]
    Attestation {
        /// The type of the attestation.
        predicate: String,
    },
    /// The key is wrong, or the content was changed after it was signed.
    #[error("the key does not verify it")]
    Key,
    /// The certificate, the log entry, the timestamp or the signature is not valid.
    #[error("{0}")]
    Refused(String),
}

impl SignatureFlaw {
    /// The error for a `what` that cannot be read.
    pub(super) fn malformed(what: &'static str, why: impl ToString) -> Self {
        Self::Malformed {
            what,
            why: why.to_string(),
        }
    }
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: SignedImage,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct SignedImage {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

impl Evidence {
    /// Verifies that the signer signed `digest`.
    ///
    /// # Errors
    /// [`SignatureFlaw`].
    pub(super) fn verify(&self, digest: &str, signer: &TrustedSigner) -> Result<(), SignatureFlaw> {
        match (self, signer) {
            (Self::Bundle { bundle }, signer) => verify_bundle(bundle, digest, signer),
            (Self::Simple { payload, signature }, TrustedSigner::Key(key)) => {
                verify_simple(payload, signature, digest, key)
            }
            // The certificate of such a signature is in an annotation that no log entry covers.
            (Self::Simple { .. }, TrustedSigner::Keyless(_)) => Err(SignatureFlaw::Key),
        }
    }
}

fn verify_bundle(text: &str, digest: &str, signer: &TrustedSigner) -> Result<(), SignatureFlaw> {
    let bundle =
        Bundle::from_json(text).map_err(|error| SignatureFlaw::malformed("bundle", error))?;
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    let hash =
        Sha256Hash::from_hex(hex).map_err(|error| SignatureFlaw::malformed("digest", error))?;
    if let SignatureContent::DsseEnvelope(envelope) = &bundle.content {
        check_statement(envelope, &hash)?;
    }
    match signer {
        TrustedSigner::Keyless(who) => {
            let verified = who.verifier.verify(hash, &bundle, &who.policy);
            verified.map_err(|error| SignatureFlaw::Refused(error.to_string()))?;
        }
        // Only the key counts, because its owner could create any log entry too.
        TrustedSigner::Key(key) => match &bundle.content {
            SignatureContent::DsseEnvelope(envelope) => {
                let signature = &envelope.signature.sig;
                let verified = key.key.verify(envelope.pae(), signature);
                verified.map_err(|_| SignatureFlaw::Key)?;
            }
            SignatureContent::MessageSignature(message) => {
                let verified = key
                    .key
                    .verify_prehashed(hash.as_bytes(), &message.signature);
                verified.map_err(|_| SignatureFlaw::Key)?;
            }
            _ => return Err(SignatureFlaw::malformed("bundle", "it has no signature")),
        },
    }
    Ok(())
}

/// Checks that a statement says that this digest was signed.
fn check_statement(envelope: &DsseEnvelope, hash: &Sha256Hash) -> Result<(), SignatureFlaw> {
    let malformed = |why: String| SignatureFlaw::malformed("statement", why);
    if envelope.payload_type != IN_TOTO {
        return Err(malformed(format!("its type is {}", envelope.payload_type)));
    }
    let statement: Statement = entrance::from_slice(envelope.payload.as_bytes())
        .map_err(|error| malformed(error.to_string()))?;
    if statement.predicate_type != SIGNED {
        return Err(SignatureFlaw::Attestation {
            predicate: statement.predicate_type,
        });
    }
    if !statement.matches_sha256(hash) {
        return Err(SignatureFlaw::OtherDigest);
    }
    Ok(())
}

/// Verifies a signature of the older tag. The signed payload contains the digest.
fn verify_simple(
    payload: &str,
    signature: &str,
    digest: &str,
    key: &PublicKey,
) -> Result<(), SignatureFlaw> {
    let signature = STANDARD.decode(signature.trim());
    let signature = signature.map_err(|error| SignatureFlaw::malformed("signature", error))?;
    let verified = key.key.verify(payload, &SignatureBytes::new(signature));
    verified.map_err(|_| SignatureFlaw::Key)?;
    let read: Payload =
        entrance::from_str(payload).map_err(|error| SignatureFlaw::malformed("payload", error))?;
    if read.critical.kind != IMAGE_SIGNATURE {
        let why = format!("its type is {:?}", read.critical.kind);
        return Err(SignatureFlaw::malformed("payload", why));
    }
    if read.critical.image.digest != digest {
        return Err(SignatureFlaw::OtherDigest);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
