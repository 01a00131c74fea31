//! Charts in chart repositories: `index.yaml`, which can move, and archives that it names with their digests.
//!
//! An exact version that is in the cache is taken from there; otherwise the index is asked for once, and what it names is
//! fetched where the cache does not hold it. Credentials go to the repository's own host and to no other.

mod choose;
mod index;

use addons_versions::RangeError;
use common::api::catalogue::HelmSource;
use common::manifest::digest::sha256;
use common::render::chart::{Chart, ChartError as ContentError};
use common::render::package::Package;
use url::Url;

use crate::archive::{self, ArchiveError};
use crate::http::bound;

use super::cache::Note;
use super::url::{UrlError, get, shown, without_credentials};
use super::{Access, Fetched};
use choose::{choose, is_exact};
use index::{Entry, IndexProblem};

/// Kind of the notes in the cache: which archive a version is.
const VERSIONS: &str = "chart";
/// Behind `resolved` where nothing vouches for an archive.
const UNVERIFIED: &str = " (the index names no digest)";

/// Why a chart cannot be fetched. Every message names the repository or the file.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// A URL that cannot be used.
    #[error("{url}: {problem}")]
    Url {
        /// Without user and password.
        url: String,
        /// What is wrong, and what may stand there.
        problem: &'static str,
    },
    /// The index or the archive cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] UrlError),
    /// An index that is none.
    #[error("{url}: {problem}")]
    Index {
        /// Of the index.
        url: String,
        /// What is wrong.
        problem: IndexProblem,
    },
    /// A version that is no version and no range.
    #[error("version of chart {chart}: {problem}")]
    Range {
        /// The chart.
        chart: String,
        /// What is wrong.
        problem: RangeError,
    },
    /// No version that fits.
    #[error("{url}: chart {chart} has no version {wanted}; it has {known}")]
    Version {
        /// Of the index.
        url: String,
        /// The chart.
        chart: String,
        /// As asked for.
        wanted: String,
        /// Some that there are.
        known: String,
    },
    /// The archive is not the one that the index names.
    #[error(
        "{url}: the index says sha256:{expected}, but it is sha256:{actual}: somebody exchanged it, or the index is old"
    )]
    Digest {
        /// Of the archive.
        url: String,
        /// Of the index.
        expected: String,
        /// What came.
        actual: String,
    },
    /// An archive that is none.
    #[error("{url}: {problem}")]
    Archive {
        /// Its URL.
        url: String,
        /// What is wrong.
        #[source]
        problem: ArchiveError,
    },
    /// An archive of no chart.
    #[error("{url}: {problem}")]
    Content {
        /// Its URL.
        url: String,
        /// What is wrong.
        problem: ContentError,
    },
}

/// Fetches a chart as the archive that it is. An absent version is the newest release; pre-releases only where asked for.
///
/// # Errors
/// [`ChartError`].
pub async fn fetch(source: &HelmSource, access: &Access<'_>) -> Result<Fetched, ChartError> {
    let repository = Repository::new(source, access)?;
    let chart = source.chart.as_str();
    let wanted = source.version.as_deref();
    if let Some(exact) = wanted.filter(|version| is_exact(version))
        && let Some(fetched) = repository.cached(chart, exact)
    {
        return Ok(fetched);
    }
    let (bytes, url) = repository.index().await?;
    let entries = index::entries(&bytes, chart).map_err(|problem| ChartError::Index {
        url: url.clone(),
        problem,
    })?;
    let entry = choose(&entries, chart, wanted, &url)?;
    repository.archive(chart, entry).await
}

/// A chart repository, and how it may be asked.
struct Repository<'a> {
    /// With a slash at its end.
    base: Url,
    access: &'a Access<'a>,
}

impl<'a> Repository<'a> {
    fn new(source: &HelmSource, access: &'a Access<'a>) -> Result<Self, ChartError> {
        let mut base = http_url(&source.url)?;
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Ok(Self { base, access })
    }

