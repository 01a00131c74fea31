//! What one add-on needs at a site: its source and the images of its objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::site;
use addons_render::images::{find_images, find_mentions};
use addons_render::package::{Package, PackagedFile};
use addons_sources::Reach;
use addons_sources::credentials::Credentials;
use addons_sources::registry::chart;
use common::api::catalogue::{Method, Source, SourceKind};
use common::catalogue::author::Author;
use common::catalogue::{CatalogueEntry, Origin};
use common::image::{Image, is_of_this_machine};
use common::manifest::Manifest;
use common::manifest::key::ObjectKey;
use common::registry::Registry;

use super::AirgapError;
use super::export::ExportRequest;
use addons_operation::context::Context;
use addons_operation::error::within;
use addons_operation::fetch::{self, LocatedSource};
use addons_operation::render::inputs::{Inputs, RenderData};
use addons_operation::render::{render_objects, resolve_uninstalled};

/// An image or artifact to copy.
pub(super) struct ImageToCopy {
    /// Its name in catalogues and objects.
    pub image: Image,
    /// The location from which it is read.
    pub from: Image,
    /// Whether the registry at `from` speaks HTTP without TLS.
    pub plain_http: bool,
    /// Credentials for that registry.
    pub credentials: Option<Arc<Credentials>>,
    /// What reading it may open on this machine.
    pub reach: Reach,
    /// The digests with which add-ons were verified and rendered.
    pub verified: Vec<String>,
}

/// How the site gets the source of an add-on.
pub(super) enum SiteSource {
    /// As it is here: from a registry, or inline in the catalogue.
    Kept(Box<Source>),
    /// As an artifact that is made of these files.
    Files {
        /// The files.
        files: Package,
        /// The path of the file, if the source is a single file.
        file: Option<String>,
    },
}

