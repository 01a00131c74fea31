//! What a source may open on the machine that reads it, by who named the source (semantics 16).
//!
//! | who | files | keys and accounts | addresses |
//! |---|---|---|---|
//! | the user, on the command line | that one | those of its registry or bucket | all |
//! | a file that the user typed | below its folder | of opened places | no metadata of clouds |
//! | an index on a server that the user typed | none | its own place, and opened ones | no metadata of clouds |
//! | a record in the system namespace | below opened folders | of opened places | no metadata of clouds |
//! | a catalogue in the cluster | none | none | no metadata of clouds |
//! | any other installation | none | none | other machines |
//!
//! Every question about the machine of the reader is a method of [`Reach`].

pub(crate) mod place;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use common::catalogue::author::{Author, Typed};

use crate::url::absolute;
pub use place::{Place, PlaceError};

/// Hears of the first use of each key or account.
type Tell = Box<dyn Fn(&Used) + Send + Sync>;

/// A key or an account of the user that a source is read with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Used {
    /// The keys and settings of ssh, for `USER@HOST`.
    Ssh(String),
    /// What `docker login` stored for a registry.
    Registry(String),
    /// The account in a cloud, for `s3://BUCKET`.
    Bucket(String),
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssh(host) => write!(f, "uses your ssh key for {host}"),
            Self::Registry(host) => write!(f, "uses your docker login for {host}"),
            Self::Bucket(bucket) => write!(f, "uses your cloud account for {bucket}"),
        }
    }
}

/// What the user opens to indexes that others name: places, and indexes by their exact location.
pub struct Opened {
    places: Vec<Place>,
    indexes: Vec<(String, Typed)>,
    tell: Tell,
    told: Mutex<BTreeSet<Used>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("places", &self.places)
            .finish_non_exhaustive()
    }
}

impl Default for Opened {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            indexes: Vec::new(),
            tell: Box::new(|_| ()),
            told: Mutex::default(),
        }
    }
}

impl Opened {
    /// The places and indexes that were typed, and sets, each of which opens its folder. `tell` hears of each key and account before its
    /// first use. A text that is no place opens nothing.
    pub fn new(
        typed: &[Typed],
        sets: &[Typed],
        tell: impl Fn(&Used) + Send + Sync + 'static,
    ) -> Self {
        let places = typed.iter().filter_map(|text| Place::parse(text).ok()?);
        let folders = sets.iter().filter_map(|set| Place::beside(set));
        let indexes = typed.iter().filter(|text| !text.is_empty());
        let indexes = indexes.filter_map(|text| Some((absolute(text).ok()?, text.clone())));
        Self {
            places: places.chain(folders).collect(),
            indexes: indexes.collect(),
            tell: Box::new(tell),
            told: Mutex::default(),
        }
    }

    /// The typed text that names this very index.
    #[must_use]
    pub fn index(&self, location: &str) -> Option<&Typed> {
        let mut indexes = self.indexes.iter();
        let found = indexes.find(|(known, _)| known == location)?;
        Some(&found.1)
    }

    fn tell(&self, used: Used) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(used.clone()) {
            (self.tell)(&used);
        }
    }
}

/// Which addresses a source may lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Addresses {
    /// Any: the user typed it.
    Any,
    /// Not where clouds serve the credentials of a machine.
    NoMetadata,
    /// Nor the machine of the reader.
    OtherMachines,
}

/// Which files a source may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    /// The one that the user typed.
    Any,
    /// Those below a place that is open.
    Open,
    None,
}

/// What one source may open.
#[derive(Clone, Debug)]
pub struct Reach {
    addresses: Addresses,
    files: Files,
    /// The place of a location that the user typed.
    typed: Option<Place>,
    /// Its path, where it is one.
    path: Option<PathBuf>,
    /// `None` for whoever no place is opened to.
    opened: Option<Arc<Opened>>,
}

impl Reach {
    /// A location that the user typed.
    #[must_use]
    pub fn typed(typed: &Typed, opened: &Arc<Opened>) -> Self {
        Self {
            addresses: Addresses::Any,
            files: Files::Any,
            typed: Place::beside(typed),
            path: place::path(typed),
            opened: Some(Arc::clone(opened)),
        }
    }