    /// The index, as it is now, or offline as it was; and where it is.
    async fn index(&self) -> Result<(Vec<u8>, String), ChartError> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}index.yaml", self.base.path()));
        let location = shown(&url);
        let document = get(url, bound::ARCHIVE, self.access).await?;
        Ok((document.bytes, location))
    }

    /// The archive of an entry: out of the cache where its digest, or its version, is known there.
    async fn archive(&self, chart: &str, entry: &Entry) -> Result<Fetched, ChartError> {
        let url = self.archive_url(entry)?;
        let location = shown(&url);
        let cache = self.access.cache;
        if let Some(digest) = &entry.digest
            && let Some(bytes) = cache.get(digest)
        {
            let package = Package::file(file_name(chart, &entry.version), bytes);
            return Ok(self.keep(chart, entry, package, digest, location));
        }
        if entry.digest.is_none()
            && let Some(fetched) = self.cached(chart, &entry.version)
        {
            return Ok(fetched);
        }
        let is_own = url.origin() == self.base.origin();
        let access = Access {
            credentials: self.access.credentials.filter(|_| is_own),
            ..*self.access
        };
        let bytes = get(url, bound::ARCHIVE, &access).await?.bytes;
        let digest = sha256(&bytes);
        if let Some(expected) = entry.digest.clone().filter(|expected| *expected != digest) {
            return Err(ChartError::Digest {
                url: location,
                expected,
                actual: digest,
            });
        }
        let files = archive::unpack(&bytes).map_err(|problem| ChartError::Archive {
            url: location.clone(),
            problem,
        })?;
        Chart::read(&files).map_err(|problem| ChartError::Content {
            url: location.clone(),
            problem,
        })?;
        let package = Package::file(file_name(chart, &entry.version), bytes);
        Ok(self.keep(chart, entry, package, &digest, location))
    }

    /// Notes which archive a version is.
    fn keep(
        &self,
        chart: &str,
        entry: &Entry,
        package: Package,
        digest: &str,
        location: String,
    ) -> Fetched {
        let doubt = if entry.digest.is_none() {
            UNVERIFIED
        } else {
            ""
        };
        let resolved = Some(format!("{chart}-{}@sha256:{digest}{doubt}", entry.version));
        let note = Note {
            digest: digest.to_owned(),
            resolved: resolved.clone(),
            location: Some(location.clone()),
            ..Note::default()
        };
        let key = self.key(chart, &entry.version);
        self.access.cache.set_note(VERSIONS, &key, &note);
        Fetched {
            package,
            location,
            resolved,
        }
    }

    /// A version that was fetched before: it is what it was.
    fn cached(&self, chart: &str, version: &str) -> Option<Fetched> {
        let note = self
            .access
            .cache
            .note(VERSIONS, &self.key(chart, version))?;
        let bytes = self.access.cache.get(&note.digest)?;
        Some(Fetched {
            package: Package::file(file_name(chart, version), bytes),
            location: note.location?,
            resolved: note.resolved,
        })
    }

    /// What a Secret opens is not for those who do not have it.
    fn key(&self, chart: &str, version: &str) -> String {
        let identity = self.access.credentials.map(|secret| secret.secret.as_str());
        let identity = identity.unwrap_or_default();
        format!("{} {chart} {version} {identity}", self.base)
    }

    fn archive_url(&self, entry: &Entry) -> Result<Url, ChartError> {
        let wrong = |problem| ChartError::Url {
            url: without_credentials(&entry.url),
            problem,
        };
        let url = self.base.join(&entry.url);
        let url =
            url.map_err(|_| wrong("the index names an archive by something that is no URL"))?;
        let url = http_url(url.as_str())?;
        if url.scheme() == "http" && self.base.scheme() == "https" && entry.digest.is_none() {
            return Err(wrong(
                "the index names an archive over plain HTTP, and no digest that would show whether somebody changed it",
            ));
        }
        Ok(url)
    }
}

fn file_name(chart: &str, version: &str) -> String {
    format!("{chart}-{version}.tgz")
}

/// A URL that charts can be fetched from.
fn http_url(text: &str) -> Result<Url, ChartError> {
    let url = Url::parse(text).map_err(|_| ChartError::Url {
        url: "url of the chart's repository".to_owned(),
        problem: "it is no URL: https://HOST/PATH",
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(ChartError::Url {
            url: shown(&url),
            problem: "charts are fetched by https://, http:// or oci://",
        });
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_those_of_repositories() {
        for (url, words) in [
            ("https://a.example/charts", None),
            ("file:///tmp/charts", Some("charts are fetched by")),
            ("s3://bucket/charts", Some("charts are fetched by")),
            ("a.example/charts", Some("it is no URL")),
        ] {
            match (http_url(url), words) {
                (Ok(_), None) => {}
                (Err(error), Some(words)) => {
                    assert!(error.to_string().contains(words), "{url}: {error}");
                }
                (found, _) => panic!("{url}: {found:?}"),
            }
        }
    }
}
