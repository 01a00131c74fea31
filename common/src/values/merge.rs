//! Layers of values and how they merge (semantics 9).

use serde::Serialize;
use serde_json::{Map, Value};

/// The layers of values; a later one wins (semantics 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Layer {
    /// The package's or chart's own values.
    Package,
    /// `values` of the catalogue entry.
    Catalogue,
    /// `default` of the form's fields.
    Form,
    /// Secrets of `spec.valuesFrom`.
    ValuesFrom,
    /// `spec.values`: the user's choices, from forms, prompts and the command line.
    Spec,
}

impl Layer {
    /// Returns the name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Package => "package",
            Self::Catalogue => "catalogue",
            Self::Form => "form",
            Self::ValuesFrom => "valuesFrom",
            Self::Spec => "spec",
        }
    }
}

/// Merges layers in the order of [`Layer`], in whatever order they are given. Several values of one layer are merged in the given order.
///
/// Maps merge deeply, other values are replaced, and a null removes what earlier layers set (RFC 7386). The first layer is taken unchanged,
/// including its nulls. A layer that is not a map (which the schemas forbid) counts as empty.
#[must_use]
pub fn merge(layers: &[(Layer, &Value)]) -> Value {
    let mut ordered: Vec<_> = layers
        .iter()
        .filter(|(_, values)| values.is_object())
        .collect();
    ordered.sort_by_key(|(layer, _)| *layer);
    let mut ordered = ordered.into_iter();
    let mut merged = ordered.next().map_or_else(
        || Value::Object(Map::new()),
        |(_, values)| (*values).clone(),
    );
    for (_, values) in ordered {
        json_patch::merge(&mut merged, values);
    }
    merged
}

/// Merges one layer over another, so that the result can be merged over a third one later. Nulls stay, because they still have to delete.
/// If a map replaces another value, the third layer's map shows through, as with several `-f` of helm.
pub fn overlay(under: &mut Value, over: &Value) {
    if let (Value::Object(under), Value::Object(over)) = (&mut *under, over) {
        for (key, value) in over {
            match under.get_mut(key) {
                Some(slot @ Value::Object(_)) => overlay(slot, value),
                _ => {
                    under.insert(key.clone(), value.clone());
                }
            }
        }
    } else {
        *under = over.clone();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_overlay_keeps_its_nulls() {
        for (under, over, expected) in [
            (json!({"a": 1}), json!({"a": null}), json!({"a": null})),
            (
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"b": null}}),
                json!({"a": {"b": null, "c": 2}}),
            ),
            (
                json!({"a": {"b": 1}}),
                json!({"a": null}),
                json!({"a": null}),
            ),
            (
                json!({"a": null}),
                json!({"a": {"b": null}}),
                json!({"a": {"b": null}}),
            ),
            (
                json!({"a": [1]}),
                json!({"a": [2], "d": {}}),
                json!({"a": [2], "d": {}}),
            ),
        ] {
            let mut got = under.clone();
            overlay(&mut got, &over);
            assert_eq!(got, expected, "{under} {over}");
        }
    }

    /// Semantics 9.
    #[test]
    fn later_layers_win() {
        let package = json!({"image": {"repository": "a", "tag": "1"}, "args": ["x", "y"], "debug": true, "n": null});
        let catalogue = json!({"image": {"repository": "mirror"}, "args": ["z"]});
        let form = json!({"replicas": 1});
        let secret = json!({"password": "p"});
        let spec = json!({"replicas": 3, "debug": null});
        let layers = [
            (Layer::Spec, &spec),
            (Layer::ValuesFrom, &secret),
            (Layer::Form, &form),
            (Layer::Catalogue, &catalogue),
            (Layer::Package, &package),
        ];
        assert_eq!(
            merge(&layers),
            json!({
                "image": {"repository": "mirror", "tag": "1"},
                "args": ["z"],
                "replicas": 3,
                "password": "p",
                "n": null,
            })
        );
    }

    #[test]
    fn several_of_one_layer_keep_their_order() {
        let (first, second) = (json!({"a": 1, "b": 1}), json!({"a": 2}));
        let layers = [(Layer::ValuesFrom, &first), (Layer::ValuesFrom, &second)];
        assert_eq!(merge(&layers), json!({"a": 2, "b": 1}));
    }

    #[test]
    fn what_is_no_map_counts_as_empty() {
        let (null, list, map) = (Value::Null, json!([1]), json!({"a": {"b": 1}}));
        let layers = [
            (Layer::Package, &null),
            (Layer::Form, &map),
            (Layer::Spec, &list),
        ];
        assert_eq!(merge(&layers), map);
        assert_eq!(merge(&[]), json!({}));
        let scalar = json!({"a": 1});
        assert_eq!(
            merge(&[(Layer::Form, &map), (Layer::Spec, &scalar)]),
            scalar
        );
    }
}
