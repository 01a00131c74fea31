//! Parses tokens into nodes: Go's text/template/parse/parse.go.
//!
//! Stricter than Go in one point: nesting is bounded ([`MAX_NESTING`]), because the parser and the executor are recursive.

mod definition;
mod pipeline;

use std::collections::BTreeMap;

use crate::TemplateOptions;
use crate::error::SyntaxProblem;
use crate::lex::{Keyword, Lexer, Token, TokenKind};
use crate::tree::{ConditionalNode, LoopNode, TemplateNode, TemplateTree};

/// Maximum nesting of blocks and parentheses; `else if` does not nest.
pub const MAX_NESTING: usize = 100;

/// The templates defined with `define` and `block` in all files, by name.
pub type Definitions<'a> = BTreeMap<String, TemplateTree<'a>>;

/// A parsed file.
#[derive(Debug)]
pub struct ParsedTemplate<'a> {
    /// Its nodes.
    pub nodes: Vec<TemplateNode<'a>>,
    /// Whether it ends with `-}}` and blanks. If so, the leading blanks of any text after it are trimmed as well.
    pub trims: bool,
}

/// Parses `text`, which is file number `file`.
///
/// # Errors
/// The first problem of the template, with its position.
pub fn parse<'a>(
    file: usize,
    text: &'a str,
    options: &TemplateOptions<'a>,
    definitions: &mut Definitions<'a>,
) -> Result<ParsedTemplate<'a>, SyntaxProblem> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        ahead: Vec::new(),
        options,
        variables: vec!["$"],
        definitions,
        file,
        loops: 0,
        depth: 0,
    };
    let nodes = parser.parse_file()?;
    Ok(ParsedTemplate {
        nodes,
        trims: parser.lexer.trims(),
    })
}

struct Parser<'a, 'd> {
    lexer: Lexer<'a>,
    /// Tokens that were read and put back; the last one comes next.
    ahead: Vec<Token<'a>>,
    options: &'d TemplateOptions<'a>,
    /// The variables that are visible here.
    variables: Vec<&'a str>,
    definitions: &'d mut Definitions<'a>,
    file: usize,
    /// Number of open `range` blocks.
    loops: usize,
    /// Number of open blocks and parentheses.
    depth: usize,
}

/// The action that ends a list of nodes.
enum BlockEnd<'a> {
    /// `{{end}}`
    End,
    /// `{{else}}`, or the `{{else` before `if` or `with`.
    Else(Token<'a>),
}

/// A node, or the end of a list of nodes with the keyword that ends it.
enum NodeOrEnd<'a> {
    Node(TemplateNode<'a>),
    Ending(BlockEnd<'a>, Token<'a>),
}

