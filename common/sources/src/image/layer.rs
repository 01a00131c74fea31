//! One layer of an image: what it adds and hides at the wanted path. A pure function over untrusted compressed bytes.

mod archive;
mod bounded;

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

use addons_render::package::{MAX_BYTES, normal_path};
use flate2::read::MultiGzDecoder;

use archive::{Archive, Kind};
use bounded::{Bounded, Counted, Frames};

/// Bytes of all layers of an image, decompressed.
const MAX_UNCOMPRESSED: u64 = 2 << 30;
/// How many times larger than its compressed bytes a layer may be, beyond [`RATIO_FLOOR`]. Manifests reach 20.
const MAX_RATIO: u64 = 200;
/// Decompressed bytes of a layer below which the ratio says nothing.
const RATIO_FLOOR: u64 = 16 << 20;
/// Entries of all layers of an image.
const MAX_ENTRIES: u64 = 500_000;
/// Bytes of the files that are kept and of the names of all entries that are, of all layers of an image.
const MAX_KEPT: u64 = MAX_BYTES as u64;
/// Bytes of a long name or of the extended attributes of one entry, as in Go's archive/tar.
const MAX_EXTENSION: u64 = 1 << 20;
/// Bytes of a name or of the target of a link, as Linux limits a path.
const MAX_NAME: usize = 4096;
/// Characters of such a name in its error.
const SHOWN: usize = 60;

/// How a layer is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, also of several members.
    Gzip,
    /// zstd, also of several frames.
    Zstd,
}

/// What the layers of an image may still use of the limits.
#[derive(Clone, Debug)]
pub struct Budget {
    uncompressed: u64,
    entries: u64,
    kept: u64,
}

/// What a layer adds and hides.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    /// Paths that it hides.
    pub hidden: BTreeSet<String>,
    /// Folders whose content it hides.
    pub opaque: BTreeSet<String>,
    /// What it adds, in the order of the archive.
    pub entries: Vec<(String, Node)>,
}

/// An entry at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A folder.
    Folder,
    /// A file.
    File(Arc<[u8]>),
    /// A symbolic link, with its target as written.
    Link(String),
    /// Another name of the file at a path of the image.
    HardLink(String),
    /// A device, or a file outside the wanted path.
    Other,
}

/// Why a layer cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// Not what its media type says.
    #[error("its archive is damaged")]
    Damaged(#[from] std::io::Error),
    /// A header that programs read differently.
    #[error("its entry {name:?} {why}")]
    Entry {
        /// The entry.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
    /// More than `MAX_UNCOMPRESSED`.
    #[error("it unpacks to more than {} MiB", MAX_UNCOMPRESSED >> 20)]
    Large,
    /// More than `MAX_RATIO`.
    #[error("it unpacks to more than {MAX_RATIO} times its size: a decompression bomb")]
    Ratio,
    /// More than `MAX_ENTRIES`.
    #[error("it has more than {MAX_ENTRIES} entries")]
    Entries,
    /// More than `MAX_KEPT`.
    #[error(
        "the files at the wanted path and their names have more than {} MiB; name a smaller folder in path",
        MAX_KEPT >> 20
    )]
    Kept,
}

impl LayerError {
    /// Refuses an entry whose name, or target if it is a link, is too long: every folder in it is looked up.
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

impl Default for Budget {
    fn default() -> Self {
        Self {
            uncompressed: MAX_UNCOMPRESSED,
            entries: MAX_ENTRIES,
            kept: MAX_KEPT,
        }
    }
}

impl Budget {
    /// Takes the bytes of something that is kept.
    ///
    /// # Errors
    /// [`LayerError::Kept`].
    pub fn keep(&mut self, bytes: u64) -> Result<(), LayerError> {
        self.kept = self.kept.checked_sub(bytes).ok_or(LayerError::Kept)?;
        Ok(())
    }
}

/// Reads a layer. Outside `path` (without `/` at its ends) only the names of the uppermost folders are kept, for errors that
/// list what exists.
///
/// # Errors
/// [`LayerError`].
pub fn read_layer(
    compressed: impl Read,
    compression: Compression,
    path: &str,
    budget: &mut Budget,
) -> Result<Layer, LayerError> {
    let (counted, compressed) = Counted::new(compressed);
    let reader: Box<dyn Read + '_> = match compression {
        Compression::None => Box::new(counted),
        Compression::Gzip => Box::new(MultiGzDecoder::new(counted)),
        Compression::Zstd => Box::new(Frames::new(counted)),
    };
    let (bounded, exceeded) = Bounded::new(reader, compressed, budget.uncompressed);
    let mut archive = Archive::new(bounded);
    let read = entries(&mut archive, path, budget);
    budget.uncompressed = archive.into_inner().left();
    // The readers above wrap the error of a limit in their own.
    match exceeded.take() {
        Some(exceeded) => Err(exceeded),
        None => read,
    }
}

fn entries<R: Read>(
    archive: &mut Archive<R>,
    path: &str,
    budget: &mut Budget,
) -> Result<Layer, LayerError> {
    let mut layer = Layer::default();
    let mut beside = BTreeSet::new();
    archive.each(MAX_EXTENSION, |entry| {
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
                layer.entries.push((shown.to_owned(), Node::Folder));
            }
            return Ok(());
        }
        let node = match entry.kind {
            Kind::File if is_wanted => {
                budget.keep(entry.size)?;
                Node::File(entry.bytes()?.into())
            }
            Kind::Sparse if is_wanted => {
                return Err(LayerError::Entry {
                    name: entry.name.clone(),
                    why: "is a sparse file, which is not read",
                });
            }
            Kind::Folder => Node::Folder,
            Kind::Link => Node::Link(entry.target.clone()),
            Kind::HardLink if is_wanted => Node::HardLink(entry.target.clone()),
            Kind::File | Kind::Sparse | Kind::HardLink | Kind::Other => Node::Other,
        };
        if !name.is_empty() {
            budget.keep((name.len() + entry.target.len()) as u64)?;
            layer.entries.push((name, node));
        }
        Ok(())
    })?;
    Ok(layer)
}

impl Layer {
    /// Notes a whiteout, unless it lies outside the wanted `path`.
    fn hide(
        &mut self,
        path: &str,
        folder: &str,
        hidden: &str,
        budget: &mut Budget,
    ) -> Result<(), LayerError> {
        let (set, name) = match hidden {
            ".wh..opq" => (&mut self.opaque, folder.to_owned()),
            // Other names of this form are internal to aufs.
            hidden if hidden.starts_with(".wh.") => return Ok(()),
            hidden => (&mut self.hidden, join(folder, hidden)),
        };
        if clip(path, &name).0 == name {
            budget.keep(name.len() as u64)?;
            set.insert(name);
        }
        Ok(())
    }
}

/// The part of `name` that matters if `path` is wanted: all of it if one contains the other, else up to the first part that
/// differs. And whether `name` is at or below `path`.
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

/// `FOLDER/NAME`; the root is empty.
#[must_use]
pub fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

#[cfg(test)]
mod tests;
