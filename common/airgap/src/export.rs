//! Exports add-ons to one archive.

use std::collections::BTreeMap;
use std::path::Path;

use crate::site;
use addons_render::package::{Package, PackagedFile};
use addons_sources::layout::PartialArchive;
use addons_sources::{archive, url};
use common::api::catalogue::Source;
use common::catalogue::CatalogueEntry;
use common::catalogue::author::Typed;
use common::oci::CATALOGUE_FILE;
use common::oci::layout::NamedManifest;

use super::contents::{AddonContents, ImageToCopy, SiteSource, image_to_copy, read_contents};
use super::{AirgapError, AirgapProgress, ReportAirgapProgress, copy};
use addons_operation::context::Context;

/// Media type of an artifact with the files of an add-on.
pub(super) const PACKAGE_TYPE: &str = "application/vnd.kubectl-addons.package.v1";
/// Media type of an artifact with a catalogue.
pub(super) const CATALOGUE_TYPE: &str = "application/vnd.kubectl-addons.catalogue.v1";

/// What an archive is to contain.
#[derive(Clone, Copy, Debug)]
pub struct ExportRequest<'a> {
    /// The add-ons, each at one version.
    pub entries: &'a [CatalogueEntry],
    /// The Kubernetes version to render for; `None` = the version of the cluster.
    pub kubernetes: Option<&'a str>,
    /// Images in addition to those of the objects.
    pub images: &'a [String],
    /// Whether the images of the objects are left out.
    pub without_images: bool,
    /// The locations of the indexes of the entries; the indexes are stored unmodified.
    pub indexes: &'a [Typed],
}

/// Counts of a finished export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Images and artifacts, without their referrers.
    pub images: usize,
    /// Referrers of them: signatures, attestations and the like.
    pub referrers: usize,
    /// Size of the archive in bytes.
    pub bytes: u64,
}

/// Writes an archive. After an interruption, it reuses what was already fetched.
///
/// # Errors
/// [`AirgapError`]. What was fetched stays in the folder `ARCHIVE.partial`.
pub async fn export(
    ctx: &Context,
    request: &ExportRequest<'_>,
    archive: &Path,
    report: ReportAirgapProgress<'_>,
) -> Result<Exported, AirgapError> {
    let mut wanted = BTreeMap::<String, ImageToCopy>::new();
    let mut contents = Vec::with_capacity(request.entries.len());
    for entry in request.entries {
        let mut found = read_contents(ctx, entry, request).await?;
        for warning in std::mem::take(&mut found.warnings) {
            report(AirgapProgress::Warning(warning));
        }
        for one in std::mem::take(&mut found.wanted) {
            add_image(&mut wanted, one);
        }
        contents.push((entry, found));
    }
    for image in request.images {
        let one = image_to_copy(image, None, ctx.reach_of_opened()).map_err(|source| {
            AirgapError::Image {
                needed_by: "--image".to_owned(),
                source,
            }
        })?;
        add_image(&mut wanted, one);
    }
    let mut partial = PartialArchive::open(archive)?;
    let mut named = Vec::<NamedManifest>::new();
    for one in wanted.values() {
        let access = ctx.access(&one.reach);
        named.extend(copy::copy_image(&mut partial, one, access, report).await?);
    }
    let referrers = named.len() - wanted.len();
    let mut listed = Vec::with_capacity(contents.len());
    for (entry, contents) in contents {
        let source = put_source(&mut partial, &mut named, entry, contents)?;
        listed.push((entry.clone(), source));
    }
    // The catalogue is added last, so that a site has everything that its catalogue lists.
    let name = archive.file_name().map(|name| name.to_string_lossy());
    let image = site::catalogue_name(&name.unwrap_or_default());
    let object = site::site_catalogue(image.tag.as_deref().unwrap_or_default(), listed);
    let text = serde_saphyr::to_string(&object);
    let text = text.map_err(|error| AirgapError::Catalogue(error.to_string()))?;
    let files = catalogue_files(ctx, text, request.indexes).await?;
    let descriptor = partial.put_files(CATALOGUE_TYPE, &files)?;
    named.push(NamedManifest { image, descriptor });
    Ok(Exported {
        images: named.len() - referrers,
        referrers,
        bytes: partial.finish(&named)?,
    })
}

/// Adds an image to copy. If several add-ons need it, it is copied once, and must have the digest that each of them was verified with.
fn add_image(wanted: &mut BTreeMap<String, ImageToCopy>, mut one: ImageToCopy) {
    let verified = std::mem::take(&mut one.verified);
    let known = wanted.entry(one.image.to_string()).or_insert(one);
    known.verified.extend(verified);
}

/// Returns the source of an add-on at the site. If it is in no registry, its files are added as an artifact.
fn put_source(
    partial: &mut PartialArchive,
    named: &mut Vec<NamedManifest>,
    entry: &CatalogueEntry,
    contents: AddonContents,
) -> Result<Source, AirgapError> {
    let (files, file) = match contents.site_source {
        SiteSource::Kept(source) => return Ok(*source),
        SiteSource::Files { files, file } => (files, file),
    };
    let descriptor = partial.put_files(PACKAGE_TYPE, &files)?;
    let image = site::package_image(&entry.addon, &descriptor.digest);
    let source = site::package_source(&image, file.as_deref());
    named.push(NamedManifest { image, descriptor });
    Ok(source)
}

/// Returns the catalogue of the site together with the indexes it was made of, byte for byte, so that their signatures stay valid.
async fn catalogue_files(
    ctx: &Context,
    text: String,
    indexes: &[Typed],
) -> Result<Package, AirgapError> {
    let mut files = vec![PackagedFile {
        path: CATALOGUE_FILE.to_owned(),
        bytes: text.into_bytes(),
    }];
    for (number, index) in indexes.iter().enumerate() {
        let location = url::absolute(index);
        let location = location.map_err(addons_operation::error::OperationError::from)?;
        // A folder or an archive without an index is an add-on itself.
        let is_folder = Path::new(&**index).is_dir() && !location.ends_with(".yaml");
        if is_folder || archive::is_archive(&location) {
            continue;
        }
        let reach = ctx.reach_of_typed(index);
        let fetched = url::fetch(&location, &ctx.access(&reach)).await;
        let fetched = fetched.map_err(addons_operation::error::OperationError::from)?;
        files.push(PackagedFile {
            path: format!("original-{}.yaml", number + 1),
            bytes: fetched.bytes,
        });
    }
    Package::from_folder(files).map_err(|source| AirgapError::Package {
        addon: CATALOGUE_FILE.to_owned(),
        source,
    })
}
