//! `index`, `slice` and `len`.

use crate::function::{Arguments, FunctionContext, FunctionError, FunctionResult};
use crate::value::{ListValue, Value};

/// `index x 1 "a"` is `x[1]["a"]`. A missing key gives the zero value of the dict's element type.
pub(super) fn index(_: &mut FunctionContext, arguments: Arguments<'_>) -> FunctionResult {
    let mut item = arguments.value(0).clone();
    if matches!(item, Value::Nil) {
        return Err("index of untyped nil".into());
    }
    for index in arguments.rest(1) {
        let out_of_range = |index: usize| format!("index out of range: {index}");
        item = match item.follow() {
            Value::List(list) => {
                let index = position(index, list.len())?;
                let item = list.get(index).cloned();
                item.ok_or_else(|| out_of_range(index))?
            }
            Value::Text(text) => {
                let index = position(index, text.len())?;
                let byte = text.as_bytes().get(index).copied();
                Value::Byte(byte.ok_or_else(|| out_of_range(index))?)
            }
            Value::Dict(dict) => match index {
                Value::Text(key) => dict.get(key).unwrap_or_else(|| dict.element().zero()),
                Value::Nil => return Err("value is nil; should be of type string".into()),
                other => {
                    let found = other.type_name();
                    return Err(format!("value has type {found}; should be string").into());
                }
            },
            Value::Nil => return Err("index of nil pointer".into()),
            other => return Err(format!("can't index item of type {}", other.type_name()).into()),
        };
    }
    Ok(item)
}

/// `slice x 1 2` is `x[1:2]`. A third number is the capacity in Go, and only checked here.
pub(super) fn slice(_: &mut FunctionContext, arguments: Arguments<'_>) -> FunctionResult {
    let item = arguments.value(0).follow();
    let indexes = arguments.rest(1);
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()).into());
    }
    let length = match item {
        Value::Text(_) if indexes.len() == 3 => {
            return Err("cannot 3-index slice a string".into());
        }
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Nil => return Err("slice of untyped nil".into()),
        other => return Err(format!("can't slice item of type {}", other.type_name()).into()),
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, length)?;
    }
    let [from, to, capacity] = bounds;
    for (low, high) in [(from, to), (to, capacity)] {
        if low > high {
            return Err(format!("invalid slice index: {low} > {high}").into());
        }
    }
    match item {
        Value::Text(text) => {
            let part = text.get(from..to);
            let part = part.ok_or("the slice would cut a character in two")?;
            Ok(Value::text(part))
        }
        Value::List(list) => {
            let items = list.get(from..to).unwrap_or_default().to_vec();
            Ok(Value::List(ListValue::new(list.element(), items)))
        }
        _ => Ok(Value::Nil),
    }
}

/// `len x`; the length of a text is in bytes.
pub(super) fn length(_: &mut FunctionContext, arguments: Arguments<'_>) -> FunctionResult {
    let length = match arguments.value(0).follow() {
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Dict(dict) => dict.len(),
        Value::Nil => return Err("len of nil pointer".into()),
        other => return Err(format!("len of type {}", other.type_name()).into()),
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

/// Converts a whole number to an index of `length` items, or to the position after the last one.
fn position(index: &Value, length: usize) -> Result<usize, FunctionError> {
    if matches!(index, Value::Nil) {
        return Err("cannot index slice/array with nil".into());
    }
    let Some(number) = index.integer() else {
        let found = index.type_name();
        return Err(format!("cannot index slice/array with type {found}").into());
    };
    let position = usize::try_from(number).ok();
    let position = position.filter(|position| *position <= length);
    position.ok_or_else(|| format!("index out of range: {number}").into())
}
