//! What a source may access on the machine that reads it, depending on who named the source (semantics 16).
//!
//! | named by | files | keys and accounts | addresses |
//! |---|---|---|---|
//! | the user, on the command line | that file | those for its registry or bucket | all |
//! | a file that the user typed | below its folder | those of opened places | all but metadata of clouds |
//! | an index on a server that the user typed | none | those of its own and of opened places | all but metadata of clouds |
//! | a record in the system namespace | below opened folders | those of opened places | all but metadata of clouds |
//! | a catalogue in the cluster | none | none | all but metadata of clouds |
//! | any other installation | none | none | only other machines |
//!
//! All checks of access to the local machine are methods of [`Reach`].

pub(crate) mod place;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use common::catalogue::author::{Author, Typed};

use crate::url::absolute;
pub use place::{OwnPlace, OwnPlaceError};

/// A callback for the first use of each key or account.
type OnUse = Box<dyn Fn(&UsedAccount) + Send + Sync>;

/// A key or an account of the user with which a source is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsedAccount {
    /// The keys and settings of ssh for `USER@HOST`.
    Ssh(String),
    /// The credentials that `docker login` stored for a registry.
    Registry(String),
    /// The cloud account for `s3://BUCKET`.
    Bucket(String),
}

impl fmt::Display for UsedAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssh(host) => write!(f, "uses your ssh key for {host}"),
            Self::Registry(host) => write!(f, "uses your docker login for {host}"),
            Self::Bucket(bucket) => write!(f, "uses your cloud account for {bucket}"),
        }
    }
}

/// The access that the user grants to sources that others name: places, and indexes by their exact location.
pub struct OpenedPlaces {
    places: Vec<OwnPlace>,
    indexes: Vec<(String, Typed)>,
    on_use: OnUse,
    reported: Mutex<BTreeSet<UsedAccount>>,
}

impl fmt::Debug for OpenedPlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedPlaces")
            .field("places", &self.places)
            .finish_non_exhaustive()
    }
}

impl Default for OpenedPlaces {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            indexes: Vec::new(),
            on_use: Box::new(|_| ()),
            reported: Mutex::default(),
        }
    }
}

impl OpenedPlaces {
    /// Grants access to the places and indexes in `typed` and to the folder of each set in `sets`. `on_use`
    /// is called before the first use of each key and account. A text that is not a place grants nothing.
    pub fn new(
        typed: &[Typed],
        sets: &[Typed],
        on_use: impl Fn(&UsedAccount) + Send + Sync + 'static,
    ) -> Self {
        let places = typed.iter().filter_map(|text| OwnPlace::parse(text).ok()?);
        let folders = sets.iter().filter_map(|set| OwnPlace::beside(set));
        let indexes = typed.iter().filter(|text| !text.is_empty());
        let indexes = indexes.filter_map(|text| Some((absolute(text).ok()?, text.clone())));
        Self {
            places: places.chain(folders).collect(),
            indexes: indexes.collect(),
            on_use: Box::new(on_use),
            reported: Mutex::default(),
        }
    }

    /// Returns the typed text that names exactly this index.
    #[must_use]
    pub fn index(&self, location: &str) -> Option<&Typed> {
        let mut indexes = self.indexes.iter();
        let found = indexes.find(|(known, _)| known == location)?;
        Some(&found.1)
    }

    fn report_use(&self, used: UsedAccount) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.insert(used.clone()) {
            (self.on_use)(&used);
        }
    }
}

/// The network addresses that a source may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Addresses {
    /// All, because the user typed the location.
    Any,
    /// All but those where clouds serve the credentials of a machine.
    NoMetadata,
    /// Like `NoMetadata`, but without those of this machine.
    OtherMachines,
}

/// The files that a source may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileReach {
    /// The file that the user typed.
    Any,
    /// Files below a place that the user opened.
    Open,
    None,
}

/// What one source may access on this machine.
#[derive(Clone, Debug)]
pub struct Reach {
    addresses: Addresses,
    files: FileReach,
    /// The place of the location, if the user typed it.
    typed: Option<OwnPlace>,
    /// The path of the location, if it is a local file that the user typed.
    path: Option<PathBuf>,
    /// `None` if the user cannot grant access to this source.
    opened: Option<Arc<OpenedPlaces>>,
}

impl Reach {
    /// The access of a location that the user typed.
    #[must_use]
    pub fn typed(typed: &Typed, opened: &Arc<OpenedPlaces>) -> Self {
        Self {
            addresses: Addresses::Any,
            files: FileReach::Any,
            typed: OwnPlace::beside(typed),
            path: place::path(typed),
            opened: Some(Arc::clone(opened)),
        }
    }

