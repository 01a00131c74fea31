//! The corpus beside the checkout: other people's data, read where it lies and never copied.

use std::path::PathBuf;

/// `../shared/PATH` beside the checkout; `None` where it is not there.
#[must_use]
pub fn path(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path);
    path.exists().then_some(path)
}

/// A file or folder of `tests/golden`, which is part of the project.
#[must_use]
pub fn golden(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/golden")).join(path)
}
