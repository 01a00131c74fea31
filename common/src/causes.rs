//! Errors and their causes.

/// Iterates over an error and its causes.
pub fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |cause| cause.source())
}

/// Formats `WHAT: CAUSE: CAUSE`. Errors of this project never repeat their source, but those of some libraries do: what the text already
/// says is left out.
#[must_use]
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = String::new();
    for cause in causes(error) {
        let message = cause.to_string();
        if !text.contains(message.trim()) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(message.trim());
        }
    }
    text
}
