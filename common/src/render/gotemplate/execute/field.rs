//! Fields and methods: `.a.b`, `.Cluster.Features.Has "x"`.

use super::method::method;
use super::{Execution, Outcome};
use crate::render::gotemplate::tree::Operand;
use crate::render::gotemplate::value::Value;

impl<'t, 'a> Execution<'t, 'a> {
    /// Walks `path` from `receiver` on; the last of it may be a method, which gets the arguments.
    pub(super) fn fields(
        &mut self,
        dot: &Value,
        receiver: &Value,
        operand: &'t Operand<'a>,
        path: &'t [&'a str],
        arguments: &'t [Operand<'a>],
        last: Option<Value>,
    ) -> Outcome<Value> {
        let Some((name, between)) = path.split_last() else {
            return Ok(receiver.clone());
        };
        let mut receiver = std::borrow::Cow::Borrowed(receiver);
        for name in between {
            let value = self.field(dot, &receiver, operand, name, &[], None)?;
            receiver = std::borrow::Cow::Owned(value);
        }
        self.field(dot, &receiver, operand, name, arguments, last)
    }

    fn field(
        &mut self,
        dot: &Value,
        receiver: &Value,
        operand: &'t Operand<'a>,
        name: &'t str,
        arguments: &'t [Operand<'a>],
        last: Option<Value>,
    ) -> Outcome<Value> {
        if let Some(method) = method(receiver, name) {
            let receiver = Some(receiver.clone());
            return self.call(dot, method, receiver, operand, operand, arguments, last);
        }
        let has_arguments = !arguments.is_empty() || last.is_some();
        let value = match receiver {
            Value::Missing => return Ok(Value::Missing),
            Value::Dict(dict) => dict.get(name).or(Some(Value::Missing)),
            Value::Record(record) => record.get(name).cloned(),
            _ => None,
        };
        let problem = match value {
            Some(value) if !has_arguments => return Ok(value),
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
