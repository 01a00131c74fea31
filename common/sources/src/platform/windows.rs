//! Access lists are inherited from the profile folder, and `taskkill` ends a child with its own children.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

/// The variable that names a user's home folder.
pub const HOME: &str = "USERPROFILE";
/// The variable that names the folder of temporary files.
pub const TEMPORARY: &str = "TMP";
/// Where gcloud keeps its settings, below the home folder.
pub const GOOGLE_SETTINGS: &str = "AppData/Roaming/gcloud";
/// The variables without which no program starts: sockets and random numbers need `SystemRoot`.
pub const PASSED: [&str; 5] = ["PATH", "PATHEXT", "SystemRoot", "SystemDrive", "ComSpec"];

/// `CREATE_NEW_PROCESS_GROUP`.
const NEW_PROCESS_GROUP: u32 = 0x200;

/// What tells two states of a file apart, besides its length: its times. A file that replaces another one was created later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStamp {
    created: u64,
    modified: u64,
}

impl FileStamp {
    /// The state of a file.
    #[must_use]
    pub fn new(metadata: &Metadata) -> Self {
        Self {
            created: metadata.creation_time(),
            modified: metadata.last_write_time(),
        }
    }
}

/// The folder for cached files of all programs: `%LOCALAPPDATA%`.
#[must_use]
pub fn cache_home() -> Option<PathBuf> {
    super::folder("LOCALAPPDATA")
}

/// Whether a file can be run as a program: its ending says so.
#[must_use]
pub fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file()
}

/// Creates a folder and its missing parents.
///
/// # Errors
/// Those of the file system.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(folder)
}

/// Whether this is a folder, and no link to one: its access list comes from the profile folder.
#[must_use]
pub fn is_private(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir())
}

/// Creates a file.
///
/// # Errors
/// The file exists; others of the file system.
pub fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Creates a file: its ending makes it a program.
///
/// # Errors
/// The file exists; others of the file system.
pub fn create_executable(path: &Path) -> io::Result<File> {
    create_private(path)
}

/// Starts a program in a process group of its own: Ctrl-C does not reach it.
pub fn own_group(command: &mut Command) {
    command.creation_flags(NEW_PROCESS_GROUP);
}

/// Does nothing: a limit would need a job object.
///
/// # Errors
/// None.
pub fn limit_memory(_child: &Child, _bytes: u64) -> io::Result<()> {
    Ok(())
}

/// Does nothing: a console program of another group cannot be asked to end. It has until [`kill_group`] to end by itself.
pub fn terminate_group(_child: &Child) {}

/// Ends a child and its children.
pub fn kill_group(child: &Child) {
    if let Some(id) = child.id() {
        let mut command = std::process::Command::new("taskkill");
        command
            .args(["/F", "/T", "/PID"])
            .arg(id.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let _ = command.status();
    }
}

/// The name of this machine.
#[must_use]
pub fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}
