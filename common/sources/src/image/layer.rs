//! Reads what one layer of an image adds and hides at the requested path, as a pure function of untrusted
//! compressed bytes.

mod archive;
mod bounded;

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

use addons_render::package::{MAX_BYTES, normal_path};
use flate2::read::MultiGzDecoder;

use archive::{TarEntryKind, TarReader};
use bounded::{BoundedReader, CountingReader, ZstdFrames};

/// The maximum decompressed size in bytes of all layers of an image.
const MAX_UNCOMPRESSED: u64 = 2 << 30;
/// The maximum ratio of decompressed to compressed size, above [`RATIO_FLOOR`]. Manifests reach 20.
const MAX_RATIO: u64 = 200;
/// The decompressed size in bytes up to which the ratio is not checked.
const RATIO_FLOOR: u64 = 16 << 20;
/// The maximum number of entries in all layers of an image.
const MAX_ENTRIES: u64 = 500_000;
/// The maximum size in bytes of the kept files and the names of the kept entries of all layers of an image.
const MAX_KEPT: u64 = MAX_BYTES as u64;
/// The maximum size in bytes of a long name or of the extended attributes of an entry, as in Go's
/// archive/tar.
const MAX_EXTENSION: u64 = 1 << 20;
/// The maximum size in bytes of a name or the target of a link, which is the limit of Linux for a path.
const MAX_NAME: usize = 4096;
/// The number of characters of a name that is too long to show in the error.
const SHOWN: usize = 60;

/// How a layer is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    None,
    /// gzip with one or more members.
    Gzip,
    /// zstd with one or more frames.
    Zstd,
}

/// What remains of the limits for all layers of an image.
#[derive(Clone, Debug)]
pub struct LayerBudget {
    uncompressed: u64,
    entries: u64,
    kept: u64,
}

/// What a layer adds and hides.
#[derive(Clone, Debug, Default)]
pub struct ImageLayer {
    /// The paths that the layer hides.
    pub hidden: BTreeSet<String>,
    /// The folders whose content the layer hides.
    pub opaque: BTreeSet<String>,
    /// The paths that the layer adds, in the order of the archive.
    pub entries: Vec<(String, ImageNode)>,
}

/// The entry at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageNode {
    /// A folder.
    Folder,
    /// A file.
    File(Arc<[u8]>),
    /// A symbolic link with its target as written.
    Link(String),
    /// A hard link to the file at a path of the image.
    HardLink(String),
    /// A device, or a file outside the requested path.
    Other,
}

/// Why a layer cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The content does not match the media type.
    #[error("its archive is damaged")]
    Damaged(#[from] std::io::Error),
    /// An entry is invalid, or programs read its headers differently.
    #[error("its entry {name:?} {why}")]
    Entry {
        /// The name of the entry.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The layers exceed `MAX_UNCOMPRESSED`.
    #[error("it unpacks to more than {} MiB", MAX_UNCOMPRESSED >> 20)]
    Large,
    /// The layer exceeds `MAX_RATIO`.
    #[error("it unpacks to more than {MAX_RATIO} times its size: a decompression bomb")]
    Ratio,
    /// The layers exceed `MAX_ENTRIES`.
    #[error("it has more than {MAX_ENTRIES} entries")]
    Entries,
    /// The kept files and names exceed `MAX_KEPT`.
    #[error(
        "the files at the wanted path and their names have more than {} MiB; name a smaller folder in path",
        MAX_KEPT >> 20
    )]
    Kept,
}

impl LayerError {
    /// Refuses an entry whose name or link target is too long, because every folder in it is looked up.
    ///
    /// # Errors
    /// [`LayerError::Entry`].
    pub fn check_length(name: &str, target: &str) -> Result<(), Self> {
        if name.len().max(target.len()) <= MAX_NAME {
            return Ok(());
        }
        Err(Self::Entry {
            name: name.chars().take(SHOWN).collect(),
            why: "has a name or link target of more than 4096 bytes",
        })
    }

    /// Whether a limit was exceeded, as opposed to damaged content.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        !matches!(self, Self::Damaged(_) | Self::Entry { .. })
    }
}

impl Default for LayerBudget {
    fn default() -> Self {
        Self {
            uncompressed: MAX_UNCOMPRESSED,
            entries: MAX_ENTRIES,
            kept: MAX_KEPT,
        }
    }
}

impl LayerBudget {
    /// Subtracts the size of kept content from the budget.
    ///
    /// # Errors
    /// [`LayerError::Kept`].
    pub fn keep(&mut self, bytes: u64) -> Result<(), LayerError> {
        self.kept = self.kept.checked_sub(bytes).ok_or(LayerError::Kept)?;
        Ok(())
    }
}

