//! Go's own functions: text/template/funcs.go.

mod escape;
pub(super) mod format;
mod index;
mod printf;

#[cfg(test)]
mod tests;

use super::function::{Arguments, Context, Function, FunctionError, Parameter};
use super::value::{List, Value};

/// What a function gives back.
type Outcome = Result<Value, FunctionError>;

const ONE: &[Parameter] = &[Parameter::Any];
const TWO: &[Parameter] = &[Parameter::Any, Parameter::Any];

/// All of them.
pub const BUILTINS: &[Function] = &[
    // The executor evaluates the arguments of these two one by one; they come here only without any.
    Function::variadic("and", ONE, Parameter::Any, |_, arguments| {
        Ok(arguments.value(0).clone())
    }),
    Function::variadic("or", ONE, Parameter::Any, |_, arguments| {
        Ok(arguments.value(0).clone())
    }),
    Function::new("not", ONE, |_, arguments| {
        Ok(Value::Bool(!arguments.value(0).truth()))
    }),
    Function::variadic("eq", ONE, Parameter::Any, equals_any),
    Function::new("ne", TWO, |_, of| {
        Ok(Value::Bool(!of.value(0).equals(of.value(1))?))
    }),
    Function::new("lt", TWO, |_, of| less(of).map(Value::Bool)),
    Function::new("le", TWO, |_, of| less_or_equal(of).map(Value::Bool)),
    Function::new("gt", TWO, |_, of| Ok(Value::Bool(!less_or_equal(of)?))),
    Function::new("ge", TWO, |_, of| Ok(Value::Bool(!less(of)?))),
    Function::variadic("call", ONE, Parameter::Any, call),
    Function::variadic("index", ONE, Parameter::Any, index::index),
    Function::variadic("slice", ONE, Parameter::Any, index::slice),
    Function::new("len", ONE, index::length),
    Function::variadic("html", &[], Parameter::Any, escape::html),
    Function::variadic("js", &[], Parameter::Any, escape::js),
    Function::variadic("urlquery", &[], Parameter::Any, escape::urlquery),
    Function::variadic("print", &[], Parameter::Any, |_, arguments| {
        print(arguments).map(Value::text)
    }),
    Function::variadic("println", &[], Parameter::Any, println),
    Function::variadic("printf", &[Parameter::Text], Parameter::Any, printf::printf),
];

/// Whether the first is equal to one of the others.
fn equals_any(_: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() < 2 {
        return Err(FunctionError::new("missing argument for comparison"));
    }
    for other in arguments.rest(1) {
        if arguments.value(0).equals(other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn less(arguments: Arguments<'_>) -> Result<bool, FunctionError> {
    let order = arguments.value(0).order(arguments.value(1))?;
    Ok(order.is_some_and(std::cmp::Ordering::is_lt))
}

/// `le` is `lt` or `eq`, so that NaN is neither.
fn less_or_equal(arguments: Arguments<'_>) -> Result<bool, FunctionError> {
    let order = arguments.value(0).order(arguments.value(1))?;
    Ok(order.is_some_and(std::cmp::Ordering::is_le))
}

/// There are no functions among the values of a template here.
fn call(_: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let callee = arguments.value(0);
    Err(FunctionError::new(if callee.is_nil() {
        "call of nil".to_owned()
    } else {
        format!("non-function of type {}", callee.type_name())
    }))
}

/// Go's `fmt.Sprint`: a blank between two values of which neither is a text.
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

/// A blank between all values, and a newline.
fn println(_: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
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
