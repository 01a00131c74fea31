//! Copies an image from a registry to an archive: unmodified bytes, all platforms, and everything that refers to it.

use std::collections::{BTreeMap, VecDeque};

use addons_sources::SourceAccess;
use addons_sources::layout::PartialArchive;
use addons_sources::registry::manifest::image_digest;
use addons_sources::registry::{RegistryClient, reference};
use common::image::Image;
use common::oci::layout::NamedManifest;
use common::oci::manifest::{Descriptor, MAX_MANIFESTS, OciManifest, OciManifestError, is_digest};
use common::oci::referrers;

use super::contents::ImageToCopy;
use super::meter::CopyMeter;
use super::{AirgapError, AirgapProgress, ReportAirgapProgress};

/// Copies an image. Returns the names that the archive gets, that of the image first.
pub(super) async fn copy_image(
    partial: &mut PartialArchive,
    wanted: &ImageToCopy,
    access: SourceAccess<'_>,
    report: ReportAirgapProgress<'_>,
) -> Result<Vec<NamedManifest>, AirgapError> {
    let access = SourceAccess {
        credentials: wanted.credentials.as_deref(),
        reach: &wanted.reach,
        ..access
    };
    let name = wanted.image.to_string();
    report(AirgapProgress::Copying { name: name.clone() });
    let from = reference(&wanted.from.to_string())?;
    let registry = RegistryClient::open(&from, wanted.plain_http, &access)?;
    let mut copy = ImageCopy {
        registry,
        partial,
        image: &wanted.image,
        verified: &wanted.verified,
        name: &name,
        report,
        named: Vec::new(),
        seen: BTreeMap::new(),
        queue: VecDeque::new(),
        found: 0,
        blobs: 0,
        bytes: 0,
        there: 0,
    };
    copy.copy_all().await?;
    let ImageCopy {
        named,
        blobs,
        bytes,
        there,
        ..
    } = copy;
    report(AirgapProgress::Copied {
        name,
        blobs,
        bytes,
        there,
    });
    Ok(named)
}

struct ImageCopy<'a, 'p> {
    registry: RegistryClient<'a>,
    partial: &'p mut PartialArchive,
    image: &'p Image,
    verified: &'p [String],
    name: &'p str,
    report: ReportAirgapProgress<'p>,
    named: Vec<NamedManifest>,
    /// Copied manifests, by digest.
    seen: BTreeMap<String, Descriptor>,
    /// Manifests that still have to be fetched.
    queue: VecDeque<PendingManifest>,
    /// The number of manifests found so far.
    found: usize,
    blobs: usize,
    bytes: u64,
    there: usize,
}

/// A manifest that still has to be fetched. Its bytes are not kept, because an index may list many large ones.
struct PendingManifest {
    /// Its digest or a tag.
    reference: String,
    /// Its size in bytes, if known.
    size: Option<u64>,
    /// Its name in the archive; `None` for a manifest that an index lists.
    image: Option<Image>,
    /// Whether it may be missing: no list names cosign signatures, so their tags are tried.
    is_optional: bool,
}

impl ImageCopy<'_, '_> {
    async fn copy_all(&mut self) -> Result<(), AirgapError> {
        let image = self.image.clone();
        let name = image.digest.as_ref().or(image.tag.as_ref());
        let reference = name.map_or("latest", String::as_str).to_owned();
        self.enqueue(PendingManifest {
            reference,
            size: None,
            image: Some(image),
            is_optional: false,
        })?;
        while let Some(found) = self.queue.pop_front() {
            self.copy_manifest(found).await?;
        }
        Ok(())
    }

    /// Copies a manifest with its blobs, unless it was copied already, and queues the manifests that belong to it.
    async fn copy_manifest(&mut self, found: PendingManifest) -> Result<(), AirgapError> {
        if let Some(seen) = self.seen.get(&found.reference).cloned() {
            return self.record_name(&found, &seen);
        }
        let (digest, bytes) = if found.is_optional {
            let Some(original) = self.registry.find_manifest_bytes(&found.reference).await? else {
                return Ok(());
            };
            self.count_manifest()?;
            original
        } else {
            self.registry.manifest_bytes(&found.reference).await?
        };
        // The image itself comes first; what belongs to it is copied only if its digest is right.
        if self.seen.is_empty() {
            self.check_digest(&digest, &bytes)?;
        }
        let manifest = self.parse_manifest(&digest, &bytes)?;
        let descriptor = Descriptor {
            media_type: manifest.media_type.clone(),
            digest: digest.clone(),
            size: bytes.len() as u64,
        };
        self.record_name(&found, &descriptor)?;
        if self.seen.insert(digest.clone(), descriptor).is_some() {
            return Ok(());
        }
        self.copy_blobs(&manifest).await?;
        self.partial.put(&bytes)?;
        self.queue_referrers(&digest).await
    }

