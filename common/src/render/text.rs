//! The text that manifests are read from, cut where the output of each file begins.

use crate::manifest::parse::{self, Options, Parsed};
use crate::manifest::parse::{File, ManifestError};

use super::package::Package;

/// Endings of files with plain manifests.
const MANIFESTS: [&str; 3] = [".yaml", ".yml", ".json"];

/// What a package gives, before it is parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// The output of each file, in order.
    pub sections: Vec<Section>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// The output of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The file; empty where the location of the package names it already.
    pub file: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Text {
    /// Method `manifest`: the files as they are; of a folder those that end in `.yaml`, `.yml` or `.json`.
    #[must_use]
    pub fn plain(package: Package) -> Self {
        let is_file = package.as_file().is_some();
        let files = package.into_files().into_iter();
        let sections = files
            .filter(|file| is_file || MANIFESTS.iter().any(|end| file.path.ends_with(end)))
            .map(|file| Section {
                file: if is_file { String::new() } else { file.path },
                bytes: file.bytes,
            });
        Self {
            sections: sections.collect(),
            warnings: Vec::new(),
        }
    }

    /// All of it, as it is.
    #[must_use]
    pub fn raw(&self) -> Vec<u8> {
        let sections = self.sections.iter();
        sections.flat_map(|section| section.bytes.clone()).collect()
    }

    /// Its objects; `location` is where the package was read, and places are `LOCATION/FILE:LINE`, the line that of the
    /// file's output.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn objects(&self, location: &str, options: &Options) -> Result<Parsed, ManifestError> {
        let names: Vec<String> = self
            .sections
            .iter()
            .map(|section| match section.file.as_str() {
                "" => location.to_owned(),
                file => format!("{}/{file}", location.trim_end_matches('/')),
            })
            .collect();
        let files = self.sections.iter().zip(&names);
        let files = files.map(|(section, name)| File {
            name,
            bytes: &section.bytes,
        });
        let mut parsed = parse::parse_files(files, options)?;
        parsed.warnings.splice(0..0, self.warnings.iter().cloned());
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::package::File;
    use super::*;

    fn config_map(path: &str, name: &str) -> File {
        File {
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
        let text = Text::plain(Package::folder(files).unwrap());
        let parsed = text
            .objects("https://example/repo/", &Options::default())
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
    fn a_file_is_a_manifest_whatever_its_name() {
        let one = config_map("manifest", "a");
        let text = Text::plain(Package::file(one.path, one.bytes.clone()));
        assert_eq!(text.raw(), one.bytes);
        let parsed = text.objects("./manifest", &Options::default()).unwrap();
        assert_eq!(parsed.manifests[0].place.to_string(), "./manifest:1");
    }
}
