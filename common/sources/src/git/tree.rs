//! Reads the package at a path of a commit from its objects, without a checkout.

use addons_render::package::{self, Package, PackageError, PackagedFile};

use super::GitProblem;
use super::objects::{GitObject, ObjectReader, Oid};
use super::program::Git;
use super::session::FetchSession;

/// The maximum number of folder entries to visit. A small tree can contain itself a billion times.
const MAX_ENTRIES: usize = 20 * package::MAX_FILES;
/// The maximum number of symlinks on the way to one file.
const MAX_LINKS: usize = 16;
/// The maximum depth of folders.
const MAX_DEPTH: usize = 100;
/// The maximum size in bytes of the list of a folder, and of a commit.
const MAX_TREE: u64 = 16 << 20;
/// The maximum size in bytes of the target of a symlink.
const MAX_TARGET: u64 = 4096;
/// The number of bytes of an id in a tree.
const ID: usize = 20;
/// The start of a Git LFS pointer.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The tree of one commit.
pub struct CommitTree {
    objects: ObjectReader,
    commit: Oid,
    root: Oid,
    entries: usize,
    bytes: u64,
}

/// The kind of an entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TreeEntryKind {
    Folder,
    File,
    Symlink,
    Submodule,
}

/// An entry of a folder.
#[derive(Clone)]
struct TreeEntry {
    name: String,
    kind: TreeEntryKind,
    id: Oid,
}

impl CommitTree {
    /// Opens the tree of a commit.
    ///
    /// # Errors
    /// The object is not a commit or is damaged.
    pub async fn open(git: &Git<'_>, commit: &Oid) -> Result<Self, GitProblem> {
        let mut objects = ObjectReader::open(git)?;
        let id = commit.to_string();
        let root = match objects.read(commit, MAX_TREE).await {
            GitObject::Missing => return Err(GitProblem::Object { id }),
            GitObject::Commit(bytes) => {
                let line = bytes.split(|byte| *byte == b'\n').next();
                let line = std::str::from_utf8(line.unwrap_or_default()).ok();
                let root = line.and_then(|line| Oid::parse(line.strip_prefix("tree ")?));
                root.ok_or(GitProblem::Object { id })?
            }
            _ => return Err(GitProblem::NoCommit { id }),
        };
        Ok(Self {
            objects,
            commit: commit.clone(),
            root,
            entries: 0,
            bytes: 0,
        })
    }

    /// Reads the file or folder at `path`, or the whole tree if `path` is empty. Files that the server left
    /// out are received by `session`.
    ///
    /// # Errors
    /// The path does not exist, leads out of the tree, or has too many or too large files.
    pub async fn package(
        mut self,
        path: &[String],
        session: Option<&FetchSession<'_>>,
    ) -> Result<Package, GitProblem> {
        let whole = path.join("/");
        let Some(entry) = self.resolve(path).await? else {
            return Err(self.missing_path(path).await);
        };
        match entry.kind {
            TreeEntryKind::Folder => self.folder(path, entry.id, session).await,
            TreeEntryKind::File => {
                let bytes = self.file(&whole, &entry.id).await?;
                let name = path.last().cloned().unwrap_or_default();
                Ok(Package::from_file(name, bytes))
            }
            TreeEntryKind::Symlink => Err(self.symlink_problem(&whole, &entry.id).await),
            TreeEntryKind::Submodule => Err(GitProblem::Submodule {
                path: self.location(&whole),
            }),
        }
    }

