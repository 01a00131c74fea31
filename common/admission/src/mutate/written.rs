//! An installation as far as its defaults depend on it. The rest stays text, above all the values that nothing is filled into.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Error, Map, Value};

use common::entrance;

/// The object.
pub(super) struct Written<'a> {
    /// Its metadata.
    pub(super) metadata: Metadata<'a>,
    /// Its specification.
    pub(super) spec: Spec<'a>,
    /// The same as it is written.
    pub(super) text: &'a str,
}

/// What is read of the metadata.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata<'a> {
    /// Its namespace, where it says so itself.
    #[serde(default)]
    pub(super) namespace: Option<String>,
    #[serde(default, borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(default)]
    deletion_timestamp: Option<IgnoredAny>,
}

/// What is read of the specification.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec<'a> {
    /// The reference, which may be wrong.
    #[serde(default, borrow)]
    pub(super) addon_ref: Option<&'a RawValue>,
    /// Whether it is there.
    #[serde(default)]
    pub(super) core_addon: Option<IgnoredAny>,
    /// Whether it is there.
    #[serde(default)]
    pub(super) create_namespace: Option<IgnoredAny>,
    /// Whether it is there.
    #[serde(default)]
    pub(super) target_namespace: Option<IgnoredAny>,
    #[serde(default, borrow)]
    values: Option<&'a RawValue>,
    #[serde(default, borrow)]
    values_from: Option<&'a RawValue>,
}

impl<'a> Written<'a> {
    /// Reads an object.
    ///
    /// # Errors
    /// Metadata or specification are not objects, or one of their fields is twice there.
    pub(super) fn read(object: &'a str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Object<'a> {
            #[serde(borrow)]
            metadata: &'a RawValue,
            #[serde(borrow)]
            spec: &'a RawValue,
        }
        let Object { metadata, spec } = entrance::outline(object.as_bytes())?;
        Ok(Self {
            metadata: fields(metadata)?,
            spec: fields(spec)?,
            text: spec.get(),
        })
    }
}

impl<'a> Metadata<'a> {
    /// Whether deletion has begun.
    pub(super) fn is_going(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The annotations, where there are any.
    pub(super) fn annotations(&self) -> Option<BTreeMap<String, &'a RawValue>> {
        fields(self.annotations?).ok()
    }

    /// The text of an annotation.
    pub(super) fn annotation(&self, name: &str) -> Option<String> {
        entrance::from_str(self.annotations()?.get(name)?.get()).ok()
    }
}

impl Spec<'_> {
    /// Whether reference and values are those of another one (semantics 4).
    pub(super) fn asks_for_the_same(&self, other: &Self) -> bool {
        is_same(self.addon_ref, other.addon_ref)
            && is_same(self.values_from, other.values_from)
            && is_same(self.values, other.values)
    }

    /// The values of these keys.
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
            false => fields(values)?,
        };
        let wanted = values.into_iter().filter(|(key, _)| keys.contains(key));
        let read = wanted.map(|(key, text)| Ok((key, entrance::from_str(text.get())?)));
        read.collect::<Result<_, _>>().map(Some)
    }
}

/// The fields of an object; derived code takes lists as well.
fn fields<'a, T: Deserialize<'a>>(object: &'a RawValue) -> Result<T, Error> {
    if !object.get().starts_with('{') {
        return Err(Error::custom("an object is expected"));
    }
    entrance::outline(object.get().as_bytes())
}

/// Whether two texts mean the same.
fn is_same(a: Option<&RawValue>, b: Option<&RawValue>) -> bool {
    let (Some(a), Some(b)) = (a, b) else {
        return a.is_none() && b.is_none();
    };
    let read = |text: &RawValue| {
        entrance::check_values(text.get()).ok()?;
        entrance::from_str::<Value>(text.get()).ok()
    };
    a.get() == b.get() || matches!((read(a), read(b)), (Some(a), Some(b)) if a == b)
}
