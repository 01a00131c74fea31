//! Dicts. `set` and `unset` change the dict itself, for all who hold it, as in Go.

use std::rc::Rc;

use super::super::function::Parameter::{Any, Dict as Map, Text};
use super::super::function::{Arguments, Context, Function, FunctionError};
use super::super::value::{Dict, Element, Value};
use super::{Answer, ENTRY, ITEM, reserve_dict, reserve_items};

pub(super) const DICTS: &[Function] = &[
    Function::variadic("dict", &[], Any, dict),
    Function::new("get", &[Map, Text], |_, args| {
        let value = args.dict(0)?.get(args.text(1)?);
        Ok(value.unwrap_or_else(|| Value::text("")))
    }),
    Function::new("set", &[Map, Text, Any], |ctx, args| {
        let Value::Dict(dict) = args.value(0) else {
            return Err(FunctionError::new(
                "there is no dict to set in: it is missing or null",
            ));
        };
        let key = args.text(1)?;
        ctx.reserve(key.len().saturating_add(ENTRY))?;
        dict.set(key, args.value(2).clone());
        Ok(Value::Dict(dict.clone()))
    }),
    Function::new("unset", &[Map, Text], |_, args| {
        let dict = args.dict(0)?;
        dict.remove(args.text(1)?);
        Ok(Value::Dict(dict))
    }),
    Function::new("hasKey", &[Map, Text], |_, args| {
        Ok(Value::Bool(args.dict(0)?.contains(args.text(1)?)))
    }),
    Function::variadic("pluck", &[Text], Map, |ctx, args| {
        let key = args.text(0)?;
        reserve_items(ctx, args.len(), ITEM)?;
        let mut found = Vec::new();
        for index in 1..args.len() {
            found.extend(args.dict(index)?.get(key));
        }
        Ok(Value::list(found))
    }),
    // Go gives keys and values in no order; ours is that of the keys.
    Function::variadic("keys", &[], Map, |ctx, args| {
        let mut keys = Vec::new();
        for index in 0..args.len() {
            let dict = args.dict(index)?;
            reserve_items(ctx, dict.len(), ITEM)?;
            keys.extend(dict.keys());
        }
        Ok(Value::texts(keys))
    }),
    Function::new("values", &[Map], |ctx, args| {
        let dict = args.dict(0)?;
        reserve_items(ctx, dict.len(), ITEM)?;
        let values = dict.entries().into_iter().map(|(_, value)| value);
        Ok(Value::list(values.collect()))
    }),
    Function::variadic("pick", &[Map], Text, |ctx, args| chosen(ctx, args, true)),
    Function::variadic("omit", &[Map], Text, |ctx, args| chosen(ctx, args, false)),
    Function::variadic("dig", &[Any, Any, Any], Any, dig),
];

/// Keys and values in turn; a key without value gets an empty text.
fn dict(ctx: &mut Context<'_>, args: Arguments<'_>) -> Answer {
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
    Ok(Value::Dict(Dict::new(Element::Any, entries)))
}

/// A new dict with the named keys, or without them.
fn chosen(ctx: &mut Context<'_>, args: Arguments<'_>, named: bool) -> Answer {
    let dict = args.dict(0)?;
    reserve_dict(ctx, dict.len())?;
    let mut names = std::collections::BTreeSet::new();
    for index in 1..args.len() {
        names.insert(args.text(index)?);
    }
    let entries = dict.entries().into_iter();
    let kept = entries.filter(|(key, _)| names.contains(&**key) == named);
    Ok(Value::Dict(Dict::new(Element::Any, kept)))
}

/// `dig KEY… DEFAULT DICT`
fn dig(_: &mut Context<'_>, args: Arguments<'_>) -> Answer {
    let [keys @ .., default, dict] = args.rest(0) else {
        return Err(FunctionError::new("it needs keys, a default and a dict"));
    };
    // All of them, before the first is looked for.
    if let Some(other) = keys.iter().find(|key| !matches!(key, Value::Text(_))) {
        return Err(FunctionError::new(format!(
            "the keys must be strings, and {} is none",
            other.type_name()
        )));
    }
    let mut step = dict.clone();
    for key in keys {
        let Value::Text(key) = key else { continue };
        let dict = match &step {
            Value::Dict(dict) if dict.element() == Element::Any => dict,
            other => {
                return Err(FunctionError::new(format!(
                    "cannot look for {key:?} in {}: it is no map[string]interface {{}}",
                    other.type_name()
                )));
            }
        };
        match dict.get(key) {
            Some(value) => step = value,
            None => return Ok(default.clone()),
        }
    }
    Ok(step)
}
