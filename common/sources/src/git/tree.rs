//! The package at a path of a commit, read from its objects without a checkout.

use addons_render::package::{self, File, Package, PackageError};

use super::Problem;
use super::objects::{Object, Objects, Oid};
use super::program::Git;
use super::session::Session;

/// Folder entries that are visited: a small tree can contain itself a billion times.
const MAX_ENTRIES: usize = 20 * package::MAX_FILES;
/// Symlinks on the way to one file.
const MAX_LINKS: usize = 16;
/// Folders inside folders.
const MAX_DEPTH: usize = 100;
/// Bytes of one folder's list, and of a commit.
const MAX_TREE: u64 = 16 << 20;
/// Bytes of the target of a symlink.
const MAX_TARGET: u64 = 4096;
/// Bytes of an id in a tree.
const ID: usize = 20;
/// The start of a Git LFS pointer.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The tree of one commit.
pub struct Tree {
    objects: Objects,
    commit: Oid,
    root: Oid,
    entries: usize,
    bytes: u64,
}

/// What an entry of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    Folder,
    File,
    Symlink,
    Submodule,
}

/// One entry of a folder.
#[derive(Clone)]
struct Entry {
    name: String,
    kind: EntryKind,
    id: Oid,
}

impl Tree {
    /// The tree of a commit.
    ///
    /// # Errors
    /// The object is not a commit, or damaged.
    pub async fn of(git: &Git<'_>, commit: &Oid) -> Result<Self, Problem> {
        let mut objects = Objects::open(git)?;
        let id = commit.to_string();
        let root = match objects.read(commit, MAX_TREE).await {
            Object::Missing => return Err(Problem::Object { id }),
            Object::Commit(bytes) => {
                let line = bytes.split(|byte| *byte == b'\n').next();
                let line = std::str::from_utf8(line.unwrap_or_default()).ok();
                let root = line.and_then(|line| Oid::parse(line.strip_prefix("tree ")?));
                root.ok_or(Problem::Object { id })?
            }
            _ => return Err(Problem::NoCommit { id }),
        };
        Ok(Self {
            objects,
            commit: commit.clone(),
            root,
            entries: 0,
            bytes: 0,
        })
    }

    /// The file or folder at `path`; without parts, the whole tree. Files that the server left out come from `session`.
    ///
    /// # Errors
    /// The path does not exist, leads out of the tree, or holds too much.
    pub async fn package(
        mut self,
        path: &[String],
        session: Option<&Session<'_>>,
    ) -> Result<Package, Problem> {
        let whole = path.join("/");
        let Some(entry) = self.resolve(path).await? else {
            return Err(self.nothing(path).await);
        };
        match entry.kind {
            EntryKind::Folder => self.folder(path, entry.id, session).await,
            EntryKind::File => {
                let bytes = self.file(&whole, &entry.id).await?;
                let name = path.last().cloned().unwrap_or_default();
                Ok(Package::file(name, bytes))
            }
            EntryKind::Symlink => Err(self.link(&whole, &entry.id).await),
            EntryKind::Submodule => Err(Problem::Submodule {
                path: self.at(&whole),
            }),
        }
    }

    async fn folder(
        &mut self,
        path: &[String],
        id: Oid,
        session: Option<&Session<'_>>,
    ) -> Result<Package, Problem> {
        let listed = self.walk(path, id).await?;
        if let Some(session) = session {
            // At once, not file by file.
            session
                .complete(listed.iter().map(|(_, entry)| &entry.id))
                .await?;
        }
        let mut files = Vec::new();
        for (below, entry) in listed {
            let whole: Vec<String> = path.iter().chain(&below).cloned().collect();
            let location = whole.join("/");
            let id = match entry.kind {
                EntryKind::Symlink => match self.resolve(&whole).await? {
                    Some(Entry {
                        kind: EntryKind::File,
                        id,
                        ..
                    }) => id,
                    _ => return Err(self.link(&location, &entry.id).await),
                },
                _ => entry.id,
            };
            let bytes = self.file(&location, &id).await?;
            let path = below.join("/");
            files.push(File { path, bytes });
        }
        Package::folder(files).map_err(|error| self.too_much(&path.join("/"), error))
    }

    /// The files and symlinks below a folder, each with the parts of its path there.
    async fn walk(
        &mut self,
        path: &[String],
        id: Oid,
    ) -> Result<Vec<(Vec<String>, Entry)>, Problem> {
        let mut listed = Vec::new();
        let mut waiting = vec![(Vec::new(), id)];
        while let Some((above, id)) = waiting.pop() {
            let folder = [path, &above].concat().join("/");
            for entry in self.list(&folder, &id).await? {
                let mut below: Vec<String> = above.clone();
                below.push(entry.name.clone());
                // A few kilobytes can name one folder ten thousand times, under names that together are gigabytes.
                package::check_length(&below.join("/"))
                    .map_err(|error| self.too_much(&folder, error))?;
                let location = [path, &below].concat().join("/");
                match entry.kind {
                    EntryKind::Folder if below.len() < MAX_DEPTH => {
                        waiting.push((below, entry.id));
                    }
                    EntryKind::Folder => {
                        return Err(self.too_much(&location, PackageError::TooMany));
                    }
                    EntryKind::Submodule => {
                        return Err(Problem::Submodule {
                            path: self.at(&location),
                        });
                    }
                    EntryKind::File | EntryKind::Symlink if listed.len() < package::MAX_FILES => {
                        listed.push((below, entry));
                    }
                    EntryKind::File | EntryKind::Symlink => {
                        return Err(self.too_much(&path.join("/"), PackageError::TooMany));
                    }
                }
            }
        }
        Ok(listed)
    }

