//! What can go wrong at a registry.

use crate::credentials::CredentialsError;
use crate::http::HttpError;

use super::docker_config::DockerConfigError;
use super::manifest::ManifestError;

/// Why a registry could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Not a reference.
    #[error(
        "{image:?} is no image reference ({why}): write HOST/PATH:TAG or HOST/PATH@sha256:DIGEST"
    )]
    Reference {
        /// As given.
        image: String,
        /// What is wrong.
        why: String,
    },
    /// The Secret may not be used there.
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
    /// The registry names a place for tokens that may not see the password.
    #[error("{host} sends for a token to {realm}, which may not see the credentials: {why}")]
    Realm {
        /// The registry.
        host: String,
        /// The host of the tokens.
        realm: String,
        /// Why not.
        why: String,
    },
    /// A token was asked for and did not come.
    #[error("{host}: {realm} gives no token: {why}")]
    Token {
        /// The registry.
        host: String,
        /// The host of the tokens.
        realm: String,
        /// What it answers.
        why: String,
    },
    /// Wrong credentials, or none where some are needed.
    #[error("{location}: the registry refuses {who}{detail}\n  accept: {accept}")]
    Unauthorized {
        /// What was asked for.
        location: String,
        /// Whose credentials were sent.
        who: String,
        /// What the registry says.
        detail: String,
        /// The way out.
        accept: String,
    },
    /// No such repository, tag or digest.
    #[error("{location} is not there{detail}\n  look:   skopeo list-tags docker://{repository}")]
    NotFound {
        /// What was asked for.
        location: String,
        /// What the registry says.
        detail: String,
        /// `HOST/PATH`.
        repository: String,
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
    /// Another size than the manifest says.
    #[error(
        "{location} has {found} bytes and not the {size} that the manifest says: it was cut off on the way, or the \
         registry is damaged"
    )]
    Size {
        /// What was asked for.
        location: String,
        /// What the manifest says.
        size: u64,
        /// `only 3`, `more than 17`.
        found: String,
    },
    /// Other bytes than the digest stands for.
    #[error(
        "{location} has digest {found}: what came is not what was asked for; ask again, or tell who runs the registry"
    )]
    Digest {
        /// What was asked for.
        location: String,
        /// Of what came.
        found: String,
    },
    /// A digest that is not sha256.
    #[error("{location}: {digest} is no sha256 digest, and others are not read")]
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
    /// Too many tags, or pages that lead elsewhere.
    #[error("{location}: the list of its tags {why}")]
    Tags {
        /// `HOST/PATH`.
        location: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Not in the cache.
    #[error(
        "{location} is not in the cache, and nothing is fetched with --offline: run it once without"
    )]
    Offline {
        /// What was asked for.
        location: String,
    },
}
