//! Splits text into tokens: Go's text/template/parse/lex.go.
//!
//! The lexer handles trim markers and comments; the parser never sees them.

mod number;
mod token;

pub use token::{Keyword, Token, TokenKind};

use crate::error::SyntaxProblem;

/// The start of an action.
const LEFT: &str = "{{";
/// The end of an action.
const RIGHT: &str = "}}";
/// The characters that trim markers trim and that separate words in an action.
pub const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

/// Reads tokens one by one.
#[derive(Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    /// First byte of the token that is being read.
    start: usize,
    /// Next byte to read.
    at: usize,
    /// First byte of the action that contains `at`.
    action: Option<usize>,
    /// Number of open parentheses in the action.
    parentheses: usize,
    /// Whether the last action or comment ended with `-}}` and only blanks followed.
    trims: bool,
}

impl<'a> Lexer<'a> {
    /// Prepares to read `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            start: 0,
            at: 0,
            action: None,
            parentheses: 0,
            trims: false,
        }
    }

    /// Returns whether the text so far ends with `-}}` and blanks. If so, the leading blanks of any text after it are trimmed as well.
    #[must_use]
    pub fn trims(&self) -> bool {
        self.trims
    }

    /// Reads the next token. At the end, every call returns [`TokenKind::End`].
    ///
    /// # Errors
    /// Characters that begin no token, or an unterminated action, comment or string.
    pub fn next_token(&mut self) -> Result<Token<'a>, SyntaxProblem> {
        if self.action.is_some() {
            return self.next_token_in_action();
        }
        loop {
            if let Some(token) = self.read_text() {
                return Ok(token);
            }
            let Some(after) = self.rest().strip_prefix(LEFT) else {
                return Ok(self.emit(TokenKind::End));
            };
            let marked = starts_with_left_marker(after);
            let body = if marked { after.get(2..) } else { Some(after) };
            if let Some(comment) = body.and_then(|body| body.strip_prefix("/*")) {
                self.skip_comment(comment)?;
                continue;
            }
            self.at += LEFT.len();
            let token = self.emit(TokenKind::LeftDelimiter);
            self.at += if marked { 2 } else { 0 };
            self.start = self.at;
            self.action = Some(token.at);
            self.parentheses = 0;
            self.trims = false;
            return Ok(token);
        }
    }

    /// Reads the text before the next action, if there is any.
    fn read_text(&mut self) -> Option<Token<'a>> {
        let rest = self.rest();
        let length = rest.find(LEFT).unwrap_or(rest.len());
        let (text, after) = rest.split_at_checked(length)?;
        let marked = after
            .strip_prefix(LEFT)
            .is_some_and(starts_with_left_marker);
        let kept = if marked {
            text.trim_end_matches(SPACES)
        } else {
            text
        };
        let token = Token {
            kind: TokenKind::Text,
            at: self.at,
            text: kept,
        };
        self.at += length;
        self.start = self.at;
        if length > 0 {
            self.trims = false;
        }
        (!kept.is_empty()).then_some(token)
    }

    /// Skips a comment; `comment` begins after its `/*`.
    fn skip_comment(&mut self, comment: &'a str) -> Result<(), SyntaxProblem> {
        let Some((_, after)) = comment.split_once("*/") else {
            return Err(SyntaxProblem::new(
                self.start,
                "unclosed comment: no */ follows",
            ));
        };
        let (after, trims) = match after.strip_prefix(RIGHT) {
            Some(after) => (after, false),
            None => match right_marker(after).and_then(|after| after.strip_prefix(RIGHT)) {
                Some(after) => (after, true),
                None => {
                    return Err(SyntaxProblem::new(
                        self.start,
                        "a comment must fill its action: {{/* … */}}, or with - and a blank {{- /* … */ -}}",
                    ));
                }
            },
        };
        self.end_action(after, trims);
        Ok(())
    }

    /// Continues with `after`, the text after an action or a comment.
    fn end_action(&mut self, after: &'a str, trims: bool) {
        let after = if trims {
            after.trim_start_matches(SPACES)
        } else {
            after
        };
        self.at = self.text.len() - after.len();
        self.start = self.at;
        self.action = None;
        self.trims = trims;
    }

    /// Reads a token inside of an action.
    fn next_token_in_action(&mut self) -> Result<Token<'a>, SyntaxProblem> {
        let rest = self.rest();
        if let Some((delimiter, after, trims)) = right_delimiter(rest) {
            if self.parentheses > 0 {
                return Err(self.problem("unclosed left paren: a ) is missing before }}"));
            }
            let token = Token {
                kind: TokenKind::RightDelimiter,
                at: self.text.len() - delimiter.len(),
                text: RIGHT,
            };
            self.end_action(after, trims);
            return Ok(token);
        }
        let Some(first) = self.next() else {
            let action = self.action.unwrap_or(self.start);
            return Err(SyntaxProblem::new(action, "unclosed action: no }} follows"));
        };
        Ok(match first {
            first if is_space(first) => self.read_spaces(),
            '=' => self.emit(TokenKind::Assign),
            ':' => {
                if self.next() != Some('=') {
                    return Err(self.problem("expected :="));
                }
                self.emit(TokenKind::Declare)
            }
            '|' => self.emit(TokenKind::Pipe),
            '"' => self.read_quoted('"', "quoted string", TokenKind::String)?,
            '\'' => self.read_quoted('\'', "character constant", TokenKind::CharConstant)?,
            '`' => {
                while self
                    .next()
                    .ok_or_else(|| self.problem("unterminated raw quoted string"))?
                    != '`'
                {}
                self.emit(TokenKind::RawString)
            }
            '$' => self.read_field_or_variable(TokenKind::Variable)?,
            '.' if !self.peek().is_none_or(|next| next.is_ascii_digit()) => {
                self.read_field_or_variable(TokenKind::Field)?
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.at = self.start;
                self.read_number()?
            }
            first if is_alphanumeric(first) => self.read_identifier()?,
            '(' => {
                self.parentheses += 1;
                self.emit(TokenKind::LeftParenthesis)
            }
            ')' => {
                let left = self.parentheses.checked_sub(1);
                self.parentheses = left.ok_or_else(|| self.problem("unexpected right paren"))?;
                self.emit(TokenKind::RightParenthesis)
            }
            ' '..='~' => self.emit(TokenKind::Char),
            other => {
                return Err(self.problem(format!("unrecognized character in action: {other:?}")));
            }
        })
    }

    /// Reads blanks, except for the last one if it belongs to ` -}}`.
    fn read_spaces(&mut self) -> Token<'a> {
        while right_delimiter(self.text.get(self.at..).unwrap_or_default()).is_none()
            && self.peek().is_some_and(is_space)
        {
            self.next();
        }
        self.emit(TokenKind::Space)
    }

    /// Reads a constant between two `quote`s.
    fn read_quoted(
        &mut self,
        quote: char,
        what: &str,
        kind: TokenKind,
    ) -> Result<Token<'a>, SyntaxProblem> {
        loop {
            match self.next() {
                Some('\\') if self.peek().is_some_and(|next| next != '\n') => {
                    self.next();
                }
                Some(next) if next == quote => return Ok(self.emit(kind)),
                None | Some('\\' | '\n') => {
                    return Err(self.problem(format!("unterminated {what}")));
                }
                Some(_) => {}
            }
        }
    }

    /// Reads `.name` or `$name`, after its first character.
    fn read_field_or_variable(&mut self, kind: TokenKind) -> Result<Token<'a>, SyntaxProblem> {
        if self.is_terminated() {
            return Ok(self.emit(match kind {
                TokenKind::Field => TokenKind::Keyword(Keyword::Dot),
                kind => kind,
            }));
        }
        self.read_word()?;
        Ok(self.emit(kind))
    }

    fn read_identifier(&mut self) -> Result<Token<'a>, SyntaxProblem> {
        self.read_word()?;
        let mut token = self.emit(TokenKind::Identifier);
        token.kind = TokenKind::from_word(token.text);
        Ok(token)
    }

    /// Reads letters and digits up to a character that may follow them.
    fn read_word(&mut self) -> Result<(), SyntaxProblem> {
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        match self.peek() {
            Some(bad) if !self.is_terminated() => Err(SyntaxProblem::new(
                self.at,
                format!(
                    "bad character {bad:?}; a key that is not a plain word is read with index: index . \"a-b\""
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Returns whether a name may end here: in `$x+2` it may not.
    fn is_terminated(&self) -> bool {
        let may = |next| is_space(next) || ['.', ',', '|', ':', ')', '('].contains(&next);
        self.peek().is_none_or(may) || self.rest_of_action().starts_with(RIGHT)
    }

    fn emit(&mut self, kind: TokenKind) -> Token<'a> {
        let token = Token {
            kind,
            at: self.start,
            text: self.text.get(self.start..self.at).unwrap_or_default(),
        };
        self.start = self.at;
        token
    }

    fn problem(&self, message: impl Into<String>) -> SyntaxProblem {
        SyntaxProblem::new(self.start, message)
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn peek(&self) -> Option<char> {
        self.rest_of_action().chars().next()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.start..).unwrap_or_default()
    }

    fn rest_of_action(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }
}

/// Splits off `}}` or ` -}}` at the start of `rest`. Returns the text from `}}` on, the text after it, and whether it trims.
fn right_delimiter(rest: &str) -> Option<(&str, &str, bool)> {
    if let Some(marked) = right_marker(rest)
        && let Some(after) = marked.strip_prefix(RIGHT)
    {
        return Some((marked, after, true));
    }
    rest.strip_prefix(RIGHT).map(|after| (rest, after, false))
}

/// Returns the text after the blank and the minus of ` -}}`.
fn right_marker(text: &str) -> Option<&str> {
    text.strip_prefix(SPACES)?.strip_prefix('-')
}

/// Returns whether `text`, the text after `{{`, begins with a minus and a blank.
pub fn starts_with_left_marker(text: &str) -> bool {
    text.strip_prefix('-')
        .is_some_and(|text| text.starts_with(SPACES))
}

fn is_space(c: char) -> bool {
    SPACES.contains(&c)
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}
