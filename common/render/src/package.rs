//! The content of a source: files with their paths, in memory, independent of the kind of source.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use common::manifest::digest::sha256;

/// Maximum number of files in a package.
pub const MAX_FILES: usize = 10_000;
/// Maximum size of all files of a package together, in bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// Names of a README, in the order of preference, as in helm's `pkg/action/show.go`.
const READMES: [&str; 3] = ["readme.md", "readme.txt", "readme"];
/// Maximum length of a path, in bytes.
const MAX_PATH: usize = 1024;
/// Number of characters of a long path that an error shows.
const SHOWN: usize = 60;

/// A file of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackagedFile {
    /// Path relative to the package, with `/`, without `.` and `..`.
    pub path: String,
    /// Its bytes.
    #[serde(with = "crate::text::base64")]
    pub bytes: Vec<u8>,
}

/// A file, or the files of a folder in the order in which a walk finds them: the entries of each folder are sorted by name, so `a/x.yaml`
/// comes before `a-b/x.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    files: Vec<PackagedFile>,
    is_folder: bool,
}

/// Why files are not a package.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// A path leads out of the package, or names no file.
    #[error("the path {path:?} leads out of the package, or names no file")]
    Path {
        /// The path as written in the source.
        path: String,
    },
    /// A path has more than 1024 bytes.
    #[error("the path {start}... has more than {MAX_PATH} bytes")]
    Long {
        /// Its first characters.
        start: String,
    },
    /// A path occurs twice.
    #[error("{path} occurs twice")]
    Duplicate {
        /// The path.
        path: String,
    },
    /// There are more than [`MAX_FILES`] files.
    #[error("more than {MAX_FILES} files")]
    TooMany,
    /// The files have more than [`MAX_BYTES`] bytes.
    #[error("its files have more than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    /// The folder contains no files.
    #[error("it holds no file")]
    Empty,
    /// The bytes were not written by [`Package::to_bytes`].
    #[error("it cannot be read as a package")]
    Malformed,
}

impl Package {
    /// A package of one file. The extension of `name` shows its kind.
    #[must_use]
    pub fn from_file(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        let path = name.into();
        Self {
            files: vec![PackagedFile { path, bytes }],
            is_folder: false,
        }
    }

    /// A package of the files of a folder, given in any order.
    ///
    /// # Errors
    /// [`PackageError`]: there is no file, there are too many, or a path is invalid.
    pub fn from_folder(mut files: Vec<PackagedFile>) -> Result<Self, PackageError> {
        if files.is_empty() {
            return Err(PackageError::Empty);
        }
        if files.len() > MAX_FILES {
            return Err(PackageError::TooMany);
        }
        let mut bytes = 0_usize;
        let mut paths = BTreeSet::new();
        for file in &files {
            bytes = bytes.saturating_add(file.bytes.len());
            check_length(&file.path)?;
            let path = file.path.clone();
            if !is_relative(&path) {
                return Err(PackageError::Path { path });
            }
            if !paths.insert(&file.path) {
                return Err(PackageError::Duplicate { path });
            }
        }
        if bytes > MAX_BYTES {
            return Err(PackageError::TooLarge);
        }
        files.sort_by(|a, b| walk_order(&a.path, &b.path));
        Ok(Self {
            files,
            is_folder: true,
        })
    }

    /// Returns the files, in walk order.
    #[must_use]
    pub fn files(&self) -> &[PackagedFile] {
        &self.files
    }

    /// Returns the file with this path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&PackagedFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns the README of a folder, as `helm show readme` does: at the root, ignoring case.
    #[must_use]
    pub fn readme(&self) -> Option<&PackagedFile> {
        let named = |name: &&str| {
            let mut files = self.files.iter();
            files.find(|file| self.is_folder && file.path.eq_ignore_ascii_case(name))
        };
        READMES.iter().find_map(named)
    }

    /// Returns the only file, unless the package is a folder.
    #[must_use]
    pub fn as_file(&self) -> Option<&PackagedFile> {
        self.files.first().filter(|_| !self.is_folder)
    }

    /// Returns the hex sha256 of the file's bytes; for a folder, that of [`Package::listing`].
    #[must_use]
    pub fn digest(&self) -> String {
        match self.as_file() {
            Some(file) => sha256(&file.bytes),
            None => sha256(self.listing().as_bytes()),
        }
    }

    /// Returns lines `HASH  PATH` of the files, as `sha256sum` prints them. The `manifestHash` of a folder is the hash of this text.
    #[must_use]
    pub fn listing(&self) -> String {
        let lines = self.files.iter();
        lines
            .map(|file| format!("{}  {}\n", sha256(&file.bytes), file.path))
            .collect()
    }

    /// Returns the files, in any order.
    #[must_use]
    pub fn into_files(self) -> Vec<PackagedFile> {
        self.files
    }

