//! Cosign signatures of what lies in registries, verified on this machine: no log and no authority is asked.
//!
//! A signature is of a digest, so it counts in every registry that the content was copied to. It is either a Sigstore bundle that refers to
//! the manifest, or, with a key only, the layer of the older tag `sha256-HEX.sig`. An image that an index names may be signed by the
//! index. What verified something is kept in the cache and verified again from there: then no request is sent.

mod evidence;
mod flaw;
mod signer;

use common::api::catalogue::{Source, SourceKind};
use common::api::installation::Signature;
use common::entrance;
use common::image::Image;
use common::oci::referrers;

use crate::Access;
use crate::cache::Note;
use crate::http::bound;
use crate::registry::manifest::Descriptor;
use crate::registry::{self, Registry, RegistryError};

use evidence::Evidence;
pub use flaw::Flaw;
pub use signer::{Signer, SignerError};

/// The kind of the notes in the cache.
const NOTES: &str = "signature";
/// Bundles and layers that are looked at.
const MAX_SIGNATURES: usize = 32;
/// How the type of a bundle begins, whatever its version.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// A layer of the older tag.
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Its signature, in base64.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

/// Why nothing verifies a digest.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// An error of the registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// No signature at all.
    #[error("{location} is not signed")]
    Unsigned {
        /// `HOST/PATH@sha256:…`.
        location: String,
    },
    /// None that counts.
    #[error("{location} is not signed by {signer}: {}", found(*count, flaw))]
    Untrusted {
        /// `HOST/PATH@sha256:…`.
        location: String,
        /// Who was to sign.
        signer: String,
        /// The signatures that it has.
        count: usize,
        /// What is wrong with the last of them.
        flaw: Flaw,
    },
    /// It took longer than a document may.
    #[error("{location}: its signatures were not read after {} s", bound::TIME.as_secs())]
    TimedOut {
        /// `HOST/PATH@sha256:…`.
        location: String,
    },
}

fn found(count: usize, flaw: &Flaw) -> String {
    match count {
        1 => format!("of its signature, {flaw}"),
        count => format!("of the last of its {count} signatures, {flaw}"),
    }
}

/// A manifest in a registry.
#[derive(Clone, Debug)]
pub struct Subject {
    reference: Image,
    plain_http: bool,
    /// `None` for what the tag stands for now.
    digest: Option<String>,
}

impl Subject {
    /// What a source was read as; `None` where it does not lie in a registry. `resolved`: see [`crate::Fetched`].
    ///
    /// # Errors
    /// A source without a valid reference.
    pub fn of_source(
        source: &Source,
        resolved: Option<&str>,
    ) -> Result<Option<Self>, RegistryError> {
        let (name, plain_http) = match source.kind() {
            Ok(SourceKind::Docker(docker)) => (docker.image.trim().to_owned(), docker.plain_http),
            Ok(SourceKind::Helm(helm)) => match helm.url.strip_prefix("oci://") {
                Some(path) => {
                    let path = path.trim_end_matches('/');
                    (format!("{path}/{}", helm.chart), helm.plain_http)
                }
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let digest = resolved.and_then(|resolved| resolved.rsplit('@').next());
        Ok(Some(Self {
            reference: registry::reference(&name)?,
            plain_http,
            digest: digest.map(str::to_owned),
        }))
    }

    /// `HOST/PATH:TAG` or `HOST/PATH@sha256:…`.
    ///
    /// # Errors
    /// Not a reference.
    pub fn of_reference(text: &str, plain_http: bool) -> Result<Self, RegistryError> {
        let reference = registry::reference(text)?;
        Ok(Self {
            digest: reference.digest.clone(),
            reference,
            plain_http,
        })
    }
}

/// Verifies that the signer signed it, or the index that its name stands for.
///
/// # Errors
/// [`SignatureError`].
pub async fn verify(
    subject: &Subject,
    signer: &Signer,
    access: &Access<'_>,
) -> Result<Signature, SignatureError> {
    match tokio::time::timeout(bound::TIME, look(subject, signer, access)).await {
        Ok(verified) => verified,
        Err(_) => Err(SignatureError::TimedOut {
            location: registry::repository(&subject.reference),
        }),
    }
}

async fn look(
    subject: &Subject,
    signer: &Signer,
    access: &Access<'_>,
) -> Result<Signature, SignatureError> {
    let mut registry = Registry::open(&subject.reference, subject.plain_http, access)?;
    let tag = registry::tag(&subject.reference);
    let digest = match &subject.digest {
        Some(digest) => digest.clone(),
        None => registry.digest(tag).await?,
    };
    let mut search = Search {
        repository: registry::repository(&subject.reference),
        reference: &subject.reference,
        signer,
        access,
        seen: 0,
        flaw: None,
    };
    if let Some(signed) = search.kept(&mut registry, &digest).await {
        return Ok(signer.signature(&signed));
    }
    if let Some(evidence) = search.of_digest(&mut registry, &digest).await? {
        search.keep(&digest, &digest, &evidence);
        return Ok(signer.signature(&digest));
    }
    // Where nothing is found for the image itself, the index that names it may be signed.
    let index = match &subject.reference.digest {
        Some(named) => Some(named.clone()),
        None if subject.digest.is_some() && subject.reference.tag.is_some() => {
            registry.digest(tag).await.ok()
        }
        None => None,
    };
    if let Some(index) = index.filter(|index| *index != digest)
        && registry.names(&index, &digest).await?
        && let Some(evidence) = search.of_digest(&mut registry, &index).await?
    {
        search.keep(&digest, &index, &evidence);
        return Ok(signer.signature(&index));
    }
    Err(search.failed(&digest))
}

/// A search for one signature that counts.
struct Search<'a> {
    repository: String,
    reference: &'a Image,
    signer: &'a Signer,
    access: &'a Access<'a>,
    seen: usize,
    flaw: Option<Flaw>,
}

impl Search<'_> {
    /// The digest that was found to be signed by an earlier run: itself, or an index that names it.
    async fn kept(&self, registry: &mut Registry<'_>, digest: &str) -> Option<String> {
        let (note, bytes) = self.access.cache.noted(NOTES, &self.key(digest))?;
        let signed = note.resolved?;
        let evidence: Evidence = entrance::from_slice(&bytes).ok()?;
        evidence.judge(&signed, self.signer).ok()?;
        let is_its_own =
            signed == digest || registry.names(&signed, digest).await.unwrap_or_default();
        is_its_own.then_some(signed)
    }

