//! The digest of an object: what the inventory remembers of an applied manifest (semantics 13).

use serde_json::Value;

use crate::api::names::hex_prefix;

/// First 20 hex digits of the sha256 of an object; the order of its fields does not matter.
#[must_use]
pub fn digest(object: &Value) -> String {
    hex_prefix(object.to_string().as_bytes(), 20)
}
