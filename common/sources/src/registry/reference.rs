//! Parses and formats references to images.

use common::image::Image;

use super::RegistryAccessError;
use crate::SourceAccess;
use crate::cache::is_digest;

/// The tag of a reference with neither a tag nor a digest.
const DEFAULT_TAG: &str = "latest";

/// Parses a reference. Without tag and digest, it gets the tag `latest`.
///
/// # Errors
/// [`RegistryAccessError::Reference`], or [`RegistryAccessError::DigestKind`] for a digest that is not a sha256.
pub fn reference(text: &str) -> Result<Image, RegistryAccessError> {
    let mut image = Image::parse(text)?;
    match &image.digest {
        Some(digest) => drop(sha256(digest, text)?),
        None => drop(image.tag.get_or_insert_with(|| DEFAULT_TAG.to_owned())),
    }
    Ok(image)
}

/// The host of the API of a registry. For Docker Hub it differs from the host of images.
pub(super) fn api_host(image: &Image) -> &str {
    match image.host.as_str() {
        "docker.io" => "index.docker.io",
        host => host,
    }
}

/// The tag to show. A reference with a digest may have none and returns the default.
#[must_use]
pub fn tag(image: &Image) -> &str {
    image.tag.as_deref().unwrap_or(DEFAULT_TAG)
}

/// `HOST/PATH`, as docker writes it.
#[must_use]
pub fn repository(image: &Image) -> String {
    format!("{}/{}", image.host, image.repository)
}

/// The digest shortened for messages: `sha256:0123456789ab`.
#[must_use]
pub fn short(digest: &str) -> &str {
    digest.get(.."sha256:".len() + 12).unwrap_or(digest)
}

/// The part of cache keys that separates results by scheme and reader: those over plain HTTP, with the
/// credentials of a Secret or with an account of the user are not used for other requests.
#[must_use]
pub fn reader_key(image: &Image, plain_http: bool, access: &SourceAccess<'_>) -> String {
    let scheme = if plain_http { "http" } else { "https" };
    let is_own = access.reach.opens_registry(&image.host);
    let reader = access.reader(is_own.then_some("docker login"));
    format!(" {scheme} {reader}")
}

/// Returns the hex digits of a sha256 digest.
pub(super) fn sha256<'a>(digest: &'a str, location: &str) -> Result<&'a str, RegistryAccessError> {
    let hex = digest.strip_prefix("sha256:").filter(|hex| is_digest(hex));
    hex.ok_or_else(|| RegistryAccessError::DigestKind {
        location: location.to_owned(),
        digest: digest.to_owned(),
    })
}
