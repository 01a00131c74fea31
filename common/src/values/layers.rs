//! The values of one installation layer by layer: their merged result, and where each of them comes from (semantics 9).

mod trace;

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::defaulted::{Record, own};
use super::form;
use super::merge::{Layer, merge, overlay};
use super::path::Path;
use super::set;
use crate::api::catalogue::Method;
use crate::api::installation::AddonInstallation;
use crate::api::names::ANNOTATION_DEFAULTED;
use crate::catalogue::Entry;
use trace::Trace;

/// The values of an installation, later ones win: the fields stand in the order of [`Layer`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layers {
    /// The package's own; empty where it has none, or was not read.
    pub package: Values,
    /// `values` of the entry.
    pub catalogue: Values,
    /// Defaults of its form.
    pub form: Values,
    /// Keys of Secrets, in the order of `spec.valuesFrom`.
    pub values_from: Vec<Values>,
    /// The user's values; what was filled in by default counts as the entry's (semantics 10).
    pub spec: Values,
}

/// Values, and their place. [`fmt::Debug`] does not show them, because they may come from a Secret.
#[derive(Clone, PartialEq)]
pub struct Values {
    source: String,
    /// A map.
    values: Value,
}

/// One leaf of the values: everything except maps that are not empty.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// Its dotted path.
    pub path: Path,
    /// The value; absent where it is deleted or masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Whether it comes from a Secret, which is not shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// Whether a null deletes the values of other layers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The layer that sets it.
    #[serde(flatten)]
    pub by: Provenance,
    /// The layers that it overrides, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Provenance>,
}

/// A layer, and the place in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// The layer.
    pub layer: Layer,
    /// As [`Values::source`].
    pub source: String,
}

impl Layers {
    /// The layers of an installation of `entry`, without those that have to be fetched: package and Secrets.
    #[must_use]
    pub fn of(entry: &Entry, installation: &AddonInstallation) -> Self {
        let annotations = installation.metadata.annotations.as_ref();
        let annotation = annotations.and_then(|all| all.get(ANNOTATION_DEFAULTED));
        let record = Record::parse(annotation.map(String::as_str));
        let written = match &installation.spec.values {
            Some(Value::Object(values)) => own(values, &record),
            _ => Map::new(),
        };
        Self::new(entry, Value::Object(written))
    }

    /// The layers of `entry` under the user's values. Plain manifests take no values (semantics 10).
    #[must_use]
    pub fn new(entry: &Entry, written: Value) -> Self {
        let (version, at) = (&entry.version, format!("{}, {}", entry.origin, entry.place));
        let spec = Values::new("spec.values", written);
        if version.template.method == Method::Manifest {
            return Self {
                spec,
                ..Self::default()
            };
        }
        let catalogue = version.values.clone().unwrap_or_default();
        Self {
            catalogue: Values::new(format!("{at}.values"), catalogue),
            form: Values::new(
                format!("{at}.template.formSpec"),
                form::defaults(&version.template.form_spec),
            ),
            spec,
            ..Self::default()
        }
    }

    /// All layers merged (semantics 9): maps deeply, everything else replaces, a null deletes.
    #[must_use]
    pub fn merged(&self) -> Value {
        let layers: Vec<_> = self.all().map(|(layer, it)| (layer, &it.values)).collect();
        merge(&layers)
    }

    /// The values for helm, which merges the chart's own defaults itself: the layers above the package, with their nulls, because
    /// these delete defaults of the chart and of its subcharts.
    #[must_use]
    pub fn overrides(&self) -> Value {
        let mut overrides = Value::Object(Map::new());
        for (_, layer) in self.all().filter(|(layer, _)| *layer != Layer::Package) {
            overlay(&mut overrides, &layer.values);
        }
        overrides
    }

    /// The whole numbers that the layers above the package set, as helm's `--set` takes them ([`set::whole_numbers`]). Those of Secrets
    /// are not among them: arguments of programs can be seen by others.
    #[must_use]
    pub fn whole_numbers(&self) -> Vec<String> {
        let leaves = self.explain().into_iter();
        let leaves = leaves.filter(|leaf| leaf.by.layer != Layer::Package);
        leaves
            .filter_map(|leaf| Some(set::whole_numbers(leaf.path.keys(), leaf.value.as_ref()?)))
            .flatten()
            .collect()
    }

    /// All layers merged, with a note instead of every value that comes from a Secret: for people.
    #[must_use]
    pub fn masked(&self) -> Value {
        let layers: Vec<_> = self.all().collect();
        let trace = Trace::of(layers.iter().map(|(_, it)| &it.values));
        trace.rebuilt(&|leaf, by| match layers.get(by) {
            Some((Layer::ValuesFrom, secret)) => Value::String(note(&secret.source)),
            _ => leaf.clone(),
        })
    }

    /// Every leaf, sorted by path: the layer that sets it, and those that it overrides.
    #[must_use]
    pub fn explain(&self) -> Vec<Explained> {
        let layers: Vec<_> = self.all().collect();
        let trace = Trace::of(layers.iter().map(|(_, it)| &it.values));
        let provenance = |by: usize| {
            let (layer, values) = layers.get(by)?;
            let source = values.source.clone();
            Some(Provenance {
                layer: *layer,
                source,
            })
        };
        let explained = trace.leaves().into_iter().filter_map(|leaf| {
            let by = provenance(leaf.by)?;
            let deleted = leaf.value.is_none();
            let masked = by.layer == Layer::ValuesFrom && !deleted;
            Some(Explained {
                path: leaf.path,
                value: leaf.value.filter(|_| !masked),
                masked,
                deleted,
                by,
                overrides: leaf.over.into_iter().filter_map(provenance).collect(),
            })
        });
        explained.collect()
    }

    /// The package layer always exists: the nulls of the other layers delete in any case.
    fn all(&self) -> impl Iterator<Item = (Layer, &Values)> {
        let entry = [
            (Layer::Package, &self.package),
            (Layer::Catalogue, &self.catalogue),
            (Layer::Form, &self.form),
        ];
        let secrets = self.values_from.iter().map(|it| (Layer::ValuesFrom, it));
        entry
            .into_iter()
            .chain(secrets)
            .chain([(Layer::Spec, &self.spec)])
    }
}

impl Values {
    /// Values from `source`: `values.yaml of the package`, `spec.values`; anything but a map counts as an empty one.
    #[must_use]
    pub fn new(source: impl Into<String>, values: Value) -> Self {
        let values = match values {
            map @ Value::Object(_) => map,
            _ => Value::Object(Map::new()),
        };
        Self {
            source: source.into(),
            values,
        }
    }

    /// Values of a key of a Secret.
    #[must_use]
    pub fn of_secret(namespace: &str, name: &str, key: &str, values: Value) -> Self {
        Self::new(format!("Secret {namespace}/{name}, key {key}"), values)
    }

    /// Their place.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The values: a map.
    #[must_use]
    pub fn values(&self) -> &Value {
        &self.values
    }
}

impl Default for Values {
    fn default() -> Self {
        Self::new(String::new(), Value::Null)
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Values({})", self.source)
    }
}

impl Provenance {
    /// The text in place of a value that is not shown: `(from Secret shop/db, key values)`.
    #[must_use]
    pub fn note(&self) -> String {
        note(&self.source)
    }
}

fn note(source: &str) -> String {
    format!("(from {source})")
}

#[cfg(test)]
mod tests;