/// What an add-on needs.
pub(super) struct AddonContents {
    /// Images and artifacts that are copied from registries.
    pub wanted: Vec<ImageToCopy>,
    /// Its source at the site.
    pub site_source: SiteSource,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Reads and renders an add-on. Its hash is verified on the bytes of the source before anything is rewritten. The cached chart is discarded
/// first, because the export copies the chart as it is now (semantics 17.3).
pub(super) async fn read_contents(
    ctx: &Context,
    entry: &CatalogueEntry,
    request: &ExportRequest<'_>,
) -> Result<AddonContents, AirgapError> {
    let resolved = resolve_uninstalled(ctx, entry);
    let place = || resolved.place();
    let registry = within(resolved.registry(), place)?;
    let located = LocatedSource::new(ctx, &resolved).await?;
    if let Some(helm) = &located.source.helm {
        chart::forget(helm, &located.access(ctx)).await;
    }
    let verified = fetch::package(ctx, &resolved).await?;
    let files = &verified.fetched.package;
    let found = verified.fetched.resolved.as_deref().unwrap_or_default();
    // An image has no version.
    let (version, digest) = found.split_once('@').unwrap_or((found, found));
    let needed_by = |source| AirgapError::Image {
        needed_by: resolved.place(),
        source,
    };
    let original = &entry.version.source;
    let is_kept = is_kept(entry, files);
    let mut wanted = Vec::new();
    if is_kept && let Some(image) = site::registry_image(original, version).map_err(needed_by)? {
        let from = site::registry_image(&located.source, version).map_err(needed_by)?;
        wanted.push(ImageToCopy {
            from: from.unwrap_or_else(|| image.clone()),
            image,
            plain_http: is_plain_http(&located.source),
            credentials: located.credentials,
            reach: located.reach,
            verified: vec![digest.to_owned()],
        });
    }
    let is_chart = matches!(original.kind(), Ok(SourceKind::Helm(_)));
    let at_site = if is_kept {
        SiteSource::Kept(Box::new(site::site_source(
            original,
            is_chart.then_some(version),
        )))
    } else {
        SiteSource::Files {
            file: files.as_file().map(|file| file.path.clone()),
            files: to_folder(&entry.addon, files)?,
        }
    };
    if request.without_images {
        return Ok(AddonContents {
            wanted,
            site_source: at_site,
            warnings: Vec::new(),
        });
    }
    // The site rewrites the image names that the objects have without a private registry.
    let without = CatalogueEntry {
        registry: None,
        ..entry.clone()
    };
    let plain = resolve_uninstalled(ctx, &without);
    let inputs = match request.kubernetes {
        Some(version) => Inputs::without_cluster(&plain, RenderData::with_version(version)),
        None => Inputs::read(ctx, &plain).await?,
    };
    let rendered = render_objects(ctx, &plain, plain.occasion(), inputs, verified).await?;
    let mut found = BTreeSet::new();
    let mut warnings = Vec::new();
    for manifest in &rendered.manifests {
        found.extend(find_images(&manifest.object));
        warnings.extend(warn_of_possible_images(&entry.addon, manifest));
    }
    for image in found {
        let reach = reach_of_images(ctx, entry);
        wanted.push(image_to_copy(&image, registry.as_ref(), reach).map_err(needed_by)?);
    }
    Ok(AddonContents {
        wanted,
        site_source: at_site,
        warnings,
    })
}

/// Returns what the images of an add-on may open. The objects name them, so `docker login` is used only for registries that the user named,
/// directly or by the location of the index.
fn reach_of_images(ctx: &Context, entry: &CatalogueEntry) -> Reach {
    match (&entry.author, &*entry.origin) {
        (Author::Typed(typed), Origin::Index { location } | Origin::Installation { location }) => {
            ctx.reach_beside(typed, location)
        }
        _ => ctx.reach_of_opened(),
    }
}

/// Returns an image as container runtimes pull it.
pub(super) fn image_to_copy(
    name: &str,
    registry: Option<&Registry>,
    reach: Reach,
) -> Result<ImageToCopy, common::image::ImageError> {
    let image = site::parse_pulled_image(name)?;
    let from = match registry {
        Some(registry) => site::site_image(&image, registry)?,
        None => image.clone(),
    };
    Ok(ImageToCopy {
        plain_http: is_of_this_machine(&from.host),
        image,
        from,
        credentials: None,
        reach,
        verified: Vec::new(),
    })
}

/// Returns whether the site uses the source under its present name. A chart in the folder of an image may depend on other charts, which are
/// fetched with it and are not part of the image.
fn is_kept(entry: &CatalogueEntry, files: &Package) -> bool {
    let is_chart = entry.version.template.method == Method::Helm;
    match entry.version.source.kind() {
        Ok(SourceKind::Docker(_)) => !is_chart || files.as_file().is_some(),
        Ok(SourceKind::Helm(helm)) => helm.url.starts_with("oci://"),
        Ok(SourceKind::Inline(_)) => true,
        Ok(SourceKind::Git(_) | SourceKind::Url(_) | SourceKind::Catalogue(_)) | Err(_) => false,
    }
}

fn is_plain_http(source: &Source) -> bool {
    let docker = source.docker.as_ref().map(|docker| docker.plain_http);
    let helm = source.helm.as_ref().map(|helm| helm.plain_http);
    docker.or(helm).unwrap_or_default()
}

/// Returns the files as a folder, which an artifact contains.
pub(super) fn to_folder(addon: &str, files: &Package) -> Result<Package, AirgapError> {
    let files: Vec<PackagedFile> = files.files().to_vec();
    Package::from_folder(files).map_err(|source| AirgapError::Package {
        addon: addon.to_owned(),
        source,
    })
}

/// Warns about texts that may be images: they are not rewritten at the site.
fn warn_of_possible_images(addon: &str, manifest: &Manifest) -> Vec<String> {
    let object =
        ObjectKey::from_object(&manifest.object).map_or_else(String::new, |key| key.to_string());
    let doubts = find_mentions(&manifest.object).into_iter().map(|mention| {
        format!(
            "{addon}: {object}: {}, which may be an image: add it with --image, and set its name at the site in the values",
            mention.describe()
        )
    });
    doubts.collect()
}
