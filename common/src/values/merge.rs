//! Layers of values and how they merge (semantics 9).

use serde::Serialize;
use serde_json::{Map, Value};

/// Where values come from; a later one wins (semantics 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Layer {
    /// The package's or chart's own.
    Package,
    /// `values` of the catalogue entry.
    Catalogue,
    /// `default` of the form's fields.
    Form,
    /// Secrets of `spec.valuesFrom`.
    ValuesFrom,
    /// `spec.values`: forms, prompts, `-f` and `--set` write there.
    Spec,
}

/// Merges layers in the order of [`Layer`], whatever order they are given in; several of one layer in the order given.
///
/// Maps merge deeply, everything else replaces; a null takes away what earlier layers set (RFC 7386). The first layer
/// is taken as it is, its nulls too. A layer that is no map (the schemas forbid it) counts as empty.
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

/// Merges layers into one that does the same to whatever lies below: nulls stay in it, for they take away what that sets
/// (a chart's own values, which helm merges).
#[must_use]
pub fn compose(layers: &[(Layer, &Value)]) -> Value {
    let mut ordered: Vec<_> = layers.iter().collect();
    ordered.sort_by_key(|(layer, _)| *layer);
    let mut composed = Value::Object(Map::new());
    for (_, values) in ordered {
        overlay(&mut composed, values);
    }
    composed
}

/// What is no map (the schemas forbid it) counts as empty. Depth is bounded where values are read.
fn overlay(below: &mut Value, above: &Value) {
    let (Value::Object(below), Value::Object(above)) = (below, above) else {
        return;
    };
    for (key, value) in above {
        match below.get_mut(key) {
            Some(existing) if existing.is_object() && value.is_object() => overlay(existing, value),
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
    fn a_composed_layer_still_takes_away() {
        let form = json!({"a": {"b": 1}, "c": 1});
        let spec = json!({"a": {"b": null, "d": 2}, "c": {"e": null}});
        let layers = [(Layer::Spec, &spec), (Layer::Form, &form)];
        assert_eq!(
            compose(&layers),
            json!({"a": {"b": null, "d": 2}, "c": {"e": null}})
        );
        let package = json!({"a": {"b": 5, "f": 6}, "c": {"e": 1}});
        let at_once = [
            (Layer::Package, &package),
            (Layer::Form, &form),
            (Layer::Spec, &spec),
        ];
        let composed = compose(&layers);
        let one_by_one = [(Layer::Package, &package), (Layer::Spec, &composed)];
        assert_eq!(merge(&one_by_one)["a"], merge(&at_once)["a"]);
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
