//! Finds images in rendered objects, and rewrites them to a private registry.
//!
//! Images are in the containers of pods, at any depth (custom resources contain pod templates as well), in image volumes, and in known
//! fields of custom resources. Elsewhere, a text may or may not be an image: in arguments and variables of containers, in the data of
//! ConfigMaps and Secrets, and in other fields of custom resources. Such texts are not changed, but reported as doubts.

mod fields;

use std::borrow::Cow;
use std::collections::BTreeSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use common::image::Image;
use common::manifest::kinds::traits::is_built_in;
use common::registry::Registry;
use common::values::path;

/// Maximum depth to which objects are searched; the YAML loader has the same limit.
const MAX_DEPTH: usize = 256;

/// The result of rewriting the images of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewrittenImages {
    /// Number of rewritten references.
    pub count: usize,
    /// Texts that were not changed and may need a look, as messages: `spec.containers.0.args.1 names IMAGE …`
    pub doubts: Vec<String>,
}

/// Returns the images of an object, as they are written.
#[must_use]
pub fn find_images(object: &Value) -> BTreeSet<String> {
    let places = find_places(object);
    let images = places
        .iter()
        .filter_map(|place| object.pointer(place)?.as_str());
    images
        .filter(|image| !image.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A text that looks like an image, but may not be one: an argument, a variable, a line of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageMention {
    /// Path of the text: `spec.containers.0.args.1`.
    pub place: String,
    /// The text.
    pub image: String,
    /// Whether the text comes from a Secret, and must not be shown.
    pub is_secret: bool,
}

impl ImageMention {
    /// Describes the mention: `data.sidecar names quay.io/a/b:1`.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.is_secret {
            true => format!("{} names an image", self.place),
            false => format!("{} names {}", self.place, self.image),
        }
    }
}

/// Returns the texts of an object that look like an image, once per path. They need an explicit registry, and a tag or digest. In arguments
/// and variables of containers, and under keys that contain "image", the registry may be missing.
#[must_use]
pub fn find_mentions(object: &Value) -> Vec<ImageMention> {
    let is_secret = kind_of(object) == ("", "Secret");
    let mut mentions: Vec<ImageMention> = Vec::new();
    for text in collect_texts(object) {
        let between = |c: char| c.is_whitespace() || matches!(c, '=' | ',' | ';' | '"' | '\'');
        let lines = text
            .text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        for word in lines.flat_map(|line| line.split(between)) {
            let is_image = is_likely_image(word) || text.is_of_images && is_hostless_image(word);
            if !is_image {
                continue;
            }
            let mention = ImageMention {
                place: to_dotted(&text.place),
                image: word.to_owned(),
                is_secret,
            };
            if !mentions.contains(&mention) {
                mentions.push(mention);
            }
        }
    }
    mentions
}

/// A text in which images are searched.
struct SearchedText<'a> {
    /// Path, as a JSON pointer.
    place: String,
    text: Cow<'a, str>,
    /// Whether images are usual in this field, so that one without a registry counts.
    is_of_images: bool,
}

fn collect_texts(object: &Value) -> Vec<SearchedText<'_>> {
    match kind_of(object) {
        ("", "ConfigMap" | "Secret") => collect_data(object),
        (group, _) if !is_built_in(group) => {
            let mut texts = collect_arguments(object);
            let known = find_places(object);
            let is_taken = |texts: &[SearchedText<'_>], place: &String| {
                known.contains(place) || texts.iter().any(|text| text.place == *place)
            };
            let mut leaves = Vec::new();
            find_leaves(object, &mut String::new(), 0, &mut leaves);
            leaves.retain(|(place, _)| {
                let is_content = ["/metadata/", "/status/", "/apiVersion", "/kind"]
                    .iter()
                    .all(|other| !place.starts_with(other));
                is_content && !is_taken(&texts, place)
            });
            texts.extend(leaves.into_iter().map(|(place, text)| SearchedText {
                place,
                text: text.into(),
                is_of_images: false,
            }));
            texts
        }
        _ => collect_arguments(object),
    }
}

