//! Reads and writes plan files, with a size limit and a digest.

use serde::Serialize;
use serde_json::Value;

use super::{FleetPlan, KIND, KIND_FLEET, PlanFile, VERSION};
use common::entrance;
use common::manifest::digest::sha256_canonical;

/// The maximum size of a plan file in bytes.
pub const LARGEST: usize = 16 << 20;
const DIGEST: &str = "digest";
const ALGORITHM: &str = "sha256:";

/// Why a file is not a valid plan file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is larger than [`LARGEST`].
    #[error(
        "it has more than 16 MiB, the most that a plan file may have: plan fewer add-ons at once"
    )]
    TooLarge,
    /// It is not valid JSON, or was cut off.
    #[error("line {line}, column {column}: it is not valid JSON, or was cut off")]
    NotJson {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// It is nested too deeply, or has too many values or a key that a JSON library reserves.
    #[error(transparent)]
    Refused(entrance::BoundsError),
    /// It is JSON, but not a plan.
    #[error("it is {found}, not {VERSION} {KIND}")]
    NotAPlan {
        /// Its apiVersion and kind.
        found: String,
    },
    /// It is a plan of another version.
    #[error("it is an {kind} of version {found}, and this program reads {VERSION}")]
    OtherVersion {
        /// Its kind.
        kind: String,
        /// Its apiVersion.
        found: String,
    },
    /// Its content does not match its digest.
    #[error(
        "its digest is {expected}, but its content has {actual}: it was changed after it was made"
    )]
    Tampered {
        /// The digest in the file.
        expected: String,
        /// The digest of its content.
        actual: String,
    },
    /// It is not the plan that was reviewed.
    #[error(
        "its digest is {actual}, but {expected} is expected: it is not the plan that was reviewed"
    )]
    NotExpected {
        /// The digest of the plan that was reviewed.
        expected: String,
        /// Its digest.
        actual: String,
    },
    /// Its digest matches, but it does not have the structure of a plan.
    #[error("it cannot be read as a plan")]
    Malformed(#[source] serde_json::Error),
}

/// The content of a plan file.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Plans {
    /// A plan for one cluster.
    One(Box<PlanFile>),
    /// A plan for each of several clusters.
    Fleet(FleetPlan),
}

/// Reads a plan file and verifies its digest. An editor of the file can replace the digest, so `expected` is the digest of the reviewed
/// plan, if the caller knows it from another source.
///
/// # Errors
/// [`FileError`].
pub fn read(bytes: &[u8], expected: Option<&str>) -> Result<Plans, FileError> {
    if bytes.len() > LARGEST {
        return Err(FileError::TooLarge);
    }
    let mut value: Value = entrance::from_slice(bytes).map_err(|error| {
        // Errors about bounds have no line.
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

/// Returns the JSON of a [`PlanFile`] or [`FleetPlan`] including its digest, and the digest.
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

/// Parses the digest of a plan file, as `--expect-digest` expects it.
///
/// # Errors
/// A text that says what is wrong.
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
