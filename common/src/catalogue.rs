//! Catalogues: kops indexes, merged catalogues, and the entries that fit a cluster.

pub mod author;
pub mod channel;
pub mod compatible;
pub mod content;
pub mod due;
pub mod installed;
pub mod local;
pub mod merged;
pub mod orphan;
pub mod precedence;
pub mod reference;
pub mod relative;
pub mod replaces;
pub mod select;
pub mod size;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use self::author::Author;
use self::precedence::UnreadCatalogue;
use self::replaces::ReplacementKey;
use crate::api::catalogue::{
    AddonCatalogue, AddonCatalogueSpec, AddonTemplate, AddonVersion, CatalogueClass, Deprecation,
    SignaturePolicy, Support,
};
use crate::api::installation::{AddonInstallationSpec, AddonRef};
use crate::api::names::LABEL_DERIVED_FROM;
use crate::manifest::digest::{self, HashError};

/// The place that entries were read from.
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
    /// A kops index or a catalogue file, at the location that the user gave.
    Index {
        /// URL or path.
        location: String,
    },
    /// The installation itself names the chart or manifest.
    Installation {
        /// Its reference, for messages.
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
            Self::Installation { location } => f.write_str(location),
            Self::Directory { path } => write!(f, "directory {path}"),
        }
    }
}

/// One version of one add-on, and its place in a catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogueEntry {
    /// Name of the add-on.
    pub addon: String,
    /// A description in one line.
    pub description: Option<String>,
    /// The level of support.
    pub support: Option<Support>,
    /// The class of the catalogue.
    pub class: CatalogueClass,
    /// The deprecation of the version, otherwise that of its add-on. It is not part of [`CatalogueEntry::version`], because it changes
    /// nothing about what is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecation>,
    /// The version.
    pub version: AddonVersion,
    /// The place that the entry was read from.
    pub origin: Arc<Origin>,
    /// The base URL or path of relative manifests.
    pub base_url: Option<String>,
    /// The private registry of the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The signatures that the catalogue requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Arc<SignaturePolicy>>,
    /// The path in the catalogue, such as `spec.addons[3].versions[1]`.
    pub place: String,
    /// Who named the index that the entry was read from. The author is never stored: an entry that is read back has none.
    #[serde(skip)]
    pub author: Author,
}

/// Checks that the `manifestHash` of a version, if there is one, can verify content (semantics 11.4).
///
/// # Errors
/// [`HashError::Md5`] and [`HashError::NotAHash`].
pub fn check_hash(version: &AddonVersion) -> Result<(), HashError> {
    let hash = version.manifest_hash.as_deref().unwrap_or_default();
    if hash.is_empty() {
        return Ok(());
    }
    digest::check_hash(hash).map(drop)
}

impl CatalogueEntry {
    /// Returns the entry that an installation itself names, or `None` if its reference has another origin. The writer of the record is its
    /// author, so the namespace of the installation decides what it may open.
    #[must_use]
    pub fn from_installation(reference: &AddonRef) -> Option<Self> {
        let from = reference.from.as_ref()?;
        let template = AddonTemplate {
            method: from.method,
            ..AddonTemplate::default()
        };
        Some(Self {
            addon: reference.name.clone(),
            description: None,
            support: None,
            deprecated: None,
            class: CatalogueClass::default(),
            version: AddonVersion {
                version: from.version.clone(),
                template,
                source: from.to_source(),
                manifest_hash: Some(from.manifest_hash.clone()),
                constraints: from.constraints.clone(),
                ..AddonVersion::default()
            },
            origin: Arc::new(Origin::Installation {
                location: from.location(),
            }),
            base_url: None,
            registry: None,
            signature: None,
            place: String::new(),
            author: Author::Unknown,
        })
    }

    /// Returns the `manifestHash` if it can verify content: a sha256 or a sha1.
    #[must_use]
    pub fn verifiable_hash(&self) -> Option<&str> {
        let hash = self.version.manifest_hash.as_deref();
        hash.filter(|hash| digest::check_hash(hash).is_ok())
    }

    /// Returns the private registry for the images of an installation: its own, else the catalogue's.
    #[must_use]
    pub fn registry_for<'a>(&'a self, spec: &'a AddonInstallationSpec) -> Option<&'a str> {
        spec.registry.as_deref().or(self.registry.as_deref())
    }

    /// Returns the fields that identify an entry: the add-on, the version and the id.
    pub fn key(&self) -> (&str, &str, &str) {
        (&self.addon, &self.version.version, &self.version.id)
    }

    /// Returns the fields that the replacement rules compare.
    #[must_use]
    pub fn replacement_key(&self) -> ReplacementKey<'_> {
        ReplacementKey::new(
            &self.version.version,
            &self.version.id,
            self.version.manifest_hash.as_deref().unwrap_or_default(),
        )
    }
}

/// All entries on offer, in the order of their sources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    /// The entries.
    pub entries: Vec<CatalogueEntry>,
    /// Catalogues that cannot be read, or whose referenced file cannot be read: the entries that they offer are unknown.
    pub unread: Vec<UnreadCatalogue>,
    /// Entries that are not offered, because another catalogue holds them (semantics 2.4).
    pub lost: Vec<LostEntry>,
    /// The name of the only catalogue, if all entries are from one that was named.
    pub name: Option<String>,
}

