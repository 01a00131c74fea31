//! Parses tokens into nodes: Go's text/template/parse/parse.go.
//!
//! Stricter than Go in one point: nesting is bounded ([`MAX_NESTING`]), because the parser and the executor are recursive.

mod definition;
mod pipeline;

use std::collections::BTreeMap;

use crate::Options;
use crate::error::Problem;
use crate::lex::{Keyword, Kind, Lexer, Token};
use crate::tree::{Choice, Loop, Node, Tree};

/// Maximum nesting of blocks and parentheses; `else if` does not nest.
pub const MAX_NESTING: usize = 100;

/// The templates defined with `define` and `block` in all files, by name.
pub type Definitions<'a> = BTreeMap<String, Tree<'a>>;

/// A parsed file.
#[derive(Debug)]
pub struct Parsed<'a> {
    /// Its nodes.
    pub nodes: Vec<Node<'a>>,
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
    options: &Options<'a>,
    definitions: &mut Definitions<'a>,
) -> Result<Parsed<'a>, Problem> {
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
    let nodes = parser.file()?;
    Ok(Parsed {
        nodes,
        trims: parser.lexer.trims(),
    })
}

struct Parser<'a, 'd> {
    lexer: Lexer<'a>,
    /// Tokens that were read and put back; the last one comes next.
    ahead: Vec<Token<'a>>,
    options: &'d Options<'a>,
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
enum Ending<'a> {
    /// `{{end}}`
    End,
    /// `{{else}}`, or the `{{else` before `if` or `with`.
    Else(Token<'a>),
}

/// A node, or the end of a list of nodes with the keyword that ends it.
enum Part<'a> {
    Node(Node<'a>),
    Ending(Ending<'a>, Token<'a>),
}

impl<'a> Parser<'a, '_> {
    /// Parses a whole file. Only here, `define` is allowed.
    fn file(&mut self) -> Result<Vec<Node<'a>>, Problem> {
        let mut nodes = Vec::new();
        loop {
            let token = self.next()?;
            if token.kind == Kind::End {
                return Ok(nodes);
            }
            if token.kind == Kind::LeftDelimiter {
                let word = self.next_word()?;
                if word.kind == Kind::Keyword(Keyword::Define) {
                    self.definition(word)?;
                    continue;
                }
                self.ahead.push(word);
            }
            self.ahead.push(token);
            match self.part()? {
                Part::Node(node) => nodes.push(node),
                Part::Ending(_, word) => {
                    let message =
                        format!("unexpected {{{{{}}}}}: no block is open here", word.text);
                    return Err(word.problem(message));
                }
            }
        }
    }

    /// Parses nodes up to `{{end}}`.
    fn body(&mut self, opening: Token<'a>, what: &str) -> Result<Vec<Node<'a>>, Problem> {
        match self.list(opening, what)? {
            (nodes, Ending::End) => Ok(nodes),
            (_, Ending::Else(token)) => Err(token.problem(format!(
                "expected {{{{end}}}} of {{{{{what}}}}}; found {{{{else}}}}"
            ))),
        }
    }

    /// Parses nodes up to the `{{end}}` or `{{else}}` of the block that begins at `opening`.
    fn list(
        &mut self,
        opening: Token<'a>,
        what: &str,
    ) -> Result<(Vec<Node<'a>>, Ending<'a>), Problem> {
        self.enter(opening)?;
        let mut nodes = Vec::new();
        loop {
            let token = self.next()?;
            if token.kind == Kind::End {
                let message = format!("unexpected EOF: {{{{{what}}}}} has no {{{{end}}}}");
                return Err(opening.problem(message));
            }
            self.ahead.push(token);
            match self.part()? {
                Part::Node(node) => nodes.push(node),
                Part::Ending(ending, _) => {
                    self.depth -= 1;
                    return Ok((nodes, ending));
                }
            }
        }
    }

    /// Counts an opened block or parenthesis.
    fn enter(&mut self, at: Token<'a>) -> Result<(), Problem> {
        if self.depth >= MAX_NESTING {
            return Err(at.problem(format!(
                "blocks and parentheses are nested deeper than {MAX_NESTING} levels"
            )));
        }
        self.depth += 1;
        Ok(())
    }

    /// Parses a text or an action.
    fn part(&mut self) -> Result<Part<'a>, Problem> {
        let token = self.next()?;
        match token.kind {
            Kind::Text => Ok(Part::Node(Node::Text(token.text))),
            Kind::LeftDelimiter => self.action(),
            _ => Err(unexpected(token, "input")),
        }
    }

    /// Parses the content of an action, including `}}`.
    fn action(&mut self) -> Result<Part<'a>, Problem> {
        let word = self.next_word()?;
        let Kind::Keyword(keyword) = word.kind else {
            self.ahead.push(word);
            return Ok(Part::Node(Node::Action(self.action_pipeline("command")?)));
        };
        Ok(Part::Node(match keyword {
            Keyword::Block => self.block(word)?,
            Keyword::Break => {
                self.alone(word)?;
                Node::Break
            }
            Keyword::Continue => {
                self.alone(word)?;
                Node::Continue
            }
            Keyword::Else => {
                let next = self.next_word()?;
                let ending = match next.kind {
                    Kind::RightDelimiter => Ending::Else(word),
                    Kind::Keyword(Keyword::If | Keyword::With) => {
                        self.ahead.push(next);
                        Ending::Else(next)
                    }
                    _ => return Err(unexpected(next, "else")),
                };
                return Ok(Part::Ending(ending, word));
            }
            Keyword::End => {
                self.expect(Kind::RightDelimiter, "end")?;
                return Ok(Part::Ending(Ending::End, word));
            }
            Keyword::If => Node::If(self.choice(word, Keyword::If, "if")?),
            Keyword::With => Node::With(self.choice(word, Keyword::With, "with")?),
            Keyword::Range => self.range(word)?,
            Keyword::Template => self.template()?,
            Keyword::Dot | Keyword::Nil => {
                self.ahead.push(word);
                Node::Action(self.action_pipeline("command")?)
            }
            Keyword::Define => {
                return Err(word.problem(
                    "unexpected <define> in command: templates are defined outside of all blocks",
                ));
            }
        }))
    }

    /// Parses the rest of `{{break}}` and `{{continue}}`.
    fn alone(&mut self, word: Token<'a>) -> Result<(), Problem> {
        self.expect(Kind::RightDelimiter, word.text)?;
        if self.loops == 0 {
            let message = format!("{{{{{}}}}} outside {{{{range}}}}", word.text);
            return Err(word.problem(message));
        }
        Ok(())
    }

    /// Parses `if` or `with`, including all `else if` and `else with`.
    fn choice(
        &mut self,
        opening: Token<'a>,
        keyword: Keyword,
        what: &str,
    ) -> Result<Choice<'a>, Problem> {
        let declared = self.variables.len();
        let mut branches = Vec::new();
        let otherwise = loop {
            let condition = self.action_pipeline(what)?;
            let (nodes, ending) = self.list(opening, what)?;
            branches.push((condition, nodes));
            match ending {
                Ending::End => break Vec::new(),
                Ending::Else(next) if next.kind == Kind::Keyword(keyword) => {
                    self.next()?;
                }
                // `else with` of an `if` is an error: the `with` that was put back cannot begin a node.
                Ending::Else(_) => break self.body(opening, what)?,
            }
        };
        self.variables.truncate(declared);
        Ok(Choice {
            branches,
            otherwise,
        })
    }

    fn range(&mut self, opening: Token<'a>) -> Result<Node<'a>, Problem> {
        let declared = self.variables.len();
        let over = self.action_pipeline("range")?;
        self.loops += 1;
        let (body, ending) = self.list(opening, "range")?;
        self.loops -= 1;
        let otherwise = match ending {
            Ending::End => Vec::new(),
            Ending::Else(_) => self.body(opening, "range")?,
        };
        self.variables.truncate(declared);
        Ok(Node::Range(Loop {
            over,
            body,
            otherwise,
        }))
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Result<Token<'a>, Problem> {
        let token = self.next_word()?;
        if token.kind == kind {
            Ok(token)
        } else {
            Err(unexpected(token, context))
        }
    }

    /// Returns the next token.
    fn next(&mut self) -> Result<Token<'a>, Problem> {
        match self.ahead.pop() {
            Some(token) => Ok(token),
            None => self.lexer.token(),
        }
    }

    /// Returns the next token that is not a space.
    fn next_word(&mut self) -> Result<Token<'a>, Problem> {
        loop {
            let token = self.next()?;
            if token.kind != Kind::Space {
                return Ok(token);
            }
        }
    }
}

/// The error for a token that is not allowed where it is.
fn unexpected(token: Token<'_>, context: &str) -> Problem {
    let message = match token.kind {
        Kind::End => format!("unexpected EOF in {context}"),
        Kind::Keyword(_) => format!("unexpected <{}> in {context}", token.text),
        _ => format!("unexpected {:?} in {context}", token.text),
    };
    token.problem(message)
}
