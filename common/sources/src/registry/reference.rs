//! References to images.

use common::render::image::without_user;
use oci_client::Reference;

use super::RegistryError;
use crate::cache::is_digest;
use crate::{Access, Reach};

/// Reads a reference.
///
/// # Errors
/// [`RegistryError::Reference`], and digests that are not sha256.
pub fn reference(image: &str) -> Result<Reference, RegistryError> {
    let reference: Reference =
        image
            .parse()
            .map_err(|error: oci_client::ParseError| RegistryError::Reference {
                image: without_user(image),
                why: error.to_string(),
            })?;
    if let Some(digest) = reference.digest() {
        sha256(digest, image)?;
    }
    Ok(reference)
}

/// `HOST/PATH`, as docker spells it.
#[must_use]
pub fn repository(reference: &Reference) -> String {
    format!("{}/{}", reference.registry(), reference.repository())
}

/// `sha256:0123456789ab`, for people.
#[must_use]
pub fn short(digest: &str) -> &str {
    digest.get(.."sha256:".len() + 12).unwrap_or(digest)
}

/// Part of the keys of notes: what a name stood for over plain HTTP, with the credentials of a Secret, or with the accounts of the
/// user, is not used for other requests.
#[must_use]
pub fn seen_by(plain_http: bool, access: &Access<'_>) -> String {
    let scheme = if plain_http { "http" } else { "https" };
    let identity = match (access.credentials, access.reach) {
        (None, Reach::Own) => "docker login".to_owned(),
        _ => access.identity(),
    };
    format!(" {scheme} {identity}")
}

/// The hex digits of a sha256 digest.
pub(super) fn sha256<'a>(digest: &'a str, location: &str) -> Result<&'a str, RegistryError> {
    let hex = digest.strip_prefix("sha256:").filter(|hex| is_digest(hex));
    hex.ok_or_else(|| RegistryError::DigestKind {
        location: location.to_owned(),
        digest: digest.to_owned(),
    })
}
