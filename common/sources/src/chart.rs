//! Fetches charts from chart repositories. A repository has an `index.yaml`, which can change and names the
//! archives with their digests.
//!
//! An exact version comes from the cache if possible. Otherwise the index is fetched once, and then the
//! archive if it is not in the cache. Credentials are only sent to the host of the repository.

mod choose;
mod index;

use addons_render::chart::{Chart, ChartError as ContentError};
use addons_render::package::Package;
use addons_versions::RangeError;
use common::api::catalogue::HelmSource;
use common::manifest::digest::sha256;
use url::Url;

use crate::archive::{self, ArchiveError};
use crate::http::bound;

use super::cache::CacheNote;
use super::url::{UrlError, get, redact_location, redact_url};
use super::{FetchedPackage, SourceAccess};
pub(crate) use choose::choose_newest;
use choose::{choose, is_exact};
use index::{ChartVersion, IndexProblem};

/// The kind of the cache notes that record the archive of a version.
const VERSIONS: &str = "chart";
/// Appended to `resolved` if the index has no digest of the archive.
const UNVERIFIED: &str = " (the index names no digest)";

/// Why a chart cannot be fetched. Every message names the repository or the file.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryChartError {
    /// A URL cannot be used.
    #[error("{url}: {problem}")]
    Url {
        /// The URL without user name and password.
        url: String,
        /// What is wrong, and what to write instead.
        problem: &'static str,
    },
    /// The index or the archive cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] UrlError),
    /// The index cannot be read.
    #[error("{url}: {problem}")]
    Index {
        /// The URL of the index.
        url: String,
        /// What is wrong.
        problem: IndexProblem,
    },
    /// The version is neither a version nor a range.
    #[error("version of chart {chart}: {problem}")]
    Range {
        /// The chart.
        chart: String,
        /// What is wrong.
        problem: RangeError,
    },
    /// No version of the chart fits.
    #[error("{url}: chart {chart} has no version {wanted}; it has {known}")]
    Version {
        /// The URL of the index.
        url: String,
        /// The chart.
        chart: String,
        /// The requested version or range.
        wanted: String,
        /// Some versions that exist.
        known: String,
    },
    /// The digest of the archive differs from that in the index.
    #[error(
        "{url}: the index says sha256:{expected}, but it is sha256:{actual}: the archive was replaced, or the index is out of date"
    )]
    Digest {
        /// The URL of the archive.
        url: String,
        /// The digest in the index.
        expected: String,
        /// The digest of the archive.
        actual: String,
    },
    /// The archive cannot be read.
    #[error("{url}")]
    Archive {
        /// The URL of the archive.
        url: String,
        /// What is wrong.
        #[source]
        problem: ArchiveError,
    },
    /// The archive does not contain a chart.
    #[error("{url}: {problem}")]
    Content {
        /// The URL of the archive.
        url: String,
        /// What is wrong.
        problem: ContentError,
    },
}

/// Fetches the archive of a chart. Without a version it fetches the newest release. Pre-releases are only
/// chosen if the range names one.
///
/// # Errors
/// [`RepositoryChartError`].
pub async fn fetch(
    source: &HelmSource,
    access: &SourceAccess<'_>,
) -> Result<FetchedPackage, RepositoryChartError> {
    let repository = Repository::new(source, access)?;
    let chart = source.chart.as_str();
    let wanted = source.version.as_deref();
    if let Some(exact) = wanted.filter(|version| is_exact(version))
        && let Some(fetched) = repository.cached(chart, exact)
    {
        return Ok(fetched);
    }
    let (bytes, url) = repository.index().await?;
    let entries =
        index::read_versions(&bytes, chart).map_err(|problem| RepositoryChartError::Index {
            url: url.clone(),
            problem,
        })?;
    let entry = choose(&entries, chart, wanted, &url)?;
    repository.archive(chart, entry).await
}

/// A chart repository.
struct Repository<'a> {
    /// The URL with a trailing slash.
    base: Url,
    access: &'a SourceAccess<'a>,
}

impl<'a> Repository<'a> {
    fn new(
        source: &HelmSource,
        access: &'a SourceAccess<'a>,
    ) -> Result<Self, RepositoryChartError> {
        let mut base = http_url(&source.url)?;
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Ok(Self { base, access })
    }

