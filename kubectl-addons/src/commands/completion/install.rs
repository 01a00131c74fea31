//! `completion --install`: writes `kubectl_complete-addons`, which kubectl runs to complete `kubectl addons`.
//!
//! It is a script and not a link: it runs the `kubectl-addons` of the PATH, so it stays valid when a package manager replaces that. krew
//! links only one program of a plugin.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use addons_sources::platform;
use anyhow::Result;

use crate::completion::{KUBECTL, PROGRAM, VARIABLE};
use crate::exit::Exit;
use crate::output;

/// The name of the plugin's program, as kubectl looks for it.
const PLUGIN: &str = "kubectl-addons";
/// The name of the written file. On Windows, its extension makes it a program.
const FILE: &str = if cfg!(windows) {
    "kubectl_complete-addons.cmd"
} else {
    PROGRAM
};
/// The line that identifies a script of this command.
const MARK: &str = "# Written by `kubectl addons completion --install`: kubectl asks it what completes `kubectl addons`.";

/// Why the program was not written.
#[derive(Debug, thiserror::Error)]
enum InstallError {
    #[error(
        "{PLUGIN}: is in no folder of the PATH\n  fix:    kubectl addons completion --install --to DIR"
    )]
    NoFolder,
    #[error(
        "{}: is not a folder\n  fix:    create it, or name one of the PATH: kubectl addons completion --install --to DIR",
        .0.display()
    )]
    NotAFolder(PathBuf),
    #[error(
        "{}: is not a file of this command, and is left as it is\n  fix:    remove it, or name another folder: \
         kubectl addons completion --install --to DIR",
        .0.display()
    )]
    Foreign(PathBuf),
    #[error(
        "{}: cannot be written: {error}\n  fix:    name a folder that you may write: kubectl addons completion --install --to DIR",
        path.display()
    )]
    Unwritable { path: PathBuf, error: io::Error },
}

/// Writes the program into a folder, or beside the plugin.
///
/// # Errors
/// There is no folder, it cannot be written, or the file in it is not one of this command.
pub fn run(to: Option<&Path>) -> Result<Exit> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folder = to.map(Path::to_owned).or_else(|| plugin_folder(&path));
    let folder = folder.ok_or(InstallError::NoFolder)?;
    let program = folder.join(FILE);
    if !folder.is_dir() {
        return Err(InstallError::NotAFolder(folder).into());
    }
    let is_new = write(&program)?;
    output::note(&format!(
        "{} {}",
        program.display(),
        if is_new { "written" } else { "unchanged" }
    ));
    if !is_on_path(&folder, &path) {
        output::warn(&format!(
            "{} is not on the PATH: kubectl does not find {PROGRAM} there",
            folder.display()
        ));
    }
    Ok(Exit::Done)
}

/// Returns the first folder of the PATH that has the plugin, without resolving a link: upgrades replace its target.
fn plugin_folder(path: &OsStr) -> Option<PathBuf> {
    let plugin = format!("{PLUGIN}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(path).find(|folder| folder.join(&plugin).is_file())
}

fn is_on_path(folder: &Path, path: &OsStr) -> bool {
    let wanted = fs::canonicalize(folder).ok();
    let mut folders = std::env::split_paths(path);
    folders.any(|folder| fs::canonicalize(folder).ok() == wanted)
}

fn script() -> String {
    if cfg!(windows) {
        format!("@echo off\r\nrem {MARK}\r\nset {VARIABLE}={KUBECTL}\r\n{PLUGIN} %*\r\n")
    } else {
        format!("#!/bin/sh\n{MARK}\n{VARIABLE}={KUBECTL} exec {PLUGIN} \"$@\"\n")
    }
}

/// Writes the script. Returns `false` if it is unchanged.
fn write(program: &Path) -> Result<bool, InstallError> {
    let unwritable = |error| InstallError::Unwritable {
        path: program.to_owned(),
        error,
    };
    let script = script();
    match read_state(program).map_err(unwritable)? {
        ProgramState::Nothing => {}
        ProgramState::Ours(text)
            if text == script && is_executable(program).map_err(unwritable)? =>
        {
            return Ok(false);
        }
        // A link to the plugin works as well. Replace it, because writing would follow it.
        ProgramState::Ours(_) | ProgramState::Link => {
            fs::remove_file(program).map_err(unwritable)?
        }
        ProgramState::Foreign => return Err(InstallError::Foreign(program.to_owned())),
    }
    create(program, script.as_bytes()).map_err(unwritable)?;
    Ok(true)
}

/// What the path of the program holds.
enum ProgramState {
    Nothing,
    /// A script of this command, possibly of another version.
    Ours(String),
    /// A link to the plugin.
    Link,
    Foreign,
}

fn read_state(program: &Path) -> io::Result<ProgramState> {
    let kind = match fs::symlink_metadata(program) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ProgramState::Nothing),
        Err(error) => return Err(error),
    };
    if kind.is_symlink() {
        let target = fs::read_link(program)?;
        let is_plugin = target.file_name() == Some(OsStr::new(PLUGIN));
        return Ok(if is_plugin {
            ProgramState::Link
        } else {
            ProgramState::Foreign
        });
    }
    if !kind.is_file() {
        return Ok(ProgramState::Foreign);
    }
    let text = String::from_utf8_lossy(&fs::read(program)?).into_owned();
    let mut lines = text.lines();
    let is_ours = lines.nth(1).is_some_and(|line| line.ends_with(MARK));
    Ok(if is_ours {
        ProgramState::Ours(text)
    } else {
        ProgramState::Foreign
    })
}

/// Creates a program. Fails if another client created one in the meantime.
fn create(program: &Path, script: &[u8]) -> io::Result<()> {
    io::Write::write_all(&mut platform::create_executable(program)?, script)
}

fn is_executable(program: &Path) -> io::Result<bool> {
    Ok(platform::is_executable(&fs::metadata(program)?))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("{PROGRAM}-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn what_is_ours_is_written_and_nothing_else() {
        let folder = folder("written");
        let program = folder.join(PROGRAM);
        assert!(write(&program).unwrap());
        let mode = fs::metadata(&program).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111);
        assert!(!write(&program).unwrap());

        fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(write(&program).unwrap(), "it could not be executed");
        fs::write(&program, format!("#!/bin/sh\n{MARK}\nolder\n")).unwrap();
        assert!(write(&program).unwrap(), "it was of another version");

        fs::remove_file(&program).unwrap();
        fs::write(folder.join(PLUGIN), "the plugin").unwrap();
        symlink(PLUGIN, &program).unwrap();
        assert!(write(&program).unwrap(), "a link to the plugin is ours");
        assert_eq!(fs::read(folder.join(PLUGIN)).unwrap(), b"the plugin");
        assert_eq!(fs::read_to_string(&program).unwrap(), script());

        fs::write(&program, "#!/bin/sh\nexec mine\n").unwrap();
        let error = write(&program).unwrap_err();
        assert!(matches!(error, InstallError::Foreign(_)), "{error}");
        assert_eq!(fs::read(&program).unwrap(), b"#!/bin/sh\nexec mine\n");
        fs::remove_file(&program).unwrap();
        symlink("/bin/true", &program).unwrap();
        let error = write(&program).unwrap_err();
        assert!(matches!(error, InstallError::Foreign(_)), "{error}");

        let error = write(&folder.join("missing").join(PROGRAM)).unwrap_err();
        assert!(matches!(error, InstallError::Unwritable { .. }), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
