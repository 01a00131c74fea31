//! Fields and methods: `.a.b`, `.version.Minor`.

use std::borrow::Cow;

use super::evaluate::Invocation;
use super::method::find_method;
use super::{Execution, ExecutionResult};
use crate::value::Value;

impl<'t, 'a> Execution<'t, 'a> {
    /// Follows `path` from `receiver`. The last name may be a method, which gets the arguments.
    pub(super) fn follow_path(
        &mut self,
        dot: &Value,
        receiver: &Value,
        path: &'t [&'a str],
        application: Invocation<'t, 'a>,
    ) -> ExecutionResult<Value> {
        let Some((name, between)) = path.split_last() else {
            return Ok(receiver.clone());
        };
        let mut receiver = Cow::Borrowed(receiver);
        for name in between {
            let step = Invocation {
                arguments: &[],
                last: None,
                ..application
            };
            receiver = Cow::Owned(self.evaluate_field(dot, &receiver, name, step)?);
        }
        self.evaluate_field(dot, &receiver, name, application)
    }

    fn evaluate_field(
        &mut self,
        dot: &Value,
        receiver: &Value,
        name: &'t str,
        application: Invocation<'t, 'a>,
    ) -> ExecutionResult<Value> {
        let operand = application.operand;
        if let Some(method) = find_method(receiver, name) {
            let whole = operand;
            let call = Invocation {
                whole,
                ..application
            };
            return self.call(dot, name, method, Some(receiver.clone()), call);
        }
        let value = match receiver {
            Value::Missing => return Ok(Value::Missing),
            Value::Dict(dict) => dict.get(name).or(Some(Value::Missing)),
            Value::Record(record) => record.get(name).cloned(),
            _ => None,
        };
        let problem = match value {
            Some(value) if !application.has_arguments() => return Ok(value),
            Some(_) => format!("{name} is not a method but has arguments"),
            None if receiver.is_nil() => {
                format!("nil pointer evaluating .{name}: the value before it is null")
            }
            None => format!(
                "can't evaluate field {name} in type {}",
                receiver.type_name()
            ),
        };
        Err(self.fail(operand.at, operand, problem))
    }
}
