//! The layers of an installation's values: their merged result, and the layer from which each value comes (semantics 9).

mod trace;

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::defaulted::{DefaultsRecord, user_values};
use super::form;
use super::merge::{Layer, merge, overlay};
use super::path::ValuePath;
use super::set;
use crate::api::catalogue::Method;
use crate::api::installation::AddonInstallation;
use crate::api::names::ANNOTATION_DEFAULTED;
use crate::catalogue::CatalogueEntry;
use trace::LayerTrace;

/// The source of the user's values.
const SPEC: &str = "spec.values";

/// The layers of an installation's values. The fields are in the order of [`Layer`]; later ones win.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layers {
    /// The package's own values; empty if it has none, or was not read.
    pub package: LayerValues,
    /// `values` of the entry.
    pub catalogue: LayerValues,
    /// Defaults of the entry's form.
    pub form: LayerValues,
    /// Keys of Secrets, in the order of `spec.valuesFrom`.
    pub values_from: Vec<LayerValues>,
    /// The user's values. Values that were filled in by default belong to the entry (semantics 10.1).
    pub spec: LayerValues,
}

/// Values with their source. [`fmt::Debug`] does not show the values, because they may come from a Secret.
#[derive(Clone, PartialEq)]
pub struct LayerValues {
    source: String,
    /// Always a map.
    values: Value,
}

/// A leaf of the merged values, with the layers that set it. A leaf is anything but a map with content.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedValue {
    /// Its path.
    pub path: ValuePath,
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
    pub by: ValueProvenance,
    /// The layers that it overrides, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<ValueProvenance>,
}

/// A layer, with the source of its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ValueProvenance {
    /// The layer.
    pub layer: Layer,
    /// The source; see [`LayerValues::source`].
    pub source: String,
}

impl Layers {
    /// Returns the layers of an installation of `entry`, without the layers that have to be fetched: package and Secrets.
    #[must_use]
    pub fn for_installation(entry: &CatalogueEntry, installation: &AddonInstallation) -> Self {
        let Self { spec, .. } = Self::of_user(installation);
        Self::new(entry, spec.values)
    }

    /// Returns the user's values in the record of an installation, without those of Secrets.
    #[must_use]
    pub fn of_user(installation: &AddonInstallation) -> Self {
        let annotations = installation.metadata.annotations.as_ref();
        let annotation = annotations.and_then(|all| all.get(ANNOTATION_DEFAULTED));
        let record = DefaultsRecord::parse(annotation.map(String::as_str));
        let written = match &installation.spec.values {
            Some(Value::Object(values)) => user_values(values, &record),
            _ => Map::new(),
        };
        Self {
            spec: LayerValues::new(SPEC, Value::Object(written)),
            ..Self::default()
        }
    }

    /// Returns the layers of `entry`, with `written` as the user's values. Plain manifests take no values (semantics 10.5).
    #[must_use]
    pub fn new(entry: &CatalogueEntry, written: Value) -> Self {
        let (version, at) = (&entry.version, format!("{}, {}", entry.origin, entry.place));
        let spec = LayerValues::new(SPEC, written);
        if version.template.method == Method::Manifest {
            return Self {
                spec,
                ..Self::default()
            };
        }
        let catalogue = version.values.clone().unwrap_or_default();
        Self {
            catalogue: LayerValues::new(format!("{at}.values"), catalogue),
            form: LayerValues::new(
                format!("{at}.template.formSpec"),
                form::defaults(&version.template.form_spec),
            ),
            spec,
            ..Self::default()
        }
    }

    /// Merges all layers (semantics 9): maps merge deeply, other values are replaced, a null deletes.
    #[must_use]
    pub fn merge_all(&self) -> Value {
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

    /// Returns the whole numbers in the layers above the package, as helm's `--set` takes them ([`set::whole_number_assignments`]). Values of Secrets
    /// are left out, because other processes can read the arguments of programs.
    #[must_use]
    pub fn whole_numbers(&self) -> Vec<String> {
        let leaves = self.explain().into_iter();
        let leaves = leaves.filter(|leaf| leaf.by.layer != Layer::Package);
        leaves
            .filter_map(|leaf| {
                Some(set::whole_number_assignments(
                    leaf.path.keys(),
                    leaf.value.as_ref()?,
                ))
            })
            .flatten()
            .collect()
    }

    /// Merges all layers, and replaces every value from a Secret by a note.
    #[must_use]
    pub fn merge_masked(&self) -> Value {
        let layers: Vec<_> = self.all().collect();
        let trace = LayerTrace::from_layers(layers.iter().map(|(_, it)| &it.values));
        trace.rebuild(&|leaf, by| match layers.get(by) {
            Some((Layer::ValuesFrom, secret)) => Value::String(note(&secret.source)),
            _ => leaf.clone(),
        })
    }

    /// Returns all leaves, sorted by path, with the layer that sets each of them and the layers that it overrides.
    #[must_use]
    pub fn explain(&self) -> Vec<ExplainedValue> {
        let layers: Vec<_> = self.all().collect();
        let trace = LayerTrace::from_layers(layers.iter().map(|(_, it)| &it.values));
        let provenance = |by: usize| {
            let (layer, values) = layers.get(by)?;
            let source = values.source.clone();
            Some(ValueProvenance {
                layer: *layer,
                source,
            })
        };
        let explained = trace.leaves().into_iter().filter_map(|leaf| {
            let by = provenance(leaf.by)?;
            let deleted = leaf.value.is_none();
            let masked = by.layer == Layer::ValuesFrom && !deleted;
            Some(ExplainedValue {
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
    fn all(&self) -> impl Iterator<Item = (Layer, &LayerValues)> {
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

impl LayerValues {
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
    pub fn from_secret(namespace: &str, name: &str, key: &str, values: Value) -> Self {
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

impl Default for LayerValues {
    fn default() -> Self {
        Self::new(String::new(), Value::Null)
    }
}

impl fmt::Debug for LayerValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Values({})", self.source)
    }
}

impl ValueProvenance {
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
