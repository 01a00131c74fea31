//! File modes, process groups and the XDG folders.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process_group};
#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit, prlimit};
use rustix::system::uname;
use tokio::process::{Child, Command};

/// The variable with the home folder of the user.
pub const HOME: &str = "HOME";
/// The variable with the folder for temporary files.
pub const TEMPORARY: &str = "TMPDIR";
/// The folder of the settings of gcloud, relative to the home folder.
pub const GOOGLE_SETTINGS: &str = ".config/gcloud";
/// The variables that every program needs to start.
pub const PASSED: [&str; 1] = ["PATH"];

/// The time and inode of a file, which change with its content or when another file replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStamp {
    modified: (i64, i64),
    inode: (u64, u64),
}

impl FileStamp {
    /// Reads the stamp of a file.
    #[must_use]
    pub fn new(metadata: &Metadata) -> Self {
        Self {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            inode: (metadata.dev(), metadata.ino()),
        }
    }
}

/// The folder for cached files of all programs: `$XDG_CACHE_HOME` or `~/.cache`.
#[must_use]
pub fn cache_home() -> Option<PathBuf> {
    super::folder("XDG_CACHE_HOME").or_else(|| Some(super::home()?.join(".cache")))
}

/// Whether a file is executable.
#[must_use]
pub fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

/// Creates a folder and its missing parents, accessible only to this user.
///
/// # Errors
/// Errors of the file system.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Whether only this user can access a folder. Removes the permissions of others if necessary, which only the
/// owner can do.
#[must_use]
pub fn is_private(folder: &Path) -> bool {
    let Ok(found) = fs::symlink_metadata(folder) else {
        return false;
    };
    let private = Permissions::from_mode(0o700);
    found.is_dir()
        && (found.permissions().mode() & 0o077 == 0 || fs::set_permissions(folder, private).is_ok())
}

/// Creates a file that only this user can read.
///
/// # Errors
/// The file exists, or other errors of the file system.
pub fn create_private(path: &Path) -> io::Result<File> {
    create(path, 0o600)
}

/// Creates a file that everyone can run.
///
/// # Errors
/// The file exists, or other errors of the file system.
pub fn create_executable(path: &Path) -> io::Result<File> {
    create(path, 0o755)
}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode).open(path)
}

/// Sets a command to start in its own process group, so that it gets no signals from the terminal and its
/// children can be ended with it.
pub fn use_own_group(command: &mut Command) {
    command.process_group(0);
}

/// Limits the writable memory of a child and of each program that it starts. Reserved memory does not count,
/// of which Go programs have much. Only Linux can limit another process.
///
/// # Errors
/// The limit cannot be set.
#[cfg(target_os = "linux")]
pub fn limit_memory(child: &Child, bytes: u64) -> io::Result<()> {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let Some(process) = id.and_then(Pid::from_raw) else {
        // The child has ended.
        return Ok(());
    };
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    prlimit(Some(process), Resource::Data, limit)?;
    Ok(())
}

/// Does nothing, because macOS has no effective limit.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn limit_memory(_child: &Child, _bytes: u64) -> io::Result<()> {
    Ok(())
}

/// Asks the process group of a child to terminate.
pub fn terminate_group(child: &Child) {
    signal(child, Signal::TERM);
}

/// Kills the process group of a child.
pub fn kill_group(child: &Child) {
    signal(child, Signal::KILL);
}

/// Sends a signal to the process group of a child that was started with [`use_own_group`], unless the child has
/// ended.
fn signal(child: &Child, signal: Signal) {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(group) = id.and_then(Pid::from_raw) {
        // The child may have ended in the meantime.
        let _ = kill_process_group(group, signal);
    }
}

/// The name of this machine.
#[must_use]
pub fn host_name() -> Option<String> {
    let name = uname().nodename().to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}
