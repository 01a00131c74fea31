//! Charts in chart repositories: `index.yaml`, which can change, and archives that it names with their digests.
//!
//! An exact version that is in the cache is taken from there; otherwise the index is fetched once, and then the archive if the
//! cache does not have it. Credentials are sent only to the repository's own host.

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

use super::cache::Note;
use super::url::{UrlError, get, shown, without_credentials};
use super::{Access, Fetched};
pub(crate) use choose::newest;
use choose::{choose, is_exact};
use index::{Entry, IndexProblem};

/// Kind of the notes in the cache: the archive of a version.
const VERSIONS: &str = "chart";
/// Appended to `resolved` if no digest vouches for the archive.
const UNVERIFIED: &str = " (the index names no digest)";

/// Why a chart cannot be fetched. Every message names the repository or the file.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// A URL that cannot be used.
    #[error("{url}: {problem}")]
    Url {
        /// Without user and password.
        url: String,
        /// What is wrong, and what to write.
        problem: &'static str,
    },
    /// The index or the archive cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] UrlError),
    /// An index that cannot be read.
    #[error("{url}: {problem}")]
    Index {
        /// URL of the index.
        url: String,
        /// What is wrong.
        problem: IndexProblem,
    },
    /// Neither a version nor a range.
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
        /// URL of the index.
        url: String,
        /// The chart.
        chart: String,
        /// As asked for.
        wanted: String,
        /// Some that exist.
        known: String,
    },
    /// The archive has another digest than the index says.
    #[error(
        "{url}: the index says sha256:{expected}, but it is sha256:{actual}: the archive was replaced, or the index is out of date"
    )]
    Digest {
        /// URL of the archive.
        url: String,
        /// From the index.
        expected: String,
        /// Of the archive.
        actual: String,
    },
    /// An archive that cannot be read.
    #[error("{url}: {problem}")]
    Archive {
        /// Its URL.
        url: String,
        /// What is wrong.
        #[source]
        problem: ArchiveError,
    },
    /// An archive without a chart.
    #[error("{url}: {problem}")]
    Content {
        /// Its URL.
        url: String,
        /// What is wrong.
        problem: ContentError,
    },
}

/// Fetches a chart as an archive. Without a version it is the newest release; pre-releases only if the range names one.
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

/// A chart repository.
struct Repository<'a> {
    /// Ends with a slash.
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

    /// The index and its URL.
    async fn index(&self) -> Result<(Vec<u8>, String), ChartError> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}index.yaml", self.base.path()));
        let location = shown(&url);
        let document = get(url, bound::ARCHIVE, self.access).await?;
        Ok((document.bytes, location))
    }

    /// The archive of an entry: from the cache, if it was fetched before and has its digest. Who only knows the digest does not get what a
    /// Secret opened for somebody else (semantics 16).
    async fn archive(&self, chart: &str, entry: &Entry) -> Result<Fetched, ChartError> {
        let url = self.archive_url(entry)?;
        let location = shown(&url);
        let cache = self.access.cache;
        if let Some(digest) = &entry.digest
            && let Some((note, bytes)) = cache.noted(VERSIONS, &self.key(chart, &entry.version))
            && note.digest == *digest
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
        Chart::read_any(&files).map_err(|problem| ChartError::Content {
            url: location.clone(),
            problem,
        })?;
        let package = Package::file(file_name(chart, &entry.version), bytes);
        Ok(self.keep(chart, entry, package, &digest, location))
    }

    /// Notes the archive of a version.
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

    /// A version that was fetched before: versions do not change.
    fn cached(&self, chart: &str, version: &str) -> Option<Fetched> {
        let key = self.key(chart, version);
        let (note, bytes) = self.access.cache.noted(VERSIONS, &key)?;
        Some(Fetched {
            package: Package::file(file_name(chart, version), bytes),
            location: note.location?,
            resolved: note.resolved,
        })
    }

    /// The key of a note. What one Secret may read is not shown to others.
    fn key(&self, chart: &str, version: &str) -> String {
        let identity = self.access.reader(None);
        format!("{} {chart} {version} {identity}", self.base)
    }

    fn archive_url(&self, entry: &Entry) -> Result<Url, ChartError> {
        let wrong = |problem| ChartError::Url {
            url: without_credentials(&entry.url),
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

/// Checks the URL of a repository or an archive.
fn http_url(text: &str) -> Result<Url, ChartError> {
    let url = Url::parse(text).map_err(|_| ChartError::Url {
        url: "url of the chart's repository".to_owned(),
        problem: "it is not a valid URL; use https://HOST/PATH",
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(ChartError::Url {
            url: shown(&url),
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
