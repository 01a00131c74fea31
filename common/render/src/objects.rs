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
use super::kkp::{self, StopFlag};
use super::package::Package;
use super::random::RandomFields;
use super::text::{RenderedText, TextError, TextSection};
use common::api::catalogue::Method;
use common::api::installation::ObjectPatch;
use common::causes::with_causes;
use common::entrance;
use common::manifest::key::ObjectKey;
use common::manifest::parse::{ManifestError, ManifestOptions, ParsedManifests, parse};
use common::manifest::yaml::DuplicateKeys;
use common::manifest::{FilePosition, Manifest};
use common::patch::{PatchError, PatchedObject, Patches};
use common::registry::Registry;

/// The inputs from which the objects of a package are made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RenderRequest {
    /// The texts, or the templates and their data.
    pub source: RenderSource,
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
    /// The patches of the installation, which are applied before hooks are selected and images rewritten.
    pub patches: Vec<ObjectPatch>,
    /// The namespace of objects that name none, for the targets of patches.
    pub namespace: String,
}

/// The source of the texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RenderSource {
    /// Texts that are already rendered.
    Texts {
        /// The text.
        text: RenderedText,
        /// The second rendering. Fields that differ are random.
        again: Option<RenderedText>,
        /// The files in the `crds/` of charts, which helm does not render.
        crds: Vec<TextSection>,
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

impl RenderSource {
    /// A text that was rendered once, without definitions in `crds/`.
    #[must_use]
    pub fn from_text(text: RenderedText) -> Self {
        Self::Texts {
            text,
            again: None,
            crds: Vec::new(),
        }
    }
}

/// The objects of a package.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenderedObjects {
    /// The objects.
    pub manifests: Vec<Manifest>,
    /// Fields that are generated at random.
    pub random: RandomFields,
    /// What the patches changed.
    pub patched: Vec<PatchedObject>,
    /// Hooks that a repair leaves out: [`hooks::HookSelection::resting`].
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
    /// A patch is not valid, or cannot be applied.
    #[error(transparent)]
    Patch(#[from] PatchError),
}

/// Renders the templates, if any, and parses the texts. `stop` ends the rendering.
///
/// # Errors
/// [`ObjectsError`].
pub fn render_objects(
    request: &RenderRequest,
    stop: &StopFlag,
) -> Result<RenderedObjects, ObjectsError> {
    let (text, again, crds) = match &request.source {
        RenderSource::Texts { text, again, crds } => {
            (Cow::Borrowed(text), again.as_ref(), crds.as_slice())
        }
        RenderSource::Templates {
            package,
            data,
            strict,
        } => {
            let options = kkp::KkpOptions {
                strict: *strict,
                registry: request.registry.clone(),
                stop: stop.clone(),
                ..kkp::KkpOptions::default()
            };
            let text = RenderedText::from_templates(package, data, &options)?;
            (Cow::Owned(text), None, Default::default())
        }
    };
    let patches = Patches::compile(&request.patches)?;
    let parsed = parse_text(&text, &patches, request)?;
    let random = match again {
        Some(again) => {
            let again = parse_text(again, &patches, request)?;
            RandomFields::from_renderings(&parsed.manifests, &again.manifests)
        }
        None => RandomFields::default(),
    };
    let registry = request.registry.as_ref();
    let mut manifests = parsed.manifests;
    let doubts = registry.map_or_else(Vec::new, |registry| rewrite(&mut manifests, registry));
    Ok(RenderedObjects {
        manifests,
        random,
        definitions: definition_names(crds),
        doubts,
        ..parsed
    })
}

/// Parses the objects of a text, patches them, and selects those for the occasion.
fn parse_text(
    text: &RenderedText,
    patches: &Patches,
    request: &RenderRequest,
) -> Result<RenderedObjects, ObjectsError> {
    let options = ManifestOptions {
        duplicate_keys: request.duplicate_keys,
        ..ManifestOptions::default()
    };
    let ParsedManifests {
        mut manifests,
        mut warnings,
    } = text.parse_objects(&request.location, &options)?;
    let patched = patches.apply(&mut manifests, &request.namespace)?;
    warnings.extend(patched.iter().filter_map(PatchedObject::warn_secret));
    let mut parsed = RenderedObjects {
        manifests,
        patched,
        warnings,
        ..RenderedObjects::default()
    };
    if let Some(occasion) = request.occasion {
        let kept = hooks::select_for_occasion(parsed.manifests, occasion, request.method);
        parsed.manifests = kept.manifests;
        let left_out = kept.left_out.iter().map(ToString::to_string);
        parsed.warnings.extend(left_out);
        parsed.resting = kept.resting;
    }
    Ok(parsed)
}

/// Rewrites all images to a registry. Returns messages about texts that may be images and were not rewritten.
fn rewrite(manifests: &mut [Manifest], registry: &Registry) -> Vec<String> {
    let mut all = Vec::new();
    for manifest in manifests {
        let doubts = images::rewrite(Arc::make_mut(&mut manifest.object), registry).doubts;
        let place = &manifest.place;
        let key = ObjectKey::from_object(&manifest.object);
        let key = key.map_or_else(String::new, |key| format!("{key}: "));
        let doubts = doubts.into_iter();
        all.extend(doubts.map(|doubt| format!("{place}: {key}{doubt}")));
    }
    all
}

/// Returns the names of the definitions in files of `crds/`.
fn definition_names(crds: &[TextSection]) -> BTreeSet<String> {
    let parsed = crds
        .iter()
        .filter_map(|file| parse(&file.bytes, &file.file, &ManifestOptions::default()).ok());
    let manifests = parsed.flat_map(|parsed| parsed.manifests);
    let keys = manifests.filter_map(|manifest| ObjectKey::from_object(&manifest.object));
    let definitions = keys.filter(|key| key.kind == "CustomResourceDefinition");
    definitions.map(|key| key.name).collect()
}

/// The result of [`render_objects`] in the form in which it is written.
#[derive(Serialize)]
struct WrittenObjects<'a> {
    error: Option<String>,
    manifests: Vec<WrittenManifest<'a>>,
    random: &'a RandomFields,
    patched: &'a [PatchedObject],
    resting: &'a [ObjectKey],
    definitions: &'a BTreeSet<String>,
    warnings: &'a [String],
    doubts: &'a [String],
}

