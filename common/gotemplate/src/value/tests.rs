use std::rc::Rc;

use super::{Dict, Type, Value};

fn dict() -> Dict {
    Dict::new(&Type::Any, [(Rc::from("a"), Value::Int(1))])
}

#[test]
fn clones_of_a_dict_are_the_same_dict() {
    let one = dict();
    let other = one.clone();
    other.set("b", Value::Dict(one.clone()));
    other.remove("a");
    assert_eq!(one.keys(), [Rc::from("b")]);
    assert!(one.is_same(&other) && !one.is_same(&dict()));
}

#[test]
fn a_dict_that_holds_itself_is_an_error_not_an_overflow() {
    let own = dict();
    own.set("self", Value::list(vec![Value::Dict(own.clone())]));
    let value = Value::Dict(own.clone());
    assert!(value.to_text().is_err());
    let other = dict();
    other.set("self", Value::list(vec![Value::Dict(other.clone())]));
    assert!(
        value
            .deep_equal(&Value::Dict(other.clone()), &mut usize::MAX.clone())
            .is_err()
    );
    own.remove("self");
    other.remove("self");
}

#[test]
fn values_nested_a_million_times_are_dropped() {
    let mut value = Value::list(Vec::new());
    for depth in 0..1_000_000 {
        value = if depth % 2 == 0 {
            Value::list(vec![value])
        } else {
            Value::Dict(Dict::new(&Type::Any, [(Rc::from("a"), value)]))
        };
    }
    assert!(value.to_text().is_err());
}

#[test]
fn floats_are_written_as_go_writes_them() {
    let expect = [
        (0.0, "0"),
        (-0.0, "-0"),
        (100_000.0, "100000"),
        (1_000_000.0, "1e+06"),
        (1_000_000.5, "1.0000005e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1e100, "1e+100"),
        (f64::INFINITY, "+Inf"),
        (f64::NAN, "NaN"),
    ];
    for (value, text) in expect {
        assert_eq!(Value::Float(value).to_text().unwrap(), text);
    }
}
