//! `index`, `slice` and `len`.

use super::{Arguments, Context, FunctionError, List, Outcome, Value};

/// `index x 1 "a"` is `x[1]["a"]`. A key that is not there gives the zero value of the dict's type.
pub(super) fn index(_: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let mut item = arguments.value(0).clone();
    if matches!(item, Value::Nil) {
        return Err(FunctionError::new("index of untyped nil"));
    }
    for index in arguments.rest(1) {
        item = match item.follow().as_ref() {
            Value::List(list) => {
                let index = position(index, list.len())?;
                let item = list.get(index).cloned();
                item.ok_or_else(|| FunctionError::new(format!("index out of range: {index}")))?
            }
            Value::Text(text) => {
                let index = position(index, text.len())?;
                let byte = text.as_bytes().get(index).copied();
                let byte =
                    byte.ok_or_else(|| FunctionError::new(format!("index out of range: {index}")))?;
                Value::Byte(byte)
            }
            Value::Dict(dict) => match index {
                Value::Text(key) => dict.get(key).unwrap_or_else(|| dict.element().zero()),
                Value::Nil => {
                    return Err(FunctionError::new("value is nil; should be of type string"));
                }
                other => {
                    let problem = format!("value has type {}; should be string", other.type_name());
                    return Err(FunctionError::new(problem));
                }
            },
            Value::Nil => return Err(FunctionError::new("index of nil pointer")),
            other => {
                let problem = format!("can't index item of type {}", other.type_name());
                return Err(FunctionError::new(problem));
            }
        };
    }
    Ok(item)
}

/// `slice x 1 2` is `x[1:2]`; a third number is the capacity in Go and only checked here.
pub(super) fn slice(_: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let item = arguments.value(0).follow();
    let indexes = arguments.rest(1);
    if indexes.len() > 3 {
        return Err(FunctionError::new(format!(
            "too many slice indexes: {}",
            indexes.len()
        )));
    }
    let length = match &*item {
        Value::Text(_) if indexes.len() == 3 => {
            return Err(FunctionError::new("cannot 3-index slice a string"));
        }
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Nil => return Err(FunctionError::new("slice of untyped nil")),
        other => {
            let problem = format!("can't slice item of type {}", other.type_name());
            return Err(FunctionError::new(problem));
        }
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, length)?;
    }
    let [from, to, capacity] = bounds;
    for (low, high) in [(from, to), (to, capacity)] {
        if low > high {
            return Err(FunctionError::new(format!(
                "invalid slice index: {low} > {high}"
            )));
        }
    }
    match &*item {
        Value::Text(text) => {
            let part = text.get(from..to);
            part.map(Value::text)
                .ok_or_else(|| FunctionError::new("the slice would cut a character in two"))
        }
        Value::List(list) => {
            let items = list.get(from..to).unwrap_or_default().to_vec();
            Ok(Value::List(List::new(list.element(), items)))
        }
        _ => Ok(Value::Nil),
    }
}

/// `len x`: a text counts its bytes.
pub(super) fn length(_: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let length = match arguments.value(0).follow().as_ref() {
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Dict(dict) => dict.len(),
        Value::Nil => return Err(FunctionError::new("len of nil pointer")),
        other => {
            return Err(FunctionError::new(format!(
                "len of type {}",
                other.type_name()
            )));
        }
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

/// A whole number as an index of something with `length` items, or just behind them.
fn position(index: &Value, length: usize) -> Result<usize, FunctionError> {
    let out_of_range =
        |index: &dyn std::fmt::Display| FunctionError::new(format!("index out of range: {index}"));
    let position = match index {
        Value::Int(index) | Value::Int64(index) => {
            usize::try_from(*index).map_err(|_| out_of_range(index))?
        }
        Value::Uint64(index) => usize::try_from(*index).map_err(|_| out_of_range(index))?,
        Value::Byte(index) => usize::from(*index),
        Value::Nil => return Err(FunctionError::new("cannot index slice/array with nil")),
        other => {
            let problem = format!("cannot index slice/array with type {}", other.type_name());
            return Err(FunctionError::new(problem));
        }
    };
    if position > length {
        return Err(out_of_range(&position));
    }
    Ok(position)
}
