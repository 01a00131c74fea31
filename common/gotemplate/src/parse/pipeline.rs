//! Parses pipelines, commands and operands.

use super::{Parser, unexpected};
use crate::error::Problem;
use crate::function::find;
use crate::lex::{Keyword, Kind, Token};
use crate::tree::{Command, Number, Operand, Pipeline, Term, unquote};

impl<'a> Parser<'a, '_> {
    /// Parses a pipeline, including the `}}` after it.
    pub(super) fn action_pipeline(&mut self, context: &str) -> Result<Pipeline<'a>, Problem> {
        self.pipeline(context, Kind::RightDelimiter)
    }

    fn pipeline(&mut self, context: &str, end: Kind) -> Result<Pipeline<'a>, Problem> {
        let first = self.next_word()?;
        self.ahead.push(first);
        let (variables, assigns) = self.declarations(context)?;
        let mut commands: Vec<Command<'a>> = Vec::new();
        loop {
            let token = self.next_word()?;
            if token.kind == end {
                break;
            }
            if !begins_operand(token.kind) {
                return Err(unexpected(token, context));
            }
            self.ahead.push(token);
            let command = self.command()?;
            if !commands.is_empty() && is_constant(&command.first.term) {
                let stage = commands.len() + 1;
                return Err(Problem::new(
                    command.first.at,
                    format!("non executable command in pipeline stage {stage}"),
                ));
            }
            commands.push(command);
        }
        if commands.is_empty() {
            return Err(first.problem(format!("missing value for {context}")));
        }
        Ok(Pipeline {
            at: first.at,
            variables,
            assigns,
            commands,
        })
    }

    /// Parses `$x :=`, `$x =`, and in a range `$k, $v :=`.
    fn declarations(&mut self, context: &str) -> Result<(Vec<&'a str>, bool), Problem> {
        let mut variables = Vec::new();
        loop {
            let token = self.next_word()?;
            if token.kind != Kind::Variable {
                self.ahead.push(token);
                return Ok((variables, false));
            }
            let after = self.next()?;
            let next = if after.kind == Kind::Space {
                self.next_word()?
            } else {
                after
            };
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    variables.push(token.text);
                    self.variables.push(token.text);
                    return Ok((variables, next.kind == Kind::Assign));
                }
                Kind::Char if next.text == "," => {
                    variables.push(token.text);
                    self.variables.push(token.text);
                    if context != "range" || variables.len() > 1 {
                        return Err(next.problem(format!("too many declarations in {context}")));
                    }
                    let following = self.next_word()?;
                    self.ahead.push(following);
                    if !matches!(following.kind, Kind::Variable | Kind::RightDelimiter) {
                        return Err(following.problem("range can only initialize variables"));
                    }
                }
                _ => {
                    // The variable is an argument: put everything back.
                    self.ahead.push(next);
                    if after.kind == Kind::Space {
                        self.ahead.push(after);
                    }
                    self.ahead.push(token);
                    return Ok((variables, false));
                }
            }
        }
    }

    /// Parses operands up to a pipe, which is consumed, or the end of the pipeline, which is not.
    fn command(&mut self) -> Result<Command<'a>, Problem> {
        let mut operands = Vec::new();
        loop {
            let token = self.next_word()?;
            self.ahead.push(token);
            if begins_operand(token.kind) {
                operands.push(self.operand()?);
            }
            let token = self.next()?;
            match token.kind {
                Kind::Space => {}
                Kind::RightDelimiter | Kind::RightParenthesis => {
                    self.ahead.push(token);
                    break;
                }
                Kind::Pipe => break,
                _ => return Err(unexpected(token, "operand")),
            }
        }
        let mut operands = operands.into_iter();
        let end = self.ahead.last().map_or(0, |token| token.at);
        let first = operands
            .next()
            .ok_or_else(|| Problem::new(end, "empty command"))?;
        Ok(Command {
            first,
            arguments: operands.collect(),
        })
    }

    /// Parses a term with its fields.
    fn operand(&mut self) -> Result<Operand<'a>, Problem> {
        let term = self.term()?;
        let mut fields = Vec::new();
        let mut at = term.at;
        loop {
            let token = self.next()?;
            if token.kind != Kind::Field {
                self.ahead.push(token);
                break;
            }
            if fields.is_empty() {
                at = token.at;
            }
            fields.push(name(token));
        }
        if fields.is_empty() {
            return Ok(term);
        }
        let term = match term.term {
            Term::Field(mut path) => {
                path.append(&mut fields);
                Term::Field(path)
            }
            Term::Variable(name, mut path) => {
                path.append(&mut fields);
                Term::Variable(name, path)
            }
            constant if is_constant(&constant) => {
                return Err(Problem::new(at, "unexpected . after a constant"));
            }
            _ => Term::Chain(Box::new(term), fields),
        };
        Ok(Operand { at, term })
    }

    fn term(&mut self) -> Result<Operand<'a>, Problem> {
        let token = self.next_word()?;
        let located = |problem| token.problem(problem);
        let term = match token.kind {
            Kind::Identifier => {
                let function = find(self.options.functions, token.text);
                let function = function.ok_or_else(|| located(self.undefined(token.text)))?;
                Term::Function(token.text, function)
            }
            Kind::Keyword(Keyword::Dot) => Term::Dot,
            Kind::Keyword(Keyword::Nil) => Term::Nil,
            Kind::Variable => {
                if !self.variables.contains(&token.text) {
                    return Err(located(format!("undefined variable {:?}", token.text)));
                }
                Term::Variable(token.text, Vec::new())
            }
            Kind::Field => Term::Field(vec![name(token)]),
            Kind::Bool => Term::Bool(token.text == "true"),
            Kind::Number => Term::Number(Number::parse(token.text).map_err(located)?),
            Kind::Complex => Term::Number(Number::parse_complex(token.text).map_err(located)?),
            Kind::CharConstant => {
                Term::Number(Number::parse_character(token.text).map_err(located)?)
            }
            Kind::String | Kind::RawString => {
                Term::Text(unquote(token.text).map_err(located)?.into(), token.text)
            }
            Kind::LeftParenthesis => {
                self.enter(token)?;
                let pipeline = self.pipeline("parenthesized pipeline", Kind::RightParenthesis)?;
                self.depth -= 1;
                return Ok(Operand {
                    at: pipeline.at,
                    term: Term::Pipeline(Box::new(pipeline)),
                });
            }
            _ => return Err(unexpected(token, "operand")),
        };
        Ok(Operand { at: token.at, term })
    }

    fn undefined(&self, name: &str) -> String {
        let mut undefined = self.options.undefined.iter();
        match undefined.find(|(known, _)| *known == name) {
            Some((_, advice)) => format!("function {name:?} not defined: {advice}"),
            None => format!("function {name:?} not defined"),
        }
    }
}

/// Returns the name of a field, without its dot.
fn name(token: Token<'_>) -> &str {
    token.text.strip_prefix('.').unwrap_or(token.text)
}

fn begins_operand(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Bool
            | Kind::CharConstant
            | Kind::Complex
            | Kind::Field
            | Kind::Identifier
            | Kind::LeftParenthesis
            | Kind::Number
            | Kind::RawString
            | Kind::String
            | Kind::Variable
            | Kind::Keyword(Keyword::Dot | Keyword::Nil)
    )
}

/// Returns whether a term can neither be called nor have fields.
fn is_constant(term: &Term<'_>) -> bool {
    matches!(
        term,
        Term::Bool(_) | Term::Dot | Term::Nil | Term::Number(_) | Term::Text(..)
    )
}
