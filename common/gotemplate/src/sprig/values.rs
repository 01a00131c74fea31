//! Functions for values of any type: defaults for empty ones, choices between them, and the names that Go has for types and kinds.

use crate::function::Function;
use crate::value::Type::{Any, Bool, Text};
use crate::value::Value;

pub(super) const DEFAULTS: &[Function<'static>] = &[
    Function::variadic("default", &[Any], Any, &|_, args| {
        let chosen = usize::from(!is_empty(args.value(1)));
        Ok(args.value(chosen).clone())
    }),
    Function::new("empty", &[Any], &|_, args| {
        Ok(Value::Bool(is_empty(args.value(0))))
    }),
    Function::variadic("coalesce", &[], Any, &|_, args| {
        let chosen = args.rest(0).iter().find(|value| !is_empty(value));
        Ok(chosen.cloned().unwrap_or(Value::Nil))
    }),
    Function::variadic("all", &[], Any, &|_, args| {
        Ok(Value::Bool(!args.rest(0).iter().any(is_empty)))
    }),
    Function::variadic("any", &[], Any, &|_, args| {
        Ok(Value::Bool(!args.rest(0).iter().all(is_empty)))
    }),
    Function::new("ternary", &[Any, Any, Bool], &|_, args| {
        let chosen = usize::from(!args.bool(2)?);
        Ok(args.value(chosen).clone())
    }),
    Function::new("fail", &[Text], &|_, args| Err(args.text(0)?.into())),
];

/// Returns whether a value is the zero value of its type. A pointer to false is not empty.
pub(super) fn is_empty(value: &Value) -> bool {
    !value.truth()
}

pub(super) const KINDS: &[Function<'static>] = &[
    Function::new("typeOf", &[Any], &|_, args| {
        Ok(Value::text(args.value(0).type_name()))
    }),
    Function::new("typeIs", &[Text, Any], &|_, args| {
        Ok(Value::Bool(args.text(0)? == args.value(1).type_name()))
    }),
    // True as well if the value is a pointer to the type.
    Function::new("typeIsLike", &[Text, Any], &|_, args| {
        let (target, name) = (args.text(0)?, args.value(1).type_name());
        let is_pointer = name.strip_prefix('*') == Some(target);
        Ok(Value::Bool(target == name || is_pointer))
    }),
    Function::new("kindOf", &[Any], &|_, args| {
        Ok(Value::text(args.value(0).kind_name()))
    }),
    Function::new("kindIs", &[Text, Any], &|_, args| {
        Ok(Value::Bool(args.text(0)? == args.value(1).kind_name()))
    }),
    Function::new("deepEqual", &[Any, Any], &|ctx, args| {
        Ok(Value::Bool(ctx.deep_equal(args.value(0), args.value(1))?))
    }),
];
