//! Functions for dicts. As in Go, `set` and `unset` change the dict itself, so everything that shares it sees the change.

use std::rc::Rc;

use super::{ENTRY, ITEM, MAP, reserve_dict, reserve_items};
use crate::function::{Arguments, Function, FunctionContext, FunctionResult};
use crate::value::Type::{Any, Text};
use crate::value::{Dict, Type, Value};

pub(super) const DICTS: &[Function<'static>] = &[
    Function::variadic("dict", &[], Any, &dict),
    Function::new("get", &[MAP, Text], &|_, args| {
        let value = args.dict(0)?.get(args.text(1)?);
        Ok(value.unwrap_or_else(|| Value::text("")))
    }),
    Function::new("set", &[MAP, Text, Any], &|ctx, args| {
        let Value::Dict(dict) = args.value(0) else {
            return Err("there is no dict to set in: it is missing or null".into());
        };
        let key = args.text(1)?;
        ctx.reserve(key.len().saturating_add(ENTRY))?;
        dict.set(key, args.value(2).clone());
        Ok(Value::Dict(dict.clone()))
    }),
    Function::new("unset", &[MAP, Text], &|_, args| {
        let dict = args.dict(0)?;
        dict.remove(args.text(1)?);
        Ok(Value::Dict(dict))
    }),
    Function::new("hasKey", &[MAP, Text], &|_, args| {
        Ok(Value::Bool(args.dict(0)?.contains(args.text(1)?)))
    }),
    Function::variadic("pluck", &[Text], MAP, &|ctx, args| {
        let key = args.text(0)?;
        reserve_items(ctx, args.len(), ITEM)?;
        let mut found = Vec::new();
        for index in 1..args.len() {
            found.extend(args.dict(index)?.get(key));
        }
        Ok(Value::list(found))
    }),
    // Go's order of keys and values is random; here they are sorted by key.
    Function::variadic("keys", &[], MAP, &|ctx, args| {
        let mut keys = Vec::new();
        for index in 0..args.len() {
            let dict = args.dict(index)?;
            reserve_items(ctx, dict.len(), ITEM)?;
            keys.extend(dict.keys());
        }
        Ok(Value::texts(keys))
    }),
    Function::new("values", &[MAP], &|ctx, args| {
        let dict = args.dict(0)?;
        reserve_items(ctx, dict.len(), ITEM)?;
        let values = dict.entries().into_iter().map(|(_, value)| value);
        Ok(Value::list(values.collect()))
    }),
    Function::variadic("pick", &[MAP], Text, &|ctx, args| {
        select_keys(ctx, args, true)
    }),
    Function::variadic("omit", &[MAP], Text, &|ctx, args| {
        select_keys(ctx, args, false)
    }),
    Function::variadic("dig", &[Any, Any, Any], Any, &dig),
];

/// Makes a dict of alternating keys and values. A last key without a value gets an empty text.
fn dict(ctx: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let pairs = args.rest(0).chunks(2);
    reserve_dict(ctx, pairs.len())?;
    let mut entries = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let value = pair.get(1).cloned().unwrap_or_else(|| Value::text(""));
        if let Some(key) = pair.first() {
            let key = key.to_text()?;
            ctx.reserve(key.len())?;
            entries.push((Rc::from(key), value));
        }
    }
    Ok(Value::Dict(Dict::new(&Type::Any, entries)))
}

/// Returns a new dict with only the named keys, or without them.
fn select_keys(ctx: &mut FunctionContext, args: Arguments<'_>, named: bool) -> FunctionResult {
    let dict = args.dict(0)?;
    reserve_dict(ctx, dict.len())?;
    let mut names = std::collections::BTreeSet::new();
    for index in 1..args.len() {
        names.insert(args.text(index)?);
    }
    let entries = dict.entries().into_iter();
    let kept = entries.filter(|(key, _)| names.contains(&**key) == named);
    Ok(Value::Dict(Dict::new(&Type::Any, kept)))
}

/// `dig KEY… DEFAULT DICT`
fn dig(_: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let [keys @ .., default, dict] = args.rest(0) else {
        return Err("it needs keys, a default and a dict".into());
    };
    // sprig checks all keys before it looks up the first one.
    let keys = keys.iter().map(|key| match key {
        Value::Text(text) => Ok(text),
        other => Err(format!(
            "the keys must be strings, not {}",
            other.type_name()
        )),
    });
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    let mut step = dict.clone();
    for key in keys {
        if step.type_of() != Some(MAP) {
            let found = step.type_name();
            return Err(format!("cannot look for {key:?} in {found}: expected {MAP}").into());
        }
        let Value::Dict(dict) = &step else { continue };
        match dict.get(key) {
            Some(value) => step = value,
            None => return Ok(default.clone()),
        }
    }
    Ok(step)
}
