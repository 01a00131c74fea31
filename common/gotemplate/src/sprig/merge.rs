//! Functions that merge dicts, as mergo 1.0.2 does, and copy values deeply.

use std::rc::Rc;

use super::{ENTRY, ITEM, MAP, reserve_dict, reserve_items};
use crate::function::{Arguments, Function, FunctionContext, FunctionError, FunctionResult};
use crate::value::Type::Any;
use crate::value::{Dict, ListValue, MAX_DEPTH, Value};

pub(super) const MERGE: &[Function<'static>] = &[
    Function::variadic("merge", &[MAP], MAP, &|ctx, args| {
        merge_arguments(ctx, args, false)
    })
    .with_aliases(&["mustMerge"]),
    Function::variadic("mergeOverwrite", &[MAP], MAP, &|ctx, args| {
        merge_arguments(ctx, args, true)
    })
    .with_aliases(&["mustMergeOverwrite"]),
    Function::new("deepCopy", &[Any], &deep_copy).with_aliases(&["mustDeepCopy"]),
];

/// Changes the first dict in place: with `overwrite`, the last value of a key wins, else the first value that is not empty.
fn merge_arguments(
    ctx: &mut FunctionContext,
    args: Arguments<'_>,
    overwrite: bool,
) -> FunctionResult {
    let target = args.dict(0)?;
    for index in 1..args.len() {
        merge(ctx, &target, &args.dict(index)?, overwrite, 0)?;
    }
    Ok(Value::Dict(target))
}

fn merge(
    ctx: &mut FunctionContext,
    target: &Dict,
    source: &Dict,
    overwrite: bool,
    depth: usize,
) -> Result<(), FunctionError> {
    if depth > MAX_DEPTH {
        return Err(FunctionError::too_deep());
    }
    if target.element() != source.element() {
        return Err("the dicts hold values of different types".into());
    }
    for (key, value) in source.entries() {
        reserve_items(ctx, 1, ENTRY)?;
        let old = target.get(&key);
        if let (Some(Value::Dict(old)), Value::Dict(new)) = (&old, &value) {
            merge(ctx, old, new, overwrite, depth + 1)?;
            if !old.is_empty() || new.is_empty() {
                continue;
            }
        }
        let is_free = old.as_ref().is_none_or(is_empty);
        if overwrite || is_free && !matches!(value, Value::Missing | Value::Nil) {
            target.set(key, value);
        }
    }
    Ok(())
}

/// mergo follows pointers, so a pointer to false counts as empty.
fn is_empty(value: &Value) -> bool {
    !value.follow().truth()
}

fn deep_copy(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    match args.value(0) {
        Value::Missing | Value::Nil => {
            Err("there is nothing to copy: the value is missing or null".into())
        }
        value => copy_value(ctx, value, 0),
    }
}

/// Copies dicts on all levels. Other values never change, and are shared.
fn copy_value(ctx: &mut FunctionContext, value: &Value, depth: usize) -> FunctionResult {
    if depth > MAX_DEPTH {
        return Err(FunctionError::too_deep());
    }
    Ok(match value {
        Value::List(list) => {
            reserve_items(ctx, list.len() + 2, ITEM)?;
            let mut items = Vec::with_capacity(list.len());
            for item in list.iter() {
                items.push(copy_value(ctx, item, depth + 1)?);
            }
            Value::List(ListValue::new(list.element(), items))
        }
        Value::Dict(dict) => {
            reserve_dict(ctx, dict.len())?;
            let mut entries = Vec::with_capacity(dict.len());
            for (key, value) in dict.entries() {
                entries.push((Rc::clone(&key), copy_value(ctx, &value, depth + 1)?));
            }
            Value::Dict(dict.of_same_type(entries))
        }
        other => other.clone(),
    })
}