/// Returns the data of a ConfigMap or Secret. Keys that begin with an underscore contain examples, and are skipped.
fn collect_data(object: &Value) -> Vec<SearchedText<'_>> {
    let is_encoded = |field: &str| field == "data" && kind_of(object).1 == "Secret";
    let mut texts = Vec::new();
    for field in ["data", "stringData"] {
        let entries = object.get(field).and_then(Value::as_object);
        for (key, value) in entries.into_iter().flatten() {
            let Some(value) = value.as_str().filter(|_| !key.starts_with('_')) else {
                continue;
            };
            let text = match is_encoded(field) {
                false => Some(Cow::Borrowed(value)),
                true => {
                    let bytes = BASE64_STANDARD.decode(value).ok();
                    bytes.and_then(|bytes| String::from_utf8(bytes).ok().map(Cow::Owned))
                }
            };
            texts.extend(text.map(|text| SearchedText {
                place: format!("/{field}/{}", path::escape_key(key)),
                text,
                is_of_images: key.to_ascii_lowercase().contains("image"),
            }));
        }
    }
    texts
}

/// Returns arguments, commands and variables of containers.
fn collect_arguments(object: &Value) -> Vec<SearchedText<'_>> {
    let mut texts = Vec::new();
    find_texts(object, &mut String::new(), 0, &mut texts);
    let texts = texts.into_iter().map(|(place, text)| SearchedText {
        place,
        text: text.into(),
        is_of_images: true,
    });
    texts.collect()
}

fn find_leaves<'a>(
    value: &'a Value,
    place: &mut String,
    depth: usize,
    leaves: &mut Vec<(String, &'a str)>,
) {
    for_each_child(value, place, depth, |_, child, place| match child {
        Value::String(text) => leaves.push((place.clone(), text)),
        child => find_leaves(child, place, depth + 1, leaves),
    });
}

/// Returns group and kind.
fn kind_of(object: &Value) -> (&str, &str) {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    (group, text("kind"))
}

/// Rewrites the images of an object to `registry`.
pub fn rewrite(object: &mut Value, registry: &Registry) -> RewrittenImages {
    let mut rewritten = RewrittenImages::default();
    for place in find_places(object) {
        let Some(Value::String(image)) = object.pointer_mut(&place) else {
            continue;
        };
        if image.is_empty() {
            continue;
        }
        match registry.rewrite(image) {
            Ok(moved) if moved == *image => {}
            Ok(moved) => {
                *image = moved;
                rewritten.count += 1;
            }
            Err(error) => rewritten
                .doubts
                .push(format!("{}: {error}", to_dotted(&place))),
        }
    }
    for mention in find_mentions(object) {
        let image = &mention.image;
        if registry.rewrite(image).is_ok_and(|moved| moved != *image) {
            rewritten.doubts.push(format!(
                "{}, which is not rewritten: set it in the values of the add-on",
                mention.describe()
            ));
        }
    }
    rewritten
}

/// Returns JSON pointers to the images of an object.
fn find_places(object: &Value) -> Vec<String> {
    let mut places = Vec::new();
    find_containers(object, &mut String::new(), 0, &mut places);
    for path in fields::image_paths(object) {
        find_path(object, path, &mut String::new(), &mut places);
    }
    places.sort();
    places.dedup();
    places
}

fn find_containers(value: &Value, place: &mut String, depth: usize, places: &mut Vec<String>) {
    for_each_child(value, place, depth, |name, child, place| {
        let path: &[&str] = match name {
            "containers" | "initContainers" | "ephemeralContainers" => &["*", "image"],
            "volumes" => &["*", "image", "reference"],
            _ => &[],
        };
        if !path.is_empty() && child.is_array() {
            find_path(child, path, place, places);
        }
        find_containers(child, place, depth + 1, places);
    });
}

