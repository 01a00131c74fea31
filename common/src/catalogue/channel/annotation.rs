//! kops' record of an installed add-on: the annotation `addons.k8s.io/NAME` of a namespace.
//!
//! kops' own tool and ours read and write the same text, so that each finds the add-on up to date after the other has run (semantics
//! 11.3). Unknown keys are kept.

use serde_json::{Map, Value, json};

use crate::catalogue::CatalogueEntry;
use crate::catalogue::replaces::ReplacementKey;
use crate::entrance;

/// The prefix of the annotation key, before the name of the add-on.
const PREFIX: &str = "addons.k8s.io/";
/// The `systemGeneration` that kops has written since it prunes. It replaces a record with a lower one.
const GENERATION: u32 = 1;

/// The content of the annotation: the installed version of an add-on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelVersion {
    /// The version. kops 1.22 and later neither write nor read it.
    pub version: Option<String>,
    /// The index, as it was given to the tool that wrote the annotation.
    pub channel: Option<String>,
    /// The id.
    pub id: Option<String>,
    /// The hash of the entry, as written in the index.
    pub manifest_hash: Option<String>,
    /// The generation: 0 in records from before kops pruned.
    pub system_generation: u32,
    /// Unknown keys of other tools.
    unknown: Map<String, Value>,
}

/// An annotation that cannot be read. kops treats the add-on as not installed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the annotation {key} is not JSON of kops: {why}")]
pub struct KopsAnnotationError {
    /// The key of the annotation.
    pub key: String,
    /// What is wrong.
    pub why: String,
}

/// Returns the annotation key of an add-on.
#[must_use]
pub fn annotation_key(addon: &str) -> String {
    format!("{PREFIX}{addon}")
}

/// Returns the add-on of an annotation key, or `None` for any other annotation.
#[must_use]
pub fn parse_annotation_key(key: &str) -> Option<&str> {
    key.strip_prefix(PREFIX).filter(|name| !name.is_empty())
}

impl ChannelVersion {
    /// Reads an annotation.
    ///
    /// # Errors
    /// [`KopsAnnotationError`]: it is not a JSON object, or a key has another type than kops writes.
    pub fn parse(addon: &str, text: &str) -> Result<Self, KopsAnnotationError> {
        let error = |why: String| KopsAnnotationError {
            key: annotation_key(addon),
            why,
        };
        let fields: Map<String, Value> =
            entrance::from_str(text).map_err(|source| error(source.to_string()))?;
        let mut read = Self::default();
        for (name, value) in fields {
            let field = match name.as_str() {
                "version" => &mut read.version,
                "channel" => &mut read.channel,
                "id" => &mut read.id,
                "manifestHash" => &mut read.manifest_hash,
                "systemGeneration" => {
                    let number = value.as_u64().and_then(|number| number.try_into().ok());
                    read.system_generation =
                        number.ok_or_else(|| error(format!("{name} must be a number")))?;
                    continue;
                }
                _ => {
                    read.unknown.insert(name, value);
                    continue;
                }
            };
            let text = value.as_str().ok_or(name);
            let text = text.map_err(|name| error(format!("{name} must be text")))?;
            *field = (!text.is_empty()).then(|| text.to_owned());
        }
        Ok(read)
    }

    /// Returns the annotation for the installed `entry` of the index `channel`. The hash is copied verbatim from the index, because
    /// kops' tool would update the add-on for any other text. The version is for tools from before kops 1.22.
    #[must_use]
    pub fn from_entry(entry: &CatalogueEntry, channel: &str, before: Option<&Self>) -> Self {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self {
            version: some(&entry.version.version),
            channel: some(channel),
            id: some(&entry.version.id),
            manifest_hash: some(entry.version.manifest_hash.as_deref().unwrap_or_default()),
            system_generation: GENERATION,
            unknown: before
                .map(|before| before.unknown.clone())
                .unwrap_or_default(),
        }
    }

    /// Returns the fields that the replacement rules compare.
    #[must_use]
    pub fn replacement_key(&self) -> ReplacementKey<'_> {
        ReplacementKey {
            version: self.version.as_deref(),
            id: self.id.as_deref(),
            manifest_hash: self.manifest_hash.as_deref(),
            generation: self.system_generation,
        }
    }

    /// Returns the text of the annotation, with the keys in kops' order.
    #[must_use]
    pub fn to_text(&self) -> String {
        let generation = (self.system_generation > 0).then(|| json!(self.system_generation));
        let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
        let ours = [
            ("version", text(&self.version)),
            ("channel", text(&self.channel)),
            ("id", text(&self.id)),
            ("manifestHash", text(&self.manifest_hash)),
            ("systemGeneration", generation),
        ];
        let ours = ours
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let theirs = self.unknown.iter();
        let theirs = theirs.map(|(name, value)| (name.as_str(), value.clone()));
        let fields = ours
            .chain(theirs)
            .map(|(name, value)| format!("{}:{value}", json!(name)));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What kops has written through its history, each version of the format.
    #[test]
    fn every_form_is_read_and_written_as_it_was() {
        for text in [
            r#"{"channel":"s3://b/c/addons/bootstrap-channel.yaml","id":"k8s-1.12","manifestHash":"abc","systemGeneration":1}"#,
            r#"{"channel":"s3://b/c","id":"k8s-1.12","manifestHash":"abc"}"#,
            r#"{"version":"1.5.0","channel":"s3://bucket/path/addons/bootstrap-channel.yaml"}"#,
            r#"{"version":"1.5.0","channel":"s3://bucket","id":"a","manifestHash":"abc"}"#,
            r#"{"version":"1.5.0","id":"a","theirs":{"a":[1]}}"#,
            "{}",
        ] {
            let read = ChannelVersion::parse("a", text).unwrap();
            assert_eq!(read.to_text(), text);
        }
        let spaced =
            ChannelVersion::parse("test", r#"{"manifestHash":"h","systemGeneration": 1}"#).unwrap();
        assert_eq!(spaced.manifest_hash.as_deref(), Some("h"));
        assert_eq!(spaced.system_generation, 1);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, expected) in [
            ("yes", "expected value at line 1 column 1"),
            (
                "[]",
                "invalid type: sequence, expected a map at line 1 column 0",
            ),
            (r#"{"id":1}"#, "id must be text"),
            (
                r#"{"systemGeneration":"1"}"#,
                "systemGeneration must be a number",
            ),
            (
                r#"{"systemGeneration":-1}"#,
                "systemGeneration must be a number",
            ),
        ] {
            let error = ChannelVersion::parse("a", text).unwrap_err();
            let expected =
                format!("the annotation addons.k8s.io/a is not JSON of kops: {expected}");
            assert_eq!(error.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn the_key_names_the_add_on() {
        assert_eq!(
            annotation_key("coredns.addons.k8s.io"),
            "addons.k8s.io/coredns.addons.k8s.io"
        );
        for (key, expected) in [
            ("addons.k8s.io/a", Some("a")),
            ("addons.k8s.io/", None),
            ("x.addons.k8s.io/a", None),
        ] {
            assert_eq!(parse_annotation_key(key), expected);
        }
    }
}
