//! A directory of manifests, as the addon-manager reads it: files become add-ons, and labels decide what happens to each object.
//!
//! Every file and folder at the top of the directory is one add-on. An unreadable file is a problem of its own add-on only, and an
//! incomplete add-on deletes nothing: see [`DirectoryEntry::reason_to_keep`].
//!
//! | module | what it decides |
//! |---|---|
//! | [`class`] | whether an object is reconciled, only created, or ignored |
//! | [`legacy`] | whether an object is another version of a given one, by the naming rule of 2015 |
//! | [`allowed`] | the prune allow-list of the addon-manager |

pub mod allowed;
pub mod class;
pub mod legacy;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::api::names::{ANNOTATION_APPLY, APPLY_CREATE_ONLY, hex_prefix, installation_name};
use crate::manifest::digest::sha256;
use crate::manifest::key::ObjectKey;
use crate::manifest::kinds::traits::is_cluster_scoped;
use crate::manifest::parse::{self, ManifestError};
use crate::manifest::yaml::DuplicateKeys;
use crate::manifest::{FILE_ENDINGS, FilePosition, Manifest, is_manifest_file, ownership};
use class::{LABELS, ObjectClass, read_class};

/// The namespace of objects that do not name one, as with the addon-manager (semantics 21.1).
pub const NAMESPACE: &str = "default";

/// A file below the directory, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryFile {
    /// The path relative to the directory, separated by `/`.
    pub path: String,
    /// The bytes, or why they cannot be read.
    pub content: Result<Vec<u8>, String>,
    /// Whether the file changed while it was read, because another program is writing it.
    pub is_changing: bool,
}

/// Options for reading a directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectoryOptions {
    /// Reconcile objects without a label of the addon-manager, instead of ignoring them.
    pub all: bool,
    /// The handling of repeated keys.
    pub duplicate_keys: DuplicateKeys,
}

/// The add-ons of a directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Directory {
    /// The add-ons, sorted by path.
    pub addons: Vec<DirectoryEntry>,
}

/// A file or folder at the top of the directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectoryEntry {
    /// The name of the file without its ending, or of the folder.
    pub name: String,
    /// The name of the installation.
    pub installation: String,
    /// The path of the file or folder, as messages name it.
    pub path: String,
    /// The number that the name begins with, as in `10-dns.yaml`. Add-ons with lower numbers come first.
    pub number: Option<u64>,
    /// The manifests to apply. Objects that are only created carry our annotation for that.
    pub manifests: Vec<Manifest>,
    /// The objects that stay unchanged, and why.
    pub ignored: Vec<IgnoredObject>,
    /// Problems of its files.
    pub problems: Vec<DirectoryProblem>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The sha256 of its files.
    pub digest: String,
}

/// An object that has a manifest but is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredObject {
    /// The key as written, without a namespace if the manifest names none.
    pub key: ObjectKey,
    /// The place of the manifest.
    pub place: FilePosition,
    /// The reason.
    pub why: IgnoreReason,
}

/// Why an object is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IgnoreReason {
    /// Its labels do not ask for it to be applied.
    Labels(class::UnmanagedReason),
    /// Two manifests define it, see [`DirectoryProblem::SameObject`].
    SameObject,
}

/// A problem of a file or folder.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DirectoryProblem {
    /// The file cannot be read, or is empty.
    #[error("{file}: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// The reason.
        why: String,
    },
    /// The file is not a manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The file changed while it was read.
    #[error("{file} is still being written")]
    Changing {
        /// The file.
        file: String,
    },
    /// Two files or folders would have the same installation name.
    #[error("{first} and {second} are two add-ons of one name: rename one of them")]
    SameName {
        /// The first.
        first: String,
        /// The second.
        second: String,
    },
    /// Two files define the same object.
    #[error(
        "{key} is defined at {first} and at {second}: remove it from one of them; until then it stays as it is"
    )]
    SameObject {
        /// The object.
        key: Box<ObjectKey>,
        /// The place of the first definition.
        first: FilePosition,
        /// The place of the second definition.
        second: FilePosition,
    },
}

impl fmt::Display for IgnoreReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Labels(why) => why.fmt(f),
            Self::SameObject => f.write_str("it is defined twice"),
        }
    }
}

