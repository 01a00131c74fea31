//! Catalogues: kops indexes, merged catalogues, and which entry fits.

pub mod author;
pub mod beside;
pub mod channel;
pub mod compatible;
pub mod content;
pub mod due;
pub mod held;
pub mod installed;
pub mod local;
pub mod merged;
pub mod orphan;
pub mod reference;
pub mod replaces;
pub mod select;
pub mod size;
pub mod unread;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use self::author::Author;
use self::replaces::Recorded;
use self::unread::Unread;
use crate::api::catalogue::{
    AddonCatalogue, AddonCatalogueSpec, AddonVersion, CatalogueClass, SignaturePolicy, Support,
};
use crate::api::installation::AddonInstallationSpec;
use crate::api::names::LABEL_DERIVED_FROM;
use crate::manifest::digest::{self, HashError};

/// Where entries come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// An AddonCatalogue object.
    Catalogue {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A kops index or catalogue file, by the location that the user gave.
    Index {
        /// URL or path.
        location: String,
    },
    /// A directory of manifests.
    Directory {
        /// Its absolute path.
        path: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Catalogue { name, .. } => write!(f, "catalogue {name}"),
            Self::Index { location } => write!(f, "index {location}"),
            Self::Directory { path } => write!(f, "directory {path}"),
        }
    }
}

/// One version of one add-on, and its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Name of the add-on.
    pub addon: String,
    /// One line for people.
    pub description: Option<String>,
    /// Its level of support.
    pub support: Option<Support>,
    /// Class of its catalogue.
    pub class: CatalogueClass,
    /// The version.
    pub version: AddonVersion,
    /// Where it comes from.
    pub origin: Arc<Origin>,
    /// The base of relative manifests.
    pub base_url: Option<String>,
    /// The private registry of its catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Whose signatures its catalogue asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Arc<SignaturePolicy>>,
    /// `spec.addons[3].versions[1]`.
    pub place: String,
    /// Who named the index that it was read from. It is never stored: what is read back has none.
    #[serde(skip)]
    pub author: Author,
}

/// Whether content can be verified with the `manifestHash` of a version, where it has one (semantics 11).
///
/// # Errors
/// [`HashError::Md5`] and [`HashError::NotAHash`].
pub fn check_hash(version: &AddonVersion) -> Result<(), HashError> {
    let hash = version.manifest_hash.as_deref().unwrap_or_default();
    if hash.is_empty() {
        return Ok(());
    }
    digest::check(hash).map(drop)
}

impl Entry {
    /// The `manifestHash`, where content can be verified with it: a sha256 or a sha1.
    #[must_use]
    pub fn verifiable_hash(&self) -> Option<&str> {
        let hash = self.version.manifest_hash.as_deref();
        hash.filter(|hash| digest::check(hash).is_ok())
    }

    /// The private registry that the images of an installation come from: its own, else that of the catalogue.
    #[must_use]
    pub fn registry_for<'a>(&'a self, spec: &'a AddonInstallationSpec) -> Option<&'a str> {
        spec.registry.as_deref().or(self.registry.as_deref())
    }

    /// What tells it from other entries: the add-on, the version and the id.
    pub fn key(&self) -> (&str, &str, &str) {
        (&self.addon, &self.version.version, &self.version.id)
    }

    /// The fields that the rules of replacement compare.
    #[must_use]
    pub fn recorded(&self) -> Recorded<'_> {
        Recorded::of(
            &self.version.version,
            &self.version.id,
            self.version.manifest_hash.as_deref().unwrap_or_default(),
        )
    }
}

/// All entries that can be chosen from, in the order of their sources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Catalogues by reference whose file cannot be read: what they list is not known.
    pub unread: Vec<Unread>,
    /// What catalogues lost to others: it is not offered (semantics 2).
    pub lost: Vec<Lost>,
    /// The catalogue that all of it is of, where one was named.
    pub name: Option<String>,
}

/// An entry that another catalogue holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    /// As the catalogue that lost it lists it.
    pub entry: Entry,
    /// The catalogue that holds it.
    pub holder: String,
}

