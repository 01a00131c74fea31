//! Makes cosign signatures of content in registries, and verifies them locally, without requests to a log or an authority.
//!
//! A signature is for a digest, so it is valid in every registry to which the content was copied. It is a
//! Sigstore bundle that refers to the manifest or, for signers with a key only, a layer under the older tag
//! `sha256-HEX.sig`. An image in an index can also be verified by a signature of the index. Evidence is
//! cached and verified again from the cache, which needs no request.

mod evidence;
mod signer;
pub mod signing;

use common::api::catalogue::{Source, SourceKind};
use common::api::installation::Signature;
use common::entrance;
use common::image::Image;
use common::oci::referrers;

use crate::SourceAccess;
use crate::cache::CacheNote;
use crate::http::bound;
use crate::registry::manifest::BlobDescriptor;
use crate::registry::{self, RegistryAccessError, RegistryClient};

use evidence::Evidence;
pub use evidence::SignatureFlaw;
pub use signer::{SignerError, TrustedSigner};

/// The kind of the notes in the cache.
const NOTES: &str = "signature";
/// The maximum number of bundles or layers to check.
const MAX_SIGNATURES: usize = 32;
/// The prefix of the media type of a bundle of any version.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// The media type of a layer of the older tag.
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation with the signature of that layer in base64.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

/// Why no signature verifies a digest.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// The registry cannot be read.
    #[error(transparent)]
    Registry(#[from] RegistryAccessError),
    /// There is no signature.
    #[error("{location} is not signed")]
    Unsigned {
        /// `HOST/PATH@sha256:…`.
        location: String,
    },
    /// No signature is valid.
    #[error("{location} is not signed by {signer}: {}", describe_flaw(*count, flaw))]
    Untrusted {
        /// `HOST/PATH@sha256:…`.
        location: String,
        /// The expected signer.
        signer: String,
        /// The number of signatures.
        count: usize,
        /// What is wrong with the last signature.
        flaw: SignatureFlaw,
    },
    /// The verification exceeded the time limit.
    #[error("{location}: its signatures were not read after {} s", bound::TIME.as_secs())]
    TimedOut {
        /// `HOST/PATH@sha256:…`.
        location: String,
    },
}

fn describe_flaw(count: usize, flaw: &SignatureFlaw) -> String {
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
    /// `None` for the current digest of the tag.
    digest: Option<String>,
}

impl Subject {
    /// Returns the manifest from which a source was read, or `None` if the source is not in a registry.
    /// `resolved` is that of [`crate::FetchedPackage`].
    ///
    /// # Errors
    /// The reference of the source is invalid.
    pub fn from_source(
        source: &Source,
        resolved: Option<&str>,
    ) -> Result<Option<Self>, RegistryAccessError> {
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

    /// Parses `HOST/PATH:TAG` or `HOST/PATH@sha256:…`.
    ///
    /// # Errors
    /// The text is not a reference.
    pub fn from_reference(text: &str, plain_http: bool) -> Result<Self, RegistryAccessError> {
        let reference = registry::reference(text)?;
        Ok(Self {
            digest: reference.digest.clone(),
            reference,
            plain_http,
        })
    }
}

/// Verifies that the signer signed the manifest, or the index to which its name resolves.
///
/// # Errors
/// [`SignatureError`].
pub async fn verify(
    subject: &Subject,
    signer: &TrustedSigner,
    access: &SourceAccess<'_>,
) -> Result<Signature, SignatureError> {
    match tokio::time::timeout(bound::TIME, find_signature(subject, signer, access)).await {
        Ok(verified) => verified,
        Err(_) => Err(SignatureError::TimedOut {
            location: registry::repository(&subject.reference),
        }),
    }
}

async fn find_signature(
    subject: &Subject,
    signer: &TrustedSigner,
    access: &SourceAccess<'_>,
) -> Result<Signature, SignatureError> {
    let mut registry = RegistryClient::open(&subject.reference, subject.plain_http, access)?;
    let tag = registry::tag(&subject.reference);
    let digest = match &subject.digest {
        Some(digest) => digest.clone(),
        None => registry.digest(tag).await?,
    };
    let mut search = SignatureSearch {
        repository: registry::repository(&subject.reference),
        reference: &subject.reference,
        signer,
        access,
        seen: 0,
        flaw: None,
    };
    if let Some(signed) = search.find_cached(&mut registry, &digest).await {
        return Ok(signer.signature(&signed));
    }
    if let Some(evidence) = search.find_for_digest(&mut registry, &digest).await? {
        search.remember(&digest, &digest, &evidence);
        return Ok(signer.signature(&digest));
    }
    // Without a signature of the image itself, a signature of the index that lists it is valid too.
    let index = match &subject.reference.digest {
        Some(named) => Some(named.clone()),
        None if subject.digest.is_some() && subject.reference.tag.is_some() => {
            registry.digest(tag).await.ok()
        }
        None => None,
    };
    if let Some(index) = index.filter(|index| *index != digest)
        && registry.index_names(&index, &digest).await?
        && let Some(evidence) = search.find_for_digest(&mut registry, &index).await?
    {
        search.remember(&digest, &index, &evidence);
        return Ok(signer.signature(&index));
    }
    Err(search.into_error(&digest))
}

/// The search for one valid signature.
struct SignatureSearch<'a> {
    repository: String,
    reference: &'a Image,
    signer: &'a TrustedSigner,
    access: &'a SourceAccess<'a>,
    seen: usize,
    flaw: Option<SignatureFlaw>,
}

