//! Errors of templates, and positions in them.

use std::fmt;

/// Why rendering failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A file is not a valid template: nothing was rendered.
    #[error("{place}: {problem}")]
    Parse {
        /// Where the problem was found.
        place: TemplatePosition,
        /// What is wrong.
        problem: String,
    },
    /// Rendering failed.
    #[error("{place}: at <{action}>: {problem}")]
    Execute {
        /// Where the failing part of the action is.
        place: TemplatePosition,
        /// The failing part of the action.
        action: String,
        /// What is wrong.
        problem: String,
    },
}

/// A position in a template. Lines and columns begin at 1. Columns count characters (Go counts bytes from 0).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplatePosition {
    /// The file's name.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A problem at a byte of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxProblem {
    /// Byte offset.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

impl TemplateError {
    /// Returns where the problem is.
    #[must_use]
    pub fn place(&self) -> &TemplatePosition {
        match self {
            Self::Parse { place, .. } | Self::Execute { place, .. } => place,
        }
    }
}

impl SyntaxProblem {
    /// A problem with `message` at byte `at`.
    #[must_use]
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}

impl TemplatePosition {
    /// The position of byte `at` in `text`, the content of `file`.
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

impl fmt::Display for TemplatePosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}
