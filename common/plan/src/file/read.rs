//! Bytes ↔ plan file: bounded, with its own digest.

use serde::Serialize;
use serde_json::Value;

use super::{FleetPlan, KIND, KIND_FLEET, PlanFile, VERSION};
use common::entrance;
use common::manifest::digest::sha256_canonical;

/// Bytes that a plan file may have.
pub const LARGEST: usize = 16 << 20;
const DIGEST: &str = "digest";
const ALGORITHM: &str = "sha256:";

/// Why a file is not a plan that can be run.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Too many bytes.
    #[error(
        "it has more than 16 MiB, the most that a plan file may have: plan fewer add-ons at once"
    )]
    TooLarge,
    /// Cut off, or no JSON at all.
    #[error("line {line}, column {column}: it is not valid JSON, or was cut off")]
    NotJson {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// It nests too deep, has too many values, or a key that a JSON library takes for its own.
    #[error(transparent)]
    Refused(entrance::BoundsError),
    /// JSON of something else.
    #[error("it is {found}, not {VERSION} {KIND}")]
    NotAPlan {
        /// What it says it is.
        found: String,
    },
    /// A plan of another version of this tool.
    #[error("it is an {kind} of version {found}, and this program reads {VERSION}")]
    OtherVersion {
        /// Its kind.
        kind: String,
        /// Its apiVersion.
        found: String,
    },
    /// Its content is not what its digest says.
    #[error(
        "its digest is {expected}, but its content has {actual}: it was changed after it was made"
    )]
    Tampered {
        /// What it says.
        expected: String,
        /// What it is.
        actual: String,
    },
    /// It is another plan than the one that was reviewed.
    #[error(
        "its digest is {actual}, but {expected} is expected: it is not the plan that was reviewed"
    )]
    NotExpected {
        /// The digest of the plan that was reviewed.
        expected: String,
        /// Its digest.
        actual: String,
    },
    /// The digest is right, and still it does not read.
    #[error("it cannot be read as a plan")]
    Malformed(#[source] serde_json::Error),
}

/// What a plan file holds.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Plans {
    /// A plan for one cluster.
    One(Box<PlanFile>),
    /// One for each of several.
    Fleet(FleetPlan),
}

/// Reads a plan file and verifies its digest. Whoever edits the file can write a new one: `expected` is the digest of the plan that was
/// reviewed, where the caller knows it from elsewhere.
///
/// # Errors
/// [`FileError`].
pub fn read(bytes: &[u8], expected: Option<&str>) -> Result<Plans, FileError> {
    if bytes.len() > LARGEST {
        return Err(FileError::TooLarge);
    }
    let mut value: Value = entrance::from_slice(bytes).map_err(|error| {
        // An error of the entrance itself has no line.
        match entrance::check(bytes, entrance::MAX_DEPTH) {
            Err(refused) => FileError::Refused(refused),
            Ok(()) => FileError::NotJson {
                line: error.line(),
                column: error.column(),
            },
        }
    })?;
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
    let group = VERSION.split('/').next();
    if ![KIND, KIND_FLEET].contains(&kind.as_str()) || api_version.split('/').next() != group {
        let found = format!("{api_version} {kind}");
        let found = match found.trim() {
            "" => "something without apiVersion and kind".to_owned(),
            found => found.chars().take(200).collect(),
        };
        return Err(FileError::NotAPlan { found });
    }
    if api_version != VERSION {
        return Err(FileError::OtherVersion {
            kind,
            found: api_version,
        });
    }
    let digest = value
        .as_object_mut()
        .and_then(|fields| fields.remove(DIGEST));
    let written = digest.as_ref().and_then(Value::as_str).unwrap_or("missing");
    let actual = digest_of(&value);
    if written != actual {
        return Err(FileError::Tampered {
            expected: written.chars().take(80).collect(),
            actual,
        });
    }
    if let Some(expected) = expected.filter(|expected| *expected != actual) {
        return Err(FileError::NotExpected {
            expected: expected.to_owned(),
            actual,
        });
    }
    let plans = if kind == KIND_FLEET {
        serde_json::from_value(value).map(Plans::Fleet)
    } else {
        serde_json::from_value(value).map(|plan| Plans::One(Box::new(plan)))
    };
    plans.map_err(FileError::Malformed)
}

/// The JSON of a [`PlanFile`] or [`FleetPlan`] with its digest, and that digest.
///
/// # Errors
/// [`FileError::TooLarge`]; a value that is not valid JSON.
pub fn write(file: &impl Serialize) -> Result<(Value, String), FileError> {
    let mut value = serde_json::to_value(file).map_err(FileError::Malformed)?;
    let digest = digest_of(&value);
    if let Some(fields) = value.as_object_mut() {
        fields.insert(DIGEST.to_owned(), Value::from(digest.clone()));
    }
    Ok((value, digest))
}

/// The digest of a plan file as `--expect-digest` takes it.
///
/// # Errors
/// What is wrong with it.
pub fn expected(typed: &str) -> Result<String, String> {
    let hex = typed.strip_prefix(ALGORITHM).unwrap_or_default();
    let is_digest = hex.len() == 64 && hex.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
    is_digest
        .then(|| typed.to_owned())
        .ok_or_else(|| format!("it is not a digest; expected {ALGORITHM} and 64 hex digits"))
}

fn digest_of(value: &Value) -> String {
    format!("{ALGORITHM}{}", sha256_canonical(value))
}
