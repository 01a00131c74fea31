//! Errors of YAML, with their positions.

use crate::entrance;

use super::{MAX_BYTES, MAX_COPIED, MAX_DEPTH, MAX_NODES};

/// A mistake in a stream. No variant contains a value, because it could be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct YamlError {
    /// Line in the whole stream, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub problem: YamlProblem,
}

impl YamlError {
    pub(super) fn new(line: usize, column: usize, problem: YamlProblem) -> Self {
        Self {
            line,
            column,
            problem,
        }
    }
}

impl YamlError {
    /// Returns whether the error is a repeated key that [`super::DuplicateKeys::LastWins`] accepts, and that does not hide a whole object:
    /// `kind` twice at the margin means that a `---` is missing (kops' ingress-citrix has such a case).
    #[must_use]
    pub fn is_tolerable(&self) -> bool {
        match &self.problem {
            YamlProblem::DuplicateKey { key, .. } => {
                self.column > 1 || !matches!(key.as_str(), "apiVersion" | "kind" | "metadata")
            }
            YamlProblem::MergeReplaces { .. } => true,
            _ => false,
        }
    }
}

/// What is wrong with a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum YamlProblem {
    /// A syntax error, with the parser's message.
    #[error("{0}")]
    Syntax(String),
    /// There is text after `---`.
    #[error("the separator --- must be alone on its line: move what follows it to the next line")]
    Separator,
    /// The bytes are not UTF-8.
    #[error("these bytes are not UTF-8 text: save the file as UTF-8")]
    NotUtf8,
    /// There is a control character, for example NUL.
    #[error(
        "control characters are not allowed: write U+{0:04X} as an escape in double quotes, or as base64"
    )]
    ControlCharacter(u32),
    /// A character ends a line in YAML 1.1, but not in YAML 1.2.
    #[error("U+{0:04X} ends a line for Kubernetes: put the text in double quotes and escape it")]
    LineSeparator(u32),
    /// There is a tab between the dash of a list and its element.
    #[error("Kubernetes does not take a tab after - as indentation: use spaces")]
    TabAfterDash,
    /// The escape `\/`, which exists only in JSON.
    #[error("the escape \\/ is known only in JSON: write a bare /")]
    SlashEscape,
    /// A key is repeated.
    #[error(
        "key {key:?} is already set on line {first_line}, column {first_column}: keep one of them"
    )]
    DuplicateKey {
        /// The key.
        key: String,
        /// Line of the first occurrence.
        first_line: usize,
        /// Column of the first occurrence.
        first_column: usize,
    },
    /// A key is set before the merge key that replaces it.
    #[error(
        "the merge key replaces {key:?} of line {first_line}, column {first_column}: put << first"
    )]
    MergeReplaces {
        /// The key.
        key: String,
        /// Line of the key that would be lost.
        first_line: usize,
        /// Column of that key.
        first_column: usize,
    },
    /// The value of a merge key is neither a map nor a list of maps.
    #[error("a merge key << takes a map or a list of maps")]
    Merge,
    /// A list or map is used as a key, in most cases by a template that was not rendered.
    #[error("a key has to be text: is this {{{{ … }}}} of a template that was not rendered?")]
    KeyNotText,
    /// A key that the JSON library uses internally.
    #[error("{}", entrance::BoundsError::Key)]
    ReservedKey,
    /// A key is empty.
    #[error("a key is missing or null: quote it if it is meant")]
    KeyNull,
    /// `.nan` or `.inf`, which JSON cannot represent.
    #[error("JSON has no number for NaN and infinity: quote it if text is meant")]
    NotFinite,
    /// The text does not fit its tag.
    #[error("this cannot be read as !!{0}")]
    Tag(&'static str),
    /// A `!!binary` is not base64 of UTF-8 text.
    #[error("!!binary has to be base64 of UTF-8 text: put other bytes into binaryData")]
    Binary,
    /// An alias is inside of its own anchor.
    #[error("this alias is inside the anchor that it names")]
    RecursiveAlias,
    /// The input is too long.
    #[error("more than {} MiB of YAML", MAX_BYTES >> 20)]
    TooLong,
    /// Lists and maps are nested too deeply.
    #[error("lists and maps are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// There are too many nodes.
    #[error("more than {MAX_NODES} values in one file")]
    TooManyNodes,
    /// Aliases copy too much, as in an alias bomb.
    #[error("anchors and aliases copy more than {} MiB", MAX_COPIED >> 20)]
    TooManyCopies,
}
