//! Reads stored catalogues, including those of which only the names can be read.

use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny};
use serde_json::Error;
use serde_json::value::RawValue;

use super::{
    Addon, AddonCatalogue, AddonCatalogueSpec, AddonVersion, CatalogueClass, CatalogueFrom,
};
use crate::api::stored::{RawFields, read_fields};
use crate::entrance::{self, MAX_STORED_DEPTH, UnreadableField};

/// The maximum number of entries of which the names are read: an entry takes more than 15 bytes, and an object at most 1.5 MiB.
const MOST_NAMES: usize = 100_000;

impl AddonCatalogue {
    /// Reads a stored catalogue. If it cannot be read, returns only the names, and sets `spec.unreadable`.
    ///
    /// # Errors
    /// The names cannot be read either.
    pub fn read(text: &str) -> Result<Self, Error> {
        let error = match entrance::from_str(text) {
            Ok(catalogue) => return Ok(catalogue),
            Err(error) => error,
        };
        let mut named = Self::read_names(text)?;
        named.spec.unreadable = Some(UnreadableField {
            field: "spec",
            why: entrance::describe_refusal(text.as_bytes(), &error, MAX_STORED_DEPTH),
        });
        Ok(named)
    }

    /// Reads only the identity of a catalogue's entries: metadata, class, digest, and the names, versions and ids.
    ///
    /// # Errors
    /// A field has the wrong type, or there are more entries than any API server stores.
    pub fn read_names(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct RawSpec<'a> {
            #[serde(default, borrow)]
            spec: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct CatalogueOutline<'a> {
            #[serde(borrow)]
            metadata: RawFields<'a>,
            #[serde(default)]
            spec: SpecOutline,
        }
        #[derive(Default, Deserialize)]
        struct SpecOutline {
            #[serde(default)]
            class: CatalogueClass,
            #[serde(default)]
            from: DigestOutline,
            #[serde(default)]
            addons: Vec<AddonOutline>,
        }
        #[derive(Default, Deserialize)]
        struct DigestOutline {
            #[serde(default)]
            digest: Option<String>,
        }
        #[derive(Deserialize)]
        struct AddonOutline {
            name: String,
            #[serde(default)]
            versions: Vec<VersionOutline>,
        }
        #[derive(Deserialize)]
        struct VersionOutline {
            #[serde(default)]
            version: String,
            #[serde(default)]
            id: String,
        }
        let RawSpec { spec } = entrance::read_outline(text.as_bytes())?;
        let listed = spec.map_or(Ok(0), |spec| AddonCatalogueSpec::count_entries(spec.get()))?;
        if listed > MOST_NAMES {
            return Err(Error::custom("too many entries"));
        }
        let object: CatalogueOutline<'_> = entrance::read_outline(text.as_bytes())?;
        let version = |VersionOutline { version, id }| AddonVersion {
            version,
            id,
            ..AddonVersion::default()
        };
        let addons = object.spec.addons.into_iter().map(|addon| Addon {
            name: addon.name,
            versions: addon.versions.into_iter().map(version).collect(),
            ..Addon::default()
        });
        Ok(Self {
            metadata: read_fields(&object.metadata, |field| field != "managedFields")?,
            spec: AddonCatalogueSpec {
                class: object.spec.class,
                from: object.spec.from.digest.map(|digest| CatalogueFrom {
                    digest: Some(digest),
                    ..CatalogueFrom::default()
                }),
                addons: addons.collect(),
                ..AddonCatalogueSpec::default()
            },
            status: None,
        })
    }
}

impl AddonCatalogueSpec {
    /// Counts the entries in the text of a spec without reading them. An add-on without a version counts as one.
    ///
    /// # Errors
    /// The text is not a spec.
    pub fn count_entries(text: &str) -> Result<usize, Error> {
        #[derive(Deserialize)]
        struct SpecCount {
            #[serde(default)]
            addons: Vec<VersionCount>,
        }
        #[derive(Deserialize)]
        struct VersionCount {
            #[serde(default)]
            versions: Vec<IgnoredAny>,
        }
        let spec: SpecCount = entrance::read_outline(text.as_bytes())?;
        let addons = spec.addons.iter();
        Ok(addons.map(|addon| addon.versions.len().max(1)).sum())
    }
}
