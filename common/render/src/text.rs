//! The rendered text of a package, in a section for each file.

use addons_gotemplate::{TemplateError, TemplateFile};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use common::manifest::parse::{
    self, ManifestError, ManifestFile, ManifestOptions, ParsedManifests,
};
use common::manifest::{FilePosition, is_manifest_file};

use super::kkp::{self, RenderError};
use super::package::{self, Package};
use common::values::layers::LayerValues;
use common::values::{self, ValuesError};

/// The package's own values for method `go-template`. This file is not a template.
const VALUES: &str = "values.yaml";
/// The rendered text of a package, before it is parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderedText {
    /// The text of each file, in order.
    pub sections: Vec<TextSection>,
    /// Messages for the user.
    pub warnings: Vec<String>,
}

/// Why the text could not be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A template is not UTF-8.
    #[error("{file}: the template is not UTF-8: save the file as UTF-8")]
    NotUtf8 {
        /// The file.
        file: String,
    },
    /// The folder contains no templates.
    #[error(
        "no file in it ends in .yaml: give the folder of the templates as the path of the source"
    )]
    NoTemplate,
    /// A template failed.
    #[error(transparent)]
    Template(#[from] RenderError),
}

/// Returns the file with the default values of a folder of templates, or of a chart: `values.yaml` at its root.
#[must_use]
pub fn values_file(package: &Package) -> Option<&package::PackagedFile> {
    package.get(VALUES).filter(|_| package.as_file().is_none())
}

/// Returns the values of a package of templates.
///
/// # Errors
/// The file is not a map.
pub fn package_values(package: &Package) -> Result<LayerValues, ValuesError> {
    match values_file(package) {
        Some(file) => Ok(LayerValues::new(
            format!("{VALUES} of the package"),
            values::read(&file.bytes, VALUES)?,
        )),
        None => Ok(LayerValues::default()),
    }
}

/// Returns the templates of a package: the file, or the files of a folder that end in `.yaml`, except the values.
fn find_templates(package: &Package) -> Result<Vec<TemplateFile<'_>>, TextError> {
    let is_file = package.as_file().is_some();
    let files = package.files().iter();
    let files =
        files.filter(|file| is_file || (file.path.ends_with(".yaml") && file.path != VALUES));
    let mut templates = Vec::new();
    for file in files {
        let name = file.path.as_str();
        let text = std::str::from_utf8(&file.bytes).map_err(|_| TextError::NotUtf8 {
            file: name.to_owned(),
        })?;
        templates.push(TemplateFile { name, text });
    }
    if templates.is_empty() {
        return Err(TextError::NoTemplate);
    }
    Ok(templates)
}

/// Returns all reasons why the templates of a package fail whatever the data, with their positions. Each file is checked by itself.
/// `location` is that of the package.
#[must_use]
pub fn invalid_templates(package: &Package, location: &str) -> Vec<(FilePosition, String)> {
    let whole = FilePosition {
        file: location.to_owned(),
        ..FilePosition::default()
    };
    let templates = match find_templates(package) {
        Ok(templates) => templates,
        Err(error) => return vec![(whole, error.to_string())],
    };
    let is_file = package.as_file().is_some();
    let mistake = |template: TemplateFile<'_>| {
        let TemplateError::Parse { place, problem } = kkp::check(template).err()? else {
            return None;
        };
        let file = match is_file {
            true => location.to_owned(),
            false => format!("{}/{}", location.trim_end_matches('/'), place.file),
        };
        let place = FilePosition {
            file,
            line: place.line,
            column: place.column,
        };
        Some((place, problem))
    };
    templates.into_iter().filter_map(mistake).collect()
}

/// The text of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextSection {
    /// Path of the file; empty if the location of the package already names it.
    pub file: String,
    /// Its bytes.
    #[serde(with = "base64")]
    pub bytes: Vec<u8>,
}

/// Serializes bytes as base64 in JSON.
pub(super) mod base64 {
    use ::base64::Engine as _;
    use ::base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(D::Error::custom)
    }
}

impl RenderedText {
    /// Method `manifest`: returns the files unchanged. Of a folder, these are the files that end in `.yaml`, `.yml` or `.json`.
    #[must_use]
    pub fn from_manifests(package: Package) -> Self {
        let is_file = package.as_file().is_some();
        let files = package.into_files().into_iter();
        let sections = files
            .filter(|file| is_file || is_manifest_file(&file.path))
            .map(|file| TextSection {
                file: if is_file { String::new() } else { file.path },
                bytes: file.bytes,
            });
        Self {
            sections: sections.collect(),
            warnings: Vec::new(),
        }
    }

