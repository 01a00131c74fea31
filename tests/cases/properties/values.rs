//! Laws of merging and of paths.

use common::values::merge::{Layer, merge};
use common::values::path::ValuePath;
use common::values::set::{Grammar, apply_assignments, parse_assignments};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::yaml::json;

fn map() -> impl Strategy<Value = Value> {
    prop::collection::hash_map("[a-z.~/]{1,3}", json(), 0..5)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// The same without nulls, which take away instead of setting.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect::<Map<_, _>>()
            .into(),
        other => other,
    }
}

proptest! {
    #[test]
    fn an_empty_layer_changes_nothing(values in map()) {
        let empty = json!({});
        prop_assert_eq!(&merge(&[(Layer::Package, &values), (Layer::Spec, &empty)]), &values);
        let full = without_nulls(values);
        prop_assert_eq!(&merge(&[(Layer::Package, &empty), (Layer::Spec, &full)]), &full);
    }

    #[test]
    fn merging_twice_is_merging_once(first in map(), second in map()) {
        let once = merge(&[(Layer::Package, &first), (Layer::Spec, &second)]);
        prop_assert_eq!(&merge(&[(Layer::Package, &once), (Layer::Spec, &second)]), &once);
    }

    /// Only from the lowest layer up: a map over text over a map is that map alone.
    #[test]
    fn merging_one_by_one_is_merging_at_once(a in map(), b in map(), c in map()) {
        let two = merge(&[(Layer::Package, &a), (Layer::Catalogue, &b)]);
        let one_by_one = merge(&[(Layer::Package, &two), (Layer::Spec, &c)]);
        let at_once = merge(&[(Layer::Package, &a), (Layer::Catalogue, &b), (Layer::Spec, &c)]);
        prop_assert_eq!(one_by_one, at_once);
    }

    #[test]
    fn what_is_set_at_a_path_is_there_and_can_be_removed(mut values in map(), keys in prop::collection::vec("[a-z.\\\\]{1,3}", 1..4), value in json()) {
        let text = keys.iter().map(|key| key.replace('\\', "\\\\").replace('.', "\\.")).collect::<Vec<_>>().join(".");
        let path = ValuePath::parse(&text).unwrap();
        prop_assert_eq!(path.keys(), keys.as_slice());
        prop_assert_eq!(path.to_string(), text);
        if path.set(&mut values, value.clone()).is_ok() {
            prop_assert_eq!(path.get(&values), Some(&value));
            prop_assert_eq!(values.pointer(&path.to_pointer()), Some(&value));
            prop_assert_eq!(path.remove(&mut values), Some(value));
            prop_assert_eq!(path.get(&values), None);
        }
    }

    #[test]
    fn any_flag_is_set_or_refused(flag in "([a-b]|[\\[\\].=,{}\\\\0-1]|.){0,20}", mut values in map()) {
        let mut before = values.clone();
        for grammar in [Grammar::Typed, Grammar::Text, Grammar::Json] {
            let set = parse_assignments(grammar, &flag).and_then(|all| apply_assignments(&mut values, &all, &[]));
            if set.is_err() {
                prop_assert_eq!(&values, &before);
            }
            before.clone_from(&values);
        }
    }
}
