//! Values of commands and operands.

use super::{Execution, Outcome};
use crate::render::gotemplate::tree::{Command, Number, Operand, Term};
use crate::render::gotemplate::value::Value;

impl<'t, 'a> Execution<'t, 'a> {
    /// The value of a command, to which `last` is the result of the command before it.
    pub(super) fn command(
        &mut self,
        dot: &Value,
        command: &'t Command<'a>,
        last: Option<Value>,
    ) -> Outcome<Value> {
        let operand = &command.first;
        let arguments = command.arguments.as_slice();
        match &operand.term {
            Term::Function(function) => {
                self.function(dot, function, operand, command, arguments, last)
            }
            Term::Field(path) => self.fields(dot, dot, operand, path, arguments, last),
            Term::Chain(first, path) => {
                let receiver = self.operand(dot, first)?;
                self.fields(dot, &receiver, operand, path, arguments, last)
            }
            Term::Variable(name, path) => {
                let receiver = self.variable(operand, name)?;
                if path.is_empty() {
                    self.takes_no_arguments(operand, arguments, &last)?;
                    return Ok(receiver);
                }
                self.fields(dot, &receiver, operand, path, arguments, last)
            }
            _ => {
                self.takes_no_arguments(operand, arguments, &last)?;
                if matches!(operand.term, Term::Nil) {
                    return Err(self.fail(operand.at, operand, "nil is not a command".to_owned()));
                }
                self.operand(dot, operand)
            }
        }
    }

    /// The value of an operand without arguments, where it may have any type.
    pub(super) fn operand(&mut self, dot: &Value, operand: &'t Operand<'a>) -> Outcome<Value> {
        match &operand.term {
            Term::Function(function) => self.function(dot, function, operand, operand, &[], None),
            Term::Field(path) => self.fields(dot, dot, operand, path, &[], None),
            Term::Chain(first, path) => {
                let receiver = self.operand(dot, first)?;
                self.fields(dot, &receiver, operand, path, &[], None)
            }
            Term::Variable(name, path) => {
                let receiver = self.variable(operand, name)?;
                if path.is_empty() {
                    return Ok(receiver);
                }
                self.fields(dot, &receiver, operand, path, &[], None)
            }
            Term::Pipeline(pipeline) => self.pipeline(dot, pipeline),
            Term::Dot => Ok(dot.clone()),
            Term::Nil => Ok(Value::Nil),
            Term::Bool(value) => Ok(Value::Bool(*value)),
            Term::Text(text, _) => Ok(Value::Text(text.clone())),
            Term::Number(number) => self.number(operand, number),
        }
    }

    /// A number where nothing but the way it is written decides about its type.
    fn number(&self, operand: &Operand<'_>, number: &Number<'_>) -> Outcome<Value> {
        match number {
            Number {
                complex: Some((real, imaginary)),
                ..
            } => Ok(Value::Complex(*real, *imaginary)),
            Number {
                float: Some(float), ..
            } if number.is_float() => Ok(Value::Float(*float)),
            Number { int: Some(int), .. } => Ok(Value::Int(*int)),
            _ => Err(self.fail(
                operand.at,
                operand,
                format!("{} overflows int", number.text),
            )),
        }
    }

    fn variable(&self, operand: &Operand<'_>, name: &str) -> Outcome<Value> {
        let mut declared = self.variables.iter().rev();
        let found = declared.find(|(declared, _)| *declared == name);
        let found = found.map(|(_, value)| value.clone());
        found.ok_or_else(|| self.fail(operand.at, operand, format!("undefined variable: {name}")))
    }

    fn takes_no_arguments(
        &self,
        operand: &Operand<'_>,
        arguments: &[Operand<'_>],
        last: &Option<Value>,
    ) -> Outcome<()> {
        if arguments.is_empty() && last.is_none() {
            return Ok(());
        }
        let problem = format!("can't give argument to non-function {operand}");
        Err(self.fail(operand.at, operand, problem))
    }
}
