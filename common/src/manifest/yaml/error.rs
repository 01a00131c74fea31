//! Errors of YAML, and their places.

use crate::entrance;

use super::{MAX_BYTES, MAX_COPIED, MAX_DEPTH, MAX_NODES};

/// A mistake in a stream; no variant repeats a value, because it could be a secret.
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
    /// Whether a key is repeated, which [`super::DuplicateKeys::LastWins`] accepts, and no whole object would be
    /// lost by that: `kind` twice at the margin is a missing `---` (kops' ingress-citrix has one).
    #[must_use]
    pub fn is_overridden(&self) -> bool {
        match &self.problem {
            YamlProblem::DuplicateKey { key, .. } => {
                self.column > 1 || !matches!(key.as_str(), "apiVersion" | "kind" | "metadata")
            }
            YamlProblem::MergeReplaces { .. } => true,
            _ => false,
        }
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum YamlProblem {
    /// The parser's message.
    #[error("{0}")]
    Syntax(String),
    /// Text behind `---`.
    #[error("the separator --- must be alone on its line: move what follows it to the next line")]
    Separator,
    /// Not UTF-8.
    #[error("these bytes are not UTF-8 text: save the file as UTF-8")]
    NotUtf8,
    /// A control character, NUL for example.
    #[error(
        "control characters are not allowed: write U+{0:04X} as an escape in double quotes, or as base64"
    )]
    ControlCharacter(u32),
    /// A character that breaks lines in YAML 1.1 and does not in YAML 1.2.
    #[error("U+{0:04X} ends a line for Kubernetes: put the text in double quotes and escape it")]
    LineSeparator(u32),
    /// A tab between the dash of a list and its element.
    #[error("Kubernetes does not take a tab after - as indentation: use spaces")]
    TabAfterDash,
    /// `\/`, which only JSON knows.
    #[error("the escape \\/ is known only in JSON: write a bare /")]
    SlashEscape,
    /// A repeated key.
    #[error(
        "key {key:?} is already set on line {first_line}, column {first_column}: keep one of them"
    )]
    DuplicateKey {
        /// The key.
        key: String,
        /// Line of the first one.
        first_line: usize,
        /// Column of the first one.
        first_column: usize,
    },
    /// A key set before the merge key that replaces it.
    #[error(
        "the merge key replaces {key:?} of line {first_line}, column {first_column}: put << first"
    )]
    MergeReplaces {
        /// The key.
        key: String,
        /// Line of the key that would be lost.
        first_line: usize,
        /// Its column.
        first_column: usize,
    },
    /// A merge key whose value is not a map or a list of maps.
    #[error("a merge key << takes a map or a list of maps")]
    Merge,
    /// A list or map as a key: mostly a template that was not rendered.
    #[error("a key has to be text: is this {{{{ … }}}} of a template that was not rendered?")]
    KeyNotText,
    /// A key that the JSON library takes for its own.
    #[error("{}", entrance::Refused::Key)]
    ReservedKey,
    /// An empty key.
    #[error("a key is missing or null: quote it if it is meant")]
    KeyNull,
    /// `.nan` and `.inf`.
    #[error("JSON has no number for NaN and infinity: quote it if text is meant")]
    NotFinite,
    /// A tag that the text does not fit.
    #[error("this cannot be read as !!{0}")]
    Tag(&'static str),
    /// `!!binary` that is not base64 of UTF-8 text.
    #[error("!!binary has to be base64 of UTF-8 text: put other bytes into binaryData")]
    Binary,
    /// An alias inside of its own anchor.
    #[error("this alias is inside the anchor that it names")]
    RecursiveAlias,
    /// The input is too long.
    #[error("more than {} MiB of YAML", MAX_BYTES >> 20)]
    TooLong,
    /// Nested too deeply.
    #[error("lists and maps are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// Too many nodes.
    #[error("more than {MAX_NODES} values in one file")]
    TooManyNodes,
    /// An alias bomb.
    #[error("anchors and aliases copy more than {} MiB", MAX_COPIED >> 20)]
    TooManyCopies,
}
