//! Image references, as container runtimes read them.

use std::fmt;

/// The registry of references that do not name one.
const DEFAULT_HOST: &str = "docker.io";
/// A former name of the default registry.
const LEGACY_HOST: &str = "index.docker.io";
/// The path in the default registry of images whose names have one part.
const OFFICIAL: &str = "library";
/// The maximum length of a repository in bytes, without the registry.
const MAX_REPOSITORY: usize = 255;
/// The maximum length of a tag in bytes.
const MAX_TAG: usize = 128;

/// An image reference, written out in full as by distribution/reference 0.6.0: `nginx` is `docker.io/library/nginx`. No tag is added.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Image {
    /// The registry, with its port.
    pub host: String,
    /// The repository, without registry, tag and digest.
    pub repository: String,
    /// The tag.
    pub tag: Option<String>,
    /// The digest, such as `sha256:…`.
    pub digest: Option<String>,
}

/// Why a text is not an image reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// It is the id of a local Docker image: 64 hexadecimal digits.
    #[error(
        "{image:?} is the id of a local image, which no registry knows: write NAME@sha256:{image}"
    )]
    Identifier {
        /// The reference as written.
        image: String,
    },
    /// The repository is not in lower case, such as `docker.io/Foo`.
    #[error("{image:?} is not a valid image: the repository {repository:?} must be lower-case")]
    UpperCase {
        /// The reference as written.
        image: String,
        /// The repository.
        repository: String,
    },
    /// The digest has the wrong length, upper-case letters or an unknown algorithm.
    #[error(
        "{image:?} is not a valid image: {digest:?} is not a digest, write sha256: and 64 hexadecimal digits in lower case"
    )]
    Digest {
        /// The reference as written.
        image: String,
        /// The digest.
        digest: String,
    },
    /// The repository has more than 255 bytes.
    #[error(
        "{image:?} is not a valid image: its repository has more than {MAX_REPOSITORY} characters"
    )]
    TooLong {
        /// The reference as written.
        image: String,
    },
    /// Any other mistake.
    #[error("{image:?} is not a valid image: write [HOST[:PORT]/]REPOSITORY[:TAG][@DIGEST]")]
    Format {
        /// The reference as written.
        image: String,
    },
}

impl Image {
    /// Reads an image reference.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn parse(text: &str) -> Result<Self, ImageError> {
        let image = || without_user(text);
        if text.len() == 64 && text.bytes().all(is_hex) {
            return Err(ImageError::Identifier { image: image() });
        }
        let (host, rest) = split_host(text);
        let remote = rest.split(':').next().unwrap_or_default();
        if remote.chars().any(char::is_uppercase) {
            return Err(ImageError::UpperCase {
                image: image(),
                repository: without_user(remote),
            });
        }
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (rest.as_str(), None),
        };
        let (repository, tag) = match rest.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (rest, None),
        };
        let (host, repository) = if is_host(host) {
            (host, repository.to_owned())
        } else {
            // For example `a_b.c/d`: not a host, but a valid repository.
            (DEFAULT_HOST, format!("{host}/{repository}"))
        };
        if !is_repository(&repository) || tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(ImageError::Format { image: image() });
        }
        if repository.len() > MAX_REPOSITORY {
            return Err(ImageError::TooLong { image: image() });
        }
        if let Some(digest) = digest.filter(|digest| !is_digest(digest)) {
            return Err(ImageError::Digest {
                image: image(),
                digest: without_user(digest),
            });
        }
        Ok(Self {
            host: host.to_owned(),
            repository,
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }

    /// Returns the name of other content in the same repository, by its digest.
    #[must_use]
    pub fn with_digest(&self, digest: &str) -> Self {
        Self {
            tag: None,
            digest: Some(digest.to_owned()),
            ..self.clone()
        }
    }
}

/// Returns a reference, or a text meant as one, without the user name and password before the host. Registries ignore these, and they
/// must not be shown.
#[must_use]
pub fn without_user(text: &str) -> String {
    let is_digest = |digest: &str| {
        let algorithm = digest.split_once(':').map(|(algorithm, _)| algorithm);
        matches!(algorithm, Some("sha256" | "sha384" | "sha512")) && !digest.contains('/')
    };
    let (name, digest) = match text.rsplit_once('@') {
        Some((name, digest)) if is_digest(digest) => (name, format!("@{digest}")),
        _ => (text, String::new()),
    };
    match name.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}{digest}"),
        None => text.to_owned(),
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

/// Whether container runtimes read the first part of a reference as a registry, and not as a part of the repository.
pub(super) fn names_a_registry(part: &str) -> bool {
    part == "localhost" || part.contains(['.', ':']) || part.chars().any(char::is_uppercase)
}

/// Whether a registry (`HOST[:PORT]`) is on this machine, where container runtimes use HTTP without TLS.
#[must_use]
pub fn is_of_this_machine(registry: &str) -> bool {
    let (host, port) = match registry.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (registry, ""),
    };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: &str| {
        address
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
    };
    port != "443" && (host == "localhost" || is_loopback(address))
}

/// Whether a text is a host name, an IPv4 address or an IPv6 address in brackets, with an optional port.
pub(super) fn is_host(text: &str) -> bool {
    let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, rest)) => match rest.strip_prefix(':') {
            Some(port) => (address, Some(port)),
            None => return false,
        },
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = if text.starts_with('[') {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b':')
    } else {
        name.split('.').all(is_label)
    };
    is_name && port.is_none_or(is_port)
}

