//! Charts in chart repositories: `index.yaml`, which can move, and archives that it names with their digests.
//!
//! An exact version that is in the cache is taken from there; otherwise the index is asked for once, and what it names is
//! fetched where the cache does not hold it. User and password go to the repository's own host and to no other.

mod address;
mod choose;
mod index;
mod transport;

use common::api::catalogue::HelmSource;
use common::render::chart::{Chart, ChartError as ContentError};
use common::render::package::Package;
use common::version::RangeError;
use url::Url;

use crate::helm::archive::{self, ArchiveError, MAX_ARCHIVE};

use super::cache::Note;
use super::credentials::CredentialsError;
use super::{Access, Fetched};
use address::{basic, http_url, same_host, shown};
use choose::{choose, is_exact};
use index::{Entry, IndexProblem};
use transport::{Answer, Request, TransportError};

/// Bytes of an index; that of a large public repository has 20 MB.
const MAX_INDEX: usize = 64 << 20;
/// Kinds of notes in the cache: what the index of a repository was; which archive a version is.
const INDEXES: &str = "chart-index";
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
    /// Credentials that cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Credentials over plain HTTP.
    #[error("{url}: a password over plain HTTP can be read by everybody on the way; use https://")]
    PlainHttp {
        /// The repository.
        url: String,
    },
    /// `--offline`, and it is not in the cache.
    #[error(
        "{what} is not in the cache, and --offline forbids to fetch it: run this once without --offline"
    )]
    Offline {
        /// What.
        what: String,
    },
    /// It cannot be fetched.
    #[error("{url}: {problem}")]
    Transport {
        /// Without credentials.
        url: String,
        /// What happened.
        problem: TransportError,
    },
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
    /// User and password.
    basic: Option<(&'a str, &'a str)>,
    ca: Option<&'a [u8]>,
    access: &'a Access<'a>,
}

impl<'a> Repository<'a> {
    fn new(source: &HelmSource, access: &'a Access<'a>) -> Result<Self, ChartError> {
        let mut base = http_url(&source.url)?;
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let basic = access
            .credentials
            .map(|credentials| basic(credentials, &base))
            .transpose()?
            .flatten();
        Ok(Self {
            base,
            basic,
            ca: access.credentials.and_then(|secret| secret.ca.as_deref()),
            access,
        })
    }