    /// Method `go-template`: renders the files of a folder that end in `.yaml`, as Kubermatic does, except [`package_values`].
    ///
    /// # Errors
    /// A file is not UTF-8, or not a valid template.
    pub fn from_templates(
        package: &Package,
        data: &Value,
        options: &kkp::KkpOptions,
    ) -> Result<Self, TextError> {
        let is_file = package.as_file().is_some();
        let templates = find_templates(package)?;
        let rendered = kkp::render(&templates, data, options)?;
        let mut sections = Vec::with_capacity(templates.len());
        let ends = rendered.starts.iter().skip(1).copied();
        let ends = ends.chain([rendered.text.len()]);
        for ((template, start), end) in templates.iter().zip(&rendered.starts).zip(ends) {
            let text = rendered.text.get(*start..end).unwrap_or_default();
            sections.push(TextSection {
                file: if is_file {
                    String::new()
                } else {
                    template.name.to_owned()
                },
                bytes: text.as_bytes().to_vec(),
            });
        }
        Ok(Self {
            sections,
            warnings: rendered.warnings.iter().map(ToString::to_string).collect(),
        })
    }

    /// Method `helm`: wraps the output of helm.
    #[must_use]
    pub fn from_chart(text: String) -> Self {
        Self {
            sections: vec![TextSection {
                file: String::new(),
                bytes: text.into_bytes(),
            }],
            warnings: Vec::new(),
        }
    }

    /// Returns the whole text, unchanged.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let sections = self.sections.iter();
        let sections: Vec<&[u8]> = sections.map(|section| section.bytes.as_slice()).collect();
        sections.concat()
    }

    /// Parses the objects. `location` is that of the package. Positions are `LOCATION/FILE:LINE`, with the line in the file's output.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn parse_objects(
        &self,
        location: &str,
        options: &ManifestOptions,
    ) -> Result<ParsedManifests, ManifestError> {
        let names = self.file_names(location);
        let mut parsed = parse::parse_files(self.files(&names), options)?;
        parsed.warnings.splice(0..0, self.warnings.iter().cloned());
        Ok(parsed)
    }

    /// Returns all reasons why [`RenderedText::parse_objects`] would fail.
    #[must_use]
    pub fn find_mistakes(&self, location: &str, options: &ManifestOptions) -> Vec<ManifestError> {
        let names = self.file_names(location);
        parse::parse_all(self.files(&names), options).1
    }

    /// Returns the names of the files in messages.
    fn file_names(&self, location: &str) -> Vec<String> {
        let sections = self.sections.iter();
        let name = |section: &TextSection| match section.file.as_str() {
            "" => location.to_owned(),
            file => format!("{}/{file}", location.trim_end_matches('/')),
        };
        sections.map(name).collect()
    }

    fn files<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = ManifestFile<'a>> {
        let files = self.sections.iter().zip(names);
        files.map(|(section, name)| ManifestFile {
            name,
            bytes: &section.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::package::PackagedFile;
    use super::*;

    fn config_map(path: &str, name: &str) -> PackagedFile {
        PackagedFile {
            path: path.to_owned(),
            bytes: format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
                .into_bytes(),
        }
    }

    #[test]
    fn a_folder_gives_its_manifests_with_their_places() {
        let files = vec![
            config_map("b.yml", "b"),
            config_map("a/c.json", "c"),
            config_map("README.md", "none"),
        ];
        let text = RenderedText::from_manifests(Package::from_folder(files).unwrap());
        let parsed = text
            .parse_objects("https://example/repo/", &ManifestOptions::default())
            .unwrap();
        let places: Vec<String> = parsed
            .manifests
            .iter()
            .map(|manifest| manifest.place.to_string())
            .collect();
        assert_eq!(
            places,
            [
                "https://example/repo/a/c.json:1",
                "https://example/repo/b.yml:1"
            ]
        );
    }

    #[test]
    fn every_invalid_template_is_named() {
        let file = |path: &str, text: &str| PackagedFile {
            path: path.to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        let package = Package::from_folder(vec![
            file("a.yaml", "a: {{ .x }}\nb: {{ if }}\n"),
            file(
                "b.yaml",
                "{{ Image \"docker.io/a/b:1\" }} {{ .Cluster.Name | upper }}",
            ),
            file("c.yaml", "{{ include \"x\" . }}"),
            file("values.yaml", "{{"),
        ]);
        let found = invalid_templates(&package.unwrap(), "templates/");
        let places: Vec<String> = found.iter().map(|(place, _)| place.to_string()).collect();
        assert_eq!(places, ["templates/a.yaml:2:10", "templates/c.yaml:1:4"]);
        let one = Package::from_file("x", b"\n{{ end }}".to_vec());
        let found = invalid_templates(&one, "x.yaml");
        assert_eq!(found[0].0.to_string(), "x.yaml:2:4");
    }

    #[test]
    fn a_file_is_a_manifest_whatever_its_name() {
        let one = config_map("manifest", "a");
        let text = RenderedText::from_manifests(Package::from_file(one.path, one.bytes.clone()));
        assert_eq!(text.to_bytes(), one.bytes);
        let parsed = text
            .parse_objects("./manifest", &ManifestOptions::default())
            .unwrap();
        assert_eq!(parsed.manifests[0].place.to_string(), "./manifest:1");
    }
}
