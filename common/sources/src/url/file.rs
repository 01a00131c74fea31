//! Files of this machine.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::{Access, Document, UrlError, limit};
use crate::http::bound::TooLarge;

/// Reads a file, where its author may name it (semantics 16).
pub fn read(
    path: impl AsRef<Path>,
    written: &str,
    access: &Access<'_>,
) -> Result<Document, UrlError> {
    let Some(real) = access.reach.file(path.as_ref()) else {
        return Err(UrlError::Local {
            location: written.to_owned(),
            place: access.reach.closed_folder(path.as_ref()),
        });
    };
    let path = path.as_ref();
    let location = path.to_string_lossy().into_owned();
    let wrong = |source| UrlError::File {
        location: location.clone(),
        source,
    };
    let limit = limit(&location);
    let file = File::open(real).map_err(wrong)?;
    let metadata = file.metadata().map_err(wrong)?;
    if metadata.is_dir() {
        return Err(wrong(std::io::Error::other("is a folder, not a file")));
    }
    let mut bytes =
        Vec::with_capacity(usize::try_from(metadata.len().min(limit)).unwrap_or_default());
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(wrong)?;
    if bytes.len() as u64 > limit {
        return Err(wrong(std::io::Error::other(TooLarge(limit))));
    }
    Ok(Document { bytes, location })
}
