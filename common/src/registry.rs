//! A private registry that replaces all others: `HOST[:PORT][/PATH]`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::api::catalogue::{DockerSource, HelmSource, Source, SourceKind};

use crate::image::{
    Image, ImageError, is_host, is_of_this_machine, is_repository, names_a_registry,
};

/// A private registry to which images are rewritten.
///
/// The rule is that of KKP (`pkg/resources/registry`, with its ten test cases): the reference is written out in full, its registry is
/// replaced, and repository, tag and digest stay. `quay.io/a/b` and `ghcr.io/a/b` therefore become one image, as with KKP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registry {
    /// `HOST[:PORT][/PATH]`, without a trailing slash.
    prefix: String,
}

/// A source after it was rewritten to a private registry.
#[derive(Clone, Debug, PartialEq)]
pub struct RewrittenSource {
    /// The rewritten source.
    pub source: Source,
    /// The reason why the source was not rewritten, as a warning for the user.
    pub warning: Option<String>,
}

/// Why a text is not a registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryNameError {
    /// The text has a scheme, such as `https://mirror.example.com`.
    #[error("the registry {text:?} has a scheme: write HOST[:PORT][/PATH], as in {host}")]
    Scheme {
        /// The text as written.
        text: String,
        /// The text after the scheme.
        host: String,
    },
    /// The first part is not a host: container runtimes would read `mirror/a` as `docker.io/mirror/a`.
    #[error(
        "the registry {text:?} is not a host for container runtimes: write it with a port, as in {host}:443, or in full"
    )]
    NotAHost {
        /// The text as written.
        text: String,
        /// The first part.
        host: String,
    },
    /// Any other mistake.
    #[error(
        "the registry {text:?} is not valid: write HOST[:PORT][/PATH] with a path in lower case, as in mirror.example.com/addons"
    )]
    Format {
        /// The text as written.
        text: String,
    },
}

impl Registry {
    /// Rewrites an image to this registry. An image that is already there stays unchanged, so that images can be rewritten twice.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn rewrite(&self, image: &str) -> Result<String, ImageError> {
        Ok(self.with_path(&Image::parse(image)?.to_string()))
    }

    /// Rewrites an image or a chart of an OCI registry to this registry. The Secret with its credentials must then allow the new host.
    /// A registry on this machine is accessed over plain HTTP, as by container runtimes. Other sources stay unchanged, some with a
    /// warning.
    ///
    /// # Errors
    /// [`ImageError`] for the image of a docker source.
    pub fn rewrite_source(&self, source: &Source) -> Result<RewrittenSource, ImageError> {
        let mut moved = source.clone();
        let mut stays = None;
        match source.kind() {
            Ok(SourceKind::Docker(docker)) => {
                moved.docker = Some(DockerSource {
                    image: self.rewrite(&docker.image)?,
                    plain_http: docker.plain_http || self.is_of_this_machine(),
                    ..docker.clone()
                });
            }
            Ok(SourceKind::Helm(helm)) => match helm.url.strip_prefix("oci://") {
                Some(path) => {
                    moved.helm = Some(HelmSource {
                        url: format!("oci://{}", self.with_path(path)),
                        plain_http: helm.plain_http || self.is_of_this_machine(),
                        ..helm.clone()
                    });
                }
                None => stays = Some(("Helm repository", &helm.url)),
            },
            Ok(SourceKind::Git(git)) => stays = Some(("git repository", &git.remote)),
            // A relative location is resolved against the location of the catalogue.
            Ok(SourceKind::Url(url)) if url.manifest.contains("://") => {
                stays = Some(("URL", &url.manifest));
            }
            // A source without exactly one kind is refused when it is fetched.
            Ok(SourceKind::Url(_) | SourceKind::Inline(_) | SourceKind::Catalogue(_)) | Err(_) => {}
        }
        let warning = stays.map(|(what, place)| {
            format!(
                "the {what} {} is not a registry and stays as it is: point the catalogue to a mirror of it",
                without_user(place)
            )
        });
        Ok(RewrittenSource {
            source: moved,
            warning,
        })
    }

    /// Replaces the host of `path` with this registry.
    fn with_path(&self, path: &str) -> String {
        let is_there = path
            .strip_prefix(&self.prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        match path.split_once('/') {
            _ if is_there => path.to_owned(),
            Some((_, rest)) => format!("{}/{rest}", self.prefix),
            None => self.prefix.clone(),
        }
    }

    fn is_of_this_machine(&self) -> bool {
        let host = self.prefix.split('/').next();
        host.is_some_and(is_of_this_machine)
    }

    /// Returns `HOST[:PORT][/PATH]`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.prefix
    }
}

impl FromStr for Registry {
    type Err = RegistryNameError;

    fn from_str(text: &str) -> Result<Self, RegistryNameError> {
        if let Some((_, host)) = text.split_once("://") {
            return Err(RegistryNameError::Scheme {
                text: text.to_owned(),
                host: host.to_owned(),
            });
        }
        let prefix = text.strip_suffix('/').unwrap_or(text);
        let (host, path) = match prefix.split_once('/') {
            Some((host, path)) => (host, Some(path)),
            None => (prefix, None),
        };
        if !is_host(host) || path.is_some_and(|path| !is_repository(path)) {
            return Err(RegistryNameError::Format {
                text: text.to_owned(),
            });
        }
        if !names_a_registry(host) {
            return Err(RegistryNameError::NotAHost {
                text: text.to_owned(),
                host: host.to_owned(),
            });
        }
        Ok(Self {
            prefix: prefix.to_owned(),
        })
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.prefix)
    }
}

