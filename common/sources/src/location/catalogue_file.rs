//! Reads a file of catalogues as far as possible and collects all mistakes in it.

use addons_admission::document::{self, UnreadPaths};
use addons_admission::verdict::AdmissionProblem;
use common::api::catalogue::AddonCatalogue;
use common::catalogue::channel::{self, ChannelError, KopsIndex};
use common::manifest::yaml::{FieldPositions, YamlError, YamlOptions, documents};
use serde_json::Value;

use super::{CatalogueError, LocatedCatalogue, is_catalogue, kind_hint, other_kind};

/// A field that names the schema for editors and is not part of the object.
const SCHEMA: &str = "$schema";

/// All catalogues of a file.
#[derive(Debug, Default)]
pub struct CatalogueFile {
    /// The catalogues or the index.
    pub documents: Vec<CatalogueDocument>,
    /// Problems of documents that are neither a catalogue nor an index.
    pub mistakes: Vec<FileMistake>,
}

/// A mistake on a line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMistake {
    /// The line, starting from 1.
    pub line: usize,
    /// The column, starting from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// A catalogue or an index with the positions of its fields in the file, as far as it can be read.
#[derive(Debug)]
pub struct CatalogueDocument {
    /// The catalogue as it would be added.
    pub located: LocatedCatalogue,
    /// Violations of the schema. They name fields of the file.
    pub problems: Vec<AdmissionProblem>,
    /// The fields that could not be read.
    pub unread: UnreadPaths,
    index: Option<KopsIndex>,
    places: FieldPositions,
}

impl CatalogueDocument {
    /// Returns the field of the file from which a field of the catalogue was read. They differ if the file is
    /// an index.
    #[must_use]
    pub fn source_field(&self, field: &str) -> String {
        match &self.index {
            Some(index) => index.index_field(field),
            None => field.to_owned(),
        }
    }

    /// Returns the line and column of a field of the file.
    #[must_use]
    pub fn position(&self, field: &str) -> (usize, usize) {
        self.places.position(field)
    }

    /// Returns the line and column in the file of a position in the text of a field, if that text is written
    /// line by line.
    #[must_use]
    pub fn position_in_text(
        &self,
        field: &str,
        line: usize,
        column: usize,
    ) -> Option<(usize, usize)> {
        self.places.position_inside(field, line, column)
    }
}

/// Reads the content of a file that comes from `location`.
#[must_use]
pub fn read_all(bytes: &[u8], location: &str) -> CatalogueFile {
    if channel::holds_index(bytes) {
        return index(bytes, location);
    }
    let mut found = CatalogueFile::default();
    for document in documents(bytes, &YamlOptions::default()) {
        match document {
            Err(error) => found.mistakes.push(yaml_mistake(&error)),
            Ok(document) if document.value.is_null() => {}
            Ok(document) if is_catalogue(&document.value) => {
                let mut read = document::read(&document.value);
                read.problems.retain(|problem| problem.field != SCHEMA);
                found.documents.push(CatalogueDocument {
                    located: LocatedCatalogue::new(read.object, Vec::new(), location.to_owned()),
                    problems: read.problems,
                    unread: read.unread,
                    index: None,
                    places: FieldPositions::from_document(bytes, document.line),
                });
            }
            Ok(document) => found
                .mistakes
                .push(kind_mistake(document.line, &document.value)),
        }
    }
    if found.documents.is_empty() && found.mistakes.is_empty() {
        found.mistakes.push(kind_mistake(1, &Value::Null));
    }
    found
}

