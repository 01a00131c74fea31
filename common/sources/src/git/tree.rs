//! The package at a path of a commit, read from the object database without a checkout.

use common::render::package::{self, File, Package, PackageError};
use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::objs::FindExt as _;
use gix::objs::tree::EntryKind;
use gix::odb::HeaderExt as _;

use super::Problem;

/// Folder entries that are visited: a small tree can contain itself a billion times.
const MAX_ENTRIES: usize = 20 * package::MAX_FILES;
/// Symlinks on the way to one file.
const MAX_LINKS: usize = 16;
/// Folders inside folders.
const MAX_DEPTH: usize = 100;
/// Bytes of one folder's list.
const MAX_TREE: u64 = 16 << 20;
/// Bytes of the target of a symlink.
const MAX_TARGET: u64 = 4096;
/// The start of a Git LFS pointer.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The tree of one commit.
pub struct Tree<'a> {
    objects: &'a gix::odb::Handle,
    commit: ObjectId,
    root: ObjectId,
    entries: usize,
    bytes: u64,
}

/// One entry of a folder.
#[derive(Clone)]
struct Entry {
    name: String,
    kind: EntryKind,
    id: ObjectId,
}

impl<'a> Tree<'a> {
    /// The tree of a commit.
    ///
    /// # Errors
    /// The object is not a commit, or damaged.
    pub fn of(objects: &'a gix::odb::Handle, commit: ObjectId) -> Result<Self, Problem> {
        let mut tree = Self {
            objects,
            commit,
            root: commit,
            entries: 0,
            bytes: 0,
        };
        let header = objects.header(commit).map_err(|_| tree.damaged(commit))?;
        if header.kind() != gix::objs::Kind::Commit || header.size() > MAX_TREE {
            return Err(Problem::NoCommit {
                id: commit.to_string(),
            });
        }
        let mut buffer = Vec::new();
        let found = objects.find_commit(&commit, &mut buffer);
        tree.root = found.map_err(|_| tree.damaged(commit))?.tree();
        Ok(tree)
    }

    /// The file or folder at `path`; without parts, the whole tree.
    ///
    /// # Errors
    /// The path does not exist, leads out of the tree, or holds too much.
    pub fn package(mut self, path: &[String]) -> Result<Package, Problem> {
        let whole = path.join("/");
        let Some(entry) = self.resolve(path)? else {
            return Err(self.nothing(path));
        };
        match entry.kind {
            EntryKind::Tree => self.folder(path, entry.id),
            EntryKind::Blob | EntryKind::BlobExecutable => {
                let bytes = self.file(&whole, entry.id)?;
                let name = path.last().cloned().unwrap_or_default();
                Ok(Package::file(name, bytes))
            }
            EntryKind::Link => Err(self.link(&whole, entry.id)),
            EntryKind::Commit => Err(Problem::Submodule {
                path: self.at(&whole),
            }),
        }
    }

    fn folder(&mut self, path: &[String], id: ObjectId) -> Result<Package, Problem> {
        let mut files = Vec::new();
        let mut waiting = vec![(Vec::new(), id)];
        while let Some((below, id)) = waiting.pop() {
            let folder: Vec<String> = path.iter().chain(&below).cloned().collect();
            for entry in self.list(&folder.join("/"), id)? {
                let mut below: Vec<String> = below.clone();
                below.push(entry.name);
                let shown = below.join("/");
                // A few kilobytes can name one folder ten thousand times, under names that together are gigabytes.
                package::check_length(&shown)
                    .map_err(|error| self.too_much(&folder.join("/"), error))?;
                let whole: Vec<String> = path.iter().chain(&below).cloned().collect();
                let location = whole.join("/");
                let id = match entry.kind {
                    EntryKind::Tree if below.len() < MAX_DEPTH => {
                        waiting.push((below, entry.id));
                        continue;
                    }
                    EntryKind::Tree => return Err(self.too_much(&location, PackageError::TooMany)),
                    EntryKind::Commit => {
                        return Err(Problem::Submodule {
                            path: self.at(&location),
                        });
                    }
                    EntryKind::Link => match self.resolve(&whole)? {
                        Some(Entry {
                            kind: EntryKind::Blob | EntryKind::BlobExecutable,
                            id,
                            ..
                        }) => id,
                        _ => return Err(self.link(&location, entry.id)),
                    },
                    EntryKind::Blob | EntryKind::BlobExecutable => entry.id,
                };
                if files.len() >= package::MAX_FILES {
                    return Err(self.too_much(&path.join("/"), PackageError::TooMany));
                }
                let bytes = self.file(&location, id)?;
                files.push(File { path: shown, bytes });
            }
        }
        Package::folder(files).map_err(|error| self.too_much(&path.join("/"), error))
    }