#[derive(Serialize)]
struct WrittenManifest<'a> {
    object: &'a Value,
    place: &'a FilePosition,
}

/// The result of [`render_objects`] in the form in which it is read. Each object is parsed by itself, because it may nest as deep as any text.
#[derive(Deserialize)]
struct ReadObjects<'a> {
    error: Option<String>,
    #[serde(borrow)]
    manifests: Vec<ReadManifest<'a>>,
    random: RandomFields,
    patched: Vec<PatchedObject>,
    resting: Vec<ObjectKey>,
    definitions: BTreeSet<String>,
    warnings: Vec<String>,
    doubts: Vec<String>,
}

#[derive(Deserialize)]
struct ReadManifest<'a> {
    #[serde(borrow)]
    object: &'a RawValue,
    place: FilePosition,
}

/// Serializes the result of [`render_objects`].
///
/// # Errors
/// An object cannot be written as JSON.
pub fn to_bytes(
    result: &Result<RenderedObjects, ObjectsError>,
) -> Result<Vec<u8>, serde_json::Error> {
    let none = RenderedObjects::default();
    let objects = result.as_ref().unwrap_or(&none);
    let manifests = objects.manifests.iter();
    serde_json::to_vec(&WrittenObjects {
        error: result.as_ref().err().map(|error| with_causes(error)),
        manifests: manifests
            .map(|manifest| WrittenManifest {
                object: &manifest.object,
                place: &manifest.place,
            })
            .collect(),
        random: &objects.random,
        patched: &objects.patched,
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
pub fn from_bytes(bytes: &[u8]) -> Result<Result<RenderedObjects, String>, serde_json::Error> {
    let read: ReadObjects<'_> = entrance::read_outline(bytes)?;
    if let Some(error) = read.error {
        return Ok(Err(error));
    }
    let manifests = read.manifests.into_iter().map(|manifest| {
        Ok::<_, serde_json::Error>(Manifest {
            object: Arc::new(entrance::from_str(manifest.object.get())?),
            place: manifest.place,
        })
    });
    Ok(Ok(RenderedObjects {
        manifests: manifests.collect::<Result<_, _>>()?,
        random: read.random,
        patched: read.patched,
        resting: read.resting,
        definitions: read.definitions,
        warnings: read.warnings,
        doubts: read.doubts,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::package::PackagedFile;
    use super::*;

    fn request(source: RenderSource) -> RenderRequest {
        RenderRequest {
            source,
            location: "https://a.example/web".to_owned(),
            method: Method::GoTemplate,
            occasion: Some(Occasion::Install),
            duplicate_keys: DuplicateKeys::LastWins,
            registry: "mirror.example.com/a".parse().ok(),
            patches: Vec::new(),
            namespace: "web".to_owned(),
        }
    }

    /// As by another process.
    fn elsewhere(request: &RenderRequest) -> Result<RenderedObjects, String> {
        let sent = serde_json::to_vec(request).unwrap();
        let received: RenderRequest = serde_json::from_slice(&sent).unwrap();
        let answer = to_bytes(&render_objects(&received, &StopFlag::default())).unwrap();
        from_bytes(&answer).unwrap()
    }

    #[test]
    fn a_process_of_its_own_says_the_same() {
        let deep = "[".repeat(120) + &"]".repeat(120);
        let template = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {{{{ .Variables.name }}}}}}\nspec: {{containers: [{{image: 'a/b:1'}}], \
             deep: {deep}, number: 0.1}}\n"
        );
        let files = vec![PackagedFile {
            path: "a.yaml".to_owned(),
            bytes: template.into_bytes(),
        }];
        let templates = request(RenderSource::Templates {
            package: Package::from_folder(files).unwrap(),
            data: json!({"Variables": {"name": "web"}}),
            strict: false,
        });
        let here = render_objects(&templates, &StopFlag::default()).unwrap();
        let image = here.manifests[0].object.pointer("/spec/containers/0/image");
        assert_eq!(image, Some(&json!("mirror.example.com/a/a/b:1")));
        assert_eq!(elsewhere(&templates), Ok(here));

        let text = |value: &str| {
            RenderedText {
            sections: vec![TextSection {
                file: String::new(),
                bytes: format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: {{a: {value}}}\n").into_bytes(),
            }],
            warnings: vec!["a warning".to_owned()],
        }
        };
        let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tills.a.example}\n";
        let chart = request(RenderSource::Texts {
            text: text("one"),
            again: Some(text("two")),
            crds: vec![TextSection {
                file: "crds/a.yaml".to_owned(),
                bytes: crd.as_bytes().to_vec(),
            }],
        });
        let here = render_objects(&chart, &StopFlag::default()).unwrap();
        assert!(!here.random.is_empty() && here.definitions.contains("tills.a.example"));
        assert_eq!(elsewhere(&chart), Ok(here));

        // What a patch sets is not random, and the record would show it.
        let patched = RenderRequest {
            patches: vec![ObjectPatch {
                target: None,
                patch:
                    "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: fixed}}"
                        .to_owned(),
            }],
            ..chart
        };
        let here = render_objects(&patched, &StopFlag::default()).unwrap();
        assert!(here.random.is_empty(), "{:?}", here.random);
        assert_eq!(here.patched[0].fields, ["stringData.a"]);
        let warning = here.warnings.last().unwrap();
        assert!(
            warning.starts_with("spec.patches[0] sets content of Secret a"),
            "{warning}"
        );
        assert_eq!(elsewhere(&patched), Ok(here));
    }

    #[test]
    fn an_error_is_told_with_its_causes() {
        let text = RenderedText {
            sections: vec![TextSection {
                file: String::new(),
                bytes: b"a: [".to_vec(),
            }],
            warnings: Vec::new(),
        };
        let broken = request(RenderSource::Texts {
            text,
            again: None,
            crds: Vec::new(),
        });
        let here = render_objects(&broken, &StopFlag::default()).unwrap_err();
        let told = elsewhere(&broken).unwrap_err();
        assert!(told.starts_with(&here.to_string()), "{told}");
        assert!(from_bytes(b"{}").is_err() && from_bytes(b"").is_err());
    }
}