impl<'a> Parser<'a, '_> {
    /// Parses a whole file. Only here, `define` is allowed.
    fn parse_file(&mut self) -> Result<Vec<TemplateNode<'a>>, SyntaxProblem> {
        let mut nodes = Vec::new();
        loop {
            let token = self.next()?;
            if token.kind == TokenKind::End {
                return Ok(nodes);
            }
            if token.kind == TokenKind::LeftDelimiter {
                let word = self.next_word()?;
                if word.kind == TokenKind::Keyword(Keyword::Define) {
                    self.parse_definition(word)?;
                    continue;
                }
                self.ahead.push(word);
            }
            self.ahead.push(token);
            match self.parse_node()? {
                NodeOrEnd::Node(node) => nodes.push(node),
                NodeOrEnd::Ending(_, word) => {
                    let message =
                        format!("unexpected {{{{{}}}}}: no block is open here", word.text);
                    return Err(word.problem(message));
                }
            }
        }
    }

    /// Parses nodes up to `{{end}}`.
    fn parse_body(
        &mut self,
        opening: Token<'a>,
        what: &str,
    ) -> Result<Vec<TemplateNode<'a>>, SyntaxProblem> {
        match self.parse_list(opening, what)? {
            (nodes, BlockEnd::End) => Ok(nodes),
            (_, BlockEnd::Else(token)) => Err(token.problem(format!(
                "expected {{{{end}}}} of {{{{{what}}}}}; found {{{{else}}}}"
            ))),
        }
    }

    /// Parses nodes up to the `{{end}}` or `{{else}}` of the block that begins at `opening`.
    fn parse_list(
        &mut self,
        opening: Token<'a>,
        what: &str,
    ) -> Result<(Vec<TemplateNode<'a>>, BlockEnd<'a>), SyntaxProblem> {
        self.enter(opening)?;
        let mut nodes = Vec::new();
        loop {
            let token = self.next()?;
            if token.kind == TokenKind::End {
                let message = format!("unexpected EOF: {{{{{what}}}}} has no {{{{end}}}}");
                return Err(opening.problem(message));
            }
            self.ahead.push(token);
            match self.parse_node()? {
                NodeOrEnd::Node(node) => nodes.push(node),
                NodeOrEnd::Ending(ending, _) => {
                    self.depth -= 1;
                    return Ok((nodes, ending));
                }
            }
        }
    }

    /// Counts an opened block or parenthesis.
    fn enter(&mut self, at: Token<'a>) -> Result<(), SyntaxProblem> {
        if self.depth >= MAX_NESTING {
            return Err(at.problem(format!(
                "blocks and parentheses are nested deeper than {MAX_NESTING} levels"
            )));
        }
        self.depth += 1;
        Ok(())
    }

    /// Parses a text or an action.
    fn parse_node(&mut self) -> Result<NodeOrEnd<'a>, SyntaxProblem> {
        let token = self.next()?;
        match token.kind {
            TokenKind::Text => Ok(NodeOrEnd::Node(TemplateNode::Text(token.text))),
            TokenKind::LeftDelimiter => self.parse_action(),
            _ => Err(unexpected(token, "input")),
        }
    }

    /// Parses the content of an action, including `}}`.
    fn parse_action(&mut self) -> Result<NodeOrEnd<'a>, SyntaxProblem> {
        let word = self.next_word()?;
        let TokenKind::Keyword(keyword) = word.kind else {
            self.ahead.push(word);
            return Ok(NodeOrEnd::Node(TemplateNode::Action(
                self.parse_action_pipeline("command")?,
            )));
        };
        Ok(NodeOrEnd::Node(match keyword {
            Keyword::Block => self.parse_block(word)?,
            Keyword::Break => {
                self.parse_loop_exit(word)?;
                TemplateNode::Break
            }
            Keyword::Continue => {
                self.parse_loop_exit(word)?;
                TemplateNode::Continue
            }
            Keyword::Else => {
                let next = self.next_word()?;
                let ending = match next.kind {
                    TokenKind::RightDelimiter => BlockEnd::Else(word),
                    TokenKind::Keyword(Keyword::If | Keyword::With) => {
                        self.ahead.push(next);
                        BlockEnd::Else(next)
                    }
                    _ => return Err(unexpected(next, "else")),
                };
                return Ok(NodeOrEnd::Ending(ending, word));
            }
            Keyword::End => {
                self.expect(TokenKind::RightDelimiter, "end")?;
                return Ok(NodeOrEnd::Ending(BlockEnd::End, word));
            }
            Keyword::If => TemplateNode::If(self.parse_conditional(word, Keyword::If, "if")?),
            Keyword::With => {
                TemplateNode::With(self.parse_conditional(word, Keyword::With, "with")?)
            }
            Keyword::Range => self.parse_range(word)?,
            Keyword::Template => self.parse_template()?,
            Keyword::Dot | Keyword::Nil => {
                self.ahead.push(word);
                TemplateNode::Action(self.parse_action_pipeline("command")?)
            }
            Keyword::Define => {
                return Err(word.problem(
                    "unexpected <define> in command: templates are defined outside of all blocks",
                ));
            }
        }))
    }

    /// Parses the rest of `{{break}}` and `{{continue}}`.
    fn parse_loop_exit(&mut self, word: Token<'a>) -> Result<(), SyntaxProblem> {
        self.expect(TokenKind::RightDelimiter, word.text)?;
        if self.loops == 0 {
            let message = format!("{{{{{}}}}} outside {{{{range}}}}", word.text);
            return Err(word.problem(message));
        }
        Ok(())
    }

    /// Parses `if` or `with`, including all `else if` and `else with`.
    fn parse_conditional(
        &mut self,
        opening: Token<'a>,
        keyword: Keyword,
        what: &str,
    ) -> Result<ConditionalNode<'a>, SyntaxProblem> {
        let declared = self.variables.len();
        let mut branches = Vec::new();
        let otherwise = loop {
            let condition = self.parse_action_pipeline(what)?;
            let (nodes, ending) = self.parse_list(opening, what)?;
            branches.push((condition, nodes));
            match ending {
                BlockEnd::End => break Vec::new(),
                BlockEnd::Else(next) if next.kind == TokenKind::Keyword(keyword) => {
                    self.next()?;
                }
                // `else with` of an `if` is an error: the `with` that was put back cannot begin a node.
                BlockEnd::Else(_) => break self.parse_body(opening, what)?,
            }
        };
        self.variables.truncate(declared);
        Ok(ConditionalNode {
            branches,
            otherwise,
        })
    }

    fn parse_range(&mut self, opening: Token<'a>) -> Result<TemplateNode<'a>, SyntaxProblem> {
        let declared = self.variables.len();
        let over = self.parse_action_pipeline("range")?;
        self.loops += 1;
        let (body, ending) = self.parse_list(opening, "range")?;
        self.loops -= 1;
        let otherwise = match ending {
            BlockEnd::End => Vec::new(),
            BlockEnd::Else(_) => self.parse_body(opening, "range")?,
        };
        self.variables.truncate(declared);
        Ok(TemplateNode::Range(LoopNode {
            over,
            body,
            otherwise,
        }))
    }

    fn expect(&mut self, kind: TokenKind, context: &str) -> Result<Token<'a>, SyntaxProblem> {
        let token = self.next_word()?;
        if token.kind == kind {
            Ok(token)
        } else {
            Err(unexpected(token, context))
        }
    }

    /// Returns the next token.
    fn next(&mut self) -> Result<Token<'a>, SyntaxProblem> {
        match self.ahead.pop() {
            Some(token) => Ok(token),
            None => self.lexer.next_token(),
        }
    }

    /// Returns the next token that is not a space.
    fn next_word(&mut self) -> Result<Token<'a>, SyntaxProblem> {
        loop {
            let token = self.next()?;
            if token.kind != TokenKind::Space {
                return Ok(token);
            }
        }
    }
}

/// The error for a token that is not allowed where it is.
fn unexpected(token: Token<'_>, context: &str) -> SyntaxProblem {
    let message = match token.kind {
        TokenKind::End => format!("unexpected EOF in {context}"),
        TokenKind::Keyword(_) => format!("unexpected <{}> in {context}", token.text),
        _ => format!("unexpected {:?} in {context}", token.text),
    };
    token.problem(message)
}