impl DirectoryEntry {
    /// Whether nothing of the add-on is applied, because its objects are not known.
    #[must_use]
    pub fn is_left_alone(&self) -> bool {
        self.problems.iter().any(|problem| {
            matches!(
                problem,
                DirectoryProblem::Changing { .. } | DirectoryProblem::SameName { .. }
            )
        })
    }

    /// Returns why an object that the add-on does not define is kept all the same, for example because an unreadable file may define
    /// it. Returns `None` if its manifest was deleted. `is_recorded` says whether an object is one of the installation: a manifest that
    /// names no namespace any more counts as moved only once the object in the default namespace is.
    #[must_use]
    pub fn reason_to_keep(
        &self,
        key: &ObjectKey,
        is_recorded: impl Fn(&ObjectKey) -> bool,
    ) -> Option<String> {
        let unread = self.problems.iter().find_map(|problem| match problem {
            DirectoryProblem::Unreadable { file, .. } | DirectoryProblem::Changing { file } => {
                Some(file.clone())
            }
            DirectoryProblem::Manifest(error) => Some(error.file().to_owned()),
            DirectoryProblem::SameName { .. } | DirectoryProblem::SameObject { .. } => None,
        });
        if let Some(file) = unread {
            return Some(format!("{file} cannot be read, and may define it"));
        }
        let mut ignored = self.ignored.iter();
        let is_it = |ignored: &&IgnoredObject| {
            key.is_described_by(&ignored.key, NAMESPACE) || lost_namespace(&ignored.key, key)
        };
        if let Some(ignored) = ignored.find(is_it) {
            return Some(format!("{}: {}", ignored.place, ignored.why));
        }
        let mut manifests = self.manifests.iter();
        let moved = manifests.find(|manifest| {
            let written = ObjectKey::from_object(&manifest.object);
            written.is_some_and(|written| {
                let there = ObjectKey {
                    namespace: Some(NAMESPACE.to_owned()),
                    ..written.clone()
                };
                lost_namespace(&written, key) && !is_recorded(&there)
            })
        })?;
        Some(format!(
            "{} names no namespace; if that stays so, it is pruned by the next pass",
            moved.place
        ))
    }
}

/// Whether a manifest without a namespace has the kind and name of an object in a namespace other than the default one. A file that is
/// only half written may look so.
fn lost_namespace(written: &ObjectKey, key: &ObjectKey) -> bool {
    let namespace = key.namespace.as_deref();
    written.namespace.is_none()
        && namespace.is_some_and(|namespace| namespace != NAMESPACE)
        && (&written.group, &written.kind, &written.name) == (&key.group, &key.kind, &key.name)
}

impl Directory {
    /// Whether the directory has no add-ons.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addons.is_empty()
    }

    /// Returns the names of the installations that the directory defines, including unreadable ones.
    #[must_use]
    pub fn installations(&self) -> BTreeSet<&str> {
        let addons = self.addons.iter();
        addons.map(|addon| addon.installation.as_str()).collect()
    }
}

/// Whether the name of a file is that of a manifest. Hidden files are not manifests.
#[must_use]
pub fn is_manifest(name: &str) -> bool {
    !name.starts_with('.') && is_manifest_file(name)
}

/// Reads the files of the directory `root`. Messages and places begin with this name.
#[must_use]
pub fn read(root: &str, mut files: Vec<DirectoryFile>, options: &DirectoryOptions) -> Directory {
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut addons: BTreeMap<String, DirectoryEntry> = BTreeMap::new();
    for file in files {
        let top = file.path.split('/').next().unwrap_or_default().to_owned();
        let is_folder = top.len() < file.path.len();
        let addon = addons
            .entry(top.clone())
            .or_insert_with(|| DirectoryEntry::new(root, &top, is_folder || !is_manifest(&top)));
        addon.add_file(root, file, options);
    }
    let mut addons: Vec<DirectoryEntry> = addons.into_values().collect();
    for addon in &mut addons {
        addon.digest = sha256(addon.digest.as_bytes());
    }
    report_same_names(&mut addons);
    remove_same_objects(&mut addons);
    Directory { addons }
}

