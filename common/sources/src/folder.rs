//! Reads a local folder as a package.

use std::fs;
use std::path::{Path, PathBuf};

use addons_render::package::{MAX_BYTES, MAX_FILES, Package, PackageError, PackagedFile};

/// The maximum depth of folders.
const MAX_DEPTH: usize = 32;

/// Why a folder cannot be read as a package.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file or folder cannot be read.
    #[error("{}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A symbolic link leads out of the folder.
    #[error("{}: the link leads out of the folder; copy its target into the folder", path.display())]
    Outside {
        /// The link.
        path: PathBuf,
    },
    /// The folder contains a pipe, a socket or a device.
    #[error("{} is neither a file nor a folder; remove it", path.display())]
    NoFile {
        /// The pipe, socket or device.
        path: PathBuf,
    },
    /// A file name is not UTF-8.
    #[error("{}: the name is not valid UTF-8; rename it", path.display())]
    Name {
        /// The file.
        path: PathBuf,
    },
    /// The files are too many or too large for a package.
    #[error("{}", path.display())]
    Package {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: PackageError,
    },
}

/// Reads all files of a folder except `.git`.
///
/// # Errors
/// [`FolderError`].
pub fn read(folder: &Path) -> Result<Package, FolderError> {
    let failed = |path: &Path, source| FolderError::Read {
        path: path.to_owned(),
        source,
    };
    let refused = |source| FolderError::Package {
        path: folder.to_owned(),
        source,
    };
    let root = fs::canonicalize(folder).map_err(|source| failed(folder, source))?;
    let (mut files, mut bytes) = (Vec::new(), 0_u64);
    let mut open = vec![(root.clone(), 0)];
    while let Some((path, depth)) = open.pop() {
        let entries = fs::read_dir(&path).map_err(|source| failed(&path, source))?;
        for entry in entries {
            let path = entry.map_err(|source| failed(&path, source))?.path();
            let target = fs::canonicalize(&path).map_err(|source| failed(&path, source))?;
            if !target.starts_with(&root) {
                return Err(FolderError::Outside { path });
            }
            let metadata = fs::metadata(&target).map_err(|source| failed(&path, source))?;
            if metadata.is_dir() {
                // A link to a folder could be a circle.
                let is_link = fs::symlink_metadata(&path).is_ok_and(|link| link.is_symlink());
                if is_link || depth >= MAX_DEPTH {
                    return Err(FolderError::Outside { path });
                }
                if !path.ends_with(".git") {
                    open.push((path, depth + 1));
                }
                continue;
            }
            if !metadata.is_file() {
                return Err(FolderError::NoFile { path });
            }
            bytes = bytes.saturating_add(metadata.len());
            if files.len() >= MAX_FILES {
                return Err(refused(PackageError::TooMany));
            }
            if bytes > MAX_BYTES as u64 {
                return Err(refused(PackageError::TooLarge));
            }
            let content = fs::read(&target).map_err(|source| failed(&path, source))?;
            let relative = path.strip_prefix(&root).ok().and_then(Path::to_str);
            let Some(relative) = relative.map(|path| path.replace('\\', "/")) else {
                return Err(FolderError::Name { path });
            };
            files.push(PackagedFile {
                path: relative,
                bytes: content,
            });
        }
    }
    Package::from_folder(files).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_and_links_stay_inside() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "a: 1\n").unwrap();
        };
        write("b.yaml");
        write("a/x.yaml");
        write(".git/HEAD");
        std::os::unix::fs::symlink("b.yaml", folder.path().join("c.yaml")).unwrap();
        let package = read(folder.path()).unwrap();
        let paths: Vec<&str> = package.files().iter().map(|f| f.path.as_str()).collect();
        assert_eq!(paths, ["a/x.yaml", "b.yaml", "c.yaml"]);
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("d.yaml")).unwrap();
        assert!(matches!(
            read(folder.path()),
            Err(FolderError::Outside { .. })
        ));
        assert!(read(&folder.path().join("none")).is_err());
    }

    /// Opening a pipe would wait until another process writes.
    #[test]
    fn a_pipe_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("a.yaml");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        assert!(matches!(
            read(folder.path()),
            Err(FolderError::NoFile { .. })
        ));
    }
}
