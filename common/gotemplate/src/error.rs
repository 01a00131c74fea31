//! Errors of templates, and their places.

use std::fmt;

/// Why rendering failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A file is not a valid template: nothing was rendered.
    #[error("{place}: {problem}")]
    Parse {
        /// Where the problem was found.
        place: Place,
        /// What is wrong.
        problem: String,
    },
    /// Rendering failed.
    #[error("{place}: at <{action}>: {problem}")]
    Execute {
        /// The part of the action that failed.
        place: Place,
        /// That part.
        action: String,
        /// What is wrong.
        problem: String,
    },
}

/// A place in a template. Lines and columns begin at 1; a column is a character (Go counts bytes from 0).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file's name.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// What is wrong at a byte of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The byte.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

impl TemplateError {
    /// Where the problem is.
    #[must_use]
    pub fn place(&self) -> &Place {
        match self {
            Self::Parse { place, .. } | Self::Execute { place, .. } => place,
        }
    }
}

impl Problem {
    /// `message` about byte `at`.
    #[must_use]
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}

impl Place {
    /// The place of byte `at` of the `text` of `file`.
    #[must_use]
    pub fn new(file: &str, text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line = before.rfind('\n').map_or(before, |newline| {
            before.get(newline + 1..).unwrap_or_default()
        });
        Self {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}
