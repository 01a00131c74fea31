//! A section of a stream: read once, and again where quoted text has to be indented first.

use granit_parser::Marker;

use super::build::Builder;
use super::error::YamlError;
use super::indent::Indented;
use super::text::text_of;
use super::{Document, YamlOptions};

/// A part of the stream between two separator lines.
pub(super) struct Section<'a> {
    pub(super) bytes: &'a [u8],
    /// Line of its first byte in the stream.
    pub(super) line: usize,
}

/// Most bytes that are read again: a few seconds at worst, and enough for hundreds of texts in the longest of CRDs.
const MAX_REREAD: usize = 256 << 20;
/// The cost of reading a section again, besides its length.
const REREAD_COST: usize = 4096;

/// The consumption of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    pub(super) nodes: usize,
    /// Bytes of scalars.
    pub(super) bytes: usize,
    /// Bytes that anchors and aliases copied.
    pub(super) copied: usize,
    /// Bytes that were read again, see [`Indented`].
    reread: usize,
}

/// The documents of a section: one, but where `...` stands between several, and a null where there is none.
pub(super) fn read(
    section: &Section<'_>,
    options: &YamlOptions,
    budget: &mut Budget,
) -> Result<Vec<Document>, YamlError> {
    let mut indented = Indented::new(text_of(section)?);
    loop {
        let before = *budget;
        match Builder::new(&indented, section.line, options, budget).documents() {
            Ok(documents) => return Ok(documents),
            Err(Failure::Mistake(error)) => return Err(error),
            Err(Failure::UnderIndented(at, error)) => {
                let reread = before.reread + section.bytes.len() + REREAD_COST;
                *budget = Budget { reread, ..before };
                if reread > MAX_REREAD || !indented.indent(&at) {
                    return Err(error);
                }
            }
        }
    }
}

/// Why a section cannot be read unchanged.
pub(super) enum Failure {
    Mistake(YamlError),
    /// A line of a quoted text that only our parser wants to be indented.
    UnderIndented(Marker, YamlError),
}

impl From<YamlError> for Failure {
    fn from(error: YamlError) -> Self {
        Self::Mistake(error)
    }
}
