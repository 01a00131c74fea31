//! Evaluates commands and operands.

use std::fmt;

use super::{Execution, ExecutionResult};
use crate::tree::{NumberConstant, Operand, OperandKind, Pipeline, PipelineCommand};
use crate::value::Value;

/// An operand with its arguments.
pub(super) struct Invocation<'t, 'a> {
    pub operand: &'t Operand<'a>,
    /// The command that begins with the operand, for messages.
    pub whole: &'t dyn fmt::Display,
    pub arguments: &'t [Operand<'a>],
    /// The result of the previous command of the pipeline; it becomes the last argument.
    pub last: Option<Value>,
}

impl Invocation<'_, '_> {
    pub(super) fn has_arguments(&self) -> bool {
        !self.arguments.is_empty() || self.last.is_some()
    }
}

impl<'t, 'a> Execution<'t, 'a> {
    /// Evaluates a command; `last` is the result of the previous command.
    pub(super) fn evaluate_command(
        &mut self,
        dot: &Value,
        command: &'t PipelineCommand<'a>,
        last: Option<Value>,
    ) -> ExecutionResult<Value> {
        let operand = &command.first;
        let application = Invocation {
            operand,
            whole: command,
            arguments: &command.arguments,
            last,
        };
        if matches!(operand.term, OperandKind::Nil) && !application.has_arguments() {
            return Err(self.fail(operand.at, operand, "nil is not a command".to_owned()));
        }
        self.invoke(dot, application)
    }

    /// Evaluates an operand without arguments, where a value of any type is allowed.
    pub(super) fn evaluate_operand(
        &mut self,
        dot: &Value,
        operand: &'t Operand<'a>,
    ) -> ExecutionResult<Value> {
        let application = Invocation {
            operand,
            whole: operand,
            arguments: &[],
            last: None,
        };
        self.invoke(dot, application)
    }

    fn invoke(&mut self, dot: &Value, application: Invocation<'t, 'a>) -> ExecutionResult<Value> {
        let operand = application.operand;
        match &operand.term {
            OperandKind::Function(name, function) => {
                self.call_function(dot, name, function, application)
            }
            OperandKind::Field(path) => self.follow_path(dot, dot, path, application),
            OperandKind::Chain(first, path) => {
                let receiver = self.evaluate_operand(dot, first)?;
                self.follow_path(dot, &receiver, path, application)
            }
            OperandKind::Variable(name, path) if !path.is_empty() => {
                let receiver = self.find_variable(operand, name)?;
                self.follow_path(dot, &receiver, path, application)
            }
            _ if application.has_arguments() => {
                let problem = format!("can't give argument to non-function {operand}");
                Err(self.fail(operand.at, operand, problem))
            }
            OperandKind::Variable(name, _) => self.find_variable(operand, name),
            OperandKind::Pipeline(pipeline) => self.evaluate_pipeline(dot, pipeline),
            OperandKind::Dot => Ok(dot.clone()),
            OperandKind::Nil => Ok(Value::Nil),
            OperandKind::Bool(value) => Ok(Value::Bool(*value)),
            OperandKind::Text(text, _) => Ok(Value::Text(text.clone())),
            OperandKind::Number(number) => self.evaluate_number(operand, number),
        }
    }

    /// Returns the value of a number whose type follows from its spelling alone.
    fn evaluate_number(
        &self,
        operand: &Operand<'_>,
        number: &NumberConstant<'_>,
    ) -> ExecutionResult<Value> {
        match number {
            NumberConstant {
                complex: Some((real, imaginary)),
                ..
            } => Ok(Value::Complex(*real, *imaginary)),
            NumberConstant {
                float: Some(float), ..
            } if number.is_float() => Ok(Value::Float(*float)),
            NumberConstant { int: Some(int), .. } => Ok(Value::Int(*int)),
            _ => {
                let problem = format!("{} overflows int", number.text);
                Err(self.fail(operand.at, operand, problem))
            }
        }
    }

    fn find_variable(&mut self, operand: &Operand<'_>, name: &str) -> ExecutionResult<Value> {
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
    ) -> ExecutionResult<()> {
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
    ) -> ExecutionResult<()> {
        self.context
            .count_work(bytes)
            .map_err(|error| self.failed(at, action, &error))
    }
}
