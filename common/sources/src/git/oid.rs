//! The ids of objects.

use std::fmt;

/// Digits of an id.
const DIGITS: usize = 40;
/// Digits of a commit in a location.
const SHORT: usize = 12;

/// The id of an object: a SHA-1 in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(String);

impl Oid {
    /// Reads a whole id.
    pub fn parse(text: &str) -> Option<Self> {
        let is_id = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| Self(text.to_ascii_lowercase()))
    }

    /// An id as it stands in a tree.
    pub fn of(bytes: &[u8]) -> Self {
        Self(common::hex::of(bytes))
    }

    /// Its beginning, for locations.
    pub fn short(&self) -> &str {
        self.0.get(..SHORT).unwrap_or(&self.0)
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
