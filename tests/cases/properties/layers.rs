//! Laws of layers: what is explained is what is merged, and what helm makes of it is the same.

use common::values::layers::{ExplainedValue, LayerValues, Layers};
use common::values::merge::{Layer, merge};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::law::{cases, law};
use super::yaml::json;

/// Few keys, so that layers meet; anything below.
fn map() -> impl Strategy<Value = Value> {
    let inner = prop::collection::hash_map("[ab]", json(), 0..3).prop_map(object);
    let value = prop_oneof![1 => json(), 2 => inner];
    prop::collection::hash_map("[ab.]", value, 0..4).prop_map(object)
}

fn object(fields: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(fields.into_iter().collect())
}

fn layers(values: [Value; 6]) -> Layers {
    let [package, catalogue, form, first, second, spec] = values;
    Layers {
        package: LayerValues::new("values.yaml of the package", package),
        catalogue: LayerValues::new("catalogue", catalogue),
        form: LayerValues::new("form", form),
        values_from: vec![
            LayerValues::from_secret("n", "first", "k", first),
            LayerValues::from_secret("n", "second", "k", second),
        ],
        spec: LayerValues::new("spec.values", spec),
    }
}

/// The values of the layer that a leaf names.
fn named<'a>(layers: &'a Layers, leaf: &ExplainedValue) -> &'a Value {
    let secret = layers.values_from.iter();
    let secret = secret.clone().find(|it| it.source() == leaf.by.source);
    match (leaf.by.layer, secret) {
        (Layer::Package, _) => layers.package.values(),
        (Layer::Catalogue, _) => layers.catalogue.values(),
        (Layer::Form, _) => layers.form.values(),
        (Layer::ValuesFrom, Some(secret)) => secret.values(),
        (Layer::ValuesFrom, None) => &Value::Null,
        (Layer::Spec, _) => layers.spec.values(),
    }
}

#[test]
fn the_leaves_that_are_explained_are_the_merged_values() {
    let all = [map(), map(), map(), map(), map(), map()];
    law("layers::explained", cases(500, 20_000), all, |values| {
        let layers = layers(values);
        let merged = layers.merge_all();
        let mut rebuilt = json!({});
        for leaf in layers.explain() {
            let found = leaf.path.get(named(&layers, &leaf));
            if leaf.deleted {
                prop_assert_eq!(found, Some(&Value::Null));
                prop_assert!(leaf.path.set(&mut rebuilt, Value::Null).is_ok());
                leaf.path.remove(&mut rebuilt);
            } else {
                let found = found.cloned().unwrap_or_default();
                prop_assert_eq!(leaf.masked, leaf.by.layer == Layer::ValuesFrom);
                prop_assert_eq!(leaf.value.is_none(), leaf.masked);
                prop_assert_eq!(leaf.value.as_ref().unwrap_or(&found), &found);
                prop_assert!(leaf.path.set(&mut rebuilt, found).is_ok());
            }
            prop_assert!(!leaf.overrides.contains(&leaf.by));
        }
        prop_assert_eq!(rebuilt, merged);
        Ok(())
    });
}

#[test]
fn what_is_masked_is_the_merged_values_but_for_secrets() {
    let all = [map(), map(), map(), map(), map(), map()];
    law("layers::masked", cases(500, 20_000), all, |values| {
        let layers = layers(values);
        let (mut merged, mut masked) = (layers.merge_all(), layers.merge_masked());
        for leaf in layers.explain().iter().filter(|leaf| leaf.masked) {
            let shown = leaf.path.remove(&mut masked);
            prop_assert_eq!(shown, Some(Value::String(leaf.by.note())));
            leaf.path.remove(&mut merged);
        }
        prop_assert_eq!(masked, merged);
        Ok(())
    });
}

/// Maps and leaves at the same paths in all layers, as charts and their users write them.
fn regular(nullable: bool) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        (0..3_i64).prop_map(Value::from),
        prop::collection::vec(0..3_i64, 0..2).prop_map(Value::from),
    ];
    let leaves = prop::collection::hash_map("[cd]", leaf, 0..3).prop_map(object);
    let map = if nullable {
        prop_oneof![leaves.clone(), Just(Value::Null)].boxed()
    } else {
        leaves.clone().boxed()
    };
    (prop::collection::hash_map("[ab]", map, 0..3), leaves).prop_map(|(maps, leaves)| {
        let mut all: Map<String, Value> = maps.into_iter().collect();
        all.extend(leaves.as_object().cloned().unwrap_or_default());
        Value::Object(all)
    })
}

#[test]
fn helm_comes_to_the_same() {
    let all = [
        regular(false).boxed(),
        regular(false).boxed(),
        regular(false).boxed(),
        regular(false).boxed(),
        regular(false).boxed(),
        regular(true).boxed(),
    ];
    law("layers::helm", cases(500, 20_000), all, |values| {
        let layers = layers(values);
        let given = layers.overrides();
        let by_helm = merge(&[
            (Layer::Package, layers.package.values()),
            (Layer::Spec, &given),
        ]);
        prop_assert_eq!(by_helm, layers.merge_all());
        Ok(())
    });
}
