//! Digests of objects (for the inventory) and values, and the `manifestHash` of an index.

use std::io::Write;

use serde_json::Value;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::text::encode_hex;

/// The algorithm of a `manifestHash`, which its length determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashAlgorithm {
    /// 64 hex digits.
    Sha256,
    /// 40 hex digits (kops up to 1.21).
    Sha1,
    /// 32 hex digits (opzkit writes them). It is not verified, because two manifests with the same md5 can be made.
    Md5,
}

impl HashAlgorithm {
    /// Returns the algorithm of a hash, or `None` if the text is not a hash.
    #[must_use]
    pub fn from_hash(hash: &str) -> Option<Self> {
        let is_hex = hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        match hash.len() {
            64 if is_hex => Some(Self::Sha256),
            40 if is_hex => Some(Self::Sha1),
            32 if is_hex => Some(Self::Md5),
            _ => None,
        }
    }
}

/// Why bytes do not match the `manifestHash` of their entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// The bytes have another hash.
    #[error(
        "manifestHash is {expected}, but the {algorithm} of the manifest is {actual}: it was changed on the way, or the index was not updated with it"
    )]
    Mismatch {
        /// `sha256` or `sha1`.
        algorithm: &'static str,
        /// The hash of the entry.
        expected: String,
        /// The hash of the trimmed bytes.
        actual: String,
    },
    /// The hash is an md5.
    #[error("manifestHash {hash} is an md5, which is not verified; use the sha256 of the manifest")]
    Md5 {
        /// As written.
        hash: String,
    },
    /// The text is not a hash.
    #[error("manifestHash {hash:?} is neither a sha256 (64 hex digits) nor a sha1 (40 hex digits)")]
    NotAHash {
        /// As written.
        hash: String,
    },
}

/// Returns the first 20 hex digits of the sha256 of a value's canonical JSON: keys sorted, no blanks.
#[must_use]
pub fn digest(value: &Value) -> String {
    let mut text = sha256_canonical(value);
    text.truncate(20);
    text
}

/// Returns the hex sha256 of a value's canonical JSON.
#[must_use]
pub fn sha256_canonical(value: &Value) -> String {
    let mut hasher = Sha256::new();
    write_canonical(value, &mut hasher);
    encode_hex(&hasher.finalize())
}

/// Compares bytes with the `manifestHash` of an index: 64 hex digits are a sha256, 40 a sha1. The hash may be that of the bytes without
/// surrounding white space (kops) or of all bytes (topfreegames).
///
/// # Errors
/// [`HashError`] if neither has this hash, or if the hash cannot be verified.
pub fn verify(bytes: &[u8], expected: &str) -> Result<HashAlgorithm, HashError> {
    let found = check_hash(expected)?;
    let (algorithm, hash): (_, fn(&[u8]) -> String) = match found {
        HashAlgorithm::Sha1 => ("sha1", |bytes| encode_hex(&Sha1::digest(bytes))),
        HashAlgorithm::Sha256 | HashAlgorithm::Md5 => ("sha256", sha256),
    };
    let actual = hash(trim(bytes));
    if actual.eq_ignore_ascii_case(expected) || hash(bytes).eq_ignore_ascii_case(expected) {
        return Ok(found);
    }
    Err(HashError::Mismatch {
        algorithm,
        expected: expected.to_owned(),
        actual,
    })
}

/// Returns the algorithm of a `manifestHash`, if content can be verified with it.
///
/// # Errors
/// [`HashError::Md5`] and [`HashError::NotAHash`].
pub fn check_hash(hash: &str) -> Result<HashAlgorithm, HashError> {
    let owned = || hash.to_owned();
    match HashAlgorithm::from_hash(hash) {
        Some(HashAlgorithm::Md5) => Err(HashError::Md5 { hash: owned() }),
        Some(algorithm) => Ok(algorithm),
        None => Err(HashError::NotAHash { hash: owned() }),
    }
}

/// Returns the hex sha256 of bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    encode_hex(&Sha256::digest(bytes))
}

/// Returns the hex sha256 of the bytes without surrounding white space. kops writes it as `manifestHash`, and it replaces that of an entry
/// without one (semantics 11.4).
#[must_use]
pub fn sha256_trimmed(bytes: &[u8]) -> String {
    sha256(trim(bytes))
}

