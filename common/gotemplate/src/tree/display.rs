//! Prints nodes for messages, as Go does.

use std::fmt;

use super::{Operand, OperandKind, Pipeline, PipelineCommand, TemplateCall};

impl fmt::Display for Pipeline<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.variables.is_empty() {
            out.write_str(&self.variables.join(", "))?;
            out.write_str(if self.assigns { " = " } else { " := " })?;
        }
        for (index, command) in self.commands.iter().enumerate() {
            if index > 0 {
                out.write_str(" | ")?;
            }
            command.fmt(out)?;
        }
        Ok(())
    }
}

impl fmt::Display for PipelineCommand<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(out)?;
        for argument in &self.arguments {
            out.write_str(" ")?;
            argument.fmt(out)?;
        }
        Ok(())
    }
}

impl fmt::Display for Operand<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match &self.term {
            OperandKind::Function(name, _) => return out.write_str(name),
            OperandKind::Dot => return out.write_str("."),
            OperandKind::Nil => return out.write_str("nil"),
            OperandKind::Bool(value) => return value.fmt(out),
            OperandKind::Number(number) => return out.write_str(number.text),
            OperandKind::Text(_, written) => return out.write_str(written),
            OperandKind::Pipeline(pipeline) => return write!(out, "({pipeline})"),
            OperandKind::Field(path) => path,
            OperandKind::Variable(name, path) => {
                out.write_str(name)?;
                path
            }
            OperandKind::Chain(first, path) => {
                first.fmt(out)?;
                path
            }
        };
        path.iter().try_for_each(|field| write!(out, ".{field}"))
    }
}

impl fmt::Display for TemplateCall<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{{{{template {:?}", self.name)?;
        if let Some(data) = &self.data {
            write!(out, " {data}")?;
        }
        out.write_str("}}")
    }
}