/// Whether a catalogue offers its entries: not while it is being deleted (semantics 1).
#[must_use]
pub fn offers(catalogue: &ObjectMeta) -> bool {
    catalogue.deletion_timestamp.is_none()
}

/// The mark of a catalogue that was merged from others: the cluster that they are in (semantics 1).
#[must_use]
pub fn derived_from(catalogue: &ObjectMeta) -> Option<&str> {
    let labels = catalogue.labels.as_ref()?;
    labels.get(LABEL_DERIVED_FROM).map(String::as_str)
}

/// Whether a catalogue was merged from others (semantics 1).
#[must_use]
pub fn is_copy(catalogue: &ObjectMeta) -> bool {
    derived_from(catalogue).is_some()
}

/// Every version of catalogue objects.
pub fn versions(objects: &[AddonCatalogue]) -> impl Iterator<Item = &AddonVersion> {
    let addons = objects.iter().flat_map(|object| &object.spec.addons);
    addons.flat_map(|addon| &addon.versions)
}

impl Catalogue {
    /// The entries of one specification.
    #[must_use]
    pub fn of_spec(spec: &AddonCatalogueSpec, origin: Origin) -> Self {
        let origin = Arc::new(origin);
        let base_url = spec.base_url.clone().or_else(|| match &*origin {
            Origin::Index { location } => Some(location.clone()),
            Origin::Catalogue { .. } | Origin::Directory { .. } => None,
        });
        let signature = spec.signature.clone().map(Arc::new);
        let entries = spec.addons.iter().enumerate().flat_map(|(i, addon)| {
            let (origin, base_url, signature) = (&origin, &base_url, &signature);
            addon
                .versions
                .iter()
                .enumerate()
                .map(move |(j, version)| Entry {
                    addon: addon.name.clone(),
                    description: addon.description.clone(),
                    support: addon.support,
                    class: spec.class,
                    version: version.clone(),
                    origin: Arc::clone(origin),
                    base_url: base_url.clone(),
                    registry: spec.registry_of(version).map(str::to_owned),
                    // Its own policy is shared by all entries: a catalogue may have thousands.
                    signature: signature
                        .clone()
                        .or_else(|| spec.signature_of(version).cloned().map(Arc::new)),
                    place: format!("spec.addons[{i}].versions[{j}]"),
                    author: Author::Unknown,
                })
        });
        Self {
            entries: entries.collect(),
            ..Self::default()
        }
    }

    /// The merged entries of catalogue objects; one that is being deleted offers nothing, a source not what it lost to others, and a copy
    /// only what no other one does (semantics 1, 2).
    #[must_use]
    pub fn of_objects(objects: &[AddonCatalogue]) -> Self {
        let (copies, sources) = offering(objects);
        let mut merged = Self::of_sources(&sources);
        let copied = copies.into_iter().map(Self::of_object);
        let copied: Vec<Entry> = copied.flat_map(|copy| copy.entries).collect();
        let known: HashSet<_> = merged.entries.iter().map(Entry::key).collect();
        let more = copied.iter().filter(|entry| !known.contains(&entry.key()));
        let more: Vec<Entry> = more.cloned().collect();
        merged.entries.extend(more);
        merged
    }

    /// The entries of the catalogue of this name: it does not offer by its name what it lost to others (semantics 2).
    #[must_use]
    pub fn of_named(objects: &[AddonCatalogue], name: &str) -> Self {
        let (copies, sources) = offering(objects);
        let mut named = Self::of_sources(&sources);
        let copied = copies.into_iter().map(Self::of_object);
        named.entries.extend(copied.flat_map(|copy| copy.entries));
        let is_named =
            |origin: &Origin| matches!(origin, Origin::Catalogue { name: it, .. } if it == name);
        named.entries.retain(|entry| is_named(&entry.origin));
        named.lost.retain(|lost| is_named(&lost.entry.origin));
        named.name = Some(name.to_owned());
        named
    }

