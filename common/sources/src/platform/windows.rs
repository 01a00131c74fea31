//! Access lists are inherited from the profile folder, and `taskkill` ends a child together with its
//! children.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

/// The variable with the home folder of the user.
pub const HOME: &str = "USERPROFILE";
/// The variable with the folder for temporary files.
pub const TEMPORARY: &str = "TMP";
/// The folder of the settings of gcloud, relative to the home folder.
pub const GOOGLE_SETTINGS: &str = "AppData/Roaming/gcloud";
/// The variables that every program needs to start. Sockets and random numbers need `SystemRoot`.
pub const PASSED: [&str; 5] = ["PATH", "PATHEXT", "SystemRoot", "SystemDrive", "ComSpec"];

/// `CREATE_NEW_PROCESS_GROUP`.
const NEW_PROCESS_GROUP: u32 = 0x200;

/// The times of a file, which change with its content or when another file, which was created later, replaces
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStamp {
    created: u64,
    modified: u64,
}

impl FileStamp {
    /// Reads the stamp of a file.
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

/// Whether this is a file. On Windows, the extension makes a file executable.
#[must_use]
pub fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file()
}

/// Creates a folder and its missing parents.
///
/// # Errors
/// Errors of the file system.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(folder)
}

/// Whether this is a folder and not a link to one. A folder inherits its access list from the profile folder.
#[must_use]
pub fn is_private(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir())
}

/// Creates a file.
///
/// # Errors
/// The file exists, or other errors of the file system.
pub fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Creates a file. On Windows, the extension makes it executable.
///
/// # Errors
/// The file exists, or other errors of the file system.
pub fn create_executable(path: &Path) -> io::Result<File> {
    create_private(path)
}

/// Sets a command to start in its own process group, so that Ctrl-C does not reach it.
pub fn use_own_group(command: &mut Command) {
    command.creation_flags(NEW_PROCESS_GROUP);
}

/// Does nothing, because a limit would need a job object.
///
/// # Errors
/// None.
pub fn limit_memory(_child: &Child, _bytes: u64) -> io::Result<()> {
    Ok(())
}

/// Does nothing, because a console program of another process group cannot be asked to end. It can still end
/// by itself before [`kill_group`].
pub fn terminate_group(_child: &Child) {}

/// Kills a child and its children.
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
