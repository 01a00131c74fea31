//! What stands in for empty values, and flow control.

use super::super::function::Parameter::{Any, Bool, Text};
use super::super::function::{Function, FunctionError};
use super::super::value::Value;

pub(super) const DEFAULTS: &[Function] = &[
    Function::variadic("default", &[Any], Any, |_, args| {
        let given = args.value(1);
        let chosen = if is_empty(given) {
            args.value(0)
        } else {
            given
        };
        Ok(chosen.clone())
    }),
    Function::new("empty", &[Any], |_, args| {
        Ok(Value::Bool(is_empty(args.value(0))))
    }),
    Function::variadic("coalesce", &[], Any, |_, args| {
        let chosen = args.rest(0).iter().find(|value| !is_empty(value));
        Ok(chosen.cloned().unwrap_or(Value::Nil))
    }),
    Function::variadic("all", &[], Any, |_, args| {
        Ok(Value::Bool(!args.rest(0).iter().any(is_empty)))
    }),
    Function::variadic("any", &[], Any, |_, args| {
        Ok(Value::Bool(!args.rest(0).iter().all(is_empty)))
    }),
    Function::new("ternary", &[Any, Any, Bool], |_, args| {
        let chosen = if args.bool(2)? { 0 } else { 1 };
        Ok(args.value(chosen).clone())
    }),
    Function::new("fail", &[Text], |_, args| {
        Err(FunctionError::new(args.text(0)?))
    }),
];

/// The zero value of its type; a pointer to false is not empty.
pub(super) fn is_empty(value: &Value) -> bool {
    !value.truth()
}
