//! Reads the headers of responses.

use std::time::Duration;

use http::header::{DATE, HeaderMap, RETRY_AFTER, WARNING};
use jiff::Timestamp;

/// Returns Retry-After in seconds, as the API server sends it.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Returns the texts of `Warning: 299 - "text"` headers.
pub(super) fn warnings(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(WARNING)
        .iter()
        .filter_map(|value| {
            let (_, quoted) = value.to_str().ok()?.split_once('"')?;
            let text = quoted.strip_suffix('"').unwrap_or(quoted);
            Some(text.replace("\\\"", "\""))
        })
        .collect()
}

/// Returns the server's time in a response.
pub(crate) fn server_time(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get(DATE)?.to_str().ok()?;
    Some(jiff::fmt::rfc2822::parse(text).ok()?.timestamp())
}