    /// The entry at a path, through symlinks that stay in the tree. `None` if it does not exist; a symlink that leads out of the
    /// tree, nowhere or in a circle is returned itself.
    async fn resolve(&mut self, path: &[String]) -> Result<Option<Entry>, Problem> {
        let root = Entry {
            name: String::new(),
            kind: EntryKind::Folder,
            id: self.root.clone(),
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
            let Some(here) = walked.last().filter(|here| here.kind == EntryKind::Folder) else {
                return Ok(link);
            };
            let (id, names) = (
                here.id.clone(),
                walked.iter().skip(1).map(|entry| entry.name.as_str()),
            );
            let location = names.collect::<Vec<_>>().join("/");
            let Some(found) = self
                .list(&location, &id)
                .await?
                .into_iter()
                .find(|entry| entry.name == part)
            else {
                return Ok(link);
            };
            if found.kind != EntryKind::Symlink {
                walked.push(found);
                continue;
            }
            let target = self.target(&found.id).await?;
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
    async fn list(&mut self, path: &str, id: &Oid) -> Result<Vec<Entry>, Problem> {
        let bytes = match self.objects.read(id, MAX_TREE).await {
            Object::Tree(bytes) => bytes,
            Object::Larger => return Err(self.too_much(path, PackageError::TooMany)),
            _ => return Err(damaged(id)),
        };
        let mut entries = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (mode, name, id, after) = split(rest).ok_or_else(|| damaged(id))?;
            rest = after;
            self.entries = self.entries.saturating_add(1);
            if self.entries > MAX_ENTRIES {
                return Err(self.too_much(path, PackageError::TooMany));
            }
            let name = std::str::from_utf8(name).map_err(|_| Problem::Name {
                path: self.at(path),
            })?;
            // No file system has such names, and a folder is listed anew for every symlink through it.
            package::check_length(name).map_err(|error| self.too_much(path, error))?;
            entries.push(Entry {
                name: name.to_owned(),
                kind: match mode & 0o170_000 {
                    0o040_000 => EntryKind::Folder,
                    0o120_000 => EntryKind::Symlink,
                    0o160_000 => EntryKind::Submodule,
                    _ => EntryKind::File,
                },
                id,
            });
        }
        Ok(entries)
    }

    /// The bytes of a file.
    async fn file(&mut self, path: &str, id: &Oid) -> Result<Vec<u8>, Problem> {
        let left = (package::MAX_BYTES as u64).saturating_sub(self.bytes);
        let bytes = match self.objects.read(id, left).await {
            Object::Blob(bytes) => bytes,
            Object::Larger => return Err(self.too_much(path, PackageError::TooLarge)),
            _ => return Err(damaged(id)),
        };
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if bytes.starts_with(LFS) && bytes.len() < 1024 {
            return Err(Problem::Lfs {
                path: self.at(path),
            });
        }
        Ok(bytes)
    }

    /// The target of a symlink; empty if it is too long.
    async fn target(&mut self, id: &Oid) -> Result<String, Problem> {
        match self.objects.read(id, MAX_TARGET).await {
            Object::Blob(bytes) => Ok(String::from_utf8(bytes).unwrap_or_default()),
            Object::Larger => Ok(String::new()),
            _ => Err(damaged(id)),
        }
    }

    /// A path for messages, as git writes it: `COMMIT:PATH`.
    fn at(&self, path: &str) -> String {
        match path {
            "" => self.commit.short().to_owned(),
            path => format!("{}:{path}", self.commit.short()),
        }
    }

    fn too_much(&self, path: &str, source: PackageError) -> Problem {
        Problem::Package {
            path: self.at(path),
            source,
        }
    }

    async fn link(&mut self, path: &str, id: &Oid) -> Problem {
        Problem::Symlink {
            path: self.at(path),
            target: self.target(id).await.unwrap_or_default(),
        }
    }

    /// The error for a path that does not exist, with the names in the last folder that does.
    async fn nothing(&mut self, path: &[String]) -> Problem {
        let mut near = String::from("the repository is empty");
        for (length, missing) in path.iter().enumerate().rev() {
            let folder = path.get(..length).unwrap_or_default();
            let Ok(Some(entry)) = self.resolve(folder).await else {
                continue;
            };
            let names = self.list("", &entry.id).await.unwrap_or_default();
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

fn damaged(id: &Oid) -> Problem {
    Problem::Object { id: id.to_string() }
}

/// Mode, name and id of the first entry of a tree, `MODE NAME` with a zero and the id after it; and the rest.
fn split(tree: &[u8]) -> Option<(u32, &[u8], Oid, &[u8])> {
    let end = tree.iter().position(|byte| *byte == 0)?;
    let (line, rest) = tree.split_at(end);
    let space = line.iter().position(|byte| *byte == b' ')?;
    let mode = std::str::from_utf8(line.get(..space)?).ok()?;
    let mode = u32::from_str_radix(mode, 8).ok()?;
    let id = Oid::of(rest.get(1..=ID)?);
    Some((mode, line.get(space + 1..)?, id, rest.get(ID + 1..)?))
}
