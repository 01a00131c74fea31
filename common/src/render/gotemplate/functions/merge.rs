//! Dicts merged into one, as mergo 1.0.2 does it, and deep copies.

use std::rc::Rc;

use super::super::function::Parameter::{Any, Dict as Map};
use super::super::function::{Arguments, Context, Function, FunctionError};
use super::super::value::{Dict, List, MAX_DEPTH, Value};
use super::{Answer, ENTRY, ITEM, reserve_dict, reserve_items};

pub(super) const MERGE: &[Function] = &[
    Function::variadic("merge", &[Map], Map, |ctx, args| merged(ctx, args, false)),
    Function::variadic("mustMerge", &[Map], Map, |ctx, args| {
        merged(ctx, args, false)
    }),
    Function::variadic("mergeOverwrite", &[Map], Map, |ctx, args| {
        merged(ctx, args, true)
    }),
    Function::variadic("mustMergeOverwrite", &[Map], Map, |ctx, args| {
        merged(ctx, args, true)
    }),
    Function::new("deepCopy", &[Any], copied),
    Function::new("mustDeepCopy", &[Any], copied),
];

/// The first dict, changed in place: with `overwrite` the last value of a key wins, else the first that is not empty.
fn merged(ctx: &mut Context<'_>, args: Arguments<'_>, overwrite: bool) -> Answer {
    let target = args.dict(0)?;
    for index in 1..args.len() {
        merge(ctx, &target, &args.dict(index)?, overwrite, 0)?;
    }
    Ok(Value::Dict(target))
}

fn merge(
    ctx: &mut Context<'_>,
    target: &Dict,
    source: &Dict,
    overwrite: bool,
    depth: usize,
) -> Result<(), FunctionError> {
    if depth > MAX_DEPTH {
        return Err(FunctionError::too_deep());
    }
    if target.element() != source.element() {
        return Err(FunctionError::new(
            "the dicts hold values of different types",
        ));
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

/// mergo looks through pointers: a pointer to false is empty to it.
fn is_empty(value: &Value) -> bool {
    !value.follow().truth()
}

fn copied(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    match args.value(0) {
        Value::Missing | Value::Nil => Err(FunctionError::new(
            "there is nothing to copy: the value is missing or null",
        )),
        value => copy(ctx, value, 0),
    }
}

/// Dicts are copied, however deep; nothing else can be changed.
fn copy(ctx: &mut Context<'_>, value: &Value, depth: usize) -> Answer {
    if depth > MAX_DEPTH {
        return Err(FunctionError::too_deep());
    }
    Ok(match value {
        Value::List(list) => {
            reserve_items(ctx, list.len() + 2, ITEM)?;
            let mut items = Vec::with_capacity(list.len());
            for item in list.iter() {
                items.push(copy(ctx, item, depth + 1)?);
            }
            Value::List(List::new(list.element(), items))
        }
        Value::Dict(dict) => {
            reserve_dict(ctx, dict.len())?;
            let mut entries = Vec::with_capacity(dict.len());
            for (key, value) in dict.entries() {
                entries.push((Rc::clone(&key), copy(ctx, &value, depth + 1)?));
            }
            Value::Dict(Dict::new(dict.element(), entries))
        }
        other => other.clone(),
    })
}