/// Go's `strings.TrimSpace`: removes Unicode white space.
fn trim(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.trim().as_bytes(),
        Err(_) => bytes.trim_ascii(),
    }
}

/// Writes JSON with sorted keys to the hasher, independent of the key order of the `serde_json` map.
fn write_canonical(value: &Value, hasher: &mut Sha256) {
    match value {
        Value::Array(items) => {
            hasher.update(b"[");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    hasher.update(b",");
                }
                write_canonical(item, hasher);
            }
            hasher.update(b"]");
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            // Cheap if the map is already sorted.
            entries.sort_unstable_by_key(|(key, _)| *key);
            hasher.update(b"{");
            for (index, (key, item)) in entries.into_iter().enumerate() {
                if index > 0 {
                    hasher.update(b",");
                }
                write_scalar(key, hasher);
                hasher.update(b":");
                write_canonical(item, hasher);
            }
            hasher.update(b"}");
        }
        scalar => write_scalar(scalar, hasher),
    }
}

fn write_scalar(scalar: &(impl serde::Serialize + ?Sized), hasher: &mut impl Write) {
    // Scalars can always be written as JSON, and a hasher never fails.
    let _ = serde_json::to_writer(hasher, scalar);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Texts and their sha256.
    const VECTORS: [(&str, &str); 4] = [
        (
            "test",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        ),
        (
            "~!*/?",
            "2ebef337aebca07992300b61b58f3581a3d0228e9eb17c0340eaa01bcb2abde2",
        ),
        (
            "测试1",
            "d7d16e0c2747b4dbe70a6f4977cf4f4ebb4a227d7ebc24c3a0e99acaae79b518",
        ),
        (
            "-897668",
            "e6909a82db1ad9349f016624af382f62226e9a1bffbd360f9ccc4ef8aaded232",
        ),
    ];

    #[test]
    fn hashes_are_those_of_kops() {
        for (text, hash) in VECTORS {
            assert_eq!(sha256_trimmed(text.as_bytes()), hash);
            let padded = format!("\n\u{b}\u{a0} {text}\r\n");
            assert_eq!(verify(padded.as_bytes(), hash), Ok(HashAlgorithm::Sha256));
            assert_eq!(
                verify(text.as_bytes(), &hash.to_uppercase()),
                Ok(HashAlgorithm::Sha256)
            );
        }
    }

    #[test]
    fn raw_bytes_and_sha1_are_taken_too() {
        // printf 'test\n' | sha256sum; printf test | sha1sum
        let raw = "f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2";
        let sha1 = "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3";
        assert_eq!(verify(b"test\n", raw), Ok(HashAlgorithm::Sha256));
        assert_eq!(verify(b"test\n", sha1), Ok(HashAlgorithm::Sha1));
        let mismatch = verify(b"toast\n", sha1).unwrap_err();
        assert!(
            matches!(&mismatch, HashError::Mismatch { algorithm: "sha1", expected, .. } if expected == sha1),
            "{mismatch}"
        );
    }

    #[test]
    fn a_text_that_is_not_a_hash_verifies_nothing() {
        let md5 = "098f6bcd4621d373cade4e832627b4f6";
        let hash = md5.to_owned();
        assert_eq!(verify(b"test", md5), Err(HashError::Md5 { hash }));
        for hash in ["", "latest", &"x".repeat(64), &"a".repeat(63)] {
            let hash = hash.to_owned();
            assert_eq!(verify(b"test", &hash), Err(HashError::NotAHash { hash }));
        }
    }

    #[test]
    fn digests_do_not_depend_on_the_order_of_keys() {
        // printf '{"a":[1,null,"é\\n"],"b":{"c":true,"d":1.5}}' | sha256sum | cut -c1-20
        let written = r#"{"b":{"d":1.5,"c":true},"a":[1,null,"é\n"]}"#;
        let value: Value = serde_json::from_str(written).unwrap();
        assert_eq!(digest(&value), "e0e584ae72b0512a0579");
        assert_ne!(digest(&json!({"a": "1"})), digest(&json!({"a": 1})));
    }
}