/// Collects arguments, commands and variables of containers, with their paths.
fn find_texts<'a>(
    value: &'a Value,
    place: &mut String,
    depth: usize,
    texts: &mut Vec<(String, &'a str)>,
) {
    for_each_child(value, place, depth, |name, child, place| {
        let path: &[&str] = match name {
            "args" | "command" => &["*"],
            "env" => &["*", "value"],
            _ => &[],
        };
        if !path.is_empty() && child.is_array() {
            let mut places = Vec::new();
            find_path(child, path, &mut String::new(), &mut places);
            let found = places.into_iter().filter_map(|inner| {
                let text = child.pointer(&inner)?.as_str()?;
                Some((format!("{place}{inner}"), text))
            });
            texts.extend(found);
        }
        find_texts(child, place, depth + 1, texts);
    });
}

/// Visits the fields of an object or the items of a list; `place` is the path of each of them.
fn for_each_child<'a>(
    value: &'a Value,
    place: &mut String,
    depth: usize,
    mut visit: impl FnMut(&str, &'a Value, &mut String),
) {
    if depth > MAX_DEPTH {
        return;
    }
    let length = place.len();
    let mut step = |name: &str, child: &'a Value, place: &mut String| {
        place.push('/');
        place.push_str(&path::escape_key(name));
        visit(name, child, place);
        place.truncate(length);
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, child)| step(name, child, place)),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, child)| step(&index.to_string(), child, place));
        }
        _ => {}
    }
}

/// Collects the paths of texts below `value` that match `path`; `*` stands for every item of a list.
fn find_path(value: &Value, path: &[&str], place: &mut String, places: &mut Vec<String>) {
    let Some((name, rest)) = path.split_first() else {
        if value.is_string() {
            places.push(place.clone());
        }
        return;
    };
    let length = place.len();
    match (*name, value) {
        ("*", Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                place.push_str(&format!("/{index}"));
                find_path(item, rest, place, places);
                place.truncate(length);
            }
        }
        (name, Value::Object(fields)) => {
            if let Some(child) = fields.get(name) {
                place.push('/');
                place.push_str(name);
                find_path(child, rest, place, places);
                place.truncate(length);
            }
        }
        _ => {}
    }
}

/// Returns whether a word has an explicit registry, and a tag or digest: `--config-reloader-image=quay.io/coreos/configmap-reload:v0.0.1`.
fn is_likely_image(word: &str) -> bool {
    let has_port = |host: &str| {
        let port = host.rsplit_once(':').map_or("", |(_, port)| port);
        !port.is_empty() && port.chars().all(|c| c.is_ascii_digit())
    };
    let has_domain =
        |host: &str| host.contains('.') && host.chars().any(|c| c.is_ascii_alphabetic());
    let names_host = |host: &str| host == "localhost" || has_port(host) || has_domain(host);
    word.split_once('/')
        .is_some_and(|(host, _)| names_host(host))
        && Image::parse(word).is_ok_and(|image| image.tag.is_some() || image.digest.is_some())
}

/// Returns whether a word has no registry, but a version as tag: `longhornio/longhorn-engine:v1.9.2`. Paths and ports do not count.
fn is_hostless_image(word: &str) -> bool {
    let name = |name: &str| {
        name.contains('/')
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && !name.contains("//")
    };
    let version = |tag: &str| {
        let number = tag.strip_prefix('v').unwrap_or(tag);
        number.starts_with(|c: char| c.is_ascii_digit()) && number.contains('.')
    };
    word.split_once(':')
        .is_some_and(|(of_name, tag)| name(of_name) && version(tag))
        && Image::parse(word).is_ok()
}

/// Writes `/spec/containers/0` with dots, for messages.
fn to_dotted(place: &str) -> String {
    path::unescape_key(&place.trim_start_matches('/').replace('/', "."))
}

#[cfg(test)]
mod tests;
