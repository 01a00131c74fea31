//! Resolves the location of an entry's manifest.

use url::Url;

/// A manifest that cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("manifest {manifest:?} cannot be found beside {base:?}")]
pub struct LocationError {
    /// The location of the index.
    pub base: String,
    /// The manifest as written.
    pub manifest: String,
    /// The reason.
    #[source]
    pub source: url::ParseError,
}

/// Resolves `manifest` against the location of its index, as Go's `url.ResolveReference` does for kops.
///
/// A manifest with a scheme is absolute. `base` is a URL of any scheme, or a file path. For a file path, the result is a file path.
///
/// # Errors
/// [`LocationError`] if `base` has a scheme and is not a URL, or if the manifest is not a valid reference.
pub fn resolve_manifest(base: &str, manifest: &str) -> Result<String, LocationError> {
    // A plain manifest is its own index (see `parse`).
    if has_scheme(manifest) || manifest == base {
        return Ok(manifest.to_owned());
    }
    if !has_scheme(base) {
        return Ok(resolve_path(base, manifest));
    }
    let url = Url::parse(base).and_then(|base| base.join(manifest));
    match url {
        Ok(url) => Ok(url.into()),
        Err(source) => Err(LocationError {
            base: base.to_owned(),
            manifest: manifest.to_owned(),
            source,
        }),
    }
}

/// Whether a location begins with a scheme, such as `s3://` or `https://`.
fn has_scheme(location: &str) -> bool {
    location.split_once("://").is_some_and(|(scheme, _)| {
        let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(inside)
    })
}

/// Returns the path `manifest`, relative to the folder of the file `base`, without `.` and, where possible, without `..`.
fn resolve_path(base: &str, manifest: &str) -> String {
    let folder = match base.rsplit_once('/') {
        Some((folder, _)) if !manifest.starts_with('/') => format!("{folder}/"),
        _ => String::new(),
    };
    let path = format!("{folder}{manifest}");
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match (part, parts.last()) {
            ("" | ".", _) => {}
            ("..", Some(&last)) if last != ".." => {
                parts.pop();
            }
            ("..", None) if path.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, manifest: &str, expect: &str) {
        assert_eq!(resolve_manifest(base, manifest).unwrap(), expect);
    }

    #[test]
    fn manifests_lie_beside_their_index() {
        check("https://h/a/index.yaml", "b/c.yaml", "https://h/a/b/c.yaml");
        check(
            "https://h/a/index.yaml?sig=1",
            "../c.yaml",
            "https://h/c.yaml",
        );
        check("https://h/a/index.yaml", "/c.yaml", "https://h/c.yaml");
        check(
            "s3://bucket/a/index.yaml",
            "b/c.yaml",
            "s3://bucket/a/b/c.yaml",
        );
        check("s3://bucket/a/index.yaml", "/c.yaml", "s3://bucket/c.yaml");
        check(
            "s3://bucket/a/index.yaml",
            "../../../c.yaml",
            "s3://bucket/c.yaml",
        );
        check("gs://bucket/index.yaml", "b/c.yaml", "gs://bucket/b/c.yaml");
        check(
            "az://container/a/index.yaml",
            "b c.yaml",
            "az://container/a/b%20c.yaml",
        );
        check("file:///a/index.yaml", "b/c.yaml", "file:///a/b/c.yaml");
        check(
            "https://h/index.yaml",
            "s3://bucket/c.yaml",
            "s3://bucket/c.yaml",
        );
        check("/a/index.yaml", "./b/c.yaml", "/a/b/c.yaml");
        check("/a/index.yaml", "../../../c.yaml", "/c.yaml");
        check("a/index.yaml", "../../c.yaml", "../c.yaml");
        check("index.yaml", "b/c.yaml", "b/c.yaml");
        check("a/index.yaml", "/c.yaml", "/c.yaml");
        check("a/manifest.yaml", "a/manifest.yaml", "a/manifest.yaml");
    }

    #[test]
    fn a_broken_base_is_named() {
        let error = resolve_manifest("https://[h/index.yaml", "c.yaml").unwrap_err();
        assert_eq!(
            error.to_string(),
            "manifest \"c.yaml\" cannot be found beside \"https://[h/index.yaml\""
        );
    }
}
