//! Parses headers and error messages in responses of registries.

use reqwest::header::{HeaderMap, LINK};
use serde_json::Value;

use common::entrance;

use super::sha256;

/// The maximum number of characters of an error message to show.
const MAX_DETAIL: usize = 200;

/// Returns the digest that the registry claims for its response.
pub fn digest(headers: &HeaderMap) -> Option<String> {
    let header = headers.get("Docker-Content-Digest")?;
    let digest = header.to_str().ok()?;
    sha256(digest, "").is_ok().then(|| digest.to_owned())
}

/// Returns the query of the next page from a header such as
/// `Link: </v2/PATH/tags/list?last=X&n=Y>; rel="next"`.
pub fn next_page(headers: &HeaderMap) -> Option<String> {
    let link = headers.get(LINK)?.to_str().ok()?;
    let (target, parameters) = link.strip_prefix('<')?.split_once('>')?;
    let query = target.split_once('?')?.1;
    parameters.contains("next").then(|| query.to_owned())
}

/// Returns the message of an error response as `: TEXT` in one line, or an empty text if there is none.
pub fn detail(bytes: &[u8]) -> String {
    let value: Value = entrance::from_slice(bytes).unwrap_or_default();
    let of = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let text = [
        "/errors/0/message",
        "/errors/0/code",
        "/details",
        "/message",
    ];
    let Some(text) = text
        .into_iter()
        .find_map(of)
        .filter(|text| !text.is_empty())
    else {
        return String::new();
    };
    let shown = text.chars().take(MAX_DETAIL);
    let shown: String = shown
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect();
    format!(": {shown}")
}
