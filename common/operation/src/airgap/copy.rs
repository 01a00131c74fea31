//! An image of a registry into an archive: every byte as it is, all platforms, and what refers to it.

use std::collections::{BTreeSet, VecDeque};

use addons_sources::Access;
use addons_sources::layout::Partial;
use addons_sources::registry::{Registry, reference};
use common::airgap::layout::Named;
use common::airgap::manifest::{Descriptor, Manifest};
use common::airgap::referrers;
use common::render::image::Image;

use super::contents::Wanted;
use super::meter::Meter;
use super::{AirgapError, Progress, Report};

/// Manifests of one image: its platforms, and their signatures and attestations.
pub(super) const MAX_MANIFESTS: usize = 10_000;

/// Copies an image; the names that the archive gets, the image first.
pub(super) async fn copy(
    partial: &mut Partial,
    wanted: &Wanted,
    access: Access<'_>,
    report: Report<'_>,
) -> Result<Vec<Named>, AirgapError> {
    let access = Access {
        credentials: wanted.credentials.as_deref(),
        reach: wanted.reach,
        ..access
    };
    let name = wanted.image.to_string();
    report(Progress::Copying { name: name.clone() });
    let from = reference(&wanted.from.to_string())?;
    let registry = Registry::open(&from, wanted.plain_http, &access)?;
    let mut copy = Copy {
        registry,
        partial,
        image: &wanted.image,
        name: &name,
        report,
        named: Vec::new(),
        seen: BTreeSet::new(),
        left: VecDeque::new(),
        blobs: 0,
        bytes: 0,
        there: 0,
    };
    copy.all().await?;
    let Copy {
        named,
        blobs,
        bytes,
        there,
        ..
    } = copy;
    report(Progress::Copied {
        name,
        blobs,
        bytes,
        there,
    });
    Ok(named)
}

struct Copy<'a, 'p> {
    registry: Registry<'a>,
    partial: &'p mut Partial,
    image: &'p Image,
    name: &'p str,
    report: Report<'p>,
    named: Vec<Named>,
    seen: BTreeSet<String>,
    /// Manifests that were found and not looked at.
    left: VecDeque<(String, Vec<u8>)>,
    blobs: usize,
    bytes: u64,
    there: usize,
}

impl Copy<'_, '_> {
    async fn all(&mut self) -> Result<(), AirgapError> {
        let image = self.image.clone();
        let name = image.digest.as_ref().or(image.tag.as_ref());
        let name = name.map_or("latest", String::as_str);
        let (digest, bytes) = self.registry.original(name).await?;
        self.name(image, &digest, &bytes)?;
        self.left.push_back((digest, bytes));
        while let Some((digest, bytes)) = self.left.pop_front() {
            if !self.seen.insert(digest.clone()) {
                continue;
            }
            if self.seen.len() > MAX_MANIFESTS {
                let name = self.image.to_string();
                return Err(AirgapError::TooMany { name });
            }
            let manifest = self.read(&digest, &bytes)?;
            self.needed(&manifest).await?;
            self.partial.put(&bytes)?;
            self.referring(&digest).await?;
        }
        Ok(())
    }

    /// The blobs of a manifest, and the manifests that it lists.
    async fn needed(&mut self, manifest: &Manifest) -> Result<(), AirgapError> {
        for blob in &manifest.blobs {
            if self.partial.has(blob) {
                self.there += 1;
                continue;
            }
            let bytes = self.registry.content(&blob.digest, blob.size, false);
            let mut meter = Meter::new(self.report, self.name, blob.size);
            let fetched = |done| meter.at(done);
            self.partial.fetch(blob, bytes.await?, fetched).await?;
            self.blobs += 1;
            self.bytes += blob.size;
        }
        for listed in &manifest.manifests {
            let (digest, bytes) = self.registry.original(&listed.digest).await?;
            if bytes.len() as u64 != listed.size {
                return Err(AirgapError::Size {
                    name: self.by_digest(&digest).to_string(),
                    found: bytes.len(),
                    wanted: listed.size,
                });
            }
            self.left.push_back((digest, bytes));
        }
        Ok(())
    }

    /// What refers to a manifest.
    async fn referring(&mut self, digest: &str) -> Result<(), AirgapError> {
        for referrer in self.registry.referrers(digest).await? {
            let (digest, bytes) = self.registry.original(&referrer.digest).await?;
            self.name(self.by_digest(&digest), &digest, &bytes)?;
            self.left.push_back((digest, bytes));
        }
        for tag in referrers::cosign_tags(digest) {
            if let Some((digest, bytes)) = self.registry.original_of(&tag).await? {
                let image = Image {
                    tag: Some(tag),
                    digest: None,
                    ..self.image.clone()
                };
                self.name(image, &digest, &bytes)?;
                self.left.push_back((digest, bytes));
            }
        }
        Ok(())
    }

    fn name(&mut self, image: Image, digest: &str, bytes: &[u8]) -> Result<(), AirgapError> {
        let manifest = self.read(digest, bytes)?;
        let descriptor = Descriptor {
            media_type: manifest.media_type,
            digest: digest.to_owned(),
            size: bytes.len() as u64,
        };
        self.named.push(Named { image, descriptor });
        Ok(())
    }

    fn read(&self, digest: &str, bytes: &[u8]) -> Result<Manifest, AirgapError> {
        Manifest::read(bytes).map_err(|source| AirgapError::Manifest {
            name: self.by_digest(digest).to_string(),
            source,
        })
    }

    fn by_digest(&self, digest: &str) -> Image {
        Image {
            tag: None,
            digest: Some(digest.to_owned()),
            ..self.image.clone()
        }
    }
}
