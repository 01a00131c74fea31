//! Why a registry cannot be read.

use common::image::ImageError;

use crate::credentials::CredentialsError;
use crate::http::HttpError;

use super::docker_config::DockerConfigError;
use super::manifest::ManifestError;

/// Why a registry could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Not a reference.
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
    /// The registry names a token server that may not get the credentials.
    #[error("{host}: the credentials are not sent to its token server {realm}: {why}")]
    Realm {
        /// The registry.
        host: String,
        /// The token server.
        realm: String,
        /// Why not.
        why: String,
    },
    /// The token server gave no token.
    #[error("{host}: no token from {realm}: {why}")]
    Token {
        /// The registry.
        host: String,
        /// The token server.
        realm: String,
        /// What it answers.
        why: String,
    },
    /// Wrong or missing credentials.
    #[error("{location}: the registry refuses {who}{detail}")]
    Unauthorized {
        /// What was asked for.
        location: String,
        /// Whose credentials were sent.
        who: String,
        /// What the registry says.
        detail: String,
        /// What the user can do: `docker login HOST`, `correct what the Secret holds for HOST`.
        accept: String,
    },
    /// No such repository, tag or digest.
    #[error("{location} was not found{detail}")]
    NotFound {
        /// What was asked for.
        location: String,
        /// What the registry says.
        detail: String,
        /// `HOST/PATH`, where a list of its tags may show what was meant; `None` of a blob.
        repository: Option<String>,
    },
    /// Another status.
    #[error("{location}: the registry answers {status}{detail}")]
    Status {
        /// What was asked for.
        location: String,
        /// `500 Internal Server Error`.
        status: String,
        /// What the registry says.
        detail: String,
    },
    /// No usable answer.
    #[error("{location} cannot be fetched")]
    Http {
        /// What was asked for.
        location: String,
        /// Why.
        #[source]
        source: HttpError,
    },
    /// No usable answer to what was to be pushed.
    #[error("{location} cannot be pushed")]
    Push {
        /// What was to be pushed.
        location: String,
        /// Why.
        #[source]
        source: HttpError,
    },
    /// Another size than the manifest says.
    #[error(
        "{location} has {found} bytes, but its manifest says {size}: the transfer was cut off, or the registry is \
         damaged; try again"
    )]
    Size {
        /// What was asked for.
        location: String,
        /// What the manifest says.
        size: u64,
        /// `only 3`, `more than 17`.
        found: String,
    },
    /// Content with another digest.
    #[error(
        "{location} has digest {found}: this is not the content that was asked for; try again, then ask the owner of the registry"
    )]
    Digest {
        /// What was asked for.
        location: String,
        /// Of the received content.
        found: String,
    },
    /// A digest that is not sha256.
    #[error("{location}: {digest} is not a valid sha256 digest, the only kind supported")]
    DigestKind {
        /// What was asked for.
        location: String,
        /// The digest.
        digest: String,
    },
    /// Not a manifest that can be used.
    #[error("{location}")]
    Manifest {
        /// What was asked for.
        location: String,
        /// Why.
        #[source]
        source: ManifestError,
    },
    /// A list that cannot be read to its end.
    #[error("{location}: the list of its {entries} {why}")]
    List {
        /// What has the list: `HOST/PATH`, or `HOST/PATH@sha256:…`.
        location: String,
        /// `tags`, `referrers`.
        entries: &'static str,
        /// What is wrong.
        why: &'static str,
    },
    /// Not in the cache.
    #[error("{location} is not in the cache, and no server may be asked")]
    Offline {
        /// What was asked for.
        location: String,
    },
}

impl RegistryError {
    /// Whether the registry was accessed with TLS, which it does not speak.
    #[must_use]
    pub fn is_without_tls(&self) -> bool {
        let (Self::Http { source, .. } | Self::Push { source, .. }) = self else {
            return false;
        };
        matches!(source, HttpError::NoTls)
    }
}
