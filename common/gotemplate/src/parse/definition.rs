//! Named templates: `define`, `block` and `template`.

use super::{Parser, unexpected};
use crate::error::SyntaxProblem;
use crate::lex::{Token, TokenKind};
use crate::tree::{TemplateCall, TemplateNode, TemplateTree, unquote};

impl<'a> Parser<'a, '_> {
    /// Parses the rest of `{{define "name"}} … {{end}}`, after `define`.
    pub(super) fn parse_definition(&mut self, define: Token<'a>) -> Result<(), SyntaxProblem> {
        let token = self.next_word()?;
        let name = self.parse_template_name(token, "define clause")?;
        self.expect(TokenKind::RightDelimiter, "define clause")?;
        let nodes = self.in_new_scope(|parser| parser.parse_body(define, "define"))?;
        self.define(name, nodes, define)
    }

    /// Adds a template. Two templates with the same name are an error unless one of them prints nothing.
    fn define(
        &mut self,
        name: String,
        nodes: Vec<TemplateNode<'a>>,
        at: Token<'a>,
    ) -> Result<(), SyntaxProblem> {
        let is_empty = |nodes: &[TemplateNode<'_>]| {
            let blank = |node: &TemplateNode<'_>| matches!(node, TemplateNode::Text(text) if text.trim().is_empty());
            nodes.iter().all(blank)
        };
        match self.definitions.get(&name) {
            Some(old) if !is_empty(&old.nodes) => {
                if !is_empty(&nodes) {
                    return Err(at.problem(format!("template {name:?} is defined twice")));
                }
            }
            _ => {
                let file = self.file;
                self.definitions.insert(name, TemplateTree { file, nodes });
            }
        }
        Ok(())
    }

    /// Parses in a new scope, in which only `$` is declared and no loop is open.
    fn in_new_scope<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, SyntaxProblem>,
    ) -> Result<T, SyntaxProblem> {
        let variables = std::mem::replace(&mut self.variables, vec!["$"]);
        let loops = std::mem::take(&mut self.loops);
        let parsed = parse(self)?;
        self.variables = variables;
        self.loops = loops;
        Ok(parsed)
    }

    /// Parses the rest of `{{template "name" data}}`.
    pub(super) fn parse_template(&mut self) -> Result<TemplateNode<'a>, SyntaxProblem> {
        let token = self.next_word()?;
        let name = self.parse_template_name(token, "template clause")?;
        let next = self.next_word()?;
        let data = if next.kind == TokenKind::RightDelimiter {
            None
        } else {
            self.ahead.push(next);
            Some(self.parse_action_pipeline("template clause")?)
        };
        Ok(TemplateNode::Template(TemplateCall {
            at: token.at,
            name,
            data,
        }))
    }

    /// Parses the rest of `{{block "name" data}} … {{end}}`: a definition and its use.
    pub(super) fn parse_block(
        &mut self,
        word: Token<'a>,
    ) -> Result<TemplateNode<'a>, SyntaxProblem> {
        let token = self.next_word()?;
        let name = self.parse_template_name(token, "block clause")?;
        let data = self.parse_action_pipeline("block clause")?;
        let nodes = self.in_new_scope(|parser| parser.parse_body(word, "block"))?;
        self.define(name.clone(), nodes, word)?;
        Ok(TemplateNode::Template(TemplateCall {
            at: token.at,
            name,
            data: Some(data),
        }))
    }

    fn parse_template_name(
        &mut self,
        token: Token<'a>,
        clause: &str,
    ) -> Result<String, SyntaxProblem> {
        match token.kind {
            TokenKind::String | TokenKind::RawString => {
                unquote(token.text).map_err(|problem| token.problem(problem))
            }
            _ => Err(unexpected(token, clause)),
        }
    }
}
