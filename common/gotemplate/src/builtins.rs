//! Go's own functions: text/template/funcs.go.

mod escape;
mod index;
mod printf;

#[cfg(test)]
mod tests;

use crate::function::{Arguments, Function, FunctionContext, FunctionError, FunctionResult};
use crate::value::Type::{self, Any, Text};
use crate::value::Value;

const ONE: &[Type] = &[Any];
const TWO: &[Type] = &[Any, Any];

/// Go's own functions.
pub(crate) const BUILTINS: &[Function<'static>] = &[
    // The executor evaluates the arguments of these two one by one, and never runs their code.
    Function::variadic("and", ONE, Any, &|_, of| Ok(of.value(0).clone())).with_aliases(&["or"]),
    Function::new("not", ONE, &|_, arguments| {
        Ok(Value::Bool(!arguments.value(0).truth()))
    }),
    Function::variadic("eq", ONE, Any, &equals_any),
    Function::new("ne", TWO, &|_, of| {
        Ok(Value::Bool(!of.value(0).equals(of.value(1))?))
    }),
    Function::new("lt", TWO, &|_, of| less(of).map(Value::Bool)),
    Function::new("le", TWO, &|_, of| less_or_equal(of).map(Value::Bool)),
    Function::new("gt", TWO, &|_, of| Ok(Value::Bool(!less_or_equal(of)?))),
    Function::new("ge", TWO, &|_, of| Ok(Value::Bool(!less(of)?))),
    Function::variadic("call", ONE, Any, &call),
    Function::variadic("index", ONE, Any, &index::index),
    Function::variadic("slice", ONE, Any, &index::slice),
    Function::new("len", ONE, &index::length),
    Function::variadic("html", &[], Any, &escape::html),
    Function::variadic("js", &[], Any, &escape::js),
    Function::variadic("urlquery", &[], Any, &escape::urlquery),
    Function::variadic("print", &[], Any, &|_, arguments| {
        print(arguments).map(Value::text)
    }),
    Function::variadic("println", &[], Any, &println),
    Function::variadic("printf", &[Text], Any, &printf::printf),
];

/// Returns whether the first argument is equal to one of the others.
fn equals_any(_: &mut FunctionContext, arguments: Arguments<'_>) -> FunctionResult {
    if arguments.len() < 2 {
        return Err("missing argument for comparison".into());
    }
    for other in arguments.rest(1) {
        if arguments.value(0).equals(other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn less(arguments: Arguments<'_>) -> Result<bool, FunctionError> {
    let order = arguments.value(0).compare(arguments.value(1))?;
    Ok(order.is_some_and(std::cmp::Ordering::is_lt))
}

/// `le` is `lt` or `eq`, so that NaN is neither.
fn less_or_equal(arguments: Arguments<'_>) -> Result<bool, FunctionError> {
    let order = arguments.value(0).compare(arguments.value(1))?;
    Ok(order.is_some_and(std::cmp::Ordering::is_le))
}

/// Always returns an error: values are never functions here.
fn call(_: &mut FunctionContext, arguments: Arguments<'_>) -> FunctionResult {
    let callee = arguments.value(0);
    if callee.is_nil() {
        return Err("call of nil".into());
    }
    Err(format!("non-function of type {}", callee.type_name()).into())
}

/// Go's `fmt.Sprint`: puts a blank between two values if neither is a text.
fn print(arguments: Arguments<'_>) -> Result<String, FunctionError> {
    let mut text = String::new();
    let mut after_text = true;
    for value in arguments.rest(0) {
        let is_text = matches!(value, Value::Text(_));
        if !after_text && !is_text {
            text.push(' ');
        }
        value.print(&mut text)?;
        after_text = is_text;
    }
    Ok(text)
}

/// Puts a blank between all values, and a newline at the end.
fn println(_: &mut FunctionContext, arguments: Arguments<'_>) -> FunctionResult {
    let mut text = String::new();
    for (index, value) in arguments.rest(0).iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        value.print(&mut text)?;
    }
    text.push('\n');
    Ok(Value::text(text))
}