    /// The entry at a path, through symlinks that stay in the tree. `None` if it does not exist; a symlink that leads out of the
    /// tree, nowhere or in a circle is returned itself.
    fn resolve(&mut self, path: &[String]) -> Result<Option<Entry>, Problem> {
        let root = Entry {
            name: String::new(),
            kind: EntryKind::Tree,
            id: self.root,
        };
        // The entries from the root to the current one, and the remaining parts of the path in reverse.
        let mut walked = vec![root];
        let mut rest: Vec<String> = path.iter().rev().cloned().collect();
        let mut link: Option<Entry> = None;
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." if walked.len() > 1 => {
                    walked.pop();
                    continue;
                }
                ".." => return Ok(link),
                _ => {}
            }
            let Some(here) = walked.last().filter(|here| here.kind == EntryKind::Tree) else {
                return Ok(link);
            };
            let (id, names) = (
                here.id,
                walked.iter().skip(1).map(|entry| entry.name.as_str()),
            );
            let location = names.collect::<Vec<_>>().join("/");
            let Some(found) = self
                .list(&location, id)?
                .into_iter()
                .find(|entry| entry.name == part)
            else {
                return Ok(link);
            };
            if found.kind != EntryKind::Link {
                walked.push(found);
                continue;
            }
            let target = self.target(found.id)?;
            link.get_or_insert(found);
            links += 1;
            if links > MAX_LINKS || target.starts_with('/') || target.is_empty() {
                return Ok(link);
            }
            rest.extend(target.split('/').rev().map(str::to_owned));
            if rest.len() > MAX_DEPTH {
                return Ok(link);
            }
        }
        Ok(walked.pop())
    }

    /// The entries of a folder.
    fn list(&mut self, path: &str, id: ObjectId) -> Result<Vec<Entry>, Problem> {
        if self.size(id)? > MAX_TREE {
            return Err(self.too_much(path, PackageError::TooMany));
        }
        let mut buffer = Vec::new();
        let found = self.objects.find_tree(&id, &mut buffer);
        let found = found.map_err(|_| self.damaged(id))?;
        self.entries = self.entries.saturating_add(found.entries.len());
        if self.entries > MAX_ENTRIES {
            return Err(self.too_much(path, PackageError::TooMany));
        }
        let entries = found.entries.iter().map(|entry| {
            let name = entry.filename.to_str().map_err(|_| Problem::Name {
                path: self.at(path),
            })?;
            // No file system has such names, and a folder is listed anew for every symlink through it.
            package::check_length(name).map_err(|error| self.too_much(path, error))?;
            Ok(Entry {
                name: name.to_owned(),
                kind: entry.mode.kind(),
                id: entry.oid.to_owned(),
            })
        });
        entries.collect()
    }

    /// The bytes of a file.
    fn file(&mut self, path: &str, id: ObjectId) -> Result<Vec<u8>, Problem> {
        self.bytes = self.bytes.saturating_add(self.size(id)?);
        if self.bytes > package::MAX_BYTES as u64 {
            return Err(self.too_much(path, PackageError::TooLarge));
        }
        let bytes = self.blob(id)?;
        if bytes.starts_with(LFS) && bytes.len() < 1024 {
            return Err(Problem::Lfs {
                path: self.at(path),
            });
        }
        Ok(bytes)
    }

    /// The target of a symlink; empty if it is too long.
    fn target(&self, id: ObjectId) -> Result<String, Problem> {
        if self.size(id)? > MAX_TARGET {
            return Ok(String::new());
        }
        Ok(String::from_utf8(self.blob(id)?).unwrap_or_default())
    }

    /// The size of an object, before it is read.
    fn size(&self, id: ObjectId) -> Result<u64, Problem> {
        let header = self.objects.header(id).map_err(|_| self.damaged(id))?;
        Ok(header.size())
    }

    fn blob(&self, id: ObjectId) -> Result<Vec<u8>, Problem> {
        let mut buffer = Vec::new();
        match self.objects.find_blob(&id, &mut buffer) {
            Ok(_) => Ok(buffer),
            Err(_) => Err(self.damaged(id)),
        }
    }

    /// A path for messages, as git writes it: `COMMIT:PATH`.
    fn at(&self, path: &str) -> String {
        let commit = self.commit.to_hex_with_len(super::SHORT);
        match path {
            "" => commit.to_string(),
            path => format!("{commit}:{path}"),
        }
    }

    fn damaged(&self, id: ObjectId) -> Problem {
        Problem::Object { id: id.to_string() }
    }

    fn too_much(&self, path: &str, source: PackageError) -> Problem {
        Problem::Package {
            path: self.at(path),
            source,
        }
    }

    fn link(&self, path: &str, id: ObjectId) -> Problem {
        Problem::Symlink {
            path: self.at(path),
            target: self.target(id).unwrap_or_default(),
        }
    }

    /// The error for a path that does not exist, with the names in the last folder that does.
    fn nothing(&mut self, path: &[String]) -> Problem {
        let mut near = String::from("the repository is empty");
        for (length, missing) in path.iter().enumerate().rev() {
            let folder = path.get(..length).unwrap_or_default();
            let Ok(Some(entry)) = self.resolve(folder) else {
                continue;
            };
            let names = self.list("", entry.id).unwrap_or_default();
            let names: Vec<&str> = names.iter().map(|entry| entry.name.as_str()).collect();
            near = super::near(missing, &names);
            break;
        }
        Problem::Path {
            path: self.at(&path.join("/")),
            near,
        }
    }
}
