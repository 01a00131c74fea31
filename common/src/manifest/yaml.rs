//! Reads YAML streams as Kubernetes' own loader does (`tests/golden/yaml`). Documents become JSON values.
//!
//! As upstream, a stream is split at lines that begin with `---` before any YAML is parsed, and scalars are those of YAML 1.1: `yes` is
//! true (also as a key), `0644` is 420, dates are text. Input in which the original silently loses data is refused: repeated keys, a merge
//! key after the key that it replaces, bytes that are not text, and keys that cannot be read back as JSON ([`crate::entrance`]). A second
//! document after `...`, which the original drops, is read. JSON is YAML, so the same code reads it.
//!
//! Sizes are limited: [`MAX_BYTES`], [`MAX_DEPTH`], [`MAX_NODES`], [`MAX_COPIED`].

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
use section::YamlSection;

pub use error::{YamlError, YamlProblem};
pub use places::FieldPositions;

/// Maximum size of the input, in bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// Maximum nesting of lists and maps, which is the depth that can be read back as JSON.
pub const MAX_DEPTH: usize = entrance::MAX_DEPTH;
/// Maximum number of scalars, lists and maps of a stream, including copies by aliases. The longest manifests have fewer, and each takes
/// memory.
pub const MAX_NODES: usize = 2_000_000;
/// Maximum number of bytes that anchors and aliases may copy in a stream. A node counts as 64 bytes.
pub const MAX_COPIED: usize = 16 << 20;

/// How a stream is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct YamlOptions {
    /// How a repeated key is handled.
    pub duplicate_keys: DuplicateKeys,
    /// How an unquoted number with a point or an exponent is read.
    pub floats: FloatReading,
}

/// How a repeated key is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DuplicateKeys {
    /// An error that names both positions.
    #[default]
    Error,
    /// The last one counts, as in Kubernetes' lenient loader. kops indexes are read this way.
    LastWins,
}

/// How an unquoted number with a point or an exponent is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FloatReading {
    /// As a number, like in Kubernetes.
    #[default]
    Number,
    /// As text: an unquoted `version: 1.10` does not become 1.1.
    Text,
}

/// A document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlDocument {
    /// The document as JSON; null if it contains only comments.
    pub value: Value,
    /// Line of its root node in the stream, from 1.
    pub line: usize,
    /// Lines of the elements of a list `items` at the root, which are the objects of a `List`.
    pub item_lines: Vec<usize>,
}

/// Reads a stream document by document.
///
/// A document with an error is replaced by the error, and the stream continues after it, as upstream. Only text after a `---`, and an input
/// over [`MAX_BYTES`] or [`MAX_NODES`], ends the stream. Collect into `Result<Vec<_>, _>` to stop at the first error.
#[must_use]
pub fn documents<'a>(bytes: &'a [u8], options: &YamlOptions) -> YamlDocuments<'a> {
    YamlDocuments {
        rest: Some(bytes),
        line: 1,
        read: VecDeque::new(),
        budget: section::YamlBudget::default(),
        options: *options,
    }
}

/// Iterator over the documents of a stream; see [`documents`].
#[derive(Debug)]
pub struct YamlDocuments<'a> {
    /// The rest to read; `None` after an error that ends the stream.
    rest: Option<&'a [u8]>,
    /// Line of the first byte of `rest`.
    line: usize,
    /// Documents of a section that were not returned yet. There are several only if `...` separates them.
    read: VecDeque<YamlDocument>,
    budget: section::YamlBudget,
    options: YamlOptions,
}

impl Iterator for YamlDocuments<'_> {
    type Item = Result<YamlDocument, YamlError>;

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
            match section::read_documents(&section, &self.options, &mut self.budget) {
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

impl<'a> YamlDocuments<'a> {
    /// Splits off the next section, as `k8s.io/apimachinery/pkg/util/yaml` does: a separator line ends a section, but the first line of a
    /// section belongs to it even if it is a separator.
    fn next_section(&mut self) -> Option<Result<YamlSection<'a>, YamlError>> {
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
        Some(Ok(YamlSection { bytes, line: start }))
    }
}

/// Returns the first line with its line break, or `None` if there are no bytes.
fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    match memchr::memchr(b'\n', bytes) {
        Some(at) => bytes.get(..=at),
        None => Some(bytes).filter(|rest| !rest.is_empty()),
    }
}

#[cfg(test)]
mod tests;
