//! The layers of an installation's values: their merged result, and the layer from which each value comes (semantics 9).

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

/// The layers of an installation's values. The fields are in the order of [`Layer`]; later ones win.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layers {
    /// The package's own values; empty if it has none, or was not read.
    pub package: Values,
    /// `values` of the entry.
    pub catalogue: Values,
    /// Defaults of the entry's form.
    pub form: Values,
    /// Keys of Secrets, in the order of `spec.valuesFrom`.
    pub values_from: Vec<Values>,
    /// The user's values. Values that were filled in by default belong to the entry (semantics 10.1).
    pub spec: Values,
}

/// Values with their source. [`fmt::Debug`] does not show the values, because they may come from a Secret.
#[derive(Clone, PartialEq)]
pub struct Values {
    source: String,
    /// Always a map.
    values: Value,
}

/// A leaf of the merged values, with the layers that set it. A leaf is anything but a map with content.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// Its path.
    pub path: Path,
    /// The value; absent if it is deleted or masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Whether the value is hidden because it comes from a Secret.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// Whether it is deleted by a null in another layer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The layer that sets it.
    #[serde(flatten)]
    pub by: Provenance,
    /// The layers that it overrides, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Provenance>,
}

/// A layer, with the source of its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// The layer.
    pub layer: Layer,
    /// The source; see [`Values::source`].
    pub source: String,
}

impl Layers {
    /// Returns the layers of an installation of `entry`, without the layers that have to be fetched: package and Secrets.
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

    /// Returns the layers of `entry`, with `written` as the user's values. Plain manifests take no values (semantics 10.5).
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

    /// Merges all layers (semantics 9): maps merge deeply, other values are replaced, a null deletes.
    #[must_use]
    pub fn merged(&self) -> Value {
        let layers: Vec<_> = self.all().map(|(layer, it)| (layer, &it.values)).collect();
        merge(&layers)
    }

    /// Returns the values for helm, which merges the chart's own defaults itself: all layers above the package, including nulls, which
    /// delete defaults of the chart and its subcharts.
    #[must_use]
    pub fn overrides(&self) -> Value {
        let mut overrides = Value::Object(Map::new());
        for (_, layer) in self.all().filter(|(layer, _)| *layer != Layer::Package) {
            overlay(&mut overrides, &layer.values);
        }
        overrides
    }

    /// Returns the whole numbers in the layers above the package, as helm's `--set` takes them ([`set::whole_numbers`]). Values of Secrets
    /// are left out, because other processes can read the arguments of programs.
    #[must_use]
    pub fn whole_numbers(&self) -> Vec<String> {
        let leaves = self.explain().into_iter();
        let leaves = leaves.filter(|leaf| leaf.by.layer != Layer::Package);
        leaves
            .filter_map(|leaf| Some(set::whole_numbers(leaf.path.keys(), leaf.value.as_ref()?)))
            .flatten()
            .collect()
    }

    /// Merges all layers, and replaces every value from a Secret by a note.
    #[must_use]
    pub fn masked(&self) -> Value {
        let layers: Vec<_> = self.all().collect();
        let trace = Trace::of(layers.iter().map(|(_, it)| &it.values));
        trace.rebuilt(&|leaf, by| match layers.get(by) {
            Some((Layer::ValuesFrom, secret)) => Value::String(note(&secret.source)),
            _ => leaf.clone(),
        })
    }

    /// Returns all leaves, sorted by path, with the layer that sets each of them and the layers that it overrides.
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

    /// Iterates over all layers. The package layer always exists, so that nulls of other layers delete in any case.
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
    /// Returns values from `source`, for example `values.yaml of the package` or `spec.values`. Anything but a map counts as an empty map.
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

    /// Returns the values in a key of a Secret.
    #[must_use]
    pub fn of_secret(namespace: &str, name: &str, key: &str, values: Value) -> Self {
        Self::new(format!("Secret {namespace}/{name}, key {key}"), values)
    }

    /// Returns their source.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the values, which are always a map.
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
    /// Returns the text that replaces a hidden value: `(from Secret shop/db, key values)`.
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