/// Reads a layer. `path` has no leading or trailing `/`. Outside of it, only the names of the top folders are
/// kept, for errors that list what exists.
///
/// # Errors
/// [`LayerError`].
pub fn read_layer(
    compressed: impl Read,
    compression: Compression,
    path: &str,
    budget: &mut LayerBudget,
) -> Result<ImageLayer, LayerError> {
    let (counted, compressed) = CountingReader::new(compressed);
    let reader: Box<dyn Read + '_> = match compression {
        Compression::None => Box::new(counted),
        Compression::Gzip => Box::new(MultiGzDecoder::new(counted)),
        Compression::Zstd => Box::new(ZstdFrames::new(counted)),
    };
    let (bounded, exceeded) = BoundedReader::new(reader, compressed, budget.uncompressed);
    let mut archive = TarReader::new(bounded);
    let read = read_entries(&mut archive, path, budget);
    budget.uncompressed = archive.into_inner().remaining();
    // The other readers wrap the error of an exceeded limit in their own.
    match exceeded.take() {
        Some(exceeded) => Err(exceeded),
        None => read,
    }
}

fn read_entries<R: Read>(
    archive: &mut TarReader<R>,
    path: &str,
    budget: &mut LayerBudget,
) -> Result<ImageLayer, LayerError> {
    let mut layer = ImageLayer::default();
    let mut beside = BTreeSet::new();
    archive.for_each(MAX_EXTENSION, |entry| {
        budget.entries = budget.entries.checked_sub(1).ok_or(LayerError::Entries)?;
        let name = normal_path(&entry.name).ok_or_else(|| LayerError::Entry {
            name: entry.name.clone(),
            why: "leads out of the image",
        })?;
        let (folder, last) = name.rsplit_once('/').unwrap_or(("", &name));
        if let Some(hidden) = last.strip_prefix(".wh.") {
            return layer.hide(path, folder, hidden, budget);
        }
        let (shown, is_wanted) = clip(path, &name);
        if shown.len() < name.len() {
            if beside.insert(shown.to_owned()) {
                budget.keep(shown.len() as u64)?;
                layer.entries.push((shown.to_owned(), ImageNode::Folder));
            }
            return Ok(());
        }
        let node = match entry.kind {
            TarEntryKind::File if is_wanted => {
                budget.keep(entry.size)?;
                ImageNode::File(entry.bytes()?.into())
            }
            TarEntryKind::Sparse if is_wanted => {
                return Err(LayerError::Entry {
                    name: entry.name.clone(),
                    why: "is a sparse file, which is not read",
                });
            }
            TarEntryKind::Folder => ImageNode::Folder,
            TarEntryKind::Link => ImageNode::Link(entry.target.clone()),
            TarEntryKind::HardLink if is_wanted => ImageNode::HardLink(entry.target.clone()),
            TarEntryKind::File
            | TarEntryKind::Sparse
            | TarEntryKind::HardLink
            | TarEntryKind::Other => ImageNode::Other,
        };
        if !name.is_empty() {
            budget.keep((name.len() + entry.target.len()) as u64)?;
            layer.entries.push((name, node));
        }
        Ok(())
    })?;
    Ok(layer)
}

impl ImageLayer {
    /// Records a whiteout, unless it is outside the requested `path`.
    fn hide(
        &mut self,
        path: &str,
        folder: &str,
        hidden: &str,
        budget: &mut LayerBudget,
    ) -> Result<(), LayerError> {
        let (set, name) = match hidden {
            ".wh..opq" => (&mut self.opaque, folder.to_owned()),
            // Other names of this form are internal to aufs.
            hidden if hidden.starts_with(".wh.") => return Ok(()),
            hidden => (&mut self.hidden, join_path(folder, hidden)),
        };
        if clip(path, &name).0 == name {
            budget.keep(name.len() as u64)?;
            set.insert(name);
        }
        Ok(())
    }
}

/// Returns the part of `name` that is relevant for the requested `path`: all of it if one path contains the
/// other, otherwise up to the first part that differs. Also returns whether `name` is at or below `path`.
fn clip<'a>(path: &str, name: &'a str) -> (&'a str, bool) {
    let mut wanted = path.split('/').filter(|part| !part.is_empty());
    let mut end = 0;
    for part in name.split('/') {
        end += part.len();
        match wanted.next() {
            None => return (name, true),
            Some(wanted) if wanted == part => end += 1,
            Some(_) => return (name.get(..end).unwrap_or(name), false),
        }
    }
    (name, wanted.next().is_none())
}

/// Joins `FOLDER/NAME`. The root folder is empty.
#[must_use]
pub fn join_path(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

#[cfg(test)]
mod tests;