/// An entry that is not offered, because another catalogue holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct LostEntry {
    /// The entry, as the catalogue that lost it lists it.
    pub entry: CatalogueEntry,
    /// The name of the catalogue that holds the entry.
    pub holder: String,
}

/// Whether a catalogue offers its entries. A catalogue that is being deleted does not (semantics 1.1).
#[must_use]
pub fn offers_entries(catalogue: &ObjectMeta) -> bool {
    catalogue.deletion_timestamp.is_none()
}

/// Returns the label `derived-from` of a merged catalogue: the uid of the cluster that holds the sources (semantics 1.6).
#[must_use]
pub fn derived_from(catalogue: &ObjectMeta) -> Option<&str> {
    let labels = catalogue.labels.as_ref()?;
    labels.get(LABEL_DERIVED_FROM).map(String::as_str)
}

/// Whether a catalogue is a copy, merged from other catalogues (semantics 1.2).
#[must_use]
pub fn is_copy(catalogue: &ObjectMeta) -> bool {
    derived_from(catalogue).is_some()
}

/// Iterates over every version in catalogue objects.
pub fn versions(objects: &[AddonCatalogue]) -> impl Iterator<Item = &AddonVersion> {
    let addons = objects.iter().flat_map(|object| &object.spec.addons);
    addons.flat_map(|addon| &addon.versions)
}

impl Catalogue {
    /// Creates a catalogue of one entry.
    #[must_use]
    pub fn from_entry(entry: CatalogueEntry) -> Self {
        Self {
            entries: vec![entry],
            ..Self::default()
        }
    }

    /// Creates the entries of one catalogue spec.
    #[must_use]
    pub fn from_spec(spec: &AddonCatalogueSpec, origin: Origin) -> Self {
        let origin = Arc::new(origin);
        let base_url = spec.base_url.clone().or_else(|| match &*origin {
            Origin::Index { location } => Some(location.clone()),
            Origin::Catalogue { .. } | Origin::Installation { .. } | Origin::Directory { .. } => {
                None
            }
        });
        let signature = spec.signature.clone().map(Arc::new);
        let entries = spec.addons.iter().enumerate().flat_map(|(i, addon)| {
            let (origin, base_url, signature) = (&origin, &base_url, &signature);
            addon
                .versions
                .iter()
                .enumerate()
                .map(move |(j, version)| CatalogueEntry {
                    addon: addon.name.clone(),
                    description: addon.description.clone(),
                    support: addon.support,
                    class: spec.class,
                    deprecated: version
                        .deprecated
                        .clone()
                        .or_else(|| addon.deprecated.clone()),
                    version: AddonVersion {
                        deprecated: None,
                        ..version.clone()
                    },
                    origin: Arc::clone(origin),
                    base_url: base_url.clone(),
                    registry: spec.registry_for(version).map(str::to_owned),
                    // All entries share one policy, because a catalogue may have thousands of them.
                    signature: signature
                        .clone()
                        .or_else(|| spec.signature_for(version).cloned().map(Arc::new)),
                    place: format!("spec.addons[{i}].versions[{j}]"),
                    author: Author::Unknown,
                })
        });
        Self {
            entries: entries.collect(),
            ..Self::default()
        }
    }

    /// Merges the entries of catalogue objects. A catalogue that is being deleted offers nothing, a source does not offer the entries
    /// that it lost to other sources, and a copy offers only what no source offers (semantics 1.1, 1.2, 2.4).
    #[must_use]
    pub fn from_objects(objects: &[AddonCatalogue]) -> Self {
        let (copies, sources) = split_offering(objects);
        let mut merged = Self::from_sources(&sources);
        let copied = copies.into_iter().map(Self::from_object);
        let copied: Vec<CatalogueEntry> = copied.flat_map(|copy| copy.entries).collect();
        let known: HashSet<_> = merged.entries.iter().map(CatalogueEntry::key).collect();
        let more = copied.iter().filter(|entry| !known.contains(&entry.key()));
        let more: Vec<CatalogueEntry> = more.cloned().collect();
        merged.entries.extend(more);
        merged
    }

    /// Returns the entries of the catalogue with this name, without those that it lost to other catalogues (semantics 2.4).
    #[must_use]
    pub fn from_named(objects: &[AddonCatalogue], name: &str) -> Self {
        let (copies, sources) = split_offering(objects);
        let mut named = Self::from_sources(&sources);
        let copied = copies.into_iter().map(Self::from_object);
        named.entries.extend(copied.flat_map(|copy| copy.entries));
        let is_named =
            |origin: &Origin| matches!(origin, Origin::Catalogue { name: it, .. } if it == name);
        named.entries.retain(|entry| is_named(&entry.origin));
        named.lost.retain(|lost| is_named(&lost.entry.origin));
        named.name = Some(name.to_owned());
        named
    }