/// Removes the user name and password before the host, which must not be shown.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DIGEST: &str = "sha256:0b2f19895de281e4a416700b17a4dc9b8d3b80eb7b5b65dac173880f5113084e";

    fn registry(text: &str) -> Registry {
        text.parse().expect("a registry")
    }

    /// KKP `pkg/resources/registry/registry_test.go`: the last three rows; the seven without a registry are
    /// [`crate::image`]'s.
    #[test]
    fn rules_of_kkp() {
        let registry = registry("registry.local");
        for (image, want) in [
            ("docker.io/foo/bar", "registry.local/foo/bar".to_owned()),
            (
                &format!("docker.io/foo/bar:v1.2.3@{DIGEST}"),
                format!("registry.local/foo/bar:v1.2.3@{DIGEST}"),
            ),
            (
                &format!("registry.local/foo/bar:v1.2.3@{DIGEST}"),
                format!("registry.local/foo/bar:v1.2.3@{DIGEST}"),
            ),
        ] {
            assert_eq!(registry.rewrite(image), Ok(want));
        }
    }

    #[test]
    fn with_a_path_and_twice() {
        let registry = registry("mirror.example.com:5000/a/b/");
        for (image, want) in [
            ("nginx", "mirror.example.com:5000/a/b/library/nginx"),
            ("quay.io/x/y:1", "mirror.example.com:5000/a/b/x/y:1"),
            (
                "mirror.example.com:5000/a/b/x",
                "mirror.example.com:5000/a/b/x",
            ),
            (
                "mirror.example.com:5000/a/bc/x",
                "mirror.example.com:5000/a/b/a/bc/x",
            ),
        ] {
            assert_eq!(registry.rewrite(image), Ok(want.to_owned()));
            assert_eq!(registry.rewrite(want), Ok(want.to_owned()));
        }
    }

    #[test]
    fn no_registries() {
        let scheme = "oci://r.example".parse::<Registry>();
        assert!(matches!(scheme, Err(RegistryNameError::Scheme { .. })));
        let word = "mirror/addons".parse::<Registry>();
        assert!(matches!(word, Err(RegistryNameError::NotAHost { .. })));
        for text in [
            "",
            "/",
            "a b",
            "r.example//x",
            "r.example/X",
            "r.example:x",
            "r.example/a:b",
            "-r.example",
        ] {
            let read = text.parse::<Registry>();
            assert!(
                matches!(read, Err(RegistryNameError::Format { .. })),
                "{text:?}"
            );
        }
    }

    #[test]
    fn sources() {
        let registry = registry("mirror.example.com/addons");
        for (source, want, warns) in [
            (
                json!({"docker": {"image": "quay.io/a/b:1", "path": "x"}}),
                json!({"docker": {"image": "mirror.example.com/addons/a/b:1", "path": "x"}}),
                None,
            ),
            (
                json!({"helm": {"url": "oci://ghcr.io/org/charts", "chart": "c"}}),
                json!({"helm": {"url": "oci://mirror.example.com/addons/org/charts", "chart": "c"}}),
                None,
            ),
            (
                json!({"helm": {"url": "oci://mirror.example.com/addons/org", "chart": "c"}}),
                json!({"helm": {"url": "oci://mirror.example.com/addons/org", "chart": "c"}}),
                None,
            ),
            (
                json!({"helm": {"url": "oci://ghcr.io", "chart": "c"}}),
                json!({"helm": {"url": "oci://mirror.example.com/addons", "chart": "c"}}),
                None,
            ),
            (
                json!({"helm": {"url": "https://charts.example.com", "chart": "c"}}),
                json!({"helm": {"url": "https://charts.example.com", "chart": "c"}}),
                Some("Helm repository https://charts.example.com"),
            ),
            (
                json!({"git": {"remote": "https://u:secret@git.example.com/x"}}),
                json!({"git": {"remote": "https://u:secret@git.example.com/x"}}),
                Some("git repository https://git.example.com/x"),
            ),
            (
                json!({"url": {"manifest": "https://example.com/x.yaml"}}),
                json!({"url": {"manifest": "https://example.com/x.yaml"}}),
                Some("URL https://example.com/x.yaml"),
            ),
            (
                json!({"url": {"manifest": "x.yaml"}}),
                json!({"url": {"manifest": "x.yaml"}}),
                None,
            ),
        ] {
            let source: Source = serde_json::from_value(source).expect("a source");
            let moved = registry.rewrite_source(&source).expect("an image");
            assert_eq!(serde_json::to_value(&moved.source).expect("JSON"), want);
            let warning = moved.warning.unwrap_or_default();
            assert_eq!(warns.is_some(), !warning.is_empty());
            assert!(warning.contains(warns.unwrap_or_default()), "{warning}");
        }
    }
}