    /// Serializes the package, for the cache.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.is_folder)];
        for file in &self.files {
            for part in [file.path.as_bytes(), &file.bytes] {
                bytes.extend((part.len() as u64).to_be_bytes());
                bytes.extend(part);
            }
        }
        bytes
    }

    /// Deserializes the bytes of [`Package::to_bytes`].
    ///
    /// # Errors
    /// The bytes are not a package, or [`Package::from_folder`] refuses the files.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PackageError> {
        let (kind, mut rest) = bytes.split_first().ok_or(PackageError::Malformed)?;
        let mut files = Vec::new();
        while !rest.is_empty() {
            let path = read_part(&mut rest).ok_or(PackageError::Malformed)?;
            let bytes = read_part(&mut rest)
                .ok_or(PackageError::Malformed)?
                .to_vec();
            let path = String::from_utf8(path.to_vec()).map_err(|_| PackageError::Malformed)?;
            files.push(PackagedFile { path, bytes });
        }
        match (kind, files.pop()) {
            (0, Some(file)) if files.is_empty() => Ok(Self::from_file(file.path, file.bytes)),
            (1, last) => Self::from_folder(files.into_iter().chain(last).collect()),
            _ => Err(PackageError::Malformed),
        }
    }
}

/// Reads the next length-prefixed part of [`Package::to_bytes`].
fn read_part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, tail) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
    let (part, tail) = tail.split_at_checked(length)?;
    *rest = tail;
    Some(part)
}

/// Refuses a path that is too long for a package. Callers that walk folders check every path that they build, because a few short names can
/// make gigabytes of paths.
///
/// # Errors
/// [`PackageError::Long`].
pub fn check_length(path: &str) -> Result<(), PackageError> {
    if path.len() <= MAX_PATH {
        return Ok(());
    }
    let start = path.chars().take(SHOWN).collect();
    Err(PackageError::Long { start })
}

/// Returns whether a path is below the package.
fn is_relative(path: &str) -> bool {
    !path.contains(['\\', '\0', '\n'])
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Returns a path without `/` at its ends, `.` and `..`. It is empty for the root, and `None` if it leads above the root.
#[must_use]
pub fn normal_path(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Compares the names of each level. A folder cannot contain a file and a folder with the same name.
fn walk_order(a: &str, b: &str) -> Ordering {
    a.split('/').cmp(b.split('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> PackagedFile {
        PackagedFile {
            path: path.to_owned(),
            bytes: text.as_bytes().to_vec(),
        }
    }

    #[test]
    fn folders_are_walked_level_by_level() {
        let files = ["b.yaml", "a-b/x.yaml", "a/y.yaml", "a/x.yaml"];
        let package = Package::from_folder(files.map(|path| file(path, "")).to_vec()).unwrap();
        let paths: Vec<&str> = package
            .files()
            .iter()
            .map(|file| file.path.as_str())
            .collect();
        assert_eq!(paths, ["a/x.yaml", "a/y.yaml", "a-b/x.yaml", "b.yaml"]);
    }

    #[test]
    fn paths_stay_inside() {
        for path in [
            "", "/a", "../a", "a/../b", "./a", "a//b", "a\\b", "a\0", "a/",
        ] {
            let error = Package::from_folder(vec![file(path, "")]).unwrap_err();
            assert!(matches!(error, PackageError::Path { .. }), "{path:?}");
        }
        let twice = vec![file("a", "1"), file("a", "2")];
        let path = "a".to_owned();
        assert_eq!(
            Package::from_folder(twice),
            Err(PackageError::Duplicate { path })
        );
        assert_eq!(Package::from_folder(Vec::new()), Err(PackageError::Empty));
        let (most, more) = ("n".repeat(MAX_PATH), "n".repeat(MAX_PATH + 1));
        assert!(Package::from_folder(vec![file(&most, "")]).is_ok());
        let error = Package::from_folder(vec![file(&more, "")]).unwrap_err();
        let expected = format!("the path {}... has more than 1024 bytes", "n".repeat(SHOWN));
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_folder_has_one_readme() {
        for (files, expected) in [
            (
                &["README.txt", "ReadMe.md", "a/README.md"][..],
                Some("ReadMe.md"),
            ),
            (&["README", "README.markdown"], Some("README")),
            (&["a/README.md", "values.yaml"], None),
        ] {
            let files = files.iter().map(|path| file(path, "")).collect();
            let package = Package::from_folder(files).unwrap();
            let found = package.readme().map(|file| file.path.as_str());
            assert_eq!(found, expected);
        }
        assert_eq!(Package::from_file("README.md", Vec::new()).readme(), None);
    }

    /// Computed with `sha256sum`.
    #[test]
    fn digests_can_be_made_with_sha256sum() {
        let one = Package::from_file("a.yaml", b"a: 1\n".to_vec());
        assert_eq!(
            one.digest(),
            "37b128c59f1f5097f73f82691cb519f1f568667faab5ced1b4ab979d36837eae"
        );
        let folder =
            Package::from_folder(vec![file("b/c.yaml", "b: 2\n"), file("a.yaml", "a: 1\n")]);
        assert_eq!(
            folder.unwrap().digest(),
            "5b9c7cc25a2fea20b747e7df4817648e4923d67eaaa2686f899fd522f41f14bc"
        );
    }

    #[test]
    fn bytes_and_back() {
        let folder = Package::from_folder(vec![file("a", "1"), file("b/c", "")]).unwrap();
        let one = Package::from_file("x.tgz", vec![0, 1, 2]);
        for package in [folder, one] {
            let bytes = package.to_bytes();
            assert_eq!(Package::from_bytes(&bytes), Ok(package));
            for cut in 0..bytes.len() {
                // Cut between two files the rest is a valid smaller package; the cache compares digests.
                let _ = Package::from_bytes(bytes.get(..cut).unwrap());
            }
        }
        assert_eq!(Package::from_bytes(&[2]), Err(PackageError::Malformed));
    }
}