impl DirectoryEntry {
    fn new(root: &str, top: &str, is_folder: bool) -> Self {
        let ending = FILE_ENDINGS
            .iter()
            .find_map(|ending| top.strip_suffix(ending));
        let name = ending.filter(|_| !is_folder).unwrap_or(top);
        let number = name.split_once(['-', '_']).map(|(number, _)| number);
        Self {
            name: name.to_owned(),
            installation: installation_name(name),
            path: format!("{root}/{top}"),
            number: number.and_then(|number| number.parse().ok()),
            ..Self::default()
        }
    }

    fn add_file(&mut self, root: &str, file: DirectoryFile, options: &DirectoryOptions) {
        let name = format!("{root}/{}", file.path);
        if file.is_changing {
            self.problems
                .push(DirectoryProblem::Changing { file: name.clone() });
        }
        let bytes = match file.content {
            Ok(bytes) => bytes,
            Err(why) => {
                self.digest
                    .push_str(&format!("unreadable  {}\n", file.path));
                return self
                    .problems
                    .push(DirectoryProblem::Unreadable { file: name, why });
            }
        };
        self.digest
            .push_str(&format!("{}  {}\n", sha256(&bytes), file.path));
        // A program that truncates a file before writing it leaves an empty file for a moment.
        if bytes.trim_ascii().is_empty() {
            let why = "the file is empty".to_owned();
            return self
                .problems
                .push(DirectoryProblem::Unreadable { file: name, why });
        }
        let parsing = parse::ManifestOptions {
            duplicate_keys: options.duplicate_keys,
            bare_labels: &LABELS,
            ..parse::ManifestOptions::default()
        };
        match parse::parse(&bytes, &name, &parsing) {
            Ok(parsed) => {
                self.warnings.extend(parsed.warnings);
                for manifest in parsed.manifests {
                    self.add_manifest(manifest, options);
                }
            }
            Err(error) => self.problems.push(error.into()),
        }
    }

    fn add_manifest(&mut self, mut manifest: Manifest, options: &DirectoryOptions) {
        match read_class(&manifest.object, options.all) {
            ObjectClass::Reconcile => self.manifests.push(manifest),
            ObjectClass::EnsureExists => {
                let object = Arc::make_mut(&mut manifest.object);
                ownership::annotate(object, ANNOTATION_APPLY, APPLY_CREATE_ONLY);
                self.manifests.push(manifest);
            }
            ObjectClass::Ignored(why) => {
                if let Some(key) = ObjectKey::from_object(&manifest.object) {
                    self.ignored.push(IgnoredObject {
                        key,
                        place: manifest.place,
                        why: IgnoreReason::Labels(why),
                    });
                }
            }
        }
    }
}

/// Reports add-ons with the same installation name, such as `dns.yaml` and `dns/`, because it is not known which one the installation
/// belongs to.
fn report_same_names(addons: &mut [DirectoryEntry]) {
    let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for addon in addons.iter() {
        let same = paths.entry(addon.installation.clone()).or_default();
        same.push(addon.path.clone());
    }
    for addon in addons {
        if let Some([first, second, ..]) = paths.get(&addon.installation).map(Vec::as_slice) {
            addon.problems.push(DirectoryProblem::SameName {
                first: first.clone(),
                second: second.clone(),
            });
        }
    }
}

/// Returns the cluster-scoped kinds that the directory itself defines.
fn list_cluster_scoped_kinds(addons: &[DirectoryEntry]) -> BTreeSet<(String, String)> {
    let manifests = addons.iter().flat_map(|addon| &addon.manifests);
    let scopes = manifests.filter_map(|manifest| {
        let object = &manifest.object;
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        let is_definition = text("/kind") == Some("CustomResourceDefinition");
        let is_for_cluster = is_definition && text("/spec/scope") == Some("Cluster");
        let kind = (text("/spec/group")?, text("/spec/names/kind")?);
        is_for_cluster.then(|| (kind.0.to_owned(), kind.1.to_owned()))
    });
    scopes.collect()
}

