//! Modes, process groups and the XDG folders.

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

/// The variable that names a user's home folder.
pub const HOME: &str = "HOME";
/// The variable that names the folder of temporary files.
pub const TEMPORARY: &str = "TMPDIR";
/// Where gcloud keeps its settings, below the home folder.
pub const GOOGLE_SETTINGS: &str = ".config/gcloud";
/// The variables without which no program starts.
pub const PASSED: [&str; 1] = ["PATH"];

/// What tells two states of a file apart, besides its length: its time and its inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStamp {
    modified: (i64, i64),
    inode: (u64, u64),
}

impl FileStamp {
    /// The state of a file.
    #[must_use]
    pub fn new(metadata: &Metadata) -> Self {
        Self {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            inode: (metadata.dev(), metadata.ino()),
        }
    }
}

/// The folder for cached files of all programs: `$XDG_CACHE_HOME`, else `~/.cache`.
#[must_use]
pub fn cache_home() -> Option<PathBuf> {
    super::folder("XDG_CACHE_HOME").or_else(|| Some(super::home()?.join(".cache")))
}

/// Whether a file can be run as a program.
#[must_use]
pub fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

/// Creates a folder and its missing parents for this user alone.
///
/// # Errors
/// Those of the file system.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Whether only this user can use a folder; removes the permissions of others, which only its owner can do.
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
/// The file exists; others of the file system.
pub fn create_private(path: &Path) -> io::Result<File> {
    create(path, 0o600)
}

/// Creates a file that everyone can run.
///
/// # Errors
/// The file exists; others of the file system.
pub fn create_executable(path: &Path) -> io::Result<File> {
    create(path, 0o755)
}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode).open(path)
}

/// Starts a program in a process group of its own: signals of the terminal do not reach it, and its children end with it.
pub fn own_group(command: &mut Command) {
    command.process_group(0);
}

/// Limits what a child may have of memory that it can write to, and each program that it starts. Memory that is only reserved does not
/// count, of which a program in Go has much. Linux alone can limit another process, and counts all memory.
///
/// # Errors
/// It may not be limited.
#[cfg(target_os = "linux")]
pub fn limit_memory(child: &Child, bytes: u64) -> io::Result<()> {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let Some(process) = id.and_then(Pid::from_raw) else {
        // It has ended.
        return Ok(());
    };
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    prlimit(Some(process), Resource::Data, limit)?;
    Ok(())
}

/// Does nothing: macOS has no limit that counts.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn limit_memory(_child: &Child, _bytes: u64) -> io::Result<()> {
    Ok(())
}

/// Asks the process group of a child to end.
pub fn terminate_group(child: &Child) {
    signal(child, Signal::TERM);
}

/// Ends the process group of a child.
pub fn kill_group(child: &Child) {
    signal(child, Signal::KILL);
}

/// Sends a signal to the process group of a child that [`own_group`] started, unless the child has ended.
fn signal(child: &Child, signal: Signal) {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(group) = id.and_then(Pid::from_raw) {
        // It may have ended meanwhile.
        let _ = kill_process_group(group, signal);
    }
}

/// The name of this machine.
#[must_use]
pub fn host_name() -> Option<String> {
    let name = uname().nodename().to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}
