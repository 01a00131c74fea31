//! Paths, names, tags and digests.

use sha2::{Digest as _, Sha256, Sha512};

use super::answer::{Code, Refusal};

/// Longest tag.
const MAX_TAG: usize = 128;

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route<'p> {
    /// `/v2/`.
    Base,
    /// Something of a repository.
    Of(&'p str, Target<'p>),
}

/// What of a repository is meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target<'p> {
    Tags,
    Manifest(Reference<'p>),
    Blob(Digest),
    Uploads,
    Upload(&'p str),
    Referrers(Digest),
}

/// The name of a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference<'p> {
    Tag(&'p str),
    Digest(Digest),
}

/// `sha256:HEX` or `sha512:HEX`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Digest(String);

impl<'p> Route<'p> {
    pub(super) fn parse(path: &'p str) -> Result<Self, Refusal> {
        let unknown = Refusal::path;
        let rest = path.strip_prefix("/v2/").ok_or_else(unknown)?;
        if rest.is_empty() {
            return Ok(Self::Base);
        }
        let (before, last) = rest.rsplit_once('/').ok_or_else(unknown)?;
        let (name, target) = if let Some(name) = before.strip_suffix("/blobs/uploads") {
            let target = match last {
                "" => Target::Uploads,
                id => Target::Upload(id),
            };
            (name, target)
        } else if let Some(name) = before.strip_suffix("/blobs") {
            (name, Target::Blob(Digest::parse(last)?))
        } else if let Some(name) = before.strip_suffix("/manifests") {
            (name, Target::Manifest(Reference::parse(last)?))
        } else if let Some(name) = before.strip_suffix("/referrers") {
            (name, Target::Referrers(Digest::parse(last)?))
        } else if let Some(name) = before.strip_suffix("/tags")
            && last == "list"
        {
            (name, Target::Tags)
        } else {
            return Err(unknown());
        };
        match is_name(name) {
            true => Ok(Self::Of(name, target)),
            false => Err(Refusal::new(Code::NameInvalid, name)),
        }
    }
}

impl<'p> Reference<'p> {
    fn parse(text: &'p str) -> Result<Self, Refusal> {
        if text.contains(':') {
            return Digest::parse(text).map(Self::Digest);
        }
        match is_tag(text) {
            true => Ok(Self::Tag(text)),
            false => Err(Refusal::new(Code::ManifestInvalid, "an invalid tag")),
        }
    }
}

impl Digest {
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let length = match text.split_once(':') {
            Some(("sha256", hex)) => hex.len() == 64,
            Some(("sha512", hex)) => hex.len() == 128,
            _ => false,
        };
        let hex = text.split_once(':').map_or("", |(_, hex)| hex);
        let is_hex = hex.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        match length && is_hex {
            true => Ok(Self(text.to_owned())),
            false => Err(Refusal::new(Code::DigestInvalid, text)),
        }
    }

    /// The digest of a manifest that is pushed under a tag.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(format!("sha256:{}", hex(&Sha256::digest(bytes))))
    }

    /// Whether the bytes have this digest.
    pub(super) fn verifies(&self, bytes: &[u8]) -> bool {
        match self.0.starts_with("sha512:") {
            true => self.0 == format!("sha512:{}", hex(&Sha512::digest(bytes))),
            false => *self == Self::of(bytes),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parts of lower-case letters and digits, between which is one dot, one or two underscores, or any number of hyphens.
fn is_name(name: &str) -> bool {
    name.split('/').all(|part| {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let ends = part.starts_with(is_plain) && part.ends_with(is_plain);
        let mut between = part.split(is_plain).filter(|between| !between.is_empty());
        ends && between
            .all(|between| matches!(between, "." | "_" | "__") || between.chars().all(|c| c == '-'))
    })
}

fn is_tag(tag: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= MAX_TAG
        && tag.starts_with(is_word)
        && tag.chars().all(|c| is_word(c) || c == '.' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tags_are_those_of_the_specification() {
        for name in ["a", "team/app", "a.b_c__d---e/f0"] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "", "A", "a/", "/a", "a//b", "-a", "a-", "a..b", "a___b", "a.-b", "a b",
        ] {
            assert!(!is_name(name), "{name}");
        }
        let long = "a".repeat(MAX_TAG);
        for tag in ["1", "_", "v1.2-rc.1_B", &long] {
            assert!(is_tag(tag), "{tag}");
        }
        for tag in ["", ".1", "-1", "a+b", &format!("{long}a")] {
            assert!(!is_tag(tag), "{tag}");
        }
    }

    #[test]
    fn paths_name_what_they_are_about() {
        let digest = Digest::of(b"");
        let blob = format!("/v2/team/app/blobs/{}", digest.as_str());
        let referrers = format!("/v2/a/referrers/{}", digest.as_str());
        for (path, expected) in [
            ("/v2/", Route::Base),
            (
                "/v2/team/app/tags/list",
                Route::Of("team/app", Target::Tags),
            ),
            (
                "/v2/manifests/manifests/1",
                Route::Of("manifests", Target::Manifest(Reference::Tag("1"))),
            ),
            (&blob, Route::Of("team/app", Target::Blob(digest.clone()))),
            (&referrers, Route::Of("a", Target::Referrers(digest))),
            ("/v2/a/blobs/uploads/", Route::Of("a", Target::Uploads)),
            ("/v2/a/blobs/uploads/7", Route::Of("a", Target::Upload("7"))),
        ] {
            assert_eq!(Route::parse(path).unwrap(), expected, "{path}");
        }
        for path in [
            "/",
            "/v1/",
            "/v2/a",
            "/v2/a/tags",
            "/v2/_catalog",
            "/v2/A/tags/list",
        ] {
            assert!(Route::parse(path).is_err(), "{path}");
        }
    }

    #[test]
    fn digests_are_verified() {
        let empty = Digest::of(b"");
        assert!(empty.verifies(b"") && !empty.verifies(b"a"));
        let long = Digest::parse(&format!("sha512:{}", hex(&Sha512::digest(b"a")))).unwrap();
        assert!(long.verifies(b"a") && !long.verifies(b"b"));
        for text in [
            "",
            "sha256:",
            "md5:0",
            "sha256:ABC",
            &empty.0.to_uppercase(),
            &empty.0[..70],
        ] {
            assert!(Digest::parse(text).is_err(), "{text}");
        }
    }
}
