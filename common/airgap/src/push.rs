//! Pushes images and artifacts of an archive to a registry, and nothing that the registry already has.

use std::collections::BTreeMap;

use addons_sources::SourceAccess;
use addons_sources::layout::{LayoutArchive, StoredManifest};
use addons_sources::registry::push::PushOutcome;
use addons_sources::registry::{RegistryClient, reference};
use common::image::{Image, is_of_this_machine};
use common::oci::manifest::{Descriptor, INDEX};
use common::oci::referrers;

use super::meter::CopyMeter;
use super::{AirgapError, AirgapProgress, ReportAirgapProgress};

/// Number of blobs that were pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PushCounts {
    /// Blobs that were sent.
    pub sent: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Blobs that the registry already had.
    pub there: usize,
}

/// Pushes what an archive contains.
pub(super) struct ArchivePush<'a> {
    archive: &'a LayoutArchive,
    access: SourceAccess<'a>,
    report: ReportAirgapProgress<'a>,
    /// A repository that has the blob, by digest.
    repository_of_blob: BTreeMap<String, String>,
    counts: PushCounts,
}

impl<'a> ArchivePush<'a> {
    /// Returns a push that has sent nothing yet. `access` opens the registry.
    pub(super) fn new(
        archive: &'a LayoutArchive,
        access: SourceAccess<'a>,
        report: ReportAirgapProgress<'a>,
    ) -> Self {
        Self {
            archive,
            access,
            report,
            repository_of_blob: BTreeMap::new(),
            counts: PushCounts::default(),
        }
    }

    /// What was pushed so far.
    pub(super) fn counts(&self) -> PushCounts {
        self.counts
    }

    /// Pushes a manifest of the archive with everything that it needs, under the name of `image`.
    ///
    /// # Errors
    /// The registry refuses it, or the archive was changed.
    pub(super) async fn push(
        &mut self,
        image: &Image,
        root: &Descriptor,
    ) -> Result<(), AirgapError> {
        let name = image.to_string();
        (self.report)(AirgapProgress::Copying { name: name.clone() });
        let before = self.counts;
        self.push_tree(image, root).await?;
        (self.report)(AirgapProgress::Copied {
            name,
            blobs: self.counts.sent - before.sent,
            bytes: self.counts.bytes - before.bytes,
            there: self.counts.there - before.there,
        });
        Ok(())
    }

    async fn push_tree(&mut self, image: &Image, root: &Descriptor) -> Result<(), AirgapError> {
        let reference = reference(&image.to_string())?;
        let plain = is_of_this_machine(&image.host);
        let mut remote = RegistryClient::open(&reference, plain, &self.access)?;
        remote.request_push();
        let archive = self.archive;
        for digest in archive.tree(&root.digest) {
            // One at a time, because an index may list many large ones.
            let stored = archive.read_manifest(digest)?;
            let digest = &stored.descriptor.digest;
            let is_root = *digest == root.digest;
            let tag = image.tag.as_deref().filter(|_| is_root);
            let name = tag.unwrap_or(digest);
            self.push_blobs(&mut remote, image, &stored).await?;
            let former = remote.find_digest(name).await?;
            if former.as_ref() != Some(digest) {
                let media_type = &stored.manifest.media_type;
                let bytes = &stored.bytes;
                remote.push_manifest(name, media_type, bytes).await?;
                if let Some(former) = former {
                    let name = image.to_string();
                    (self.report)(AirgapProgress::Moved { name, former });
                }
            }
            push_referrers_list(&mut remote, &stored).await?;
        }
        Ok(())
    }

    async fn push_blobs(
        &mut self,
        remote: &mut RegistryClient<'_>,
        image: &Image,
        stored: &StoredManifest,
    ) -> Result<(), AirgapError> {
        let name = image.to_string();
        for blob in &stored.manifest.blobs {
            let mut meter = CopyMeter::new(self.report, &name, blob.size);
            let beside = self
                .repository_of_blob
                .get(&blob.digest)
                .map(String::as_str);
            let beside = beside.filter(|beside| *beside != image.repository);
            let bytes = self.archive.blob(&blob.digest)?;
            let sent = |done| meter.report_progress(done);
            let pushed = remote.push_blob(&blob.digest, blob.size, beside, bytes, sent);
            if pushed.await? == PushOutcome::Sent {
                self.counts.sent += 1;
                self.counts.bytes += blob.size;
            } else {
                self.counts.there += 1;
            }
            let repository = image.repository.clone();
            self.repository_of_blob
                .insert(blob.digest.clone(), repository);
        }
        Ok(())
    }
}

/// Adds a referrer to the list under the tag of its subject, unless the registry keeps such a list itself.
async fn push_referrers_list(
    remote: &mut RegistryClient<'_>,
    stored: &StoredManifest,
) -> Result<(), AirgapError> {
    let Some(subject) = &stored.manifest.subject else {
        return Ok(());
    };
    if remote.lists_referrers(subject).await? {
        return Ok(());
    }
    let tag = referrers::referrers_tag(subject);
    let list = remote.find_manifest_bytes(&tag).await?;
    let list = list.as_ref().map(|(_, bytes)| bytes.as_slice());
    let longer = referrers::add_referrer(list, &stored.descriptor, &stored.manifest);
    let longer = longer.map_err(|source| AirgapError::Manifest {
        name: tag.clone(),
        source,
    })?;
    if let Some(bytes) = longer {
        remote.push_manifest(&tag, INDEX, &bytes).await?;
    }
    Ok(())
}
