//! Defaults for empty values, and flow control.

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
