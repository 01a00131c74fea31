//! Errors with their causes, in one line.

use std::error::Error;

/// Formats `WHAT: CAUSE: CAUSE`. Errors of this project never repeat their source, but those of some libraries do: what the text already
/// says is left out.
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let message = error.to_string();
        if !text.contains(message.trim()) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(message.trim());
        }
        next = error.source();
    }
    text
}