    /// What sources hold, without what they lost to others.
    fn of_sources(objects: &[&AddonCatalogue]) -> Self {
        let each: Vec<Self> = objects.iter().copied().map(Self::of_object).collect();
        let compared = objects.iter().zip(&each).map(|(object, all)| {
            let addons = object.spec.addons.iter();
            held::Source {
                metadata: &object.metadata,
                class: object.spec.class,
                addons: addons.map(|addon| addon.name.as_str()).collect(),
                entries: &all.entries,
            }
        });
        let lost = held::lost(&compared.collect::<Vec<_>>());
        let mut all = Self::default();
        for (position, of_one) in each.into_iter().enumerate() {
            for (at, entry) in of_one.entries.into_iter().enumerate() {
                let holder = lost.get(&(position, at));
                match holder.and_then(|holder| objects.get(*holder)) {
                    None => all.entries.push(entry),
                    Some(holder) => all.lost.push(Lost {
                        holder: holder.metadata.name.clone().unwrap_or_default(),
                        entry,
                    }),
                }
            }
        }
        all
    }

    fn of_object(object: &AddonCatalogue) -> Self {
        let origin = Origin::Catalogue {
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            name: object.metadata.name.clone().unwrap_or_default(),
        };
        Self::of_spec(&object.spec, origin)
    }

    /// The catalogue that may list an add-on, but cannot be read. `catalogue`: the one that is asked for; one that it loses to counts too.
    #[must_use]
    pub fn unread(&self, addon: &str, catalogue: Option<&str>) -> Option<&Unread> {
        let mut unread = self.unread.iter();
        unread.find(|unread| {
            let is_meant =
                catalogue.is_none_or(|name| name == unread.catalogue || unread.takes_from(name));
            is_meant && unread.addons.iter().any(|name| name == addon)
        })
    }

    /// What its entries say.
    pub fn versions(&self) -> impl Iterator<Item = &AddonVersion> {
        self.entries.iter().map(|entry| &entry.version)
    }

    /// Names of all add-ons, sorted, each once.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .entries
            .iter()
            .map(|entry| entry.addon.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// The copies and the sources that offer their entries.
fn offering(objects: &[AddonCatalogue]) -> (Vec<&AddonCatalogue>, Vec<&AddonCatalogue>) {
    let offering = objects.iter().filter(|object| offers(&object.metadata));
    offering.partition(|object| is_copy(&object.metadata))
}

/// Why an entry is not offered by a catalogue that lists it (semantics 2), as the plugin, the loop and the webhook say it:
/// `catalogue platform holds web 1.0.0, which catalogue custom lists as well`
#[must_use]
pub fn held_elsewhere(holder: &str, addon: &str, version: &str, catalogue: &str) -> String {
    format!("catalogue {holder} holds {addon} {version}, which catalogue {catalogue} lists as well")
}

/// The version, or the id of what has none.
#[must_use]
pub fn label(version: &str, id: &str) -> String {
    match version {
        "" => format!("id {id}"),
        version => version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A file that a catalogue is synced from may say `mergedFrom`, as merged catalogues do.
    #[test]
    fn what_a_version_brings_along_counts_where_the_object_says_nothing() {
        for (own, brought, expected) in [
            (Some("own"), Some("theirs"), Some("own")),
            (Some("own"), None, Some("own")),
            (None, Some("theirs"), Some("theirs")),
            (None, None, None),
        ] {
            // What is brought along is lenient: it is not to switch off what the object requires.
            let policy = |key: &str| json!({"key": key, "required": Some(key) == own});
            let version = json!({
                "version": "1.0.0", "source": {"inline": {"manifest": ""}},
                "mergedFrom": {"catalogue": "c", "registry": brought, "signature": brought.map(policy)},
            });
            let spec = json!({
                "registry": own, "signature": own.map(policy),
                "addons": [{"name": "web", "versions": [version]}],
            });
            let spec: AddonCatalogueSpec = serde_json::from_value(spec).unwrap();
            let location = "index.yaml".to_owned();
            let entry = &Catalogue::of_spec(&spec, Origin::Index { location }).entries[0];
            let key = entry
                .signature
                .as_ref()
                .map(|it| (it.required, it.key.as_deref()));
            assert_eq!(key, expected.map(|key| (Some(key) == own, Some(key))));
            assert_eq!(entry.registry.as_deref(), expected);
        }
    }
}
