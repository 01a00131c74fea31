//! Imports an archive into the registry of a site.

use std::path::Path;

use crate::site;
use addons_sources::layout::LayoutArchive;
use addons_sources::location;
use common::oci::CATALOGUE_FILE;
use common::oci::manifest::Descriptor;
use common::registry::Registry;

use super::push::{ArchivePush, PushCounts};
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
    let mut push = ArchivePush::new(&archive, ctx.access(&reach), report);
    for target in &targets {
        push.push(&target.image, &target.named.descriptor).await?;
    }
    let PushCounts { sent, bytes, there } = push.counts();
    Ok(Imported {
        images: targets.len(),
        sent,
        bytes,
        there,
        catalogue: catalogue.map(|target| target.image.to_string()),
        addons,
    })
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
    use common::image::Image;
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
