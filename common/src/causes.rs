//! Errors and their causes.

/// Iterates over an error and its causes.
pub fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |cause| cause.source())
}

/// What precedes the address of a library's documentation in its errors. The address does not help an administrator.
const LIBRARY_PAGES: &str = ": https://docs.rs/";

/// Prefixes that libraries add to a cause.
const LIBRARY_PREFIXES: [&str; 4] = [
    "ServiceError: ",
    "client error (Connect): ",
    "tcp connect error: ",
    "dns error: ",
];

/// Removes the prefixes that libraries add to causes from a text.
#[must_use]
pub fn strip_library_prefixes(text: &str) -> String {
    let prefixes = LIBRARY_PREFIXES.iter();
    prefixes.fold(text.to_owned(), |text, prefix| text.replace(prefix, ""))
}

/// Formats `WHAT: CAUSE: CAUSE`. Errors of this project never repeat their source, but those of some libraries do: what the text already
/// says is left out, and so are addresses of their documentation and their prefixes.
#[must_use]
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = String::new();
    for cause in causes(error) {
        let message = cause.to_string();
        let message = message.split(LIBRARY_PAGES).next().unwrap_or_default();
        if !text.contains(message.trim()) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(message.trim());
        }
    }
    strip_library_prefixes(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Caused(&'static str, #[source] std::io::Error);

    #[test]
    fn causes_are_told_once_and_without_the_pages_of_libraries() {
        for (what, cause, expected) in [
            ("a", "b", "a: b"),
            ("a: b", "b", "a: b"),
            (
                "the server cannot be reached",
                "no close_notify: https://docs.rs/rustls/latest/rustls/manual/index.html#unexpected-eof",
                "the server cannot be reached: no close_notify",
            ),
            (
                "the server cannot be reached",
                "ServiceError: client error (Connect): dns error: tls handshake eof",
                "the server cannot be reached: tls handshake eof",
            ),
        ] {
            let error = Caused(what, std::io::Error::other(cause));
            assert_eq!(with_causes(&error), expected);
        }
    }
}