impl SignatureSearch<'_> {
    /// Returns the signed digest that an earlier run found: that of the manifest itself, or of an index that
    /// lists it.
    async fn find_cached(&self, registry: &mut RegistryClient<'_>, digest: &str) -> Option<String> {
        let (note, bytes) = self.access.cache.lookup(NOTES, &self.key(digest))?;
        let signed = note.resolved?;
        let evidence: Evidence = entrance::from_slice(&bytes).ok()?;
        evidence.verify(&signed, self.signer).ok()?;
        let is_its_own = signed == digest
            || registry
                .index_names(&signed, digest)
                .await
                .unwrap_or_default();
        is_its_own.then_some(signed)
    }

    fn remember(&self, digest: &str, signed: &str, evidence: &Evidence) {
        if let Ok(bytes) = serde_json::to_vec(evidence) {
            let note = CacheNote {
                digest: self.access.cache.put(&bytes),
                resolved: Some(signed.to_owned()),
                ..CacheNote::default()
            };
            self.access.cache.set_note(NOTES, &self.key(digest), &note);
        }
    }

    /// The cache key. It includes the reader, because not every reader may read the content.
    fn key(&self, digest: &str) -> String {
        let seen = registry::reader_key(self.reference, false, self.access);
        format!("{digest} {}{seen}", self.signer.id())
    }

    /// Finds the first valid signature of a digest.
    async fn find_for_digest(
        &mut self,
        registry: &mut RegistryClient<'_>,
        digest: &str,
    ) -> Result<Option<Evidence>, RegistryAccessError> {
        let is_bundle =
            |kind: &Option<String>| kind.as_ref().is_none_or(|kind| kind.starts_with(BUNDLE));
        let referrers = registry.referrers(digest).await?;
        let bundles = referrers.iter().filter(|one| is_bundle(&one.artifact_type));
        for referrer in bundles.take(MAX_SIGNATURES) {
            let found = self
                .find_in_manifest(registry, &referrer.digest, digest)
                .await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        if !self.signer.is_key() {
            return Ok(None);
        }
        let tag = format!("{}.sig", referrers::referrers_tag(digest));
        self.find_in_manifest(registry, &tag, digest).await
    }

    /// Finds the first layer of a manifest that is a valid signature of `digest`. A manifest that cannot be
    /// used is skipped.
    async fn find_in_manifest(
        &mut self,
        registry: &mut RegistryClient<'_>,
        name: &str,
        digest: &str,
    ) -> Result<Option<Evidence>, RegistryAccessError> {
        let found = match registry.image(name).await {
            Ok(found) => found,
            Err(RegistryAccessError::NotFound { .. } | RegistryAccessError::Manifest { .. }) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        for layer in found.manifest.layers.iter().take(MAX_SIGNATURES) {
            let Some(kind) = SignatureKind::from_layer(layer, self.signer) else {
                continue;
            };
            self.seen += 1;
            let bytes = registry.blob(layer).await?.read(bound::SMALL).await?;
            let Ok(text) = String::from_utf8(bytes) else {
                self.flaw = Some(SignatureFlaw::Text);
                continue;
            };
            let evidence = match kind {
                SignatureKind::Bundle => Evidence::Bundle { bundle: text },
                SignatureKind::Simple(signature) => Evidence::Simple {
                    payload: text,
                    signature,
                },
            };
            match evidence.verify(digest, self.signer) {
                Ok(()) => return Ok(Some(evidence)),
                Err(flaw) => self.flaw = Some(flaw),
            }
        }
        Ok(None)
    }

    fn into_error(self, digest: &str) -> SignatureError {
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

/// The kind of signature in a layer.
enum SignatureKind {
    Bundle,
    /// A layer of the older tag with its signature.
    Simple(String),
}

impl SignatureKind {
    fn from_layer(layer: &BlobDescriptor, signer: &TrustedSigner) -> Option<Self> {
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