    /// The index, as it is now, or offline as it was.
    async fn index(&self) -> Result<(Vec<u8>, String), ChartError> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}index.yaml", self.base.path()));
        let shown = shown(&url);
        let cache = self.access.cache;
        let known = cache.note(INDEXES, url.as_str());
        let kept = known
            .as_ref()
            .and_then(|note| Some((note, cache.get(&note.digest)?)));
        if self.access.offline {
            let what = || format!("the index {shown}");
            let (_, bytes) = kept.ok_or_else(|| ChartError::Offline { what: what() })?;
            return Ok((bytes, shown));
        }
        let request = Request {
            url: &url,
            limit: MAX_INDEX,
            basic: self.basic,
            ca: self.ca,
            known: kept.as_ref().map(|(note, _)| *note),
        };
        match (self.get(&request).await?, kept) {
            (Answer::NotModified, Some((_, bytes))) => Ok((bytes, shown)),
            (Answer::NotModified, None) => Err(ChartError::Transport {
                url: shown,
                problem: TransportError::Status("304 Not Modified, without a reason".to_owned()),
            }),
            (Answer::Body { bytes, note }, _) => {
                let digest = cache.put(&bytes);
                cache.set_note(INDEXES, url.as_str(), &Note { digest, ..note });
                Ok((bytes, shown))
            }
        }
    }

    /// The archive of an entry: out of the cache where its digest, or its version, is known there.
    async fn archive(&self, chart: &str, entry: &Entry) -> Result<Fetched, ChartError> {
        let url = self.archive_url(entry)?;
        let location = shown(&url);
        let cache = self.access.cache;
        if let Some(digest) = &entry.digest
            && let Some(bytes) = cache.get(digest)
        {
            self.note(chart, entry, digest, &location);
            return Ok(fetched(chart, &entry.version, bytes, digest, "", location));
        }
        if entry.digest.is_none()
            && let Some(fetched) = self.cached(chart, &entry.version)
        {
            return Ok(fetched);
        }
        if self.access.offline {
            let what = format!("chart {chart} {}", entry.version);
            return Err(ChartError::Offline { what });
        }
        let own = same_host(&url, &self.base);
        let request = Request {
            url: &url,
            limit: MAX_ARCHIVE,
            basic: self.basic.filter(|_| own),
            ca: self.ca,
            known: None,
        };
        let Answer::Body { bytes, .. } = self.get(&request).await? else {
            return Err(ChartError::Transport {
                url: location,
                problem: TransportError::Status("304 Not Modified, without a reason".to_owned()),
            });
        };
        let package = Package::file(format!("{chart}-{}.tgz", entry.version), bytes);
        let digest = package.digest();
        if let Some(expected) = entry.digest.clone().filter(|expected| *expected != digest) {
            return Err(ChartError::Digest {
                url: location,
                expected,
                actual: digest,
            });
        }
        let bytes = package.as_file().map(|file| file.bytes.clone());
        let bytes = bytes.unwrap_or_default();
        // What cannot be read is not kept.
        let files = archive::unpack(&bytes).map_err(|problem| ChartError::Archive {
            url: location.clone(),
            problem,
        })?;
        Chart::read(&files).map_err(|problem| ChartError::Content {
            url: location.clone(),
            problem,
        })?;
        cache.put(&bytes);
        self.note(chart, entry, &digest, &location);
        let doubt = if entry.digest.is_none() {
            UNVERIFIED
        } else {
            ""
        };
        Ok(fetched(
            chart,
            &entry.version,
            bytes,
            &digest,
            doubt,
            location,
        ))
    }

    /// A version that was fetched before: it is what it was.
    fn cached(&self, chart: &str, version: &str) -> Option<Fetched> {
        let note = self
            .access
            .cache
            .note(VERSIONS, &self.key(chart, version))?;
        let bytes = self.access.cache.get(&note.digest)?;
        Some(Fetched {
            package: Package::file(format!("{chart}-{version}.tgz"), bytes),
            location: note.location?,
            resolved: note.resolved,
        })
    }

    fn note(&self, chart: &str, entry: &Entry, digest: &str, location: &str) {
        let doubt = if entry.digest.is_none() {
            UNVERIFIED
        } else {
            ""
        };
        let note = Note {
            digest: digest.to_owned(),
            resolved: Some(resolved(chart, &entry.version, digest, doubt)),
            location: Some(location.to_owned()),
            ..Note::default()
        };
        let key = self.key(chart, &entry.version);
        self.access.cache.set_note(VERSIONS, &key, &note);
    }

    fn key(&self, chart: &str, version: &str) -> String {
        format!("{} {chart} {version}", self.base)
    }

    fn archive_url(&self, entry: &Entry) -> Result<Url, ChartError> {
        let wrong = |problem| ChartError::Url {
            url: entry.url.clone(),
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

    async fn get(&self, request: &Request<'_>) -> Result<Answer, ChartError> {
        let answer = transport::get(request).await;
        answer.map_err(|problem| ChartError::Transport {
            url: shown(request.url),
            problem,
        })
    }
}

fn fetched(
    chart: &str,
    version: &str,
    bytes: Vec<u8>,
    digest: &str,
    doubt: &str,
    location: String,
) -> Fetched {
    Fetched {
        package: Package::file(format!("{chart}-{version}.tgz"), bytes),
        location,
        resolved: Some(resolved(chart, version, digest, doubt)),
    }
}

fn resolved(chart: &str, version: &str, digest: &str, doubt: &str) -> String {
    format!("{chart}-{version}@sha256:{digest}{doubt}")
}
