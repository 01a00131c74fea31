//! The parts of an installation that its defaults depend on. The rest stays text, above all values that no default changes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Error, Map, Value};

use common::entrance;

/// An installation as it was written.
pub(super) struct WrittenInstallation<'a> {
    /// The metadata.
    pub(super) metadata: InstallationMetadata<'a>,
    /// The spec.
    pub(super) spec: WrittenSpec<'a>,
    /// The text of the spec.
    pub(super) text: &'a str,
}

/// The fields of the metadata that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InstallationMetadata<'a> {
    /// The namespace, if the object names one.
    #[serde(default)]
    pub(super) namespace: Option<String>,
    #[serde(default, borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(default)]
    deletion_timestamp: Option<IgnoredAny>,
}

/// The fields of the spec that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WrittenSpec<'a> {
    /// The reference, which may be invalid.
    #[serde(default, borrow)]
    pub(super) addon_ref: Option<&'a RawValue>,
    /// Present if the field is set.
    #[serde(default)]
    pub(super) core_addon: Option<IgnoredAny>,
    /// Present if the field is set.
    #[serde(default)]
    pub(super) create_namespace: Option<IgnoredAny>,
    /// Present if the field is set.
    #[serde(default)]
    pub(super) target_namespace: Option<IgnoredAny>,
    #[serde(default, borrow)]
    values: Option<&'a RawValue>,
    #[serde(default, borrow)]
    values_from: Option<&'a RawValue>,
}

impl<'a> WrittenInstallation<'a> {
    /// Reads an object.
    ///
    /// # Errors
    /// The metadata or the spec is not an object, or has a field twice.
    pub(super) fn read(object: &'a str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct WrittenParts<'a> {
            #[serde(borrow)]
            metadata: &'a RawValue,
            #[serde(borrow)]
            spec: &'a RawValue,
        }
        let WrittenParts { metadata, spec } = entrance::read_outline(object.as_bytes())?;
        Ok(Self {
            metadata: read_fields(metadata)?,
            spec: read_fields(spec)?,
            text: spec.get(),
        })
    }
}

impl<'a> InstallationMetadata<'a> {
    /// Returns whether deletion has begun.
    pub(super) fn is_being_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Returns the annotations, if there are any.
    pub(super) fn annotations(&self) -> Option<BTreeMap<String, &'a RawValue>> {
        read_fields(self.annotations?).ok()
    }

    /// Returns the text of an annotation.
    pub(super) fn annotation(&self, name: &str) -> Option<String> {
        entrance::from_str(self.annotations()?.get(name)?.get()).ok()
    }
}

impl WrittenSpec<'_> {
    /// Returns whether reference and values equal those of `other` (semantics 4).
    pub(super) fn has_same_content(&self, other: &Self) -> bool {
        is_same_json(self.addon_ref, other.addon_ref)
            && is_same_json(self.values_from, other.values_from)
            && is_same_json(self.values, other.values)
    }

    /// Returns the values of these keys.
    ///
    /// # Errors
    /// The values are not an object, are too large, or cannot be read.
    pub(super) fn values(
        &self,
        keys: &BTreeSet<String>,
    ) -> Result<Option<Map<String, Value>>, Error> {
        let Some(values) = self.values else {
            return Ok(None);
        };
        entrance::check_values(values.get()).map_err(Error::custom)?;
        let values: BTreeMap<String, &RawValue> = match keys.is_empty() {
            true => BTreeMap::new(),
            false => read_fields(values)?,
        };
        let wanted = values.into_iter().filter(|(key, _)| keys.contains(key));
        let read = wanted.map(|(key, text)| Ok((key, entrance::from_str(text.get())?)));
        read.collect::<Result<_, _>>().map(Some)
    }
}

/// Reads the fields of an object. Derived code alone would accept a list as well.
fn read_fields<'a, T: Deserialize<'a>>(object: &'a RawValue) -> Result<T, Error> {
    if !object.get().starts_with('{') {
        return Err(Error::custom("an object is expected"));
    }
    entrance::read_outline(object.get().as_bytes())
}

/// Returns whether two texts are equal as JSON.
fn is_same_json(a: Option<&RawValue>, b: Option<&RawValue>) -> bool {
    let (Some(a), Some(b)) = (a, b) else {
        return a.is_none() && b.is_none();
    };
    let read = |text: &RawValue| {
        entrance::check_values(text.get()).ok()?;
        entrance::from_str::<Value>(text.get()).ok()
    };
    a.get() == b.get() || matches!((read(a), read(b)), (Some(a), Some(b)) if a == b)
}