/// Removes objects that are defined more than once; of identical definitions within one add-on, the first one stays. Objects of a
/// kind whose scope is not known count as namespaced.
fn remove_same_objects(addons: &mut [DirectoryEntry]) {
    let defined = list_cluster_scoped_kinds(addons);
    let mut places: BTreeMap<ObjectKey, Vec<(usize, usize)>> = BTreeMap::new();
    for (owner, addon) in addons.iter().enumerate() {
        for (index, manifest) in addon.manifests.iter().enumerate() {
            let Some(mut key) = ObjectKey::from_object(&manifest.object) else {
                continue;
            };
            let kind = (key.group.clone(), key.kind.clone());
            if is_cluster_scoped(&key.group, &key.kind) || defined.contains(&kind) {
                key.namespace = None;
            } else {
                key.namespace.get_or_insert_with(|| NAMESPACE.to_owned());
            }
            places.entry(key).or_default().push((owner, index));
        }
    }
    let mut dropped: BTreeSet<(usize, usize)> = BTreeSet::new();
    for found in places.values().filter(|found| found.len() > 1) {
        let all: Vec<(usize, Manifest)> = found
            .iter()
            .filter_map(|(owner, index)| {
                let manifest = addons.get(*owner)?.manifests.get(*index)?;
                Some((*owner, manifest.clone()))
            })
            .collect();
        let [(owner, first), rest @ ..] = all.as_slice() else {
            continue;
        };
        let is_repeated = rest
            .iter()
            .all(|(other, manifest)| other == owner && manifest.object == first.object);
        if is_repeated {
            dropped.extend(found.iter().skip(1));
            if let (Some(addon), Some((_, second))) = (addons.get_mut(*owner), rest.first()) {
                addon.warnings.push(format!(
                    "{}: the object is the same as at {} and is left out",
                    second.place, first.place
                ));
            }
        } else {
            dropped.extend(found);
            report_same_object(addons, &all);
        }
    }
    for (owner, addon) in addons.iter_mut().enumerate() {
        let mut index = 0;
        addon.manifests.retain(|_| {
            index += 1;
            !dropped.contains(&(owner, index - 1))
        });
    }
}

/// Reports both places in every add-on that defines the object.
fn report_same_object(addons: &mut [DirectoryEntry], all: &[(usize, Manifest)]) {
    let [(_, first), (_, second), ..] = all else {
        return;
    };
    let mut told = BTreeSet::new();
    for (owner, manifest) in all {
        let (Some(addon), Some(key)) = (
            addons.get_mut(*owner),
            ObjectKey::from_object(&manifest.object),
        ) else {
            continue;
        };
        if told.insert(*owner) {
            addon.problems.push(DirectoryProblem::SameObject {
                key: Box::new(key.clone()),
                first: first.place.clone(),
                second: second.place.clone(),
            });
        }
        addon.ignored.push(IgnoredObject {
            key,
            place: manifest.place.clone(),
            why: IgnoreReason::SameObject,
        });
    }
}

/// Installations whose manifest was deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedInstallations {
    /// The names of these installations, sorted.
    pub names: Vec<String>,
    /// The number of all installations from the directory.
    pub total: usize,
}

impl RemovedInstallations {
    /// Whether more than half of the installations have lost their manifest, which is rarely intended.
    #[must_use]
    pub fn is_majority(&self) -> bool {
        self.names.len() * 2 > self.total
    }
}

/// Returns which of the installations from the directory are no longer in it.
#[must_use]
pub fn find_removed<'a>(
    directory: &Directory,
    installed: impl IntoIterator<Item = &'a str>,
) -> RemovedInstallations {
    let installed: BTreeSet<&str> = installed.into_iter().collect();
    let present = directory.installations();
    let names = installed.difference(&present);
    RemovedInstallations {
        names: names.map(|name| (*name).to_owned()).collect(),
        total: installed.len(),
    }
}

/// Returns a digest of all files, by which several machines compare their directories. The files are sorted by path. Returns `None` if
/// a file cannot be read, is empty, or is still being written.
#[must_use]
pub fn digest_files(files: &[DirectoryFile]) -> Option<String> {
    let mut text = String::new();
    for file in files {
        let bytes = file.content.as_deref().ok()?;
        if file.is_changing || bytes.trim_ascii().is_empty() {
            return None;
        }
        text.push_str(&format!("{}  {}\n", sha256(bytes), file.path));
    }
    Some(hex_prefix(text.as_bytes(), 16))
}

#[cfg(test)]
mod tests;
