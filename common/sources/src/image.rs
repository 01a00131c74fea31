//! Fetches packages from images and from artifacts as `oras push` creates them.
//!
//! `resolved` is always the digest of the manifest of the image, even if the name is that of an index, so
//! `IMAGE@resolved` reads the same bytes again.
//!
//! Layers are decompressed in memory while they arrive, and only the content at the requested path is kept.
//! For the number of requests see [`super::registry`]. With a warm cache, a tag needs one request (`HEAD`)
//! and a digest none. Small layers are cached too, so another folder of the same image needs no request for
//! its layers.

pub mod layer;
mod streaming;
mod tree;

use addons_render::package::{Package, normal_path};
use common::api::catalogue::DockerSource;
use common::image::Image;

use crate::cache::CacheNote;
use crate::http::bound::{DOCUMENT, IMAGE_TIME};
use crate::names::is_within;
use crate::registry::manifest::{BlobDescriptor, ImageManifest};
use crate::registry::{self, RegistryAccessError, RegistryClient, ResolvedImage};
use crate::{FetchedPackage, SourceAccess};

use layer::{Compression, ImageLayer, ImageNode, LayerBudget, LayerError};
use streaming::stream_layer;
use tree::{ImageTree, TreeError};

/// The maximum compressed size in bytes of all layers.
const MAX_COMPRESSED: u64 = 512 << 20;
/// The maximum number of layers. Docker creates at most 127.
const MAX_LAYERS: usize = 256;
/// The kind of the notes in the cache.
const NOTES: &str = "image";
/// The media types of the configurations of images. Artifacts have others.
const CONFIGS: [&str; 2] = [
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
];
/// The media type of the layer of an artifact without content.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// The annotation with the name of the file that the layer contains or was packed from.
const TITLE: &str = "org.opencontainers.image.title";
/// The annotation with which oras marks a layer as a packed folder.
const UNPACK: &str = "io.deis.oras.content.unpack";

/// Why a package cannot be fetched from an image.
#[derive(Debug, thiserror::Error)]
pub enum ImageFetchError {
    /// The registry cannot be read.
    #[error(transparent)]
    Registry(#[from] RegistryAccessError),
    /// The path leads out of the image.
    #[error("{image}: the path {path:?} leads out of the image")]
    Path {
        /// The image.
        image: String,
        /// The path as given.
        path: String,
    },
    /// The type of a layer is not supported.
    #[error(
        "{image}: a layer of type {media_type} is not supported{why}; use tar, tar+gzip or tar+zstd"
    )]
    LayerType {
        /// The image.
        image: String,
        /// The media type.
        media_type: String,
        /// The reason, or an empty text.
        why: &'static str,
    },
    /// The layers exceed a limit.
    #[error("{image}: its layers {why}; put the manifests in an image of their own")]
    TooLarge {
        /// The image.
        image: String,
        /// Which limit is exceeded.
        why: String,
    },
    /// A layer cannot be read.
    #[error("{image}: layer {digest}")]
    Layer {
        /// The image.
        image: String,
        /// The digest of the layer.
        digest: String,
        /// Why.
        #[source]
        source: LayerError,
    },
    /// The path has no usable content.
    #[error("{image}")]
    Tree {
        /// The image.
        image: String,
        /// Why.
        #[source]
        source: TreeError,
    },
    /// The fetch exceeded the time limit.
    #[error("{image}: timed out after {} s", IMAGE_TIME.as_secs())]
    TimedOut {
        /// The image.
        image: String,
    },
}

/// The parsed source: an image and a path in it.
struct ImageFetch {
    image: String,
    reference: Image,
    /// The path without leading or trailing `/`.
    path: String,
    /// The result of [`registry::reader_key`].
    seen: String,
}

/// The content of a layer by its media type.
#[derive(Debug, PartialEq, Eq)]
enum LayerContent {
    Archive(Compression),
    /// A file with this name.
    File(String),
    Nothing,
}

