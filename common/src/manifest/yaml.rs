//! YAML streams as Kubernetes' own loader reads them (`tests/golden/yaml`): documents become JSON values.
//!
//! As upstream, a stream is cut at lines that begin with `---` before any YAML is parsed, and scalars are
//! those of YAML 1.1: `yes` is true (also as a key), `0644` is 420, dates are text. Where the original loses data
//! silently we refuse instead: repeated keys, a merge key after the key that it replaces, bytes that are not
//! text, a second document after `...` (which we read), keys that cannot be read back as JSON ([`crate::entrance`]). JSON is YAML, so it is read by the same code.
//!
//! Sizes are bounded: [`MAX_BYTES`], [`MAX_DEPTH`], [`MAX_NODES`], [`MAX_COPIED`].

mod build;
mod error;
mod indent;
mod map;
mod places;
mod scalar;
mod section;
mod text;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entrance;
use section::Section;

pub use error::{YamlError, YamlProblem};
pub use places::Places;

/// Longest input, in bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// Deepest nesting of lists and maps: what can be read back as JSON.
pub const MAX_DEPTH: usize = entrance::MAX_DEPTH;
/// Most scalars, lists and maps of a stream, copies by aliases included: more than the longest manifest has, and each takes memory.
pub const MAX_NODES: usize = 2_000_000;
/// Most bytes that anchors and aliases may copy in a stream; a node counts as 64.
pub const MAX_COPIED: usize = 16 << 20;

/// How a stream is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct YamlOptions {
    /// How a repeated key is handled.
    pub duplicate_keys: DuplicateKeys,
    /// How an unquoted number with a point or an exponent is read.
    pub floats: Floats,
}

/// How a repeated key is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DuplicateKeys {
    /// An error that names both places.
    #[default]
    Error,
    /// The last one counts, as in Kubernetes' lenient loader (kops indexes are read so).
    LastWins,
}

/// How an unquoted number with a point or an exponent is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Floats {
    /// A number, as for Kubernetes.
    #[default]
    Number,
    /// The text as it is written: an unquoted `version: 1.10` is not 1.1.
    Text,
}

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The document as JSON; null where it holds nothing but comments.
    pub value: Value,
    /// Line of its root node, from 1 in the whole stream.
    pub line: usize,
    /// Lines of the elements of a list `items` at its root: where the objects of a `List` begin.
    pub item_lines: Vec<usize>,
}

/// Reads a stream document by document.
///
/// An error replaces the document that it is in, and the stream continues after it, as upstream's does; only
/// a `---` with text behind it and an input over [`MAX_BYTES`] or [`MAX_NODES`] end it. Collect into
/// `Result<Vec<_>, _>` to take all or nothing.
#[must_use]
pub fn documents<'a>(bytes: &'a [u8], options: &YamlOptions) -> Documents<'a> {
    Documents {
        rest: Some(bytes),
        line: 1,
        read: VecDeque::new(),
        budget: section::Budget::default(),
        options: *options,
    }
}

/// The documents of a stream, see [`documents`].
#[derive(Debug)]
pub struct Documents<'a> {
    /// The unread rest; `None` after an error that ends the stream.
    rest: Option<&'a [u8]>,
    /// Line of the first byte of `rest`.
    line: usize,
    /// Documents of a section that were not returned yet: more than one only where `...` separates them.
    read: VecDeque<Document>,
    budget: section::Budget,
    options: YamlOptions,
}

impl Iterator for Documents<'_> {
    type Item = Result<Document, YamlError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(document) = self.read.pop_front() {
                return Some(Ok(document));
            }
            if self.rest.is_some_and(|rest| rest.len() > MAX_BYTES) {
                self.rest = None;
                return Some(Err(YamlError::new(1, 1, YamlProblem::TooLong)));
            }
            let section = match self.next_section()? {
                Ok(section) => section,
                Err(error) => return Some(Err(error)),
            };
            match section::read(&section, &self.options, &mut self.budget) {
                Ok(documents) => self.read.extend(documents),
                Err(error) => {
                    if error.problem == YamlProblem::TooManyNodes {
                        self.rest = None;
                    }
                    return Some(Err(error));
                }
            }
        }
    }
}

impl<'a> Documents<'a> {
    /// Cuts the next section off, as `k8s.io/apimachinery/pkg/util/yaml` does: a separator line ends a section, but
    /// the first line of a section belongs to it even if it is one.
    fn next_section(&mut self) -> Option<Result<Section<'a>, YamlError>> {
        let rest = self.rest?;
        if rest.is_empty() {
            return None;
        }
        let start = self.line;
        let mut length = 0;
        let mut after = rest.len();
        while let Some(line) = rest.get(length..).and_then(first_line) {
            if let Some(tail) = line.strip_prefix(b"---") {
                if tail
                    .trim_ascii_start()
                    .first()
                    .is_some_and(|&byte| byte != b'#')
                {
                    self.rest = None;
                    return Some(Err(YamlError::new(self.line, 4, YamlProblem::Separator)));
                }
                if length > 0 {
                    after = length + line.len();
                    self.line += 1;
                    break;
                }
            }
            length += line.len();
            self.line += 1;
        }
        let (bytes, rest) = (rest.get(..length)?, rest.get(after..)?);
        self.rest = Some(rest);
        Some(Ok(Section { bytes, line: start }))
    }
}

/// The first line with its line break; `None` of nothing.
fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    match memchr::memchr(b'\n', bytes) {
        Some(at) => bytes.get(..=at),
        None => Some(bytes).filter(|rest| !rest.is_empty()),
    }
}

#[cfg(test)]
mod tests;