    /// A location that `author` named.
    #[must_use]
    pub fn of(author: &Author, opened: &Arc<Opened>) -> Self {
        match author {
            Author::Typed(typed) => Self::typed(typed, opened),
            Author::Record => Self {
                addresses: Addresses::NoMetadata,
                files: Files::Open,
                typed: None,
                path: None,
                opened: Some(Arc::clone(opened)),
            },
            Author::Tenant | Author::Unknown => Self::tenant(),
        }
    }

    /// What the index at a location names, which itself was named by `author`. Only a file names files.
    #[must_use]
    pub fn beside(author: &Author, location: &str, opened: &Arc<Opened>) -> Self {
        let is_file = place::path(location).is_some();
        let of_index = Self::of(author, opened);
        Self {
            addresses: of_index.addresses.max(Addresses::NoMetadata),
            files: match of_index.files {
                Files::Any | Files::Open if is_file => Files::Open,
                _ => Files::None,
            },
            ..of_index
        }
    }

    /// What a catalogue in the cluster names.
    #[must_use]
    pub fn cluster() -> Self {
        Self {
            addresses: Addresses::NoMetadata,
            files: Files::None,
            typed: None,
            path: None,
            opened: None,
        }
    }

    /// What an installation outside the system namespace names.
    #[must_use]
    pub fn tenant() -> Self {
        Self {
            addresses: Addresses::OtherMachines,
            ..Self::cluster()
        }
    }

    /// Which addresses it may lead to.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// A file or folder, where it may be read: as it was typed, or without links. One that does not exist is returned as well, so that
    /// reading it tells why.
    #[must_use]
    pub fn file(&self, path: &Path) -> Option<PathBuf> {
        let found = match self.files {
            Files::Any => return Some(path.to_owned()),
            Files::None => return None,
            // It may be a link.
            Files::Open if self.path.as_deref() == Some(path) => return Some(path.to_owned()),
            Files::Open => real(path)?,
        };
        let is_below = |place: &Place| match place {
            Place::Folder(folder) => real(folder).is_some_and(|folder| found.starts_with(folder)),
            Place::Ssh(_) | Place::Registry(_) | Place::Bucket(_) => false,
        };
        self.places().any(is_below).then_some(found)
    }

    /// The folder that the user would have to open for a file; `None` where that would not help.
    #[must_use]
    pub fn closed_folder(&self, path: &Path) -> Option<String> {
        if self.files == Files::None {
            return None;
        }
        let path = real(path)?;
        let folder = match path.is_dir() {
            true => path.as_path(),
            false => path.parent()?,
        };
        folder.to_str().map(str::to_owned)
    }

    /// Whether the user can open a key or an account to it.
    #[must_use]
    pub fn can_open(&self) -> bool {
        self.opened.is_some()
    }

    /// Whether the keys of ssh are used for a host, and tells that they are. `user`: before an `@`, where one was named.
    #[must_use]
    pub fn opens_ssh(&self, user: Option<&str>, host: &str, port: Option<u16>) -> bool {
        let is_open = self.places().any(|place| place.is_ssh(host, port));
        if is_open {
            let user = user.map_or_else(String::new, |user| format!("{user}@"));
            self.tell(Used::Ssh(format!("{user}{host}")));
        }
        is_open
    }

    /// Whether `docker login` may be used for a registry.
    #[must_use]
    pub fn opens_registry(&self, host: &str) -> bool {
        let mut places = self.places();
        places
            .any(|place| matches!(place, Place::Registry(open) if open.eq_ignore_ascii_case(host)))
    }

    /// Whether the account in a cloud may be used for a bucket, `s3://BUCKET`.
    #[must_use]
    pub fn opens_bucket(&self, bucket: &str) -> bool {
        let mut places = self.places();
        places.any(|place| matches!(place, Place::Bucket(open) if open == bucket))
    }

    /// Tells that a key or an account is about to be used, the first time.
    pub fn tell(&self, used: Used) {
        if let Some(opened) = &self.opened {
            opened.tell(used);
        }
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        let opened = self.opened.as_deref().map(|opened| opened.places.iter());
        self.typed.iter().chain(opened.into_iter().flatten())
    }
}

/// A path without links; of what does not exist, without `..`.
fn real(path: &Path) -> Option<PathBuf> {
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
    Some(real(parent)?.join(name))
}

#[cfg(test)]
mod tests;
