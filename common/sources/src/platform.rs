//! What Unix and Windows do differently: who may read a file, how a group of processes ends, and where a user's files are.
//!
//! Both modules have the same functions. A file below the profile folder of Windows is private by the access list that it inherits, so
//! nothing is set there.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::path::PathBuf;

#[cfg(unix)]
pub use unix::{
    FileStamp, GOOGLE_SETTINGS, HOME, PASSED, TEMPORARY, cache_home, create_executable,
    create_private, create_private_folder, host_name, is_executable, is_private, kill_group,
    limit_memory, own_group, terminate_group,
};
#[cfg(windows)]
pub use windows::{
    FileStamp, GOOGLE_SETTINGS, HOME, PASSED, TEMPORARY, cache_home, create_executable,
    create_private, create_private_folder, host_name, is_executable, is_private, kill_group,
    limit_memory, own_group, terminate_group,
};

/// The user's home folder, where a variable names it: `HOME`, which people set on Windows too, else `USERPROFILE` there.
#[must_use]
pub fn home() -> Option<PathBuf> {
    folder("HOME").or_else(|| folder(HOME))
}

/// The absolute path that a variable of the environment holds.
fn folder(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(name)?);
    path.is_absolute().then_some(path)
}
