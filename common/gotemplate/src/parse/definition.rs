//! Named templates: `define`, `block` and `template`.

use super::{Parser, unexpected};
use crate::error::Problem;
use crate::lex::{Kind, Token};
use crate::tree::{Call, Node, Tree, unquote};

impl<'a> Parser<'a, '_> {
    /// Parses the rest of `{{define "name"}} … {{end}}`, after `define`.
    pub(super) fn definition(&mut self, define: Token<'a>) -> Result<(), Problem> {
        let token = self.next_word()?;
        let name = self.template_name(token, "define clause")?;
        self.expect(Kind::RightDelimiter, "define clause")?;
        let nodes = self.own_scope(|parser| parser.body(define, "define"))?;
        self.define(name, nodes, define)
    }

    /// Adds a template. Two templates with the same name are an error unless one of them prints nothing.
    fn define(&mut self, name: String, nodes: Vec<Node<'a>>, at: Token<'a>) -> Result<(), Problem> {
        let is_empty = |nodes: &[Node<'_>]| {
            let blank =
                |node: &Node<'_>| matches!(node, Node::Text(text) if text.trim().is_empty());
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
                self.definitions.insert(name, Tree { file, nodes });
            }
        }
        Ok(())
    }

    /// Parses in a new scope, in which only `$` is declared and no loop is open.
    fn own_scope<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let variables = std::mem::replace(&mut self.variables, vec!["$"]);
        let loops = std::mem::take(&mut self.loops);
        let parsed = parse(self)?;
        self.variables = variables;
        self.loops = loops;
        Ok(parsed)
    }

    /// Parses the rest of `{{template "name" data}}`.
    pub(super) fn template(&mut self) -> Result<Node<'a>, Problem> {
        let token = self.next_word()?;
        let name = self.template_name(token, "template clause")?;
        let next = self.next_word()?;
        let data = if next.kind == Kind::RightDelimiter {
            None
        } else {
            self.ahead.push(next);
            Some(self.action_pipeline("template clause")?)
        };
        Ok(Node::Template(Call {
            at: token.at,
            name,
            data,
        }))
    }

    /// Parses the rest of `{{block "name" data}} … {{end}}`: a definition and its use.
    pub(super) fn block(&mut self, word: Token<'a>) -> Result<Node<'a>, Problem> {
        let token = self.next_word()?;
        let name = self.template_name(token, "block clause")?;
        let data = self.action_pipeline("block clause")?;
        let nodes = self.own_scope(|parser| parser.body(word, "block"))?;
        self.define(name.clone(), nodes, word)?;
        Ok(Node::Template(Call {
            at: token.at,
            name,
            data: Some(data),
        }))
    }

    fn template_name(&mut self, token: Token<'a>, clause: &str) -> Result<String, Problem> {
        match token.kind {
            Kind::String | Kind::RawString => {
                unquote(token.text).map_err(|problem| token.problem(problem))
            }
            _ => Err(unexpected(token, clause)),
        }
    }
}