/// Whether a text is a repository: parts of lower-case letters and digits, joined by `.`, `_`, `__` or dashes, between slashes.
pub(super) fn is_repository(text: &str) -> bool {
    text.split('/').all(is_component)
}

fn split_host(text: &str) -> (&str, String) {
    let (host, rest) = match text.split_once('/') {
        Some((LEGACY_HOST, rest)) => (DEFAULT_HOST, rest),
        Some((host, rest)) if names_a_registry(host) => (host, rest),
        _ => (DEFAULT_HOST, text),
    };
    if host == DEFAULT_HOST && !rest.contains('/') {
        (host, format!("{OFFICIAL}/{rest}"))
    } else {
        (host, rest.to_owned())
    }
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_component(component: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let edge = |byte: Option<u8>| byte.is_some_and(is_word);
    let separators = component.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    edge(component.bytes().next())
        && edge(component.bytes().next_back())
        && separators
            .into_iter()
            .all(|run| matches!(run, "" | "." | "_" | "__") || run.bytes().all(|byte| byte == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= MAX_TAG
        && tag.bytes().next().is_some_and(is_word)
        && tag
            .bytes()
            .all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    let length = match digest.split_once(':') {
        Some(("sha256", hex)) if hex.len() == 64 => hex,
        Some(("sha384", hex)) if hex.len() == 96 => hex,
        Some(("sha512", hex)) if hex.len() == 128 => hex,
        _ => return false,
    };
    length.bytes().all(is_hex)
}

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0b2f19895de281e4a416700b17a4dc9b8d3b80eb7b5b65dac173880f5113084e";

    #[test]
    fn spelled_out_in_full() {
        for (text, want) in [
            ("alpine:3", "docker.io/library/alpine:3"),
            ("foo/bar", "docker.io/foo/bar"),
            ("docker.io/nginx", "docker.io/library/nginx"),
            ("index.docker.io/a/b", "docker.io/a/b"),
            ("quay.io/a/b:v1", "quay.io/a/b:v1"),
            ("localhost/a", "localhost/a"),
            ("host/a/b", "docker.io/host/a/b"),
            ("Foo/bar", "Foo/bar"),
            ("my.reg:5000/x/y/z:1", "my.reg:5000/x/y/z:1"),
            ("[::1]:5000/a", "[::1]:5000/a"),
            ("a_b.c/d", "docker.io/a_b.c/d"),
            ("a__b/c---d.e:T_1.-", "docker.io/a__b/c---d.e:T_1.-"),
        ] {
            assert_eq!(
                Image::parse(text).map(|image| image.to_string()),
                Ok(want.to_owned())
            );
            let pinned = Image::parse(&format!("{text}@{DIGEST}"));
            assert_eq!(
                pinned.map(|image| image.to_string()),
                Ok(format!("{want}@{DIGEST}"))
            );
            assert_eq!(
                Image::parse(want).map(|image| image.to_string()),
                Ok(want.to_owned())
            );
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        for (image, expected) in [
            ("a.example/web:1", "a.example/web:1"),
            ("me:pw@a.example/web:1", "…@a.example/web:1"),
            ("me:pw@sha.example/web:1", "…@sha.example/web:1"),
            ("me:p/w@sha256:5000/web", "…@sha256:5000/web"),
        ] {
            assert_eq!(without_user(image), expected);
            let pinned = without_user(&format!("{image}@{DIGEST}"));
            assert_eq!(pinned, format!("{expected}@{DIGEST}"));
        }
        for image in [
            "me:pw@a.example/web:1",
            "me:P/pw@a.example/web:1",
            "me:p/a@pw@a.example/web",
        ] {
            let error = Image::parse(image).unwrap_err();
            assert!(!error.to_string().contains("pw"), "{error}");
        }
    }

    #[test]
    fn registries_of_this_machine() {
        for (registry, expected) in [
            ("localhost", true),
            ("localhost:5000", true),
            ("127.0.0.1:5000", true),
            ("[::1]:5000", true),
            ("[::1]", true),
            ("localhost:443", false),
            ("localhost.example:5000", false),
            ("10.0.0.1:5000", false),
        ] {
            assert_eq!(is_of_this_machine(registry), expected, "{registry}");
        }
    }

    #[test]
    fn refused() {
        let long = format!("a/{}", "b".repeat(MAX_REPOSITORY));
        for text in [
            "",
            " ",
            "a: b",
            "a b",
            "-a/b",
            "a..b",
            "a___b",
            "a_/b",
            "/a",
            "a/",
            "a//b",
            "a:",
            "a:.x",
            "docker.io/Foo",
            "b/Foo:x",
            "ä/b",
            "a@",
            "a@sha256:12",
            "a@md5:0b2f19895de281e4a416700b17a4dc9b",
            "a@sha256:0B2F19895de281e4a416700b17a4dc9b8d3b80eb7b5b65dac173880f5113084e",
            "4a456552a5f192992a6edcec2febb1c54870d665173a33dc7d876129b199ddbd",
            "host:port/a",
            "[::1/a",
            "[::1]x/a",
            "x.y-/A",
            &long,
        ] {
            assert!(Image::parse(text).is_err(), "{text:?}");
        }
    }
}
