//! Turns the texts of a package into objects. It is a function of plain data, so that a caller that does not trust a package can run it in
//! a separate process with bounded memory; request and result are then passed as bytes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::hooks::{self, Occasion};
use super::images;
use super::kkp::{self, Stop};
use super::package::Package;
use super::random::Random;
use super::text::{Section, Text, TextError};
use common::api::catalogue::Method;
use common::causes::with_causes;
use common::entrance;
use common::manifest::key::ObjectKey;
use common::manifest::parse::{ManifestError, Options, Parsed, parse};
use common::manifest::yaml::DuplicateKeys;
use common::manifest::{Manifest, Place};
use common::registry::Registry;

/// The inputs from which the objects of a package are made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The texts, or the templates and their data.
    pub source: Source,
    /// Location of the package. Positions begin with it.
    pub location: String,
    /// How the package is rendered.
    pub method: Method,
    /// The occasion whose hooks are applied; `None` selects all objects.
    pub occasion: Option<Occasion>,
    /// How repeated keys are handled.
    pub duplicate_keys: DuplicateKeys,
    /// The registry that replaces all others.
    pub registry: Option<Registry>,
}

/// The source of the texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Source {
    /// Texts that are already rendered.
    Texts {
        /// The text.
        text: Text,
        /// The second rendering. Fields that differ are random.
        again: Option<Text>,
        /// The files in the `crds/` of charts, which helm does not render.
        crds: Vec<Section>,
    },
    /// Templates with their data.
    Templates {
        /// The templates.
        package: Package,
        /// The data.
        data: Value,
        /// Whether printing a missing value is an error.
        strict: bool,
    },
}

impl Source {
    /// A text that was rendered once, without definitions in `crds/`.
    #[must_use]
    pub fn of_text(text: Text) -> Self {
        Self::Texts {
            text,
            again: None,
            crds: Vec::new(),
        }
    }
}

/// The objects of a package.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objects {
    /// The objects.
    pub manifests: Vec<Manifest>,
    /// Fields that are generated at random.
    pub random: Random,
    /// Hooks that a repair leaves out: [`hooks::Kept::resting`].
    pub resting: Vec<ObjectKey>,
    /// Names of the definitions in `crds/`.
    pub definitions: BTreeSet<String>,
    /// Messages for the user.
    pub warnings: Vec<String>,
    /// Texts that may be images and were not rewritten to the registry.
    pub doubts: Vec<String>,
}

/// Why the objects could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectsError {
    /// A template failed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A manifest is not valid.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// Renders the templates, if any, and parses the texts. `stop` ends the rendering.
///
/// # Errors
/// [`ObjectsError`].
pub fn render(request: &Request, stop: &Stop) -> Result<Objects, ObjectsError> {
    let (text, again, crds) = match &request.source {
        Source::Texts { text, again, crds } => {
            (Cow::Borrowed(text), again.as_ref(), crds.as_slice())
        }
        Source::Templates {
            package,
            data,
            strict,
        } => {
            let options = kkp::Options {
                strict: *strict,
                registry: request.registry.clone(),
                stop: stop.clone(),
                ..kkp::Options::default()
            };
            let text = Text::of_templates(package, data, &options)?;
            (Cow::Owned(text), None, Default::default())
        }
    };
    let (parsed, resting) = parsed(&text, request)?;
    let random = match again {
        Some(again) => {
            let (again, _) = self::parsed(again, request)?;
            Random::between(&parsed.manifests, &again.manifests)
        }
        None => Random::default(),
    };
    let Parsed {
        mut manifests,
        warnings,
    } = parsed;
    let registry = request.registry.as_ref();
    let doubts = registry.map_or_else(Vec::new, |registry| rewrite(&mut manifests, registry));
    Ok(Objects {
        manifests,
        random,
        resting,
        definitions: definitions(crds),
        warnings,
        doubts,
    })
}

/// Parses the objects of a text, and selects those for the occasion. Also returns the hooks that a repair leaves out.
fn parsed(text: &Text, request: &Request) -> Result<(Parsed, Vec<ObjectKey>), ManifestError> {
    let options = Options {
        duplicate_keys: request.duplicate_keys,
        ..Options::default()
    };
    let mut parsed = text.objects(&request.location, &options)?;
    let Some(occasion) = request.occasion else {
        return Ok((parsed, Vec::new()));
    };
    let kept = hooks::of_occasion(parsed.manifests, occasion, request.method);
    parsed.manifests = kept.manifests;
    let left_out = kept.left_out.iter().map(ToString::to_string);
    parsed.warnings.extend(left_out);
    Ok((parsed, kept.resting))
}

/// Rewrites all images to a registry. Returns messages about texts that may be images and were not rewritten.
fn rewrite(manifests: &mut [Manifest], registry: &Registry) -> Vec<String> {
    let mut all = Vec::new();
    for manifest in manifests {
        let doubts = images::rewrite(Arc::make_mut(&mut manifest.object), registry).doubts;
        let place = &manifest.place;
        let key = ObjectKey::of(&manifest.object);
        let key = key.map_or_else(String::new, |key| format!("{key}: "));
        let doubts = doubts.into_iter();
        all.extend(doubts.map(|doubt| format!("{place}: {key}{doubt}")));
    }
    all
}

/// Returns the names of the definitions in files of `crds/`.
fn definitions(crds: &[Section]) -> BTreeSet<String> {
    let parsed = crds
        .iter()
        .filter_map(|file| parse(&file.bytes, &file.file, &Options::default()).ok());
    let manifests = parsed.flat_map(|parsed| parsed.manifests);
    let keys = manifests.filter_map(|manifest| ObjectKey::of(&manifest.object));
    let definitions = keys.filter(|key| key.kind == "CustomResourceDefinition");
    definitions.map(|key| key.name).collect()
}