    /// Merges the entries of sources, without those that each lost to another.
    fn from_sources(objects: &[&AddonCatalogue]) -> Self {
        let each: Vec<Self> = objects.iter().copied().map(Self::from_object).collect();
        let compared = objects.iter().zip(&each).map(|(object, all)| {
            let addons = object.spec.addons.iter();
            precedence::SourceCatalogue {
                metadata: &object.metadata,
                class: object.spec.class,
                addons: addons.map(|addon| addon.name.as_str()).collect(),
                entries: &all.entries,
            }
        });
        let lost = precedence::find_lost_entries(&compared.collect::<Vec<_>>());
        let mut all = Self::default();
        for (position, of_one) in each.into_iter().enumerate() {
            for (at, entry) in of_one.entries.into_iter().enumerate() {
                let holder = lost.get(&(position, at));
                match holder.and_then(|holder| objects.get(*holder)) {
                    None => all.entries.push(entry),
                    Some(holder) => all.lost.push(LostEntry {
                        holder: holder.metadata.name.clone().unwrap_or_default(),
                        entry,
                    }),
                }
            }
        }
        all
    }

    fn from_object(object: &AddonCatalogue) -> Self {
        let origin = Origin::Catalogue {
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            name: object.metadata.name.clone().unwrap_or_default(),
        };
        Self::from_spec(&object.spec, origin)
    }

    /// Returns a catalogue that cannot be read and that may list `addon`. If `catalogue` is set, only an unreadable catalogue with
    /// this name counts, or one that takes entries from it.
    #[must_use]
    pub fn find_unread(&self, addon: &str, catalogue: Option<&str>) -> Option<&UnreadCatalogue> {
        let mut unread = self.unread.iter();
        unread.find(|unread| {
            let is_meant =
                catalogue.is_none_or(|name| name == unread.catalogue || unread.takes_from(name));
            is_meant && unread.addons.iter().any(|name| name == addon)
        })
    }

    /// Iterates over the versions of its entries.
    pub fn versions(&self) -> impl Iterator<Item = &AddonVersion> {
        self.entries.iter().map(|entry| &entry.version)
    }

    /// Returns the names of all add-ons, sorted, without duplicates.
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

/// Splits the catalogues that offer their entries into copies and sources.
fn split_offering(objects: &[AddonCatalogue]) -> (Vec<&AddonCatalogue>, Vec<&AddonCatalogue>) {
    let offering = objects
        .iter()
        .filter(|object| offers_entries(&object.metadata));
    offering.partition(|object| is_copy(&object.metadata))
}

/// Explains why a catalogue does not offer an entry that it lists (semantics 2.4), in the words of the plugin, the loop and the
/// webhook: `catalogue platform holds web 1.0.0, which catalogue custom lists as well`
#[must_use]
pub fn describe_lost_entry(holder: &str, addon: &str, version: &str, catalogue: &str) -> String {
    format!("catalogue {holder} holds {addon} {version}, which catalogue {catalogue} lists as well")
}

/// Returns the version or, if there is none, `id ID`.
#[must_use]
pub fn version_label(version: &str, id: &str) -> String {
    match version {
        "" => format!("id {id}"),
        version => version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Semantics 1.9.
    #[test]
    fn what_has_ended_installs_the_same() {
        let reason = |reason: Option<&str>| reason.map(|reason| json!({"reason": reason}));
        let entry = |of_addon: Option<&str>, of_version: Option<&str>| {
            let version = json!({
                "version": "1.0.0", "source": {"inline": {"manifest": ""}}, "deprecated": reason(of_version),
            });
            let addon =
                json!({"name": "web", "versions": [version], "deprecated": reason(of_addon)});
            let spec: AddonCatalogueSpec =
                serde_json::from_value(json!({"addons": [addon]})).unwrap();
            let location = "index.yaml".to_owned();
            Catalogue::from_spec(&spec, Origin::Index { location }).entries[0].clone()
        };
        let current = entry(None, None);
        for (of_addon, of_version, expected) in [
            (Some("a"), None, "a"),
            (None, Some("v"), "v"),
            (Some("a"), Some("v"), "v"),
        ] {
            let ended = entry(of_addon, of_version);
            assert_eq!(ended.deprecated.as_ref().unwrap().reason, expected);
            assert_eq!(ended.digest(), current.digest());
            assert_eq!(ended.version, current.version);
        }
    }

    /// A file that a catalogue is synced from may say `mergedFrom`, as merged catalogues do.
    #[test]
    fn what_a_version_brings_along_counts_where_the_object_says_nothing() {
        for (own, brought, expected) in [
            (Some("own"), Some("theirs"), Some("own")),
            (Some("own"), None, Some("own")),
            (None, Some("theirs"), Some("theirs")),
            (None, None, None),
        ] {
            // The policy of the version is lenient. It must not replace one that the object requires.
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
            let entry = &Catalogue::from_spec(&spec, Origin::Index { location }).entries[0];
            let key = entry
                .signature
                .as_ref()
                .map(|it| (it.required, it.key.as_deref()));
            assert_eq!(key, expected.map(|key| (Some(key) == own, Some(key))));
            assert_eq!(entry.registry.as_deref(), expected);
        }
    }
}
