//! Reads the files that commands are given. `-` is stdin.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::OnceLock;

/// The content of stdin, which can be read once: a command may plan twice.
static STDIN: OnceLock<Vec<u8>> = OnceLock::new();

/// Reads a file.
pub fn read_input(path: &Path) -> io::Result<Vec<u8>> {
    read_bounded(path, usize::MAX)
}

/// Reads at most one byte more than `limit`, so that the caller can detect a file that is too large.
pub fn read_bounded(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if path != Path::new("-") {
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    if let Some(known) = STDIN.get() {
        return Ok(known.clone());
    }
    io::stdin().take(limit).read_to_end(&mut bytes)?;
    Ok(STDIN.get_or_init(|| bytes).clone())
}