/// Fetches the content at a path of an image.
///
/// # Errors
/// [`ImageFetchError`].
pub async fn fetch(
    source: &DockerSource,
    access: &SourceAccess<'_>,
) -> Result<FetchedPackage, ImageFetchError> {
    let image = source.image.trim().to_owned();
    let path = source.path.as_deref().unwrap_or("/");
    let reference = registry::reference(&image)?;
    let wanted = ImageFetch {
        seen: registry::reader_key(&reference, source.plain_http, access),
        reference,
        path: normal_path(path).ok_or_else(|| ImageFetchError::Path {
            image: image.clone(),
            path: path.to_owned(),
        })?,
        image,
    };
    let fetching = wanted.fetch(source.plain_http, access);
    match tokio::time::timeout(IMAGE_TIME, fetching).await {
        Ok(fetched) => fetched,
        Err(_) => Err(ImageFetchError::TimedOut {
            image: wanted.image,
        }),
    }
}

impl ImageFetch {
    async fn fetch(
        &self,
        plain_http: bool,
        access: &SourceAccess<'_>,
    ) -> Result<FetchedPackage, ImageFetchError> {
        let mut registry = RegistryClient::open(&self.reference, plain_http, access)?;
        let tag = registry::tag(&self.reference);
        let name = match &self.reference.digest {
            Some(digest) => digest.clone(),
            None => match access.cache.note(NOTES, &self.key(tag)) {
                Some(note) if access.offline => {
                    if let Some(fetched) = self.cached(access, &note) {
                        return Ok(fetched);
                    }
                    tag.to_owned()
                }
                Some(_) => registry.digest(tag).await?,
                None => tag.to_owned(),
            },
        };
        if let Some(note) = access.cache.note(NOTES, &self.key(&name))
            && name.contains(':')
            && let Some(fetched) = self.cached(access, &note)
        {
            self.remember(access, &note);
            return Ok(fetched);
        }
        let found = registry.image(&name).await?;
        let package = self.unpack(&mut registry, &found.manifest).await?;
        let note = CacheNote {
            digest: access.cache.put(&package.to_bytes()),
            resolved: Some(found.digest.clone()),
            ..CacheNote::default()
        };
        let ResolvedImage { named, digest, .. } = found;
        for name in [&named, &digest] {
            access.cache.set_note(NOTES, &self.key(name), &note);
        }
        self.remember(access, &note);
        Ok(self.to_fetched(package, digest))
    }

    /// Reads the layers, starting with the lowest.
    async fn unpack(
        &self,
        registry: &mut RegistryClient<'_>,
        manifest: &ImageManifest,
    ) -> Result<Package, ImageFetchError> {
        let too_large = |why| ImageFetchError::TooLarge {
            image: self.image.clone(),
            why,
        };
        let wrong = |source| ImageFetchError::Tree {
            image: self.image.clone(),
            source,
        };
        if manifest.layers.len() > MAX_LAYERS {
            return Err(too_large(format!("are more than {MAX_LAYERS}")));
        }
        let sizes = manifest.layers.iter();
        let sizes = sizes.map(|layer| u64::try_from(layer.size).unwrap_or(u64::MAX));
        if sizes.fold(0, u64::saturating_add) > MAX_COMPRESSED {
            let limit = MAX_COMPRESSED >> 20;
            return Err(too_large(format!("have more than {limit} MiB")));
        }
        let is_image = CONFIGS.contains(&manifest.config.media_type.as_str());
        // Check all types before fetching anything.
        let contents = manifest.layers.iter().map(|layer| {
            classify_layer(layer, is_image).map_err(|why| ImageFetchError::LayerType {
                image: self.image.clone(),
                media_type: layer.media_type.clone(),
                why,
            })
        });
        let contents: Vec<LayerContent> = contents.collect::<Result<_, _>>()?;
        let (mut tree, mut budget) = (ImageTree::default(), LayerBudget::default());
        for (descriptor, content) in manifest.layers.iter().zip(contents) {
            let layer = self.layer(registry, descriptor, content, &mut budget);
            let layer = layer.await?;
            tree.apply(layer, &self.path).map_err(wrong)?;
        }
        tree.package(&self.path).map_err(wrong)
    }

