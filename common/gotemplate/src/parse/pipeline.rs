//! Parses pipelines, commands and operands.

use super::{Parser, unexpected};
use crate::error::SyntaxProblem;
use crate::function::find_function;
use crate::lex::{Keyword, Token, TokenKind};
use crate::tree::{NumberConstant, Operand, OperandKind, Pipeline, PipelineCommand, unquote};

impl<'a> Parser<'a, '_> {
    /// Parses a pipeline, including the `}}` after it.
    pub(super) fn parse_action_pipeline(
        &mut self,
        context: &str,
    ) -> Result<Pipeline<'a>, SyntaxProblem> {
        self.parse_pipeline(context, TokenKind::RightDelimiter)
    }

    fn parse_pipeline(
        &mut self,
        context: &str,
        end: TokenKind,
    ) -> Result<Pipeline<'a>, SyntaxProblem> {
        let first = self.next_word()?;
        self.ahead.push(first);
        let (variables, assigns) = self.parse_declarations(context)?;
        let mut commands: Vec<PipelineCommand<'a>> = Vec::new();
        loop {
            let token = self.next_word()?;
            if token.kind == end {
                break;
            }
            if !begins_operand(token.kind) {
                return Err(unexpected(token, context));
            }
            self.ahead.push(token);
            let command = self.parse_command()?;
            if !commands.is_empty() && is_constant(&command.first.term) {
                let stage = commands.len() + 1;
                return Err(SyntaxProblem::new(
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
    fn parse_declarations(&mut self, context: &str) -> Result<(Vec<&'a str>, bool), SyntaxProblem> {
        let mut variables = Vec::new();
        loop {
            let token = self.next_word()?;
            if token.kind != TokenKind::Variable {
                self.ahead.push(token);
                return Ok((variables, false));
            }
            let after = self.next()?;
            let next = if after.kind == TokenKind::Space {
                self.next_word()?
            } else {
                after
            };
            match next.kind {
                TokenKind::Assign | TokenKind::Declare => {
                    variables.push(token.text);
                    self.variables.push(token.text);
                    return Ok((variables, next.kind == TokenKind::Assign));
                }
                TokenKind::Char if next.text == "," => {
                    variables.push(token.text);
                    self.variables.push(token.text);
                    if context != "range" || variables.len() > 1 {
                        return Err(next.problem(format!("too many declarations in {context}")));
                    }
                    let following = self.next_word()?;
                    self.ahead.push(following);
                    if !matches!(
                        following.kind,
                        TokenKind::Variable | TokenKind::RightDelimiter
                    ) {
                        return Err(following.problem("range can only initialize variables"));
                    }
                }
                _ => {
                    // The variable is an argument: put everything back.
                    self.ahead.push(next);
                    if after.kind == TokenKind::Space {
                        self.ahead.push(after);
                    }
                    self.ahead.push(token);
                    return Ok((variables, false));
                }
            }
        }
    }

    /// Parses operands up to a pipe, which is consumed, or the end of the pipeline, which is not.
    fn parse_command(&mut self) -> Result<PipelineCommand<'a>, SyntaxProblem> {
        let mut operands = Vec::new();
        loop {
            let token = self.next_word()?;
            self.ahead.push(token);
            if begins_operand(token.kind) {
                operands.push(self.parse_operand()?);
            }
            let token = self.next()?;
            match token.kind {
                TokenKind::Space => {}
                TokenKind::RightDelimiter | TokenKind::RightParenthesis => {
                    self.ahead.push(token);
                    break;
                }
                TokenKind::Pipe => break,
                _ => return Err(unexpected(token, "operand")),
            }
        }
        let mut operands = operands.into_iter();
        let end = self.ahead.last().map_or(0, |token| token.at);
        let first = operands
            .next()
            .ok_or_else(|| SyntaxProblem::new(end, "empty command"))?;
        Ok(PipelineCommand {
            first,
            arguments: operands.collect(),
        })
    }

    /// Parses a term with its fields.
    fn parse_operand(&mut self) -> Result<Operand<'a>, SyntaxProblem> {
        let term = self.parse_term()?;
        let mut fields = Vec::new();
        let mut at = term.at;
        loop {
            let token = self.next()?;
            if token.kind != TokenKind::Field {
                self.ahead.push(token);
                break;
            }
            if fields.is_empty() {
                at = token.at;
            }
            fields.push(field_name(token));
        }
        if fields.is_empty() {
            return Ok(term);
        }
        let term = match term.term {
            OperandKind::Field(mut path) => {
                path.append(&mut fields);
                OperandKind::Field(path)
            }
            OperandKind::Variable(name, mut path) => {
                path.append(&mut fields);
                OperandKind::Variable(name, path)
            }
            constant if is_constant(&constant) => {
                return Err(SyntaxProblem::new(at, "unexpected . after a constant"));
            }
            _ => OperandKind::Chain(Box::new(term), fields),
        };
        Ok(Operand { at, term })
    }

    fn parse_term(&mut self) -> Result<Operand<'a>, SyntaxProblem> {
        let token = self.next_word()?;
        let located = |problem| token.problem(problem);
        let term = match token.kind {
            TokenKind::Identifier => {
                let function = find_function(self.options.functions, token.text);
                let function =
                    function.ok_or_else(|| located(self.undefined_function(token.text)))?;
                OperandKind::Function(token.text, function)
            }
            TokenKind::Keyword(Keyword::Dot) => OperandKind::Dot,
            TokenKind::Keyword(Keyword::Nil) => OperandKind::Nil,
            TokenKind::Variable => {
                if !self.variables.contains(&token.text) {
                    return Err(located(format!("undefined variable {:?}", token.text)));
                }
                OperandKind::Variable(token.text, Vec::new())
            }
            TokenKind::Field => OperandKind::Field(vec![field_name(token)]),
            TokenKind::Bool => OperandKind::Bool(token.text == "true"),
            TokenKind::Number => {
                OperandKind::Number(NumberConstant::parse(token.text).map_err(located)?)
            }
            TokenKind::Complex => {
                OperandKind::Number(NumberConstant::parse_complex(token.text).map_err(located)?)
            }
            TokenKind::CharConstant => {
                OperandKind::Number(NumberConstant::parse_character(token.text).map_err(located)?)
            }
            TokenKind::String | TokenKind::RawString => {
                OperandKind::Text(unquote(token.text).map_err(located)?.into(), token.text)
            }
            TokenKind::LeftParenthesis => {
                self.enter(token)?;
                let pipeline =
                    self.parse_pipeline("parenthesized pipeline", TokenKind::RightParenthesis)?;
                self.depth -= 1;
                return Ok(Operand {
                    at: pipeline.at,
                    term: OperandKind::Pipeline(Box::new(pipeline)),
                });
            }
            _ => return Err(unexpected(token, "operand")),
        };
        Ok(Operand { at: token.at, term })
    }

    fn undefined_function(&self, name: &str) -> String {
        let mut undefined = self.options.undefined.iter();
        match undefined.find(|(known, _)| *known == name) {
            Some((_, advice)) => format!("function {name:?} not defined: {advice}"),
            None => format!("function {name:?} not defined"),
        }
    }
}

/// Returns the name of a field, without its dot.
fn field_name(token: Token<'_>) -> &str {
    token.text.strip_prefix('.').unwrap_or(token.text)
}

fn begins_operand(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Bool
            | TokenKind::CharConstant
            | TokenKind::Complex
            | TokenKind::Field
            | TokenKind::Identifier
            | TokenKind::LeftParenthesis
            | TokenKind::Number
            | TokenKind::RawString
            | TokenKind::String
            | TokenKind::Variable
            | TokenKind::Keyword(Keyword::Dot | Keyword::Nil)
    )
}

/// Returns whether a term can neither be called nor have fields.
fn is_constant(term: &OperandKind<'_>) -> bool {
    matches!(
        term,
        OperandKind::Bool(_)
            | OperandKind::Dot
            | OperandKind::Nil
            | OperandKind::Number(_)
            | OperandKind::Text(..)
    )
}
