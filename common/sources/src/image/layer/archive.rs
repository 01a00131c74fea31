//! Reads the entries of a tar archive, with a limit for long names.
//!
//! The crate `tar` reads GNU and PAX extensions of any size into memory. This module therefore uses its raw
//! entries and reads the extensions itself.

use std::io::Read;

use tar::{Entry, EntryType};

use super::LayerError;

/// A reader of a tar archive.
pub struct TarReader<R: Read> {
    inner: tar::Archive<R>,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TarEntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A hard link.
    HardLink,
    /// A GNU sparse file.
    Sparse,
    /// A device or another special entry.
    Other,
}

/// An entry whose content is not read yet.
pub struct TarEntry<'a, R: Read> {
    /// The name as written, with invalid UTF-8 replaced.
    pub name: String,
    /// The kind of the entry.
    pub kind: TarEntryKind,
    /// The target of a link as written.
    pub target: String,
    /// The size in bytes.
    pub size: u64,
    entry: Entry<'a, R>,
}

/// The extension headers before an entry.
#[derive(Default)]
struct Extension {
    name: Option<String>,
    target: Option<String>,
    size: Option<u64>,
    is_sparse: bool,
}

impl<R: Read> TarReader<R> {
    /// Creates the reader without reading anything.
    pub fn new(inner: R) -> Self {
        Self {
            inner: tar::Archive::new(inner),
        }
    }

    /// Returns the inner reader.
    pub fn into_inner(self) -> R {
        self.inner.into_inner()
    }

    /// Calls `visit` with every entry that is not an extension.
    ///
    /// # Errors
    /// Errors of `visit`, a damaged archive, or extensions of more than `limit` bytes.
    pub fn for_each(
        &mut self,
        limit: u64,
        mut visit: impl FnMut(&mut TarEntry<'_, R>) -> Result<(), LayerError>,
    ) -> Result<(), LayerError> {
        let mut extension = Extension::default();
        for entry in self.inner.entries()?.raw(true) {
            let mut entry = entry?;
            let kind = match entry.header().entry_type() {
                EntryType::GNULongName => {
                    extension.name = Some(c_string(&read_extension(&mut entry, limit)?));
                    continue;
                }
                EntryType::GNULongLink => {
                    extension.target = Some(c_string(&read_extension(&mut entry, limit)?));
                    continue;
                }
                EntryType::XHeader => {
                    extension.read_pax(&read_extension(&mut entry, limit)?)?;
                    continue;
                }
                // Applies to the whole archive and changes no names.
                EntryType::XGlobalHeader => continue,
                EntryType::Regular | EntryType::Continuous => TarEntryKind::File,
                EntryType::Directory => TarEntryKind::Folder,
                EntryType::Symlink => TarEntryKind::Link,
                EntryType::Link => TarEntryKind::HardLink,
                EntryType::GNUSparse => TarEntryKind::Sparse,
                _ => TarEntryKind::Other,
            };
            visit(&mut read_entry(
                entry,
                kind,
                std::mem::take(&mut extension),
            )?)?;
        }
        Ok(())
    }
}

impl<R: Read> TarEntry<'_, R> {
    /// Reads the content of a file. Check the size before, and only call this once.
    ///
    /// # Errors
    /// The archive ends early.
    pub fn bytes(&mut self) -> Result<Vec<u8>, LayerError> {
        read_exactly(&mut self.entry, self.size)
    }
}

impl Extension {
    /// Parses records of the form `LENGTH KEY=VALUE\n`. Values can have any bytes.
    fn read_pax(&mut self, mut bytes: &[u8]) -> Result<(), LayerError> {
        let wrong = || LayerError::Entry {
            name: "PAX header".to_owned(),
            why: "cannot be read",
        };
        while !bytes.is_empty() {
            let blank = bytes.iter().position(|byte| *byte == b' ');
            let digits = blank
                .and_then(|blank| bytes.get(..blank))
                .ok_or_else(wrong)?;
            let length = std::str::from_utf8(digits)
                .ok()
                .and_then(|text| text.parse().ok());
            let (record, rest) = length
                .and_then(|length| bytes.split_at_checked(length))
                .ok_or_else(wrong)?;
            let record = record
                .get(digits.len() + 1..)
                .and_then(|record| record.strip_suffix(b"\n"))
                .ok_or_else(wrong)?;
            let equals = record.iter().position(|byte| *byte == b'=');
            let (key, value) = equals
                .and_then(|equals| Some((record.get(..equals)?, record.get(equals + 1..)?)))
                .ok_or_else(wrong)?;
            let text = || String::from_utf8_lossy(value).into_owned();
            match key {
                b"path" => self.name = Some(text()),
                b"linkpath" => self.target = Some(text()),
                b"size" => self.size = Some(text().parse().map_err(|_| wrong())?),
                key if key.starts_with(b"GNU.sparse.") => self.is_sparse = true,
                _ => {}
            }
            bytes = rest;
        }
        Ok(())
    }
}

fn read_entry<R: Read>(
    entry: Entry<'_, R>,
    kind: TarEntryKind,
    extension: Extension,
) -> Result<TarEntry<'_, R>, LayerError> {
    let header = entry.header();
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let name = extension
        .name
        .unwrap_or_else(|| lossy(&header.path_bytes()));
    let target = match extension.target {
        Some(target) => target,
        None => header
            .link_name_bytes()
            .map(|bytes| lossy(&bytes))
            .unwrap_or_default(),
    };
    LayerError::check_length(&name, &target)?;
    let size = header.entry_size()?;
    let wrong = |why| LayerError::Entry {
        name: name.clone(),
        why,
    };
    if extension.size.is_some_and(|other| other != size) {
        return Err(wrong(
            "has two sizes, of which programs take one or the other",
        ));
    }
    if size > 0
        && matches!(
            kind,
            TarEntryKind::Folder | TarEntryKind::Link | TarEntryKind::HardLink
        )
    {
        return Err(wrong(
            "is not a file but has content, which programs read differently",
        ));
    }
    let kind = match kind {
        TarEntryKind::File if extension.is_sparse => TarEntryKind::Sparse,
        // Before POSIX, folders were stored as files with such names.
        TarEntryKind::File if name.ends_with('/') => TarEntryKind::Folder,
        kind => kind,
    };
    Ok(TarEntry {
        name,
        kind,
        target,
        size,
        entry,
    })
}

fn read_extension<R: Read>(entry: &mut Entry<'_, R>, limit: u64) -> Result<Vec<u8>, LayerError> {
    let size = entry.header().entry_size()?;
    if size > limit {
        return Err(LayerError::Entry {
            name: String::from_utf8_lossy(&entry.header().path_bytes()).into_owned(),
            why: "has a name or attributes of more than 1 MiB",
        });
    }
    read_exactly(entry, size)
}

/// Reads exactly `size` bytes.
fn read_exactly(reader: &mut impl Read, size: u64) -> Result<Vec<u8>, LayerError> {
    let mut bytes = Vec::new();
    reader.take(size).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == size {
        Ok(bytes)
    } else {
        Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into())
    }
}

/// Returns the text up to the first NUL.
fn c_string(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
