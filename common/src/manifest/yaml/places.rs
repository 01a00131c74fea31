//! Maps the paths of fields in a document to positions, so that messages about the document can name line and column.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::section::YamlSection;
use super::text::section_text;
use super::{YamlOptions, documents};

/// The positions of the fields of one document.
///
/// Paths are written as in messages: `spec.addons[0].versions[1].source`. Of a document that only Kubernetes' loader can read, positions
/// are known up to the first error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPositions {
    root: FieldPosition,
    spots: HashMap<String, FieldPosition>,
}

/// The position of a field: of its key, or of a list element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FieldPosition {
    line: usize,
    column: usize,
    /// For a block text (`|`): the line above its first line, and its indentation.
    block: Option<(usize, usize)>,
}

impl FieldPositions {
    /// Returns the positions of the document whose root is on `line` of a stream; see [`super::YamlDocument::line`].
    #[must_use]
    pub fn from_document(bytes: &[u8], line: usize) -> Self {
        let mut stream = documents(bytes, &YamlOptions::default());
        while let Some(section) = stream.next_section() {
            let Ok(section) = section else { continue };
            let mut found = read_positions(&section).into_iter();
            if let Some(places) = found.find(|places| places.root.line == line) {
                return places;
            }
        }
        let root = FieldPosition {
            line,
            column: 1,
            block: None,
        };
        Self {
            root,
            spots: HashMap::new(),
        }
    }

    /// Returns line and column of a field, from 1. If it is missing, they are those of the field that would contain it.
    #[must_use]
    pub fn position(&self, field: &str) -> (usize, usize) {
        let spot = self.find_position(field);
        (spot.line, spot.column)
    }

    /// Converts a line and column in the text of a field to those in the stream. `None` if the text is not a block.
    #[must_use]
    pub fn position_inside(
        &self,
        field: &str,
        line: usize,
        column: usize,
    ) -> Option<(usize, usize)> {
        let (above, indentation) = self.spots.get(field)?.block?;
        Some((above + line, indentation + column))
    }

    fn find_position(&self, field: &str) -> FieldPosition {
        let mut path = field;
        loop {
            if let Some(spot) = self.spots.get(path) {
                return *spot;
            }
            match path.rfind(['.', '[']).and_then(|end| path.get(..end)) {
                Some(parent) => path = parent,
                None => return self.root,
            }
        }
    }
}

/// An open list or map, with its path.
enum OpenNode {
    List(String, usize),
    Map(String, Option<String>),
}

/// Reads the documents of a section, up to the first mistake.
fn read_positions(section: &YamlSection<'_>) -> Vec<FieldPositions> {
    let Ok(text) = section_text(section) else {
        return Vec::new();
    };
    let mut walk = PositionReader {
        text,
        above: section.line - 1,
        open: Vec::new(),
        places: FieldPositions::default(),
    };
    let mut found = Vec::new();
    let mut parser = Parser::new_from_str(text);
    while let Some(Ok((event, span))) = parser.next_event() {
        if matches!(event, Event::DocumentEnd) {
            walk.open.clear();
            found.push(std::mem::take(&mut walk.places));
        } else {
            walk.handle_event(&event, &span);
        }
    }
    found.push(walk.places);
    found
}

struct PositionReader<'t> {
    text: &'t str,
    /// Number of lines of the stream before the section.
    above: usize,
    open: Vec<OpenNode>,
    places: FieldPositions,
}

impl PositionReader<'_> {
    fn handle_event(&mut self, event: &Event<'_>, span: &Span) {
        match event {
            Event::Scalar(text, style, ..) => {
                let path = self.record_node(text, span);
                // The position of an element is that of its dash, and its text may begin on a later line.
                if *style == ScalarStyle::Literal
                    && let Some(path) = path.filter(|path| !path.ends_with(']'))
                {
                    self.record_block(&path);
                }
            }
            Event::Alias(_) => {
                self.record_node("", span);
            }
            Event::SequenceStart(..) => {
                let path = self.record_node("", span).unwrap_or_default();
                self.open.push(OpenNode::List(path, 0));
            }
            Event::MappingStart(..) => {
                let path = self.record_node("", span).unwrap_or_default();
                self.open.push(OpenNode::Map(path, None));
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.open.pop();
            }
            _ => {}
        }
    }

    /// Records the position of a node. Returns the path of a value, or `None` for a key.
    fn record_node(&mut self, text: &str, span: &Span) -> Option<String> {
        let spot = FieldPosition {
            line: self.above + span.start.line(),
            column: span.start.col() + 1,
            block: None,
        };
        let (path, is_key) = match self.open.last_mut() {
            None => {
                self.places.root = spot;
                return Some(String::new());
            }
            Some(OpenNode::List(path, index)) => {
                *index += 1;
                (format!("{path}[{}]", *index - 1), false)
            }
            Some(OpenNode::Map(path, key)) => match key.take() {
                Some(key) => return Some(key),
                None => {
                    let field = match path.as_str() {
                        "" => text.to_owned(),
                        path => format!("{path}.{text}"),
                    };
                    *key = Some(field.clone());
                    (field, true)
                }
            },
        };
        self.places.spots.entry(path.clone()).or_insert(spot);
        (!is_key).then_some(path)
    }

    /// Records where the lines of a block text are: below the key with its `|`, indented like the first line that is not blank.
    fn record_block(&mut self, path: &str) {
        let above = self.above;
        let Some(spot) = self.places.spots.get_mut(path) else {
            return;
        };
        let mut lines = self.text.lines().skip(spot.line - above);
        let first = lines.find(|line| !line.trim().is_empty());
        let indentation = first.map(|line| line.len() - line.trim_start_matches(' ').len());
        spot.block = Some((spot.line, indentation.unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# A comment.
---
kind: Other
---
kind: A
spec:
  addons:
  - name: web
    versions:
    - {version: 1.0.0, source: {inline: {manifest: a}}}
    -
      version: 1.1.0
      source:
        inline:
          manifest: |
            kind: ConfigMap
            a: [
";

    #[test]
    fn a_field_has_its_place_and_a_missing_one_that_of_its_parent() {
        let places = FieldPositions::from_document(FILE.as_bytes(), 5);
        for (field, expected) in [
            ("kind", (5, 1)),
            ("spec.addons[0].name", (8, 5)),
            ("spec.addons[0].versions[0]", (10, 7)),
            (
                "spec.addons[0].versions[0].source.inline.manifest",
                (10, 42),
            ),
            ("spec.addons[0].versions[1]", (12, 7)),
            ("spec.addons[0].versions[1].manifestHash", (12, 7)),
            ("spec.addons[0].versions[1].source.git.ref", (13, 7)),
            ("spec.addons[7].name", (7, 3)),
            ("metadata.labels[a.b/c]", (5, 1)),
            ("", (5, 1)),
        ] {
            assert_eq!(places.position(field), expected, "{field}");
        }
    }

    #[test]
    fn a_line_of_a_text_has_its_place() {
        let places = FieldPositions::from_document(FILE.as_bytes(), 5);
        let field = "spec.addons[0].versions[1].source.inline.manifest";
        assert_eq!(places.position_inside(field, 2, 4), Some((17, 16)));
        let field = "spec.addons[0].versions[0].source.inline.manifest";
        assert_eq!(places.position_inside(field, 1, 1), None);
    }

    #[test]
    fn what_cannot_be_read_is_known_up_to_there() {
        let places = FieldPositions::from_document(b"a: 1\nb:\n  c: [\n", 1);
        assert_eq!(places.position("b.c"), (3, 3));
        assert_eq!(places.position("d"), (1, 1));
    }
}
