//! Sources that only this machine can read.

use super::channel::{LocationError, resolve_manifest};
use crate::api::catalogue::{Source, SourceKind};

/// Returns the location of a source that only this machine can read, or `None` if others can read it. `base` resolves relative
/// manifests. An entry with several sources counts as not local: another check refuses it.
///
/// # Errors
/// [`LocationError`].
pub fn local_location(source: &Source, base: &str) -> Result<Option<String>, LocationError> {
    let (location, is_local) = match source.kind() {
        Ok(SourceKind::Git(git)) => (git.remote.clone(), is_path(&git.remote)),
        Ok(SourceKind::Helm(helm)) => (helm.url.clone(), is_path(&helm.url)),
        Ok(SourceKind::Url(url)) => {
            let location = resolve_manifest(base, &url.manifest)?;
            let is_local = is_path(&location);
            (location, is_local)
        }
        Ok(SourceKind::Docker(_) | SourceKind::Inline(_) | SourceKind::Catalogue(_)) | Err(_) => {
            return Ok(None);
        }
    };
    Ok(is_local.then_some(location))
}

/// Whether a location is a path or a `file:` URL, and neither another URL nor ssh's `USER@HOST:PATH`.
fn is_path(location: &str) -> bool {
    let first = location.split('/').next().unwrap_or_default();
    location.starts_with("file:") || !first.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_this_machine() {
        for (location, expected) in [
            ("file:///srv/repo", true),
            ("/srv/repo", true),
            ("../repo", true),
            ("repo/with:colon", true),
            ("https://h/r", false),
            ("ssh://git@h/r", false),
            ("git@h:r", false),
            ("oci://h/charts", false),
        ] {
            assert_eq!(is_path(location), expected, "{location}");
        }
    }
}