    fn keep(&self, digest: &str, signed: &str, evidence: &Evidence) {
        if let Ok(bytes) = serde_json::to_vec(evidence) {
            let note = Note {
                digest: self.access.cache.put(&bytes),
                resolved: Some(signed.to_owned()),
                ..Note::default()
            };
            self.access.cache.set_note(NOTES, &self.key(digest), &note);
        }
    }

    /// A signature is the same for everyone, but not everyone may read the content.
    fn key(&self, digest: &str) -> String {
        let seen = registry::seen_by(self.reference, false, self.access);
        format!("{digest} {}{seen}", self.signer.id())
    }

    /// The first signature of a digest that counts.
    async fn of_digest(
        &mut self,
        registry: &mut Registry<'_>,
        digest: &str,
    ) -> Result<Option<Evidence>, RegistryError> {
        let is_bundle =
            |kind: &Option<String>| kind.as_ref().is_none_or(|kind| kind.starts_with(BUNDLE));
        let referrers = registry.referrers(digest).await?;
        let bundles = referrers.iter().filter(|one| is_bundle(&one.artifact_type));
        for referrer in bundles.take(MAX_SIGNATURES) {
            let found = self.of_manifest(registry, &referrer.digest, digest).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        if !self.signer.is_key() {
            return Ok(None);
        }
        let tag = format!("{}.sig", referrers::tag(digest));
        self.of_manifest(registry, &tag, digest).await
    }

    /// The first layer of a manifest that is a signature of `digest` and counts. A manifest that cannot be used hides no other.
    async fn of_manifest(
        &mut self,
        registry: &mut Registry<'_>,
        name: &str,
        digest: &str,
    ) -> Result<Option<Evidence>, RegistryError> {
        let found = match registry.image(name).await {
            Ok(found) => found,
            Err(RegistryError::NotFound { .. } | RegistryError::Manifest { .. }) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        for layer in found.manifest.layers.iter().take(MAX_SIGNATURES) {
            let Some(kind) = Kind::of(layer, self.signer) else {
                continue;
            };
            self.seen += 1;
            let bytes = registry.blob(layer).await?.read(bound::SMALL).await?;
            let Ok(text) = String::from_utf8(bytes) else {
                self.flaw = Some(Flaw::Text);
                continue;
            };
            let evidence = match kind {
                Kind::Bundle => Evidence::Bundle { bundle: text },
                Kind::Simple(signature) => Evidence::Simple {
                    payload: text,
                    signature,
                },
            };
            match evidence.judge(digest, self.signer) {
                Ok(()) => return Ok(Some(evidence)),
                Err(flaw) => self.flaw = Some(flaw),
            }
        }
        Ok(None)
    }

    fn failed(self, digest: &str) -> SignatureError {
        let location = format!("{}@{digest}", self.repository);
        match self.flaw {
            Some(flaw) => SignatureError::Untrusted {
                location,
                signer: self.signer.to_string(),
                count: self.seen,
                flaw,
            },
            None => SignatureError::Unsigned { location },
        }
    }
}

/// What a layer is.
enum Kind {
    Bundle,
    /// With its signature.
    Simple(String),
}

impl Kind {
    fn of(layer: &Descriptor, signer: &Signer) -> Option<Self> {
        if layer.media_type.starts_with(BUNDLE) {
            return Some(Self::Bundle);
        }
        if layer.media_type != SIMPLE_SIGNING || !signer.is_key() {
            return None;
        }
        let signature = layer.annotations.as_ref()?.get(SIGNATURE)?;
        Some(Self::Simple(signature.clone()))
    }
}
