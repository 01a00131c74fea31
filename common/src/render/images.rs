//! Images in rendered objects: their places, and how they move to a private registry.
//!
//! Images are in the containers of pods, however deep (custom resources contain pod templates as well), in image
//! volumes, and in known `fields` of custom resources. Elsewhere, in arguments and environment variables, a text
//! only may be an image: those are not changed, but reported as doubts.

mod fields;

use std::collections::BTreeSet;

use serde_json::Value;

use super::image::Image;
use super::registry::Registry;
use crate::values::path;

/// How deep objects are searched, which is the limit of the YAML loader.
const MAX_DEPTH: usize = 256;

/// The result for the images of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// How many references were changed.
    pub count: usize,
    /// What was not changed and may need a look, for people: `spec.containers.0.args.1 names IMAGE …`
    pub doubts: Vec<String>,
}

/// The images of an object, as they are written.
#[must_use]
pub fn images(object: &Value) -> BTreeSet<String> {
    let places = places(object);
    let images = places
        .iter()
        .filter_map(|place| object.pointer(place)?.as_str());
    images
        .filter(|image| !image.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A text that looks like an image, but may be something else: an argument, a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Its place: `spec.containers.0.args.1`.
    pub place: String,
    /// The text.
    pub image: String,
}

/// Images in arguments, commands and variables of containers: with an explicit registry, and a tag or digest.
#[must_use]
pub fn mentions(object: &Value) -> Vec<Mention> {
    let mut texts = Vec::new();
    find_texts(object, &mut String::new(), 0, &mut texts);
    let is_between = |c: char| c.is_whitespace() || matches!(c, '=' | ',' | ';' | '"' | '\'');
    let mut mentions = Vec::new();
    for (place, text) in texts {
        let images = text.split(is_between).filter(|word| is_likely_image(word));
        mentions.extend(images.map(|image| Mention {
            place: dotted(&place),
            image: image.to_owned(),
        }));
    }
    mentions
}

/// Moves the images of an object to `registry`.
pub fn rewrite(object: &mut Value, registry: &Registry) -> Rewritten {
    let mut rewritten = Rewritten::default();
    for place in places(object) {
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
                .push(format!("{}: {error}", dotted(&place))),
        }
    }
    for Mention { place, image } in mentions(object) {
        if registry.rewrite(&image).is_ok_and(|moved| moved != image) {
            rewritten.doubts.push(format!(
                "{place} names {image}, which is not rewritten: set it in the values of the add-on"
            ));
        }
    }
    rewritten
}

/// JSON pointers to the images of an object.
fn places(object: &Value) -> Vec<String> {
    let mut places = Vec::new();
    find_containers(object, &mut String::new(), 0, &mut places);
    for path in fields::of(object) {
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

/// Arguments, commands and variables of containers.
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

/// Visits the fields of an object and the items of a list, with `place` pointing at each.
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
        place.push_str(&path::escaped(name));
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

/// The places of texts below `value` at `path`; `*` is every item of a list.
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

/// `--config-reloader-image=quay.io/coreos/configmap-reload:v0.0.1`: an explicit registry, and a tag or digest.
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

/// `/spec/containers/0` as people write it.
fn dotted(place: &str) -> String {
    path::unescaped(&place.trim_start_matches('/').replace('/', "."))
}

#[cfg(test)]
mod tests;
