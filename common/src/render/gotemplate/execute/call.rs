//! Calls: the number and the types of arguments are checked as Go does, before the function runs.

use std::fmt;

use super::{Execution, Outcome};
use crate::render::gotemplate::function::{Arguments, Function, Parameter};
use crate::render::gotemplate::tree::{Operand, Term};
use crate::render::gotemplate::value::{Element, List, Value};

/// Bytes that an item of a list counts.
const ITEM: usize = size_of::<Value>();

impl<'t, 'a> Execution<'t, 'a> {
    /// Calls a function; `and` and `or` evaluate no more arguments than they need.
    pub(super) fn function(
        &mut self,
        dot: &Value,
        function: &'static Function,
        operand: &'t Operand<'a>,
        whole: &dyn fmt::Display,
        arguments: &'t [Operand<'a>],
        last: Option<Value>,
    ) -> Outcome<Value> {
        let until = match function.name {
            "and" => false,
            "or" => true,
            _ => return self.call(dot, function, None, operand, whole, arguments, last),
        };
        if arguments.is_empty() && last.is_none() {
            let problem = format!(
                "wrong number of args for {}: want at least 1 got 0",
                function.name
            );
            return Err(self.fail(operand.at, operand, problem));
        }
        let mut value = Value::Missing;
        for argument in arguments {
            value = self.operand(dot, argument)?;
            if value.truth() == until {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    /// Calls a function, or a method of `receiver`. `operand` is what is called, `whole` the command that calls it.
    #[expect(
        clippy::too_many_arguments,
        reason = "Go's evalCall: all of them make one call"
    )]
    pub(super) fn call(
        &mut self,
        dot: &Value,
        function: &'static Function,
        receiver: Option<Value>,
        operand: &'t Operand<'a>,
        whole: &dyn fmt::Display,
        arguments: &'t [Operand<'a>],
        last: Option<Value>,
    ) -> Outcome<Value> {
        self.step(operand.at, operand)?;
        let bound = usize::from(receiver.is_some());
        let wanted = function.parameters.len() - bound;
        let given = arguments.len() + usize::from(last.is_some());
        let at_least = if function.rest.is_some() {
            "at least "
        } else {
            ""
        };
        if given < wanted || (given > wanted && function.rest.is_none()) {
            let name = function.name;
            let problem =
                format!("wrong number of args for {name}: want {at_least}{wanted} got {given}");
            return Err(self.fail(operand.at, operand, problem));
        }
        let mut values = Vec::with_capacity(bound + given);
        values.extend(receiver);
        for argument in arguments {
            let parameter = parameter(function, values.len());
            let value = self.argument(dot, parameter, argument)?;
            values.push(value);
        }
        if let Some(last) = last {
            let parameter = parameter(function, values.len());
            let fitted = fit(last, parameter);
            values.push(fitted.map_err(|problem| self.fail(operand.at, operand, problem))?);
        }
        let read = values.iter().map(|value| match value {
            Value::Text(text) => text.len(),
            _ => 0,
        });
        let read = self.context.work(read.fold(0, usize::saturating_add));
        let result = read.and_then(|()| (function.run)(&mut self.context, Arguments::new(&values)));
        let result = result.and_then(|value| {
            let bytes = match &value {
                Value::Text(text) => text.len(),
                Value::List(list) => list.len().saturating_mul(ITEM),
                _ => 0,
            };
            self.context.reserve(bytes).map(|()| value)
        });
        result.map_err(|error| {
            let problem = format!("error calling {}: {error}", function.name);
            self.fail(operand.at, whole, problem)
        })
    }

    /// An argument: a constant takes the parameter's type, any other value must have it.
    fn argument(
        &mut self,
        dot: &Value,
        parameter: Parameter,
        argument: &'t Operand<'a>,
    ) -> Outcome<Value> {
        let fitted = match &argument.term {
            Term::Nil => nil(parameter).ok_or_else(|| format!("cannot assign nil to {parameter}")),
            Term::Bool(_) | Term::Number(_) | Term::Text(..) => {
                if parameter == Parameter::Any {
                    return self.operand(dot, argument);
                }
                constant(&argument.term, parameter)
                    .ok_or_else(|| format!("expected {parameter}; found {argument}"))
            }
            _ => fit(self.operand(dot, argument)?, parameter),
        };
        fitted.map_err(|problem| self.fail(argument.at, argument, problem))
    }
}

/// The type of argument number `index`.
fn parameter(function: &Function, index: usize) -> Parameter {
    let fixed = function.parameters.get(index).copied();
    fixed.or(function.rest).unwrap_or(Parameter::Any)
}

/// A constant as a value of a certain type.
fn constant(term: &Term<'_>, parameter: Parameter) -> Option<Value> {
    match (parameter, term) {
        (Parameter::Bool, Term::Bool(value)) => Some(Value::Bool(*value)),
        (Parameter::Text, Term::Text(text, _)) => Some(Value::Text(text.clone())),
        (Parameter::Int, Term::Number(number)) => number.int.map(Value::Int),
        (Parameter::Int64, Term::Number(number)) => number.int.map(Value::Int64),
        (Parameter::Float, Term::Number(number)) => number.float.map(Value::Float),
        _ => None,
    }
}

/// What a parameter gets for nil; `None` where its type has none.
fn nil(parameter: Parameter) -> Option<Value> {
    match parameter {
        Parameter::Any | Parameter::Dict | Parameter::Version => Some(Value::Nil),
        Parameter::Texts => Some(Value::List(List::new(Element::Text, Vec::new()))),
        Parameter::List => Some(Value::list(Vec::new())),
        _ => None,
    }
}

/// A value that a parameter takes.
fn fit(value: Value, parameter: Parameter) -> Result<Value, String> {
    let fits = match (&value, parameter) {
        (Value::Missing, _) => {
            return nil(parameter).ok_or_else(|| format!("invalid value; expected {parameter}"));
        }
        (_, Parameter::Any)
        | (Value::Bool(_), Parameter::Bool)
        | (Value::Int(_), Parameter::Int)
        | (Value::Int64(_), Parameter::Int64)
        | (Value::Float(_), Parameter::Float)
        | (Value::Text(_), Parameter::Text)
        | (Value::Version(_), Parameter::Version) => true,
        (Value::List(list), Parameter::Texts) => list.element() == Element::Text,
        (Value::List(list), Parameter::List) => list.element() == Element::Any,
        (Value::Dict(dict), Parameter::Dict) => dict.element() == Element::Any,
        (Value::Pointer(pointer), Parameter::Bool | Parameter::Text) => {
            // One step of indirection works, as in Go.
            match (pointer.target(), parameter) {
                (Some(Value::Bool(target)), Parameter::Bool) => return Ok(Value::Bool(target)),
                (Some(Value::Text(target)), Parameter::Text) => return Ok(Value::Text(target)),
                _ => false,
            }
        }
        _ => false,
    };
    if fits {
        return Ok(value);
    }
    Err(format!(
        "wrong type for value; expected {parameter}; got {}",
        value.type_name()
    ))
}

/// Go's name of the type.
impl fmt::Display for Parameter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Any => "interface {}",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Float => "float64",
            Self::Text => "string",
            Self::Texts => "[]string",
            Self::List => "[]interface {}",
            Self::Dict => "map[string]interface {}",
            Self::Version => "*semver.Version",
        })
    }
}
