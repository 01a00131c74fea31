//! Where indexes, catalogues and packages are read: a file a kind of source, every error with its location.
//!
//! Every source ends in a [`Package`] in memory and in the digest of its content; what was fetched is kept in one [`cache`].
//! With a warm cache a source is asked once at most: whether what can move has moved.

pub mod cache;
pub mod credentials;
pub mod url;

use common::render::package::Package;

use cache::Cache;
use credentials::Credentials;

/// What every source is read with.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// What was fetched before.
    pub cache: &'a Cache,
    /// Only the cache is asked (`--offline`).
    pub offline: bool,
    /// Whether files, credentials and settings of this machine may be used: not for catalogues in a cluster (semantics 16).
    pub ambient: bool,
    /// Those of the source's Secret.
    pub credentials: Option<&'a Credentials>,
}

/// What a source holds.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Its files.
    pub package: Package,
    /// Where they were read, without credentials: `https://HOST/REPO@COMMIT:PATH`, for people and for places in errors.
    pub location: String,
    /// The commit (`git`), the image digest (`docker`, `oci://`) or the chart version that a moving name stands for.
    pub resolved: Option<String>,
}

/// Why a source cannot be read: each kind of source says it in its own words, with the way out.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file, an answer of a web server, an object in a store.
    #[error(transparent)]
    Url(#[from] url::UrlError),
}
