//! Signs what lies in a registry as cosign does with a key and without a transparency log: with a bundle that refers to the manifest, or
//! with the older tag.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, PublicKeyData as _, SigningKey as _};
use serde_json::{Value, json};

use super::Registry;

/// The type of a bundle.
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// The payload of a bundle.
const IN_TOTO: &str = "application/vnd.in-toto+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A key and its owner.
pub struct Cosign {
    key: KeyPair,
}

impl Cosign {
    /// A new one.
    ///
    /// # Errors
    /// Of the cryptography.
    pub fn new() -> Result<Self> {
        Ok(Self {
            key: KeyPair::generate()?,
        })
    }

    /// cosign.pub.
    #[must_use]
    pub fn public(&self) -> String {
        self.key.public_key_pem()
    }

    /// The private key, in PKCS #8.
    #[must_use]
    pub fn private(&self) -> String {
        self.key.serialize_pem()
    }

    /// How the key is shown.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        super::digest(&self.key.subject_public_key_info())
    }

    /// A bundle that says that the digest was signed.
    ///
    /// # Errors
    /// Of the cryptography.
    pub fn bundle(&self, digest: &str) -> Result<Value> {
        let hex = digest.trim_start_matches("sha256:");
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {"sha256": hex}}],
            "predicateType": "https://sigstore.dev/cosign/sign/v1",
            "predicate": {},
        });
        let payload = statement.to_string();
        let signed = format!(
            "DSSEv1 {} {IN_TOTO} {} {payload}",
            IN_TOTO.len(),
            payload.len()
        );
        let signature = self.key.sign(signed.as_bytes())?;
        Ok(json!({
            "mediaType": BUNDLE,
            "verificationMaterial": {"publicKey": {"hint": ""}},
            "dsseEnvelope": {
                "payload": STANDARD.encode(&payload),
                "payloadType": IN_TOTO,
                "signatures": [{"sig": STANDARD.encode(signature)}],
            },
        }))
    }

    /// Signs a digest with a bundle.
    ///
    /// # Errors
    /// Of the registry.
    pub async fn sign(&self, registry: &Registry, repository: &str, digest: &str) -> Result<()> {
        refer(registry, repository, digest, &self.bundle(digest)?).await
    }

    /// Signs a digest with the older tag.
    ///
    /// # Errors
    /// Of the registry.
    pub async fn sign_by_tag(
        &self,
        registry: &Registry,
        repository: &str,
        digest: &str,
    ) -> Result<()> {
        let payload = json!({"critical": {
            "identity": {"docker-reference": ""},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        }, "optional": null});
        let payload = payload.to_string();
        let signature = STANDARD.encode(self.key.sign(payload.as_bytes())?);
        let layer = json!({
            "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json",
            "digest": registry.push_blob(repository, payload.as_bytes()).await?,
            "size": payload.len(),
            "annotations": {"dev.cosignproject.cosign/signature": signature},
        });
        let config = json!({
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": registry.push_blob(repository, b"{}").await?,
            "size": 2,
        });
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
        });
        let tag = format!("{}.sig", digest.replace(':', "-"));
        let pushed = registry.push_manifest(repository, &tag, &manifest).await;
        pushed.map(drop)
    }
}

/// Attaches a bundle to a digest, as clients do in a registry without the referrers API; whatever was attached before is gone.
///
/// # Errors
/// Of the registry.
pub async fn refer(
    registry: &Registry,
    repository: &str,
    digest: &str,
    bundle: &Value,
) -> Result<()> {
    let bytes = bundle.to_string();
    let layer = json!({
        "mediaType": BUNDLE,
        "digest": registry.push_blob(repository, bytes.as_bytes()).await?,
        "size": bytes.len(),
    });
    let config = json!({
        "mediaType": EMPTY,
        "digest": registry.push_blob(repository, b"{}").await?,
        "size": 2,
    });
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": BUNDLE,
        "config": config,
        "layers": [layer],
        "subject": {"mediaType": MANIFEST, "digest": digest, "size": 1},
    });
    let name = super::digest(manifest.to_string().as_bytes());
    registry.push_manifest(repository, &name, &manifest).await?;
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": MANIFEST,
            "artifactType": BUNDLE,
            "digest": name,
            "size": manifest.to_string().len(),
        }],
    });
    let tag = digest.replace(':', "-");
    let pushed = registry.push_manifest(repository, &tag, &index).await;
    pushed.map(drop)
}
