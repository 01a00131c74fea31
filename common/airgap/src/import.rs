//! Imports an archive into the registry of a site.

use std::collections::BTreeMap;
use std::path::Path;

use crate::site;
use addons_sources::SourceAccess;
use addons_sources::layout::{LayoutArchive, StoredManifest};
use addons_sources::location;
use addons_sources::registry::push::PushOutcome;
use addons_sources::registry::{RegistryClient, reference};
use common::image::{Image, is_of_this_machine};
use common::oci::manifest::{Descriptor, INDEX};
use common::oci::{CATALOGUE_FILE, referrers};
use common::registry::Registry;

use super::meter::CopyMeter;
use super::{AirgapError, AirgapProgress, ReportAirgapProgress};
use addons_operation::context::Context;

/// Counts and names of a finished import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Images and artifacts.
    pub images: usize,
    /// Blobs that were sent.
    pub sent: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Blobs that the registry already had.
    pub there: usize,
    /// The catalogue in the registry: `HOST/PATH:TAG`.
    pub catalogue: Option<String>,
    /// The add-ons that the catalogue lists.
    pub addons: Vec<String>,
}

/// Verifies an archive and pushes what the registry lacks.
///
/// # Errors
/// [`AirgapError`]. If the archive is invalid, nothing was pushed.
pub async fn import(
    ctx: &Context,
    path: &Path,
    registry: &Registry,
    report: ReportAirgapProgress<'_>,
) -> Result<Imported, AirgapError> {
    report(AirgapProgress::Verifying);
    let archive = LayoutArchive::open(path)?;
    let targets = site::list_targets(archive.named(), registry)?;
    // Read before anything is pushed, because the archive may still have to be refused.
    let catalogue = targets
        .iter()
        .rfind(|target| site::is_catalogue(&target.named.image));
    let addons = match catalogue {
        Some(catalogue) => list_addons(&archive, &catalogue.named.descriptor)?,
        None => Vec::new(),
    };
    let reach = ctx.reach_of_opened();
    let mut import = ArchiveImport {
        archive: &archive,
        access: ctx.access(&reach),
        report,
        repository_of_blob: BTreeMap::new(),
        done: Imported::default(),
    };
    for target in &targets {
        let name = target.image.to_string();
        report(AirgapProgress::Copying { name: name.clone() });
        let before = import.done.clone();
        import.push(&target.image, &target.named.descriptor).await?;
        import.done.images += 1;
        report(AirgapProgress::Copied {
            name,
            blobs: import.done.sent - before.sent,
            bytes: import.done.bytes - before.bytes,
            there: import.done.there - before.there,
        });
    }
    Ok(Imported {
        catalogue: catalogue.map(|target| target.image.to_string()),
        addons,
        ..import.done
    })
}

struct ArchiveImport<'a> {
    archive: &'a LayoutArchive,
    access: SourceAccess<'a>,
    report: ReportAirgapProgress<'a>,
    /// A repository that has the blob, by digest.
    repository_of_blob: BTreeMap<String, String>,
    done: Imported,
}

impl ArchiveImport<'_> {
    async fn push(&mut self, image: &Image, root: &Descriptor) -> Result<(), AirgapError> {
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
                self.done.sent += 1;
                self.done.bytes += blob.size;
            } else {
                self.done.there += 1;
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

/// Returns the names of the add-ons that the catalogue of an archive lists.
fn list_addons(
    archive: &LayoutArchive,
    catalogue: &Descriptor,
) -> Result<Vec<String>, AirgapError> {
    let wrong = |why: String| AirgapError::Catalogue(format!("{why}; nothing was pushed"));
    let files = archive.files(&catalogue.digest)?;
    let Some(file) = files.get(CATALOGUE_FILE) else {
        return Err(wrong(format!("it has no {}", CATALOGUE_FILE)));
    };
    let read = location::parse(&file.bytes, CATALOGUE_FILE);
    let read = read.map_err(|error| wrong(error.to_string()))?;
    let addons = read.iter().flat_map(|one| &one.object.spec.addons);
    Ok(addons.map(|addon| addon.name.clone()).collect())
}

#[cfg(test)]
mod tests {
    use addons_engine::Cluster;
    use addons_render::package::{Package, PackagedFile};
    use addons_sources::layout::PartialArchive;
    use addons_sources::scratch::Scratch;
    use common::oci::layout::NamedManifest;
    use futures::FutureExt as _;

    use super::*;
    use addons_operation::context::ContextSettings;
    use addons_operation::error::BoxError;

    /// An archive with an image and a catalogue of this text.
    fn archive(path: &Path, catalogue: &str) {
        let mut partial = PartialArchive::open(path).unwrap();
        let mut put = |image: Image, path: &str, text: &str| {
            let bytes = text.as_bytes().to_vec();
            let path = path.to_owned();
            let files = Package::from_folder(vec![PackagedFile { path, bytes }]).unwrap();
            let descriptor = partial.put_files("application/vnd.example", &files);
            let descriptor = descriptor.unwrap();
            NamedManifest { image, descriptor }
        };
        let image = Image::parse("quay.io/a/b:1").unwrap();
        let named = [
            put(image, "web.yaml", "a"),
            put(site::catalogue_name("site.tar"), CATALOGUE_FILE, catalogue),
        ];
        partial.finish(&named).unwrap();
    }

    /// The registry cannot be reached: whoever pushes before the catalogue is read gets another error.
    #[tokio::test]
    async fn a_catalogue_that_cannot_be_read_is_refused_before_anything_is_pushed() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let folder = Scratch::new("airgap-import-").unwrap();
        let path = folder.path().join("site.tar");
        archive(&path, "kind: Deployment\n");
        let connect = || async { Err::<Cluster, _>(BoxError::from("no cluster")) }.boxed();
        let ctx = Context::connecting(Box::new(connect), ContextSettings::default());
        let registry: Registry = "127.0.0.1:1/site".parse().unwrap();
        let said = std::sync::Mutex::new(Vec::new());
        let report = |progress: AirgapProgress| said.lock().unwrap().push(progress);
        let error = import(&ctx, &path, &registry, &report).await.unwrap_err();
        assert!(matches!(error, AirgapError::Catalogue(_)), "{error}");
        let text = error.to_string();
        assert!(text.ends_with("; nothing was pushed"), "{text}");
        assert_eq!(said.into_inner().unwrap(), [AirgapProgress::Verifying]);
    }
}
