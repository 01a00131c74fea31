//! Images that hold manifests, and artifacts as `oras push` makes them.
//!
//! `resolved` is always the digest of the image's own manifest, even if the name stands for an index: `IMAGE@resolved` reads
//! the same bytes again.
//!
//! Layers are decompressed in memory while they arrive; only the content at the wanted path is kept. Requests: see
//! [`super::registry`]; with a warm cache a tag is one (`HEAD`), a digest none. Small layers stay in the cache too, so that
//! the second folder of one image costs none either.

pub mod layer;
mod reading;
mod tree;

use addons_render::package::{Package, normal_path};
use common::api::catalogue::DockerSource;
use common::image::Image;

use crate::cache::Note;
use crate::http::bound::{DOCUMENT, IMAGE_TIME};
use crate::names::is_within;
use crate::registry::manifest::{Descriptor, ImageManifest};
use crate::registry::{self, Found, Registry, RegistryError};
use crate::{Access, Fetched};

use layer::{Budget, Compression, Layer, LayerError, Node};
use reading::read;
use tree::{Tree, TreeError};

/// Bytes of all layers, compressed.
const MAX_COMPRESSED: u64 = 512 << 20;
/// Layers; docker makes at most 127.
const MAX_LAYERS: usize = 256;
/// The kind of the notes in the cache.
const NOTES: &str = "image";
/// The configurations of images; artifacts have others.
const CONFIGS: [&str; 2] = [
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
];
/// The layer of an artifact without layers.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// The name of the file that a layer holds, or was packed from.
const TITLE: &str = "org.opencontainers.image.title";
/// Set by oras: the layer is a packed folder.
const UNPACK: &str = "io.deis.oras.content.unpack";

/// Why an image could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// An error of the registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A path that leads out of the image.
    #[error("{image}: the path {path:?} leads out of the image")]
    Path {
        /// The image.
        image: String,
        /// As given.
        path: String,
    },
    /// A layer of a type that is not supported.
    #[error(
        "{image}: a layer of type {media_type} is not supported{why}; use tar, tar+gzip or tar+zstd"
    )]
    LayerType {
        /// The image.
        image: String,
        /// Its media type.
        media_type: String,
        /// Why, if there is a reason to name.
        why: &'static str,
    },
    /// More than the limits.
    #[error("{image}: its layers {why}; put the manifests in an image of their own")]
    TooLarge {
        /// The image.
        image: String,
        /// What is too much.
        why: String,
    },
    /// A layer that cannot be read.
    #[error("{image}: layer {digest}")]
    Layer {
        /// The image.
        image: String,
        /// Of the layer.
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
    /// It took longer than an image may.
    #[error("{image}: timed out after {} s", IMAGE_TIME.as_secs())]
    TimedOut {
        /// The image.
        image: String,
    },
}

/// What is read from an image.
struct Wanted {
    image: String,
    reference: Image,
    /// Without `/` at its ends.
    path: String,
    /// See [`registry::seen_by`].
    seen: String,
}

/// The content of a layer.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    Archive(Compression),
    /// A file of that name.
    File(String),
    Nothing,
}

/// Fetches what an image holds at a path.
///
/// # Errors
/// [`ImageError`].
pub async fn fetch(source: &DockerSource, access: &Access<'_>) -> Result<Fetched, ImageError> {
    let image = source.image.trim().to_owned();
    let path = source.path.as_deref().unwrap_or("/");
    let reference = registry::reference(&image)?;
    let wanted = Wanted {
        seen: registry::seen_by(&reference, source.plain_http, access),
        reference,
        path: normal_path(path).ok_or_else(|| ImageError::Path {
            image: image.clone(),
            path: path.to_owned(),
        })?,
        image,
    };
    let fetching = wanted.fetch(source.plain_http, access);
    match tokio::time::timeout(IMAGE_TIME, fetching).await {
        Ok(fetched) => fetched,
        Err(_) => Err(ImageError::TimedOut {
            image: wanted.image,
        }),
    }
}

