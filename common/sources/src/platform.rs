//! The differences between Unix and Windows: permissions of files, process groups, and the folders of a user.
//!
//! Both modules have the same functions. On Windows, files in the profile folder inherit an access list that
//! makes them private, so no permissions are set.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::path::PathBuf;

#[cfg(unix)]
pub use unix::{
    FileStamp, GOOGLE_SETTINGS, HOME, PASSED, TEMPORARY, cache_home, create_executable,
    create_private, create_private_folder, host_name, is_executable, is_private, kill_group,
    limit_memory, terminate_group, use_own_group,
};
#[cfg(windows)]
pub use windows::{
    FileStamp, GOOGLE_SETTINGS, HOME, PASSED, TEMPORARY, cache_home, create_executable,
    create_private, create_private_folder, host_name, is_executable, is_private, kill_group,
    limit_memory, terminate_group, use_own_group,
};

/// The home folder of the user: `$HOME` or, on Windows if that is not set, `%USERPROFILE%`.
#[must_use]
pub fn home() -> Option<PathBuf> {
    folder("HOME").or_else(|| folder(HOME))
}

/// The value of an environment variable, if it is an absolute path.
fn folder(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(name)?);
    path.is_absolute().then_some(path)
}