    /// Reads one layer.
    async fn layer(
        &self,
        registry: &mut RegistryClient<'_>,
        descriptor: &BlobDescriptor,
        content: LayerContent,
        budget: &mut LayerBudget,
    ) -> Result<ImageLayer, ImageFetchError> {
        let wrong = |source| ImageFetchError::Layer {
            image: self.image.clone(),
            digest: registry::short(&descriptor.digest).to_owned(),
            source,
        };
        match content {
            LayerContent::Nothing => Ok(ImageLayer::default()),
            LayerContent::File(title) => {
                // Of other files, only the names are needed, for the error if the path does not exist.
                let is_wanted = is_within(&title, &self.path);
                let size = u64::try_from(descriptor.size).unwrap_or_default();
                let kept = title.len() as u64 + if is_wanted { size } else { 0 };
                LayerError::check_length(&title, "").map_err(wrong)?;
                budget.keep(kept).map_err(wrong)?;
                let node = match is_wanted {
                    true => {
                        let blob = registry.blob(descriptor).await?;
                        ImageNode::File(blob.read(DOCUMENT).await?.into())
                    }
                    false => ImageNode::Other,
                };
                Ok(ImageLayer {
                    entries: vec![(title, node)],
                    ..ImageLayer::default()
                })
            }
            LayerContent::Archive(compression) => {
                let blob = registry.blob(descriptor).await?;
                let reading = stream_layer(blob, compression, self.path.clone(), budget.clone());
                let (layer, left) = reading.await?;
                *budget = left;
                layer.map_err(wrong)
            }
        }
    }

    /// Records the digest of a tag for runs that only use the cache.
    fn remember(&self, access: &SourceAccess<'_>, note: &CacheNote) {
        if let (None, Some(tag)) = (&self.reference.digest, &self.reference.tag) {
            access.cache.set_note(NOTES, &self.key(tag), note);
        }
    }

    fn cached(&self, access: &SourceAccess<'_>, note: &CacheNote) -> Option<FetchedPackage> {
        let package = Package::from_bytes(&access.cache.get(&note.digest)?).ok()?;
        Some(self.to_fetched(package, note.resolved.clone()?))
    }

    fn to_fetched(&self, package: Package, digest: String) -> FetchedPackage {
        let repository = registry::repository(&self.reference);
        let short = registry::short(&digest);
        FetchedPackage {
            package,
            location: format!("{repository}@{short}:/{}", self.path),
            resolved: Some(digest),
        }
    }

    /// The key of the note for the path in the image of a tag or digest. It includes the architecture,
    /// because an index has one image per architecture.
    fn key(&self, name: &str) -> String {
        let repository = registry::repository(&self.reference);
        let architecture = registry::manifest::architecture();
        // A digest identifies the same content for all readers, but not all may read it.
        format!(
            "{repository} {name}{} {architecture} /{}",
            self.seen, self.path
        )
    }
}

/// Determines the content of a layer from its media type, or returns why it is not supported. Artifacts have
/// their own media types.
fn classify_layer(layer: &BlobDescriptor, is_image: bool) -> Result<LayerContent, &'static str> {
    let media_type = layer.media_type.as_str();
    if media_type.contains("nondistributable") || media_type.contains("foreign") {
        return Err(" (it is not in the registry)");
    }
    if media_type.ends_with("+encrypted") {
        return Err(" (it is encrypted)");
    }
    if media_type == EMPTY {
        return Ok(LayerContent::Nothing);
    }
    let annotation = |key: &str| Some(layer.annotations.as_ref()?.get(key)?.as_str());
    let is_layer = media_type.starts_with("application/vnd.oci.image.layer.v1.")
        || media_type.starts_with("application/vnd.docker.image.rootfs.diff.");
    let known = [
        (".tar+gzip", Compression::Gzip),
        (".tar.gzip", Compression::Gzip),
        (".tar+zstd", Compression::Zstd),
        (".tar.zstd", Compression::Zstd),
        (".tar", Compression::None),
    ];
    let known = known.into_iter().find(|(end, _)| media_type.ends_with(end));
    match known {
        // oras also uses this type for a file without a given type.
        Some((_, Compression::None)) if !is_image && annotation(UNPACK) != Some("true") => {
            match annotation(TITLE).and_then(normal_path) {
                Some(title) if !title.is_empty() && !title.ends_with(".tar") => {
                    Ok(LayerContent::File(title))
                }
                _ => Ok(LayerContent::Archive(Compression::None)),
            }
        }
        Some((_, compression)) if is_layer || !is_image => Ok(LayerContent::Archive(compression)),
        _ => Err(""),
    }
}

#[cfg(test)]
mod tests;
