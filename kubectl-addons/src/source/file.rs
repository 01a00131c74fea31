//! Files.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use super::{Document, MAX_BYTES, SourceError};

/// Reads a file, [`MAX_BYTES`] at most.
pub fn read(path: PathBuf) -> Result<Document, SourceError> {
    let location = path.to_string_lossy().into_owned();
    let wrong = |source| SourceError::File {
        location: location.clone(),
        source,
    };
    let file = File::open(&path).map_err(wrong)?;
    let metadata = file.metadata().map_err(wrong)?;
    if metadata.is_dir() {
        return Err(wrong(std::io::Error::other("is a folder, not a file")));
    }
    let mut bytes =
        Vec::with_capacity(usize::try_from(metadata.len().min(MAX_BYTES)).unwrap_or_default());
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(wrong)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SourceError::TooLarge { location });
    }
    Ok(Document { bytes, location })
}