    /// The access of a location that `author` named.
    #[must_use]
    pub fn for_author(author: &Author, opened: &Arc<OpenedPlaces>) -> Self {
        match author {
            Author::Typed(typed) => Self::typed(typed, opened),
            Author::Record => Self {
                addresses: Addresses::NoMetadata,
                files: FileReach::Open,
                typed: None,
                path: None,
                opened: Some(Arc::clone(opened)),
            },
            Author::Tenant | Author::Unknown => Self::tenant(),
        }
    }

    /// The access of sources in the index at `location`, which `author` named. Only an index in a local file
    /// can name files.
    #[must_use]
    pub fn for_index(author: &Author, location: &str, opened: &Arc<OpenedPlaces>) -> Self {
        let is_file = place::path(location).is_some();
        let of_index = Self::for_author(author, opened);
        Self {
            addresses: of_index.addresses.max(Addresses::NoMetadata),
            files: match of_index.files {
                FileReach::Any | FileReach::Open if is_file => FileReach::Open,
                _ => FileReach::None,
            },
            ..of_index
        }
    }

    /// The access of a source that a catalogue in the cluster names.
    #[must_use]
    pub fn cluster() -> Self {
        Self {
            addresses: Addresses::NoMetadata,
            files: FileReach::None,
            typed: None,
            path: None,
            opened: None,
        }
    }

    /// The access of a source that an installation outside the system namespace names.
    #[must_use]
    pub fn tenant() -> Self {
        Self {
            addresses: Addresses::OtherMachines,
            ..Self::cluster()
        }
    }

    /// The network addresses that the source may access.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Returns the path of a file or folder if the source may read it, as typed or with links resolved. A
    /// path that does not exist is returned too, so that the error comes from reading it.
    #[must_use]
    pub fn file(&self, path: &Path) -> Option<PathBuf> {
        let found = match self.files {
            FileReach::Any => return Some(path.to_owned()),
            FileReach::None => return None,
            // The file that the user typed may be a link.
            FileReach::Open if self.path.as_deref() == Some(path) => return Some(path.to_owned()),
            FileReach::Open => resolve_links(path)?,
        };
        let is_below = |place: &OwnPlace| match place {
            OwnPlace::Folder(folder) => {
                resolve_links(folder).is_some_and(|folder| found.starts_with(folder))
            }
            OwnPlace::Ssh(_) | OwnPlace::Registry(_) | OwnPlace::Bucket(_) => false,
        };
        self.places().any(is_below).then_some(found)
    }

    /// Returns the folder that the user would have to open to allow a file, or `None` if that would not help.
    #[must_use]
    pub fn closed_folder(&self, path: &Path) -> Option<String> {
        if self.files == FileReach::None {
            return None;
        }
        let path = resolve_links(path)?;
        let folder = match path.is_dir() {
            true => path.as_path(),
            false => path.parent()?,
        };
        folder.to_str().map(str::to_owned)
    }

    /// Whether the user can grant keys and accounts to the source.
    #[must_use]
    pub fn can_open(&self) -> bool {
        self.opened.is_some()
    }

    /// Whether the keys of ssh may be used for a host. If so, reports their use. `user` is the user name in
    /// the location, if any.
    #[must_use]
    pub fn opens_ssh(&self, user: Option<&str>, host: &str, port: Option<u16>) -> bool {
        let is_open = self.places().any(|place| place.is_ssh(host, port));
        if is_open {
            let user = user.map_or_else(String::new, |user| format!("{user}@"));
            self.report_use(UsedAccount::Ssh(format!("{user}{host}")));
        }
        is_open
    }

    /// Whether `docker login` may be used for a registry.
    #[must_use]
    pub fn opens_registry(&self, host: &str) -> bool {
        let mut places = self.places();
        places.any(
            |place| matches!(place, OwnPlace::Registry(open) if open.eq_ignore_ascii_case(host)),
        )
    }

    /// Whether the cloud account may be used for a bucket, `s3://BUCKET`.
    #[must_use]
    pub fn opens_bucket(&self, bucket: &str) -> bool {
        let mut places = self.places();
        places.any(|place| matches!(place, OwnPlace::Bucket(open) if open == bucket))
    }

    /// Calls the callback of the user before the first use of a key or an account.
    pub fn report_use(&self, used: UsedAccount) {
        if let Some(opened) = &self.opened {
            opened.report_use(used);
        }
    }

    fn places(&self) -> impl Iterator<Item = &OwnPlace> {
        let opened = self.opened.as_deref().map(|opened| opened.places.iter());
        self.typed.iter().chain(opened.into_iter().flatten())
    }
}

/// Resolves the links in a path. For a path that does not exist, resolves those of the nearest existing
/// folder and refuses `..`.
fn resolve_links(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = fs::canonicalize(path) {
        return Some(real);
    }
    let absolute = std::path::absolute(path).ok()?;
    if absolute
        .components()
        .any(|part| part == Component::ParentDir)
    {
        return None;
    }
    let (parent, name) = (absolute.parent()?, absolute.file_name()?);
    Some(resolve_links(parent)?.join(name))
}

#[cfg(test)]
mod tests;
