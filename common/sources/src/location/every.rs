//! Everything that a file of catalogues holds, and everything that is wrong with it.

use addons_admission::document::{self, Unread};
use addons_admission::verdict::Problem;
use common::api::catalogue::AddonCatalogue;
use common::catalogue::channel::{self, Channel, ChannelError};
use common::manifest::yaml::{Places, YamlError, YamlOptions, documents};
use serde_json::Value;

use super::{CatalogueError, Located, is_catalogue, located, meant, other_kind};

/// Names the schema of the file for editors; no field of the object.
const SCHEMA: &str = "$schema";

/// The content of a file.
#[derive(Debug, Default)]
pub struct Everything {
    /// What is a catalogue or an index, as far as it can be read.
    pub parts: Vec<Part>,
    /// What is none.
    pub mistakes: Vec<Mistake>,
}

/// Something wrong on a line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// A catalogue or an index, as far as it can be read.
#[derive(Debug)]
pub struct Part {
    /// As it would be added.
    pub located: Located,
    /// What its schema does not allow; their fields are those of the file.
    pub problems: Vec<Problem>,
    /// What could not be read.
    pub unread: Unread,
    index: Option<Channel>,
    places: Places,
}

impl Part {
    /// The field of the file that a field of the catalogue was read from: they differ where the file is an index.
    #[must_use]
    pub fn written(&self, field: &str) -> String {
        match &self.index {
            Some(index) => index.written(field),
            None => field.to_owned(),
        }
    }

    /// Line and column of a field of the file.
    #[must_use]
    pub fn at(&self, field: &str) -> (usize, usize) {
        self.places.at(field)
    }

    /// Line and column of a place in the text of a field of the file, where it is written line by line.
    #[must_use]
    pub fn inside(&self, field: &str, line: usize, column: usize) -> Option<(usize, usize)> {
        self.places.inside(field, line, column)
    }
}

/// What a file holds that was read at `location`.
#[must_use]
pub fn every(bytes: &[u8], location: &str) -> Everything {
    if channel::holds_index(bytes) {
        return index(bytes, location);
    }
    let mut found = Everything::default();
    for document in documents(bytes, &YamlOptions::default()) {
        match document {
            Err(error) => found.mistakes.push(of_yaml(&error)),
            Ok(document) if document.value.is_null() => {}
            Ok(document) if is_catalogue(&document.value) => {
                let mut read = document::read(&document.value);
                read.problems.retain(|problem| problem.field != SCHEMA);
                found.parts.push(Part {
                    located: located(read.object, Vec::new(), location.to_owned()),
                    problems: read.problems,
                    unread: read.unread,
                    index: None,
                    places: Places::of(bytes, document.line),
                });
            }
            Ok(document) => found.mistakes.push(of_kind(document.line, &document.value)),
        }
    }
    if found.parts.is_empty() && found.mistakes.is_empty() {
        found.mistakes.push(of_kind(1, &Value::Null));
    }
    found
}

fn index(bytes: &[u8], location: &str) -> Everything {
    let mut lines = documents(bytes, &YamlOptions::default()).filter_map(Result::ok);
    let first = lines.find(|document| !document.value.is_null());
    let places = Places::of(bytes, first.map_or(1, |document| document.line));
    let (channel, mistakes) = match channel::every(bytes, location) {
        Ok(read) => read,
        Err(error) => {
            let mistakes = vec![of_channel(&error, &places)];
            return Everything {
                parts: Vec::new(),
                mistakes,
            };
        }
    };
    let problem = |(field, error)| {
        let message = match error {
            ChannelError::Entry { problem, .. } => problem.to_string(),
            error => error.to_string(),
        };
        Problem::invalid("schema", field, message)
    };
    let object = AddonCatalogue::new(&channel.name, channel.spec.clone());
    let index = located(object, channel.warnings.clone(), location.to_owned());
    let part = Part {
        located: Located {
            is_index: true,
            ..index
        },
        problems: mistakes.into_iter().map(problem).collect(),
        unread: Unread::default(),
        index: Some(channel),
        places,
    };
    Everything {
        parts: vec![part],
        mistakes: Vec::new(),
    }
}

fn of_yaml(error: &YamlError) -> Mistake {
    Mistake {
        line: error.line,
        column: error.column,
        message: error.problem.to_string(),
    }
}

fn of_channel(error: &ChannelError, places: &Places) -> Mistake {
    let at = |field, message| {
        let (line, column) = places.at(field);
        Mistake {
            line,
            column,
            message,
        }
    };
    match error {
        ChannelError::Yaml { source, .. } => of_yaml(source),
        ChannelError::Type {
            field, expected, ..
        } => at(field, format!("{field} must be {expected}")),
        error => at("", error.to_string()),
    }
}

fn of_kind(line: usize, document: &Value) -> Mistake {
    let message = match other_kind(String::new(), document) {
        CatalogueError::Kind { found, near, .. } => {
            let meant = meant(near);
            format!("{found} is neither an AddonCatalogue nor a kops index{meant}")
        }
        error => error.to_string(),
    };
    Mistake {
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
        let found = every(file.as_bytes(), "c.yaml");
        let [part] = found.parts.as_slice() else {
            panic!("{found:?}");
        };
        let at: Vec<_> = part.problems.iter().map(|it| part.at(&it.field)).collect();
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
        let found = every(file.as_bytes(), "i.yaml");
        let part = &found.parts[0];
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
            assert_eq!(part.written(field), expected);
            assert_eq!(part.at(expected).0, line);
        }
        assert_eq!(every(b"", "e").mistakes[0].line, 1);
    }
}