fn index(bytes: &[u8], location: &str) -> CatalogueFile {
    let mut lines = documents(bytes, &YamlOptions::default()).filter_map(Result::ok);
    let first = lines.find(|document| !document.value.is_null());
    let places = FieldPositions::from_document(bytes, first.map_or(1, |document| document.line));
    let (channel, mistakes) = match channel::parse_all(bytes, location) {
        Ok(read) => read,
        Err(error) => {
            let mistakes = vec![channel_mistake(&error, &places)];
            return CatalogueFile {
                documents: Vec::new(),
                mistakes,
            };
        }
    };
    let problem = |(field, error)| {
        let message = match error {
            ChannelError::Entry { problem, .. } => problem.to_string(),
            error => error.to_string(),
        };
        AdmissionProblem::invalid("schema", field, message)
    };
    let object = AddonCatalogue::new(&channel.name, channel.spec.clone());
    let index = LocatedCatalogue::new(object, channel.warnings.clone(), location.to_owned());
    let part = CatalogueDocument {
        located: LocatedCatalogue {
            is_index: true,
            ..index
        },
        problems: mistakes.into_iter().map(problem).collect(),
        unread: UnreadPaths::default(),
        index: Some(channel),
        places,
    };
    CatalogueFile {
        documents: vec![part],
        mistakes: Vec::new(),
    }
}

fn yaml_mistake(error: &YamlError) -> FileMistake {
    FileMistake {
        line: error.line,
        column: error.column,
        message: error.problem.to_string(),
    }
}

fn channel_mistake(error: &ChannelError, places: &FieldPositions) -> FileMistake {
    let at = |field, message| {
        let (line, column) = places.position(field);
        FileMistake {
            line,
            column,
            message,
        }
    };
    match error {
        ChannelError::Yaml { source, .. } => yaml_mistake(source),
        ChannelError::Type {
            field, expected, ..
        } => at(field, format!("{field} must be {expected}")),
        error => at("", error.to_string()),
    }
}

fn kind_mistake(line: usize, document: &Value) -> FileMistake {
    let message = match other_kind(String::new(), document) {
        CatalogueError::Kind { found, near, .. } => {
            let meant = kind_hint(near);
            format!("{found} is neither an AddonCatalogue nor a kops index{meant}")
        }
        error => error.to_string(),
    };
    FileMistake {
        line,
        column: 1,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_read() {
        let file = "\
apiVersion: kubectl-addons.dev/v1alpha1
kind: AddonCatalogue
metadata: {name: c}
spec:
  addons:
  - name: web
    versions:
    - {version: 1, source: {}}
---
a: [
---
kind: Deployment
";
        let found = read_all(file.as_bytes(), "c.yaml");
        let [part] = found.documents.as_slice() else {
            panic!("{found:?}");
        };
        let at: Vec<_> = part
            .problems
            .iter()
            .map(|it| part.position(&it.field))
            .collect();
        assert_eq!(at, [(8, 20), (8, 8)], "{:?}", part.problems);
        let lines: Vec<usize> = found.mistakes.iter().map(|it| it.line).collect();
        assert_eq!(lines, [10, 12], "{:?}", found.mistakes);
    }

    #[test]
    fn fields_of_an_index_are_named_as_it_has_them() {
        let file = "\
kind: Addons
spec:
  addons:
  - {name: a, manifest: a.yaml}
  - {name: b}
  - name: a
    manifest: c.yaml
    kubernetesVersion: '>=1.30.0'
";
        let found = read_all(file.as_bytes(), "i.yaml");
        let part = &found.documents[0];
        assert_eq!(part.problems[0].field, "spec.addons[1]");
        for (field, expected, line) in [
            (
                "spec.addons[0].versions[1].source.url.manifest",
                "spec.addons[2].manifest",
                7,
            ),
            (
                "spec.addons[0].versions[1].constraints.kubernetesVersion",
                "spec.addons[2].kubernetesVersion",
                8,
            ),
            ("spec.addons[0].name", "spec.addons[0].name", 4),
        ] {
            assert_eq!(part.source_field(field), expected);
            assert_eq!(part.position(expected).0, line);
        }
        assert_eq!(read_all(b"", "e").mistakes[0].line, 1);
    }
}
