//! Entries of a tar archive, with a limit for long names.
//!
//! `tar` reads the extensions of GNU and PAX whole, whatever size they claim; so its raw entries are used, and the extensions
//! are read here.

use std::io::Read;

use tar::{Entry, EntryType};

use super::LayerError;

/// A tar archive.
pub struct Archive<R: Read> {
    inner: tar::Archive<R>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A hard link.
    HardLink,
    /// A sparse file of GNU.
    Sparse,
    /// A device or another special entry.
    Other,
}

/// An entry, whose bytes were not read.
pub struct Item<'a, R: Read> {
    /// As written, with invalid UTF-8 replaced.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The target of a link, as written.
    pub target: String,
    /// In bytes.
    pub size: u64,
    entry: Entry<'a, R>,
}

/// Extension headers before an entry.
#[derive(Default)]
struct Extension {
    name: Option<String>,
    target: Option<String>,
    size: Option<u64>,
    is_sparse: bool,
}

impl<R: Read> Archive<R> {
    /// Nothing is read yet.
    pub fn new(inner: R) -> Self {
        Self {
            inner: tar::Archive::new(inner),
        }
    }

    /// The reader.
    pub fn into_inner(self) -> R {
        self.inner.into_inner()
    }

    /// Calls `see` with every entry of the file system.
    ///
    /// # Errors
    /// Those of `see`; a damaged archive; extensions of more than `limit` bytes.
    pub fn each(
        &mut self,
        limit: u64,
        mut see: impl FnMut(&mut Item<'_, R>) -> Result<(), LayerError>,
    ) -> Result<(), LayerError> {
        let mut extension = Extension::default();
        for entry in self.inner.entries()?.raw(true) {
            let mut entry = entry?;
            let kind = match entry.header().entry_type() {
                EntryType::GNULongName => {
                    extension.name = Some(c_string(&extension_of(&mut entry, limit)?));
                    continue;
                }
                EntryType::GNULongLink => {
                    extension.target = Some(c_string(&extension_of(&mut entry, limit)?));
                    continue;
                }
                EntryType::XHeader => {
                    extension.read_pax(&extension_of(&mut entry, limit)?)?;
                    continue;
                }
                // About the whole archive; it changes no name.
                EntryType::XGlobalHeader => continue,
                EntryType::Regular | EntryType::Continuous => Kind::File,
                EntryType::Directory => Kind::Folder,
                EntryType::Symlink => Kind::Link,
                EntryType::Link => Kind::HardLink,
                EntryType::GNUSparse => Kind::Sparse,
                _ => Kind::Other,
            };
            see(&mut item(entry, kind, std::mem::take(&mut extension))?)?;
        }
        Ok(())
    }
}

impl<R: Read> Item<'_, R> {
    /// The bytes of a file. Check its size before, and call it once.
    ///
    /// # Errors
    /// An archive that ends before.
    pub fn bytes(&mut self) -> Result<Vec<u8>, LayerError> {
        whole(&mut self.entry, self.size)
    }
}

impl Extension {
    /// Records `LENGTH KEY=VALUE\n`; values may hold any bytes.
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

fn item<R: Read>(
    entry: Entry<'_, R>,
    kind: Kind,
    extension: Extension,
) -> Result<Item<'_, R>, LayerError> {
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
    if size > 0 && matches!(kind, Kind::Folder | Kind::Link | Kind::HardLink) {
        return Err(wrong(
            "is not a file but has content, which programs read differently",
        ));
    }
    let kind = match kind {
        Kind::File if extension.is_sparse => Kind::Sparse,
        // Before POSIX, folders were files with such names.
        Kind::File if name.ends_with('/') => Kind::Folder,
        kind => kind,
    };
    Ok(Item {
        name,
        kind,
        target,
        size,
        entry,
    })
}

fn extension_of<R: Read>(entry: &mut Entry<'_, R>, limit: u64) -> Result<Vec<u8>, LayerError> {
    let size = entry.header().entry_size()?;
    if size > limit {
        return Err(LayerError::Entry {
            name: String::from_utf8_lossy(&entry.header().path_bytes()).into_owned(),
            why: "has a name or attributes of more than 1 MiB",
        });
    }
    whole(entry, size)
}

/// All of `size` bytes.
fn whole(reader: &mut impl Read, size: u64) -> Result<Vec<u8>, LayerError> {
    let mut bytes = Vec::new();
    reader.take(size).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == size {
        Ok(bytes)
    } else {
        Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into())
    }
}

/// Up to the first NUL.
fn c_string(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