impl Wanted {
    async fn fetch(&self, plain_http: bool, access: &Access<'_>) -> Result<Fetched, ImageError> {
        let mut registry = Registry::open(&self.reference, plain_http, access)?;
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
            self.note(access, &note);
            return Ok(fetched);
        }
        let found = registry.image(&name).await?;
        let package = self.unpack(&mut registry, &found.manifest).await?;
        let note = Note {
            digest: access.cache.put(&package.to_bytes()),
            resolved: Some(found.digest.clone()),
            ..Note::default()
        };
        let Found { named, digest, .. } = found;
        for name in [&named, &digest] {
            access.cache.set_note(NOTES, &self.key(name), &note);
        }
        self.note(access, &note);
        Ok(self.fetched(package, digest))
    }

    /// Reads the layers, from the lowest.
    async fn unpack(
        &self,
        registry: &mut Registry<'_>,
        manifest: &ImageManifest,
    ) -> Result<Package, ImageError> {
        let too_large = |why| ImageError::TooLarge {
            image: self.image.clone(),
            why,
        };
        let wrong = |source| ImageError::Tree {
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
        // All types are checked before anything is fetched.
        let contents = manifest.layers.iter().map(|layer| {
            content(layer, is_image).map_err(|why| ImageError::LayerType {
                image: self.image.clone(),
                media_type: layer.media_type.clone(),
                why,
            })
        });
        let contents: Vec<Content> = contents.collect::<Result<_, _>>()?;
        let (mut tree, mut budget) = (Tree::default(), Budget::default());
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
        registry: &mut Registry<'_>,
        descriptor: &Descriptor,
        content: Content,
        budget: &mut Budget,
    ) -> Result<Layer, ImageError> {
        let wrong = |source| ImageError::Layer {
            image: self.image.clone(),
            digest: registry::short(&descriptor.digest).to_owned(),
            source,
        };
        match content {
            Content::Nothing => Ok(Layer::default()),
            Content::File(title) => {
                // Of other files only the names matter, for the error of a path that is not there.
                let is_wanted = is_within(&title, &self.path);
                let size = u64::try_from(descriptor.size).unwrap_or_default();
                let kept = title.len() as u64 + if is_wanted { size } else { 0 };
                LayerError::check_length(&title, "").map_err(wrong)?;
                budget.keep(kept).map_err(wrong)?;
                let node = match is_wanted {
                    true => {
                        let blob = registry.blob(descriptor).await?;
                        Node::File(blob.read(DOCUMENT).await?.into())
                    }
                    false => Node::Other,
                };
                Ok(Layer {
                    entries: vec![(title, node)],
                    ..Layer::default()
                })
            }
            Content::Archive(compression) => {
                let blob = registry.blob(descriptor).await?;
                let reading = read(blob, compression, self.path.clone(), budget.clone());
                let (layer, left) = reading.await?;
                *budget = left;
                layer.map_err(wrong)
            }
        }
    }

    /// Records which digest a tag stands for now, for runs that use only the cache.
    fn note(&self, access: &Access<'_>, note: &Note) {
        if let (None, Some(tag)) = (&self.reference.digest, &self.reference.tag) {
            access.cache.set_note(NOTES, &self.key(tag), note);
        }
    }

    fn cached(&self, access: &Access<'_>, note: &Note) -> Option<Fetched> {
        let package = Package::from_bytes(&access.cache.get(&note.digest)?).ok()?;
        Some(self.fetched(package, note.resolved.clone()?))
    }

    fn fetched(&self, package: Package, digest: String) -> Fetched {
        let repository = registry::repository(&self.reference);
        let short = registry::short(&digest);
        Fetched {
            package,
            location: format!("{repository}@{short}:/{}", self.path),
            resolved: Some(digest),
        }
    }

    /// The key of the note on the wanted path of a tag or digest. In an index each architecture has its own image.
    fn key(&self, name: &str) -> String {
        let repository = registry::repository(&self.reference);
        let architecture = registry::manifest::architecture();
        // A digest means the same content for everyone, but not everyone may read it.
        format!(
            "{repository} {name}{} {architecture} /{}",
            self.seen, self.path
        )
    }
}

/// The content of a layer by its media type, or why it is not supported. Artifacts have media types of their own.
fn content(layer: &Descriptor, is_image: bool) -> Result<Content, &'static str> {
    let media_type = layer.media_type.as_str();
    if media_type.contains("nondistributable") || media_type.contains("foreign") {
        return Err(" (it is not in the registry)");
    }
    if media_type.ends_with("+encrypted") {
        return Err(" (it is encrypted)");
    }
    if media_type == EMPTY {
        return Ok(Content::Nothing);
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
        // oras uses this type for a file without a given type.
        Some((_, Compression::None)) if !is_image && annotation(UNPACK) != Some("true") => {
            match annotation(TITLE).and_then(normal_path) {
                Some(title) if !title.is_empty() && !title.ends_with(".tar") => {
                    Ok(Content::File(title))
                }
                _ => Ok(Content::Archive(Compression::None)),
            }
        }
        Some((_, compression)) if is_layer || !is_image => Ok(Content::Archive(compression)),
        _ => Err(""),
    }
}

#[cfg(test)]
mod tests;
