//! Prints nodes for messages, as Go does.

use std::fmt;

use super::{Call, Command, Operand, Pipeline, Term};

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

impl fmt::Display for Command<'_> {
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
            Term::Function(name, _) => return out.write_str(name),
            Term::Dot => return out.write_str("."),
            Term::Nil => return out.write_str("nil"),
            Term::Bool(value) => return value.fmt(out),
            Term::Number(number) => return out.write_str(number.text),
            Term::Text(_, written) => return out.write_str(written),
            Term::Pipeline(pipeline) => return write!(out, "({pipeline})"),
            Term::Field(path) => path,
            Term::Variable(name, path) => {
                out.write_str(name)?;
                path
            }
            Term::Chain(first, path) => {
                first.fmt(out)?;
                path
            }
        };
        path.iter().try_for_each(|field| write!(out, ".{field}"))
    }
}

impl fmt::Display for Call<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{{{{template {:?}", self.name)?;
        if let Some(data) = &self.data {
            write!(out, " {data}")?;
        }
        out.write_str("}}")
    }
}