/// The result of [`render`] in the form in which it is written.
#[derive(Serialize)]
struct Written<'a> {
    error: Option<String>,
    manifests: Vec<WrittenManifest<'a>>,
    random: &'a Random,
    resting: &'a [ObjectKey],
    definitions: &'a BTreeSet<String>,
    warnings: &'a [String],
    doubts: &'a [String],
}

#[derive(Serialize)]
struct WrittenManifest<'a> {
    object: &'a Value,
    place: &'a Place,
}

/// The result of [`render`] in the form in which it is read. Each object is parsed by itself, because it may nest as deep as any text.
#[derive(Deserialize)]
struct Read<'a> {
    error: Option<String>,
    #[serde(borrow)]
    manifests: Vec<ReadManifest<'a>>,
    random: Random,
    resting: Vec<ObjectKey>,
    definitions: BTreeSet<String>,
    warnings: Vec<String>,
    doubts: Vec<String>,
}

#[derive(Deserialize)]
struct ReadManifest<'a> {
    #[serde(borrow)]
    object: &'a RawValue,
    place: Place,
}

/// Serializes the result of [`render`].
///
/// # Errors
/// An object cannot be written as JSON.
pub fn to_bytes(result: &Result<Objects, ObjectsError>) -> Result<Vec<u8>, serde_json::Error> {
    let none = Objects::default();
    let objects = result.as_ref().unwrap_or(&none);
    let manifests = objects.manifests.iter();
    serde_json::to_vec(&Written {
        error: result.as_ref().err().map(|error| with_causes(error)),
        manifests: manifests
            .map(|manifest| WrittenManifest {
                object: &manifest.object,
                place: &manifest.place,
            })
            .collect(),
        random: &objects.random,
        resting: &objects.resting,
        definitions: &objects.definitions,
        warnings: &objects.warnings,
        doubts: &objects.doubts,
    })
}

/// Deserializes the bytes of [`to_bytes`]; an error is reduced to its text.
///
/// # Errors
/// The bytes are not such a result.
pub fn from_bytes(bytes: &[u8]) -> Result<Result<Objects, String>, serde_json::Error> {
    let read: Read<'_> = entrance::outline(bytes)?;
    if let Some(error) = read.error {
        return Ok(Err(error));
    }
    let manifests = read.manifests.into_iter().map(|manifest| {
        Ok::<_, serde_json::Error>(Manifest {
            object: Arc::new(entrance::from_str(manifest.object.get())?),
            place: manifest.place,
        })
    });
    Ok(Ok(Objects {
        manifests: manifests.collect::<Result<_, _>>()?,
        random: read.random,
        resting: read.resting,
        definitions: read.definitions,
        warnings: read.warnings,
        doubts: read.doubts,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::package::File;
    use super::*;

    fn request(source: Source) -> Request {
        Request {
            source,
            location: "https://a.example/web".to_owned(),
            method: Method::GoTemplate,
            occasion: Some(Occasion::Install),
            duplicate_keys: DuplicateKeys::LastWins,
            registry: "mirror.example.com/a".parse().ok(),
        }
    }

    /// As by another process.
    fn elsewhere(request: &Request) -> Result<Objects, String> {
        let sent = serde_json::to_vec(request).unwrap();
        let received: Request = serde_json::from_slice(&sent).unwrap();
        let answer = to_bytes(&render(&received, &Stop::default())).unwrap();
        from_bytes(&answer).unwrap()
    }

    #[test]
    fn a_process_of_its_own_says_the_same() {
        let deep = "[".repeat(120) + &"]".repeat(120);
        let template = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {{{{ .Variables.name }}}}}}\nspec: {{containers: [{{image: 'a/b:1'}}], \
             deep: {deep}, number: 0.1}}\n"
        );
        let files = vec![File {
            path: "a.yaml".to_owned(),
            bytes: template.into_bytes(),
        }];
        let templates = request(Source::Templates {
            package: Package::folder(files).unwrap(),
            data: json!({"Variables": {"name": "web"}}),
            strict: false,
        });
        let here = render(&templates, &Stop::default()).unwrap();
        let image = here.manifests[0].object.pointer("/spec/containers/0/image");
        assert_eq!(image, Some(&json!("mirror.example.com/a/a/b:1")));
        assert_eq!(elsewhere(&templates), Ok(here));

        let text = |value: &str| {
            Text {
            sections: vec![Section {
                file: String::new(),
                bytes: format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: {{a: {value}}}\n").into_bytes(),
            }],
            warnings: vec!["a warning".to_owned()],
        }
        };
        let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tills.a.example}\n";
        let chart = request(Source::Texts {
            text: text("one"),
            again: Some(text("two")),
            crds: vec![Section {
                file: "crds/a.yaml".to_owned(),
                bytes: crd.as_bytes().to_vec(),
            }],
        });
        let here = render(&chart, &Stop::default()).unwrap();
        assert!(!here.random.is_empty() && here.definitions.contains("tills.a.example"));
        assert_eq!(elsewhere(&chart), Ok(here));
    }

    #[test]
    fn an_error_is_told_with_its_causes() {
        let text = Text {
            sections: vec![Section {
                file: String::new(),
                bytes: b"a: [".to_vec(),
            }],
            warnings: Vec::new(),
        };
        let broken = request(Source::Texts {
            text,
            again: None,
            crds: Vec::new(),
        });
        let here = render(&broken, &Stop::default()).unwrap_err();
        let told = elsewhere(&broken).unwrap_err();
        assert!(told.starts_with(&here.to_string()), "{told}");
        assert!(from_bytes(b"{}").is_err() && from_bytes(b"").is_err());
    }
}
