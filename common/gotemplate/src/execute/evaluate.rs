//! Evaluates commands and operands.

use std::fmt;

use super::{Execution, Outcome};
use crate::tree::{Command, Number, Operand, Pipeline, Term};
use crate::value::Value;

/// An operand with its arguments.
pub(super) struct Application<'t, 'a> {
    pub operand: &'t Operand<'a>,
    /// The command that begins with the operand, for messages.
    pub whole: &'t dyn fmt::Display,
    pub arguments: &'t [Operand<'a>],
    /// The result of the previous command of the pipeline; it becomes the last argument.
    pub last: Option<Value>,
}

impl Application<'_, '_> {
    pub(super) fn has_arguments(&self) -> bool {
        !self.arguments.is_empty() || self.last.is_some()
    }
}

impl<'t, 'a> Execution<'t, 'a> {
    /// Evaluates a command; `last` is the result of the previous command.
    pub(super) fn command(
        &mut self,
        dot: &Value,
        command: &'t Command<'a>,
        last: Option<Value>,
    ) -> Outcome<Value> {
        let operand = &command.first;
        let application = Application {
            operand,
            whole: command,
            arguments: &command.arguments,
            last,
        };
        if matches!(operand.term, Term::Nil) && !application.has_arguments() {
            return Err(self.fail(operand.at, operand, "nil is not a command".to_owned()));
        }
        self.apply(dot, application)
    }

    /// Evaluates an operand without arguments, where a value of any type is allowed.
    pub(super) fn operand(&mut self, dot: &Value, operand: &'t Operand<'a>) -> Outcome<Value> {
        let application = Application {
            operand,
            whole: operand,
            arguments: &[],
            last: None,
        };
        self.apply(dot, application)
    }

    fn apply(&mut self, dot: &Value, application: Application<'t, 'a>) -> Outcome<Value> {
        let operand = application.operand;
        match &operand.term {
            Term::Function(name, function) => self.function(dot, name, function, application),
            Term::Field(path) => self.fields(dot, dot, path, application),
            Term::Chain(first, path) => {
                let receiver = self.operand(dot, first)?;
                self.fields(dot, &receiver, path, application)
            }
            Term::Variable(name, path) if !path.is_empty() => {
                let receiver = self.variable(operand, name)?;
                self.fields(dot, &receiver, path, application)
            }
            _ if application.has_arguments() => {
                let problem = format!("can't give argument to non-function {operand}");
                Err(self.fail(operand.at, operand, problem))
            }
            Term::Variable(name, _) => self.variable(operand, name),
            Term::Pipeline(pipeline) => self.pipeline(dot, pipeline),
            Term::Dot => Ok(dot.clone()),
            Term::Nil => Ok(Value::Nil),
            Term::Bool(value) => Ok(Value::Bool(*value)),
            Term::Text(text, _) => Ok(Value::Text(text.clone())),
            Term::Number(number) => self.number(operand, number),
        }
    }

    /// Returns the value of a number whose type follows from its spelling alone.
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
            _ => {
                let problem = format!("{} overflows int", number.text);
                Err(self.fail(operand.at, operand, problem))
            }
        }
    }

    fn variable(&mut self, operand: &Operand<'_>, name: &str) -> Outcome<Value> {
        let mut declared = self.variables.iter().rev().enumerate();
        let Some((distance, (_, value))) = declared.find(|(_, (declared, _))| *declared == name)
        else {
            return Err(self.fail(operand.at, operand, format!("undefined variable: {name}")));
        };
        let value = value.clone();
        self.charge(distance, operand.at, operand)?;
        Ok(value)
    }

    pub(super) fn assign(
        &mut self,
        pipeline: &Pipeline<'_>,
        name: &str,
        value: Value,
    ) -> Outcome<()> {
        let mut declared = self.variables.iter_mut().rev().enumerate();
        let Some((distance, (_, slot))) = declared.find(|(_, (declared, _))| *declared == name)
        else {
            let problem = format!("undefined variable: {name}; := declares one");
            return Err(self.fail(pipeline.at, pipeline, problem));
        };
        *slot = value;
        self.charge(distance, pipeline.at, pipeline)
    }

    /// Counts work outside of functions.
    pub(super) fn charge(
        &mut self,
        bytes: usize,
        at: usize,
        action: impl fmt::Display,
    ) -> Outcome<()> {
        self.context
            .work(bytes)
            .map_err(|error| self.failed(at, action, &error))
    }
}