    async fn folder(
        &mut self,
        path: &[String],
        id: Oid,
        session: Option<&FetchSession<'_>>,
    ) -> Result<Package, GitProblem> {
        let listed = self.walk(path, id).await?;
        if let Some(session) = session {
            // All files are received at once.
            session
                .receive_missing(listed.iter().map(|(_, entry)| &entry.id))
                .await?;
        }
        let mut files = Vec::new();
        for (below, entry) in listed {
            let whole: Vec<String> = path.iter().chain(&below).cloned().collect();
            let location = whole.join("/");
            let id = match entry.kind {
                TreeEntryKind::Symlink => match self.resolve(&whole).await? {
                    Some(TreeEntry {
                        kind: TreeEntryKind::File,
                        id,
                        ..
                    }) => id,
                    _ => return Err(self.symlink_problem(&location, &entry.id).await),
                },
                _ => entry.id,
            };
            let bytes = self.file(&location, &id).await?;
            let path = below.join("/");
            files.push(PackagedFile { path, bytes });
        }
        Package::from_folder(files).map_err(|error| self.package_problem(&path.join("/"), error))
    }

    /// Lists the files and symlinks below a folder, with the parts of their paths relative to it.
    async fn walk(
        &mut self,
        path: &[String],
        id: Oid,
    ) -> Result<Vec<(Vec<String>, TreeEntry)>, GitProblem> {
        let mut listed = Vec::new();
        let mut waiting = vec![(Vec::new(), id)];
        while let Some((above, id)) = waiting.pop() {
            let folder = [path, &above].concat().join("/");
            for entry in self.list(&folder, &id).await? {
                let mut below: Vec<String> = above.clone();
                below.push(entry.name.clone());
                // A few kilobytes can list one folder ten thousand times, with names that add up to
                // gigabytes.
                package::check_length(&below.join("/"))
                    .map_err(|error| self.package_problem(&folder, error))?;
                let location = [path, &below].concat().join("/");
                match entry.kind {
                    TreeEntryKind::Folder if below.len() < MAX_DEPTH => {
                        waiting.push((below, entry.id));
                    }
                    TreeEntryKind::Folder => {
                        return Err(self.package_problem(&location, PackageError::TooMany));
                    }
                    TreeEntryKind::Submodule => {
                        return Err(GitProblem::Submodule {
                            path: self.location(&location),
                        });
                    }
                    TreeEntryKind::File | TreeEntryKind::Symlink
                        if listed.len() < package::MAX_FILES =>
                    {
                        listed.push((below, entry));
                    }
                    TreeEntryKind::File | TreeEntryKind::Symlink => {
                        return Err(self.package_problem(&path.join("/"), PackageError::TooMany));
                    }
                }
            }
        }
        Ok(listed)
    }

