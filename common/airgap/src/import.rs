//! Imports an archive into the registry of a site.

use std::collections::BTreeMap;
use std::path::Path;

use crate::site;
use addons_sources::Access;
use addons_sources::layout::{LayoutArchive, StoredManifest};
use addons_sources::location;
use addons_sources::registry::push::PushOutcome;
use addons_sources::registry::{RegistryClient, reference};
use common::image::{Image, is_of_this_machine};
use common::oci::manifest::{Descriptor, INDEX};
use common::oci::{CATALOGUE_FILE, referrers};
use common::registry::Registry;

use super::meter::Meter;
use super::{AirgapError, Progress, Report};
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
    report: Report<'_>,
) -> Result<Imported, AirgapError> {
    report(Progress::Verifying);
    let archive = LayoutArchive::open(path)?;
    let targets = site::targets(archive.named(), registry)?;
    // Read before anything is pushed, because the archive may still have to be refused.
    let catalogue = targets
        .iter()
        .rfind(|target| site::is_catalogue(&target.named.image));
    let addons = match catalogue {
        Some(catalogue) => addons(&archive, &catalogue.named.descriptor)?,
        None => Vec::new(),
    };
    let reach = ctx.opened();
    let mut import = Import {
        archive: &archive,
        access: ctx.access(&reach),
        report,
        at: BTreeMap::new(),
        done: Imported::default(),
    };
    for target in &targets {
        let name = target.image.to_string();
        report(Progress::Copying { name: name.clone() });
        let before = import.done.clone();
        import.push(&target.image, &target.named.descriptor).await?;
        import.done.images += 1;
        report(Progress::Copied {
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

struct Import<'a> {
    archive: &'a LayoutArchive,
    access: Access<'a>,
    report: Report<'a>,
    /// A repository that has the blob, by digest.
    at: BTreeMap<String, String>,
    done: Imported,
}

impl Import<'_> {
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
            self.blobs(&mut remote, image, &stored).await?;
            let former = remote.find_digest(name).await?;
            if former.as_ref() != Some(digest) {
                let media_type = &stored.manifest.media_type;
                let bytes = &stored.bytes;
                remote.push_manifest(name, media_type, bytes).await?;
                if let Some(former) = former {
                    let name = image.to_string();
                    (self.report)(Progress::Moved { name, former });
                }
            }
            refer(&mut remote, &stored).await?;
        }
        Ok(())
    }

    async fn blobs(
        &mut self,
        remote: &mut RegistryClient<'_>,
        image: &Image,
        stored: &StoredManifest,
    ) -> Result<(), AirgapError> {
        let name = image.to_string();
        for blob in &stored.manifest.blobs {
            let mut meter = Meter::new(self.report, &name, blob.size);
            let beside = self.at.get(&blob.digest).map(String::as_str);
            let beside = beside.filter(|beside| *beside != image.repository);
            let bytes = self.archive.blob(&blob.digest)?;
            let sent = |done| meter.at(done);
            let pushed = remote.push_blob(&blob.digest, blob.size, beside, bytes, sent);
            if pushed.await? == PushOutcome::Sent {
                self.done.sent += 1;
                self.done.bytes += blob.size;
            } else {
                self.done.there += 1;
            }
            let repository = image.repository.clone();
            self.at.insert(blob.digest.clone(), repository);
        }
        Ok(())
    }
}

/// Adds a referrer to the list under the tag of its subject, unless the registry keeps such a list itself.
async fn refer(
    remote: &mut RegistryClient<'_>,
    stored: &StoredManifest,
) -> Result<(), AirgapError> {
    let Some(subject) = &stored.manifest.subject else {
        return Ok(());
    };
    if remote.lists_referrers(subject).await? {
        return Ok(());
    }
    let tag = referrers::tag(subject);
    let list = remote.find_manifest_bytes(&tag).await?;
    let list = list.as_ref().map(|(_, bytes)| bytes.as_slice());
    let longer = referrers::with(list, &stored.descriptor, &stored.manifest);
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
fn addons(archive: &LayoutArchive, catalogue: &Descriptor) -> Result<Vec<String>, AirgapError> {
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
    use addons_render::package::{File, Package};
    use addons_sources::layout::PartialArchive;
    use addons_sources::scratch::Scratch;
    use common::oci::layout::Named;
    use futures::FutureExt as _;

    use super::*;
    use addons_operation::context::Settings;
    use addons_operation::error::BoxError;

    /// An archive with an image and a catalogue of this text.
    fn archive(path: &Path, catalogue: &str) {
        let mut partial = PartialArchive::open(path).unwrap();
        let mut put = |image: Image, path: &str, text: &str| {
            let bytes = text.as_bytes().to_vec();
            let path = path.to_owned();
            let files = Package::folder(vec![File { path, bytes }]).unwrap();
            let descriptor = partial.put_files("application/vnd.example", &files);
            let descriptor = descriptor.unwrap();
            Named { image, descriptor }
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
        let ctx = Context::connecting(Box::new(connect), Settings::default());
        let registry: Registry = "127.0.0.1:1/site".parse().unwrap();
        let said = std::sync::Mutex::new(Vec::new());
        let report = |progress: Progress| said.lock().unwrap().push(progress);
        let error = import(&ctx, &path, &registry, &report).await.unwrap_err();
        assert!(matches!(error, AirgapError::Catalogue(_)), "{error}");
        let text = error.to_string();
        assert!(text.ends_with("; nothing was pushed"), "{text}");
        assert_eq!(said.into_inner().unwrap(), [Progress::Verifying]);
    }
}
