//! What is to prove that a digest was signed, judged by its bytes alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sigstore_verify::types::{
    Bundle, DsseEnvelope, Sha256Hash, SignatureBytes, SignatureContent, Statement,
};

use common::entrance;

use super::Flaw;
use super::signer::{Key, Signer};

/// The payload of signatures and attestations in bundles.
const IN_TOTO: &str = "application/vnd.in-toto+json";
/// What cosign attests to say that it signed something, and nothing else.
const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";
/// The type of a payload of the older tag.
const IMAGE_SIGNATURE: &str = "cosign container image signature";

/// What is to prove it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Evidence {
    /// A Sigstore bundle.
    Bundle {
        /// Its JSON text.
        bundle: String,
    },
    /// A layer of the older tag.
    Simple {
        /// The layer, which is what was signed.
        payload: String,
        /// In base64.
        signature: String,
    },
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

impl Evidence {
    /// Whether the signer signed `digest`.
    ///
    /// # Errors
    /// [`Flaw`].
    pub(super) fn judge(&self, digest: &str, signer: &Signer) -> Result<(), Flaw> {
        match (self, signer) {
            (Self::Bundle { bundle }, signer) => judge(bundle, digest, signer),
            (Self::Simple { payload, signature }, Signer::Key(key)) => {
                simple(payload, signature, digest, key)
            }
            // There the certificate lies in an annotation that no log entry vouches for.
            (Self::Simple { .. }, Signer::Keyless(_)) => Err(Flaw::Key),
        }
    }
}

fn judge(text: &str, digest: &str, signer: &Signer) -> Result<(), Flaw> {
    let bundle = Bundle::from_json(text).map_err(|error| Flaw::malformed("bundle", error))?;
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    let hash = Sha256Hash::from_hex(hex).map_err(|error| Flaw::malformed("digest", error))?;
    if let SignatureContent::DsseEnvelope(envelope) = &bundle.content {
        is_of(envelope, &hash)?;
    }
    match signer {
        Signer::Keyless(who) => {
            let verified = who.verifier.verify(hash, &bundle, &who.policy);
            verified.map_err(|error| Flaw::Refused(error.to_string()))?;
        }
        // The key alone decides: whoever has it could make every entry of a log, too.
        Signer::Key(key) => match &bundle.content {
            SignatureContent::DsseEnvelope(envelope) => {
                let signature = &envelope.signature.sig;
                let verified = key.key.verify(envelope.pae(), signature);
                verified.map_err(|_| Flaw::Key)?;
            }
            SignatureContent::MessageSignature(message) => {
                let verified = key
                    .key
                    .verify_prehashed(hash.as_bytes(), &message.signature);
                verified.map_err(|_| Flaw::Key)?;
            }
            _ => return Err(Flaw::malformed("bundle", "it has no signature")),
        },
    }
    Ok(())
}

/// Whether a statement says that this digest was signed.
fn is_of(envelope: &DsseEnvelope, hash: &Sha256Hash) -> Result<(), Flaw> {
    let malformed = |why: String| Flaw::malformed("statement", why);
    if envelope.payload_type != IN_TOTO {
        return Err(malformed(format!("its type is {}", envelope.payload_type)));
    }
    let statement: Statement = entrance::from_slice(envelope.payload.as_bytes())
        .map_err(|error| malformed(error.to_string()))?;
    if statement.predicate_type != SIGNED {
        return Err(Flaw::Attestation {
            predicate: statement.predicate_type,
        });
    }
    if !statement.matches_sha256(hash) {
        return Err(Flaw::OtherDigest);
    }
    Ok(())
}

/// A signature of the older tag: the payload is what was signed, and the payload names the digest.
fn simple(payload: &str, signature: &str, digest: &str, key: &Key) -> Result<(), Flaw> {
    let signature = STANDARD.decode(signature.trim());
    let signature = signature.map_err(|error| Flaw::malformed("signature", error))?;
    let verified = key.key.verify(payload, &SignatureBytes::new(signature));
    verified.map_err(|_| Flaw::Key)?;
    let read: Payload =
        entrance::from_str(payload).map_err(|error| Flaw::malformed("payload", error))?;
    if read.critical.kind != IMAGE_SIGNATURE {
        let why = format!("its type is {:?}", read.critical.kind);
        return Err(Flaw::malformed("payload", why));
    }
    if read.critical.image.digest != digest {
        return Err(Flaw::OtherDigest);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
