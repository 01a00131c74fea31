//! Tokens of templates.

use crate::error::SyntaxProblem;

/// A token, with its place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its kind.
    pub kind: TokenKind,
    /// Offset of its first byte in the text.
    pub at: usize,
    /// Its spelling.
    pub text: &'a str,
}

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// `true`, `false`
    Bool,
    /// Any other printable ASCII character, for instance a comma.
    Char,
    /// `'a'`
    CharConstant,
    /// `1+2i`
    Complex,
    /// `=`
    Assign,
    /// `:=`
    Declare,
    /// The end of the text.
    End,
    /// `.name`
    Field,
    /// A function's name.
    Identifier,
    /// `{{`
    LeftDelimiter,
    /// `(`
    LeftParenthesis,
    /// `1`, `0x1F`, `1.5e3`, `2i`
    Number,
    /// `|`
    Pipe,
    /// Between backquotes.
    RawString,
    /// `}}`
    RightDelimiter,
    /// `)`
    RightParenthesis,
    /// Blanks between words.
    Space,
    /// Between quotes.
    String,
    /// Text outside of actions.
    Text,
    /// `$`, `$name`
    Variable,
    /// A keyword.
    Keyword(Keyword),
}

/// The keywords of templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Dot,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Token<'_> {
    /// Returns a problem at this token.
    pub(crate) fn problem(self, message: impl Into<String>) -> SyntaxProblem {
        SyntaxProblem::new(self.at, message)
    }
}

impl TokenKind {
    /// Returns the kind of a word that begins with neither a dot nor a dollar sign.
    pub(super) fn from_word(word: &str) -> Self {
        Self::Keyword(match word {
            "block" => Keyword::Block,
            "break" => Keyword::Break,
            "continue" => Keyword::Continue,
            "define" => Keyword::Define,
            "else" => Keyword::Else,
            "end" => Keyword::End,
            "if" => Keyword::If,
            "nil" => Keyword::Nil,
            "range" => Keyword::Range,
            "template" => Keyword::Template,
            "with" => Keyword::With,
            "true" | "false" => return Self::Bool,
            _ => return Self::Identifier,
        })
    }
}
