//! Reads a section of a stream. If quoted text has to be indented, the section is read again.

use granit_parser::Marker;

use super::build::DocumentBuilder;
use super::error::YamlError;
use super::indent::IndentedText;
use super::text::section_text;
use super::{YamlDocument, YamlOptions};

/// A part of the stream between two separator lines.
pub(super) struct YamlSection<'a> {
    pub(super) bytes: &'a [u8],
    /// Line of its first byte in the stream.
    pub(super) line: usize,
}

/// Maximum number of bytes that are read again: a few seconds at worst, and enough for hundreds of texts in the longest CRDs.
const MAX_REREAD: usize = 256 << 20;
/// Cost of reading a section again, in addition to its length.
const REREAD_COST: usize = 4096;

/// The resources that reading a stream has used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct YamlBudget {
    pub(super) nodes: usize,
    /// Bytes of scalars.
    pub(super) bytes: usize,
    /// Bytes that anchors and aliases copied.
    pub(super) copied: usize,
    /// Bytes that were read again; see [`IndentedText`].
    reread: usize,
}

/// Reads the documents of a section: usually one; several if `...` separates them; null if there is none.
pub(super) fn read_documents(
    section: &YamlSection<'_>,
    options: &YamlOptions,
    budget: &mut YamlBudget,
) -> Result<Vec<YamlDocument>, YamlError> {
    let mut indented = IndentedText::new(section_text(section)?);
    loop {
        let before = *budget;
        match DocumentBuilder::new(&indented, section.line, options, budget).build_documents() {
            Ok(documents) => return Ok(documents),
            Err(SectionError::Mistake(error)) => return Err(error),
            Err(SectionError::UnderIndented(at, error)) => {
                let reread = before.reread + section.bytes.len() + REREAD_COST;
                *budget = YamlBudget { reread, ..before };
                if reread > MAX_REREAD || !indented.indent(&at) {
                    return Err(error);
                }
            }
        }
    }
}

/// Why a section cannot be read.
pub(super) enum SectionError {
    Mistake(YamlError),
    /// A line of a quoted text that only our parser requires to be indented.
    UnderIndented(Marker, YamlError),
}

impl From<YamlError> for SectionError {
    fn from(error: YamlError) -> Self {
        Self::Mistake(error)
    }
}
