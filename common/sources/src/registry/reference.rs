//! References to images.

use common::image::Image;

use super::RegistryError;
use crate::Access;
use crate::cache::is_digest;

/// The tag of a reference that names neither a tag nor a digest.
const DEFAULT_TAG: &str = "latest";

/// Reads a reference. One without tag and digest gets the tag `latest`.
///
/// # Errors
/// [`RegistryError::Reference`], and digests that are not sha256.
pub fn reference(text: &str) -> Result<Image, RegistryError> {
    let mut image = Image::parse(text)?;
    match &image.digest {
        Some(digest) => drop(sha256(digest, text)?),
        None => drop(image.tag.get_or_insert_with(|| DEFAULT_TAG.to_owned())),
    }
    Ok(image)
}

/// The host that answers for a registry: Docker Hub is asked by another name than images have.
pub(super) fn asked(image: &Image) -> &str {
    match image.host.as_str() {
        "docker.io" => "index.docker.io",
        host => host,
    }
}

/// The tag, if only to show it: with a digest there may be none.
#[must_use]
pub fn tag(image: &Image) -> &str {
    image.tag.as_deref().unwrap_or(DEFAULT_TAG)
}

/// `HOST/PATH`, as docker spells it.
#[must_use]
pub fn repository(image: &Image) -> String {
    format!("{}/{}", image.host, image.repository)
}

/// `sha256:0123456789ab`, for people.
#[must_use]
pub fn short(digest: &str) -> &str {
    digest.get(.."sha256:".len() + 12).unwrap_or(digest)
}

/// Part of the keys of notes: what a name stood for over plain HTTP, with the credentials of a Secret, or with the accounts of the
/// user, is not used for other requests.
#[must_use]
pub fn seen_by(image: &Image, plain_http: bool, access: &Access<'_>) -> String {
    let scheme = if plain_http { "http" } else { "https" };
    let is_own = access.reach.opens_registry(&image.host);
    let reader = access.reader(is_own.then_some("docker login"));
    format!(" {scheme} {reader}")
}

/// The hex digits of a sha256 digest.
pub(super) fn sha256<'a>(digest: &'a str, location: &str) -> Result<&'a str, RegistryError> {
    let hex = digest.strip_prefix("sha256:").filter(|hex| is_digest(hex));
    hex.ok_or_else(|| RegistryError::DigestKind {
        location: location.to_owned(),
        digest: digest.to_owned(),
    })
}