    /// Fetches the index and returns it with its URL.
    async fn index(&self) -> Result<(Vec<u8>, String), RepositoryChartError> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}index.yaml", self.base.path()));
        let location = redact_url(&url);
        let document = get(url, bound::ARCHIVE, self.access).await?;
        Ok((document.bytes, location))
    }

    /// Fetches the archive of a version, or takes it from the cache if the same reader fetched it before and
    /// it has the digest in the index. Knowing a digest gives no access to what another reader fetched with a
    /// Secret (semantics 16).
    async fn archive(
        &self,
        chart: &str,
        entry: &ChartVersion,
    ) -> Result<FetchedPackage, RepositoryChartError> {
        let url = self.archive_url(entry)?;
        let location = redact_url(&url);
        let cache = self.access.cache;
        if let Some(digest) = &entry.digest
            && let Some((note, bytes)) = cache.lookup(VERSIONS, &self.key(chart, &entry.version))
            && note.digest == *digest
        {
            let package = Package::from_file(file_name(chart, &entry.version), bytes);
            return Ok(self.remember(chart, entry, package, digest, location));
        }
        if entry.digest.is_none()
            && let Some(fetched) = self.cached(chart, &entry.version)
        {
            return Ok(fetched);
        }
        let is_own = url.origin() == self.base.origin();
        let access = SourceAccess {
            credentials: self.access.credentials.filter(|_| is_own),
            ..*self.access
        };
        let bytes = get(url, bound::ARCHIVE, &access).await?.bytes;
        let digest = sha256(&bytes);
        if let Some(expected) = entry.digest.clone().filter(|expected| *expected != digest) {
            return Err(RepositoryChartError::Digest {
                url: location,
                expected,
                actual: digest,
            });
        }
        let files = archive::unpack(&bytes).map_err(|problem| RepositoryChartError::Archive {
            url: location.clone(),
            problem,
        })?;
        Chart::read_any(&files).map_err(|problem| RepositoryChartError::Content {
            url: location.clone(),
            problem,
        })?;
        let package = Package::from_file(file_name(chart, &entry.version), bytes);
        Ok(self.remember(chart, entry, package, &digest, location))
    }

    /// Stores the note for the archive of a version and returns the package.
    fn remember(
        &self,
        chart: &str,
        entry: &ChartVersion,
        package: Package,
        digest: &str,
        location: String,
    ) -> FetchedPackage {
        let doubt = if entry.digest.is_none() {
            UNVERIFIED
        } else {
            ""
        };
        let resolved = Some(format!("{chart}-{}@sha256:{digest}{doubt}", entry.version));
        let note = CacheNote {
            digest: digest.to_owned(),
            resolved: resolved.clone(),
            location: Some(location.clone()),
            ..CacheNote::default()
        };
        let key = self.key(chart, &entry.version);
        self.access.cache.set_note(VERSIONS, &key, &note);
        FetchedPackage {
            package,
            location,
            resolved,
        }
    }

    /// Returns a version that was fetched before, because versions do not change.
    fn cached(&self, chart: &str, version: &str) -> Option<FetchedPackage> {
        let key = self.key(chart, version);
        let (note, bytes) = self.access.cache.lookup(VERSIONS, &key)?;
        Some(FetchedPackage {
            package: Package::from_file(file_name(chart, version), bytes),
            location: note.location?,
            resolved: note.resolved,
        })
    }

    /// The key of a note. It includes the reader, because content that one Secret may read must not be
    /// returned to other readers.
    fn key(&self, chart: &str, version: &str) -> String {
        let identity = self.access.reader(None);
        format!("{} {chart} {version} {identity}", self.base)
    }

    fn archive_url(&self, entry: &ChartVersion) -> Result<Url, RepositoryChartError> {
        let wrong = |problem| RepositoryChartError::Url {
            url: redact_location(&entry.url),
            problem,
        };
        let url = self.base.join(&entry.url);
        let url = url.map_err(|_| wrong("the index names an archive by an invalid URL"))?;
        let url = http_url(url.as_str())?;
        if url.scheme() == "http" && self.base.scheme() == "https" && entry.digest.is_none() {
            return Err(wrong(
                "the index names an archive over plain HTTP without a digest that would reveal a change; rebuild the index with helm repo index",
            ));
        }
        Ok(url)
    }
}

fn file_name(chart: &str, version: &str) -> String {
    format!("{chart}-{version}.tgz")
}

/// Parses and checks the URL of a repository or an archive.
fn http_url(text: &str) -> Result<Url, RepositoryChartError> {
    let url = Url::parse(text).map_err(|_| RepositoryChartError::Url {
        url: "url of the chart's repository".to_owned(),
        problem: "it is not a valid URL; use https://HOST/PATH",
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(RepositoryChartError::Url {
            url: redact_url(&url),
            problem: "charts are fetched over https://, http:// or oci://",
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
            ("file:///tmp/charts", Some("charts are fetched over")),
            ("s3://bucket/charts", Some("charts are fetched over")),
            ("a.example/charts", Some("it is not a valid URL")),
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
