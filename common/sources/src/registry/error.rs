//! Errors of reading a registry.

use common::image::ImageError;

use crate::credentials::CredentialsError;
use crate::http::HttpError;

use super::docker_config::DockerConfigError;
use super::manifest::RegistryManifestError;

/// Why a registry cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RegistryAccessError {
    /// The reference is invalid.
    #[error(transparent)]
    Reference(#[from] ImageError),
    /// The Secret cannot be used for this registry.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// `.dockerconfigjson` cannot be read.
    #[error("Secret {secret}")]
    DockerConfig {
        /// The Secret.
        secret: String,
        /// Why.
        #[source]
        source: DockerConfigError,
    },
    /// The registry names a token server to which the credentials may not be sent.
    #[error("{host}: the credentials are not sent to its token server {realm}: {why}")]
    Realm {
        /// The registry.
        host: String,
        /// The token server.
        realm: String,
        /// Why not.
        why: String,
    },
    /// The token server returned no token.
    #[error("{host}: no token from {realm}: {why}")]
    Token {
        /// The registry.
        host: String,
        /// The token server.
        realm: String,
        /// What the token server responds.
        why: String,
    },
    /// The credentials are wrong or missing.
    #[error("{location}: the registry refuses {who}{detail}")]
    Unauthorized {
        /// What was requested.
        location: String,
        /// The owner of the credentials that were sent.
        who: String,
        /// What the registry says.
        detail: String,
        /// What the user can do: `docker login HOST`, `correct what the Secret holds for HOST`.
        accept: String,
    },
    /// The repository, tag or digest does not exist.
    #[error("{location} was not found{detail}")]
    NotFound {
        /// What was requested.
        location: String,
        /// What the registry says.
        detail: String,
        /// `HOST/PATH`, if a list of its tags may help; `None` for a blob.
        repository: Option<String>,
    },
    /// The registry responds with another error status.
    #[error("{location}: the registry answers {status}{detail}")]
    Status {
        /// What was requested.
        location: String,
        /// `500 Internal Server Error`.
        status: String,
        /// What the registry says.
        detail: String,
    },
    /// The registry gave no usable response.
    #[error("{location} cannot be fetched")]
    Http {
        /// What was requested.
        location: String,
        /// Why.
        #[source]
        source: HttpError,
    },
    /// The registry gave no usable response to a push.
    #[error("{location} cannot be pushed")]
    Push {
        /// What should be pushed.
        location: String,
        /// Why.
        #[source]
        source: HttpError,
    },
    /// The size differs from that in the manifest.
    #[error(
        "{location} has {found} bytes, but its manifest says {size}: the transfer was cut off, or the registry is \
         damaged; try again"
    )]
    Size {
        /// What was requested.
        location: String,
        /// The size in the manifest.
        size: u64,
        /// `only 3`, `more than 17`.
        found: String,
    },
    /// The content has another digest.
    #[error(
        "{location} has digest {found}: this is not the content that was asked for; try again, then ask the owner of the registry"
    )]
    Digest {
        /// What was requested.
        location: String,
        /// The digest of the received content.
        found: String,
    },
    /// The digest is not a sha256.
    #[error("{location}: {digest} is not a valid sha256 digest, the only kind supported")]
    DigestKind {
        /// What was requested.
        location: String,
        /// The digest.
        digest: String,
    },
    /// The manifest cannot be used.
    #[error("{location}")]
    Manifest {
        /// What was requested.
        location: String,
        /// Why.
        #[source]
        source: RegistryManifestError,
    },
    /// A list cannot be read to its end.
    #[error("{location}: the list of its {entries} {why}")]
    List {
        /// The owner of the list: `HOST/PATH` or `HOST/PATH@sha256:…`.
        location: String,
        /// `tags`, `referrers`.
        entries: &'static str,
        /// What is wrong.
        why: &'static str,
    },
    /// The content is not in the cache.
    #[error("{location} is not in the cache, and no server may be asked")]
    Offline {
        /// What was requested.
        location: String,
    },
}

impl RegistryAccessError {
    /// Whether the registry was accessed with TLS but does not support it.
    #[must_use]
    pub fn is_without_tls(&self) -> bool {
        let (Self::Http { source, .. } | Self::Push { source, .. }) = self else {
            return false;
        };
        matches!(source, HttpError::NoTls)
    }
}
