//! Calls functions. The number and the types of arguments are checked as Go does, before the function runs.

use super::evaluate::Invocation;
use super::{Execution, ExecutionResult};
use crate::function::{Arguments, Function, FunctionError};
use crate::tree::{Operand, OperandKind};
use crate::value::{ListValue, Type, Value};

/// Size of a list item.
const ITEM: usize = size_of::<Value>();

impl<'t, 'a> Execution<'t, 'a> {
    /// Calls the function `name`. `and` and `or` evaluate only the arguments that they need.
    pub(super) fn call_function(
        &mut self,
        dot: &Value,
        name: &'t str,
        function: &'t Function<'a>,
        application: Invocation<'t, 'a>,
    ) -> ExecutionResult<Value> {
        let until = match name {
            "and" => false,
            "or" => true,
            _ => return self.call(dot, name, function, None, application),
        };
        if !application.has_arguments() {
            let operand = application.operand;
            let problem = format!("wrong number of args for {name}: want at least 1 got 0");
            return Err(self.fail(operand.at, operand, problem));
        }
        let mut value = Value::Missing;
        for argument in application.arguments {
            value = self.evaluate_operand(dot, argument)?;
            if value.truth() == until {
                return Ok(value);
            }
        }
        Ok(application.last.unwrap_or(value))
    }

    /// Calls a function, or a method of `receiver`.
    pub(super) fn call(
        &mut self,
        dot: &Value,
        name: &str,
        function: &'t Function<'_>,
        receiver: Option<Value>,
        application: Invocation<'t, 'a>,
    ) -> ExecutionResult<Value> {
        let Invocation {
            operand,
            whole,
            arguments,
            last,
        } = application;
        self.step(operand.at, operand)?;
        let bound = usize::from(receiver.is_some());
        let wanted = function.parameters.len() - bound;
        let given = arguments.len() + usize::from(last.is_some());
        if given < wanted || (given > wanted && function.rest.is_none()) {
            let at_least = function.rest.map_or("", |_| "at least ");
            let problem =
                format!("wrong number of args for {name}: want {at_least}{wanted} got {given}");
            return Err(self.fail(operand.at, operand, problem));
        }
        let mut values = Vec::with_capacity(bound + given);
        values.extend(receiver);
        for argument in arguments {
            let parameter = parameter_type(function, values.len());
            values.push(self.evaluate_argument(dot, parameter, argument)?);
        }
        if let Some(last) = last {
            let fitted = check_type(last, parameter_type(function, values.len()));
            let fitted = fitted.map_err(|problem| self.fail(operand.at, operand, problem));
            values.push(fitted?);
        }
        self.run_function(function, &values).map_err(|error| {
            let problem = format!("error calling {name}: {error}");
            self.fail(operand.at, whole, problem)
        })
    }

    /// Runs the code of a function. The texts that it reads and its result count against the limits.
    fn run_function(
        &mut self,
        function: &Function<'_>,
        values: &[Value],
    ) -> Result<Value, FunctionError> {
        let read = values.iter().map(|value| match value {
            Value::Text(text) => text.len(),
            _ => 0,
        });
        self.context
            .count_work(read.fold(0, usize::saturating_add))?;
        let value = (function.code)(&mut self.context, Arguments::new(values))?;
        self.context.reserve(match &value {
            Value::Text(text) => text.len(),
            Value::List(list) => list.len().saturating_mul(ITEM),
            _ => 0,
        })?;
        Ok(value)
    }

    /// Evaluates an argument: a constant is converted to the parameter's type, any other value must already have it.
    fn evaluate_argument(
        &mut self,
        dot: &Value,
        parameter: Type,
        argument: &'t Operand<'a>,
    ) -> ExecutionResult<Value> {
        let fitted = match &argument.term {
            OperandKind::Nil => {
                nil_value(parameter).ok_or_else(|| format!("cannot assign nil to {parameter}"))
            }
            OperandKind::Bool(_) | OperandKind::Number(_) | OperandKind::Text(..) => {
                if parameter == Type::Any {
                    return self.evaluate_operand(dot, argument);
                }
                convert_constant(&argument.term, parameter)
                    .ok_or_else(|| format!("expected {parameter}; found {argument}"))
            }
            _ => check_type(self.evaluate_operand(dot, argument)?, parameter),
        };
        fitted.map_err(|problem| self.fail(argument.at, argument, problem))
    }
}

/// Returns the type of argument number `index`.
fn parameter_type(function: &Function<'_>, index: usize) -> Type {
    let fixed = function.parameters.get(index).copied();
    fixed.or(function.rest).unwrap_or(Type::Any)
}

/// Converts a constant to the parameter's type.
fn convert_constant(term: &OperandKind<'_>, parameter: Type) -> Option<Value> {
    match (parameter, term) {
        (Type::Bool, OperandKind::Bool(value)) => Some(Value::Bool(*value)),
        (Type::Text, OperandKind::Text(text, _)) => Some(Value::Text(text.clone())),
        (Type::Int, OperandKind::Number(number)) => number.int.map(Value::Int),
        (Type::Int64, OperandKind::Number(number)) => number.int.map(Value::Int64),
        (Type::Float, OperandKind::Number(number)) => number.float.map(Value::Float),
        _ => None,
    }
}

/// Returns the value of a parameter for nil, or `None` if its type has no nil. A nil map reads as an empty one and cannot be set.
fn nil_value(parameter: Type) -> Option<Value> {
    match parameter {
        Type::Any | Type::Dict(_) | Type::Version => Some(Value::Nil),
        Type::List(element) => Some(Value::List(ListValue::new(element, Vec::new()))),
        _ => None,
    }
}

/// Checks that a value has the parameter's type. A pointer to that type is followed.
fn check_type(value: Value, parameter: Type) -> Result<Value, String> {
    match &value {
        Value::Missing => {
            nil_value(parameter).ok_or_else(|| format!("invalid value; expected {parameter}"))
        }
        _ if parameter == Type::Any || value.type_of() == Some(parameter) => Ok(value),
        Value::Pointer(pointer) if *pointer.to() == parameter && !value.is_nil() => {
            Ok(value.follow().clone())
        }
        _ => Err(FunctionError::wrong_type(&value, parameter).to_string()),
    }
}