    /// Finds the entry at a path and follows symlinks within the tree. Returns `None` if it does not exist. A
    /// symlink that leads out of the tree, nowhere or in a circle is returned itself.
    async fn resolve(&mut self, path: &[String]) -> Result<Option<TreeEntry>, GitProblem> {
        let root = TreeEntry {
            name: String::new(),
            kind: TreeEntryKind::Folder,
            id: self.root.clone(),
        };
        // The entries from the root to the current one, and the remaining parts of the path in reverse.
        let mut walked = vec![root];
        let mut rest: Vec<String> = path.iter().rev().cloned().collect();
        let mut link: Option<TreeEntry> = None;
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
            let Some(here) = walked
                .last()
                .filter(|here| here.kind == TreeEntryKind::Folder)
            else {
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
            if found.kind != TreeEntryKind::Symlink {
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

    /// Reads the entries of a folder.
    async fn list(&mut self, path: &str, id: &Oid) -> Result<Vec<TreeEntry>, GitProblem> {
        let bytes = match self.objects.read(id, MAX_TREE).await {
            GitObject::Tree(bytes) => bytes,
            GitObject::Larger => return Err(self.package_problem(path, PackageError::TooMany)),
            _ => return Err(damaged_object(id)),
        };
        let mut entries = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (mode, name, id, after) = split_entry(rest).ok_or_else(|| damaged_object(id))?;
            rest = after;
            self.entries = self.entries.saturating_add(1);
            if self.entries > MAX_ENTRIES {
                return Err(self.package_problem(path, PackageError::TooMany));
            }
            let name = std::str::from_utf8(name).map_err(|_| GitProblem::Name {
                path: self.location(path),
            })?;
            // No file system has such long names, and a folder is listed again for every symlink through it.
            package::check_length(name).map_err(|error| self.package_problem(path, error))?;
            entries.push(TreeEntry {
                name: name.to_owned(),
                kind: match mode & 0o170_000 {
                    0o040_000 => TreeEntryKind::Folder,
                    0o120_000 => TreeEntryKind::Symlink,
                    0o160_000 => TreeEntryKind::Submodule,
                    _ => TreeEntryKind::File,
                },
                id,
            });
        }
        Ok(entries)
    }

    /// Reads a file.
    async fn file(&mut self, path: &str, id: &Oid) -> Result<Vec<u8>, GitProblem> {
        let left = (package::MAX_BYTES as u64).saturating_sub(self.bytes);
        let bytes = match self.objects.read(id, left).await {
            GitObject::Blob(bytes) => bytes,
            GitObject::Larger => return Err(self.package_problem(path, PackageError::TooLarge)),
            _ => return Err(damaged_object(id)),
        };
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if bytes.starts_with(LFS) && bytes.len() < 1024 {
            return Err(GitProblem::Lfs {
                path: self.location(path),
            });
        }
        Ok(bytes)
    }

    /// Reads the target of a symlink. A target that is too long is returned as an empty text.
    async fn target(&mut self, id: &Oid) -> Result<String, GitProblem> {
        match self.objects.read(id, MAX_TARGET).await {
            GitObject::Blob(bytes) => Ok(String::from_utf8(bytes).unwrap_or_default()),
            GitObject::Larger => Ok(String::new()),
            _ => Err(damaged_object(id)),
        }
    }

    /// Formats a path for messages as git does: `COMMIT:PATH`.
    fn location(&self, path: &str) -> String {
        match path {
            "" => self.commit.short().to_owned(),
            path => format!("{}:{path}", self.commit.short()),
        }
    }

    fn package_problem(&self, path: &str, source: PackageError) -> GitProblem {
        GitProblem::Package {
            path: self.location(path),
            source,
        }
    }

    async fn symlink_problem(&mut self, path: &str, id: &Oid) -> GitProblem {
        GitProblem::Symlink {
            path: self.location(path),
            target: self.target(id).await.unwrap_or_default(),
        }
    }

    /// The error for a path that does not exist, with the names in the last folder of the path that exists.
    async fn missing_path(&mut self, path: &[String]) -> GitProblem {
        let mut near = String::from("the repository is empty");
        for (length, missing) in path.iter().enumerate().rev() {
            let folder = path.get(..length).unwrap_or_default();
            let Ok(Some(entry)) = self.resolve(folder).await else {
                continue;
            };
            let names = self.list("", &entry.id).await.unwrap_or_default();
            let names: Vec<&str> = names.iter().map(|entry| entry.name.as_str()).collect();
            near = super::suggest_names(missing, &names);
            break;
        }
        GitProblem::Path {
            path: self.location(&path.join("/")),
            near,
        }
    }
}

fn damaged_object(id: &Oid) -> GitProblem {
    GitProblem::Object { id: id.to_string() }
}

/// Splits off the first entry of a tree, which is `MODE NAME`, a zero byte and the id. Returns the mode, the
/// name, the id and the rest.
fn split_entry(tree: &[u8]) -> Option<(u32, &[u8], Oid, &[u8])> {
    let end = tree.iter().position(|byte| *byte == 0)?;
    let (line, rest) = tree.split_at(end);
    let space = line.iter().position(|byte| *byte == b' ')?;
    let mode = std::str::from_utf8(line.get(..space)?).ok()?;
    let mode = u32::from_str_radix(mode, 8).ok()?;
    let id = Oid::of(rest.get(1..=ID)?);
    Some((mode, line.get(space + 1..)?, id, rest.get(ID + 1..)?))
}