    /// Fails unless the digest is the verified one: the tag may have been moved since (semantics 17.3).
    fn check_digest(&self, digest: &str, bytes: &[u8]) -> Result<(), AirgapError> {
        let image = image_digest(digest, bytes).unwrap_or_else(|_| digest.to_owned());
        match self.verified.iter().find(|verified| **verified != image) {
            None => Ok(()),
            Some(verified) => Err(AirgapError::Moved {
                name: self.name.to_owned(),
                verified: verified.clone(),
                found: image,
            }),
        }
    }

    /// Copies the blobs of a manifest, and queues the manifests that it lists.
    async fn copy_blobs(&mut self, manifest: &OciManifest) -> Result<(), AirgapError> {
        for blob in &manifest.blobs {
            if self.partial.has(blob) {
                self.there += 1;
                continue;
            }
            let bytes = self.registry.content(&blob.digest, blob.size, false);
            let mut meter = CopyMeter::new(self.report, self.name, blob.size);
            let fetched = |done| meter.report_progress(done);
            self.partial.fetch(blob, bytes.await?, fetched).await?;
            self.blobs += 1;
            self.bytes += blob.size;
        }
        for listed in &manifest.manifests {
            self.enqueue(PendingManifest {
                reference: listed.digest.clone(),
                size: Some(listed.size),
                image: None,
                is_optional: false,
            })?;
        }
        Ok(())
    }

    /// Queues the manifests that refer to a digest.
    async fn queue_referrers(&mut self, digest: &str) -> Result<(), AirgapError> {
        for referrer in self.registry.referrers(digest).await? {
            if !is_digest(&referrer.digest) {
                return Err(AirgapError::Manifest {
                    name: self.image.with_digest(digest).to_string(),
                    source: OciManifestError::Digest(referrer.digest),
                });
            }
            self.enqueue(PendingManifest {
                image: Some(self.image.with_digest(&referrer.digest)),
                reference: referrer.digest,
                size: None,
                is_optional: false,
            })?;
        }
        for tag in referrers::cosign_tags(digest) {
            let image = Image {
                tag: Some(tag.clone()),
                digest: None,
                ..self.image.clone()
            };
            self.queue.push_back(PendingManifest {
                reference: tag,
                size: None,
                image: Some(image),
                is_optional: true,
            });
        }
        Ok(())
    }

    /// Queues an existing manifest.
    fn enqueue(&mut self, found: PendingManifest) -> Result<(), AirgapError> {
        self.count_manifest()?;
        self.queue.push_back(found);
        Ok(())
    }

    fn count_manifest(&mut self) -> Result<(), AirgapError> {
        self.found += 1;
        if self.found > MAX_MANIFESTS {
            let name = self.image.to_string();
            return Err(AirgapError::TooMany { name });
        }
        Ok(())
    }

    /// Records the name of a manifest in the archive, if it gets one.
    fn record_name(
        &mut self,
        found: &PendingManifest,
        descriptor: &Descriptor,
    ) -> Result<(), AirgapError> {
        if let Some(wanted) = found.size.filter(|size| *size != descriptor.size) {
            return Err(AirgapError::Size {
                name: self.image.with_digest(&descriptor.digest).to_string(),
                found: descriptor.size,
                wanted,
            });
        }
        if let Some(image) = found.image.clone() {
            let descriptor = descriptor.clone();
            self.named.push(NamedManifest { image, descriptor });
        }
        Ok(())
    }

    fn parse_manifest(&self, digest: &str, bytes: &[u8]) -> Result<OciManifest, AirgapError> {
        OciManifest::read(bytes).map_err(|source| AirgapError::Manifest {
            name: self.image.with_digest(digest).to_string(),
            source,
        })
    }
}

#[cfg(test)]
mod tests;
