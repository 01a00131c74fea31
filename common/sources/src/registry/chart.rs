//! Fetches charts from registries, by `oci://HOST/PATH` and the name of the chart.

use addons_render::package::Package;
use addons_versions::RangeError;
use addons_versions::constraint::{self, Constraint};
use common::api::catalogue::HelmSource;
use common::image::{Image, without_user};

use crate::cache::CacheNote;
use crate::chart::choose_newest;
use crate::http::bound::{ARCHIVE, TIME};
use crate::{FetchedPackage, SourceAccess};

use super::manifest::BlobDescriptor;
use super::{RegistryAccessError, RegistryClient, repository, short};

/// The kind of the notes in the cache.
const NOTES: &str = "oci-chart";
/// The media type of the configuration of a chart.
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// The media types of the layer with the chart: since Helm 3.7, and before.
const CONTENT: [&str; 2] = [
    "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
    "application/tar+gzip",
];

/// Why a chart cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum RegistryChartError {
    /// The URL is not a valid `oci://` URL.
    #[error(
        "{url} is not a valid oci:// URL; write oci://HOST/PATH, without chart, tag and user name"
    )]
    Url {
        /// The text as given.
        url: String,
    },
    /// The registry cannot be read.
    #[error(transparent)]
    Registry(#[from] RegistryAccessError),
    /// The version is neither a version nor a range.
    #[error("chart {chart}: {version:?} is neither a version nor a range of versions")]
    Version {
        /// The chart.
        chart: String,
        /// The text as given.
        version: String,
        /// Why.
        #[source]
        source: RangeError,
    },
    /// The chart has no version in the range.
    #[error("chart {chart} has no version in {range:?}; it has {known}")]
    NoVersion {
        /// The chart.
        chart: String,
        /// The text as given.
        range: String,
        /// The newest versions.
        known: String,
    },
    /// The artifact is not a chart.
    #[error("{chart} is not a Helm chart but {found}; for an image use source.docker")]
    NoChart {
        /// `HOST/PATH:TAG`.
        chart: String,
        /// What the artifact is.
        found: String,
    },
    /// The fetch exceeded the time limit.
    #[error("chart {chart}: timed out after {} s", TIME.as_secs())]
    TimedOut {
        /// The chart.
        chart: String,
    },
}

/// Fetches a chart as the file `NAME-VERSION.tgz`. Without a version it fetches the newest; with a range, the
/// newest in the range; with a digest, that manifest, whatever the tag of the version names. Pre-releases are only chosen if the range names one. The result has
/// `VERSION@sha256:…` as `resolved`, with the digest of the manifest that `helm pull` prints.
///
/// With a warm cache, a version needs no request, and a range needs one per page of tags.
///
/// # Errors
/// [`RegistryChartError`].
pub async fn fetch(
    source: &HelmSource,
    access: &SourceAccess<'_>,
) -> Result<FetchedPackage, RegistryChartError> {
    let wanted = ChartRequest::new(source, access)?;
    match tokio::time::timeout(TIME, wanted.fetch(access)).await {
        Ok(fetched) => fetched,
        Err(_) => Err(RegistryChartError::TimedOut {
            chart: wanted.name(),
        }),
    }
}

/// Discards the cached digest of the tag of a version, or of the newest version in a range, if the registry
/// has another digest now, so that a check sees the current content. If the registry does not respond, the
/// cache is left unchanged, and the fetch reports the error.
pub async fn forget(source: &HelmSource, access: &SourceAccess<'_>) {
    if let (Ok(wanted), false) = (ChartRequest::new(source, access), access.offline) {
        let _ = tokio::time::timeout(TIME, wanted.forget(access)).await;
    }
}

struct ChartRequest<'a> {
    source: &'a HelmSource,
    /// The repository of the chart. The tag is not used.
    reference: Image,
    /// The result of [`super::reader_key`].
    seen: String,
}

impl<'a> ChartRequest<'a> {
    fn new(source: &'a HelmSource, access: &SourceAccess<'_>) -> Result<Self, RegistryChartError> {
        let wrong = || RegistryChartError::Url {
            url: without_user(&source.url),
        };
        let path = source.url.strip_prefix("oci://").ok_or_else(wrong)?;
        let path = path.trim_end_matches('/');
        // In the host, a colon precedes the port.
        let (_, below) = path.split_once('/').unwrap_or((path, ""));
        if path.contains('@') || below.contains(':') || source.chart.contains([':', '@']) {
            return Err(wrong());
        }
        let reference = super::reference(&format!("{path}/{}", source.chart))?;
        Ok(Self {
            source,
            seen: super::reader_key(&reference, source.plain_http, access),
            reference,
        })
    }

    async fn forget(&self, access: &SourceAccess<'_>) -> Result<(), RegistryChartError> {
        if self.source.digest.is_some() {
            return Ok(());
        }
        let mut registry = RegistryClient::open(&self.reference, self.source.plain_http, access)?;
        let tag = self.resolve_tag(&mut registry, access).await?;
        let key = self.key(&tag);
        let Some(known) = access.cache.note(NOTES, &key) else {
            return Ok(());
        };
        let now = registry.digest(&tag).await?;
        if known.resolved != Some(now) {
            access.cache.set_note(NOTES, &key, &CacheNote::default());
        }
        Ok(())
    }

    /// Returns the tag of the version, or of the newest version in the range.
    async fn resolve_tag(
        &self,
        registry: &mut RegistryClient<'_>,
        access: &SourceAccess<'_>,
    ) -> Result<String, RegistryChartError> {
        let version = self.version();
        // Like Helm, use a version as written.
        if constraint::parse_version(version).is_ok() {
            return Ok(version.replace('+', "_"));
        }
        let range = match version {
            "" => "*",
            range => range,
        };
        let wrong = |source| RegistryChartError::Version {
            chart: self.name(),
            version: range.to_owned(),
            source,
        };
        let constraint = Constraint::parse(range).map_err(wrong)?;
        if access.offline {
            return Ok(self.newest_cached(access, range)?);
        }
        self.newest(&registry.tags().await?, range, &constraint)
    }

    async fn fetch(&self, access: &SourceAccess<'_>) -> Result<FetchedPackage, RegistryChartError> {
        let mut registry = RegistryClient::open(&self.reference, self.source.plain_http, access)?;
        let tag = self.resolve_tag(&mut registry, access).await?;
        let key = self.key(&tag);
        let fetched = match self.cached(access, &key, &tag) {
            Some(fetched) => fetched,
            None => self.pull(&mut registry, access, &key, &tag).await?,
        };
        // The sweep would delete a note without content.
        let digest = access.cache.note(NOTES, &key).map(|note| note.digest);
        let note = CacheNote {
            digest: digest.unwrap_or_default(),
            resolved: Some(tag),
            ..CacheNote::default()
        };
        access.cache.set_note(NOTES, &self.range_key(), &note);
        Ok(fetched)
    }

    async fn pull(
        &self,
        registry: &mut RegistryClient<'_>,
        access: &SourceAccess<'_>,
        key: &str,
        tag: &str,
    ) -> Result<FetchedPackage, RegistryChartError> {
        let named = self.source.digest.as_deref().unwrap_or(tag);
        let found = registry.image(named).await?;
        let no_chart = |found: String| RegistryChartError::NoChart {
            chart: format!("{}:{tag}", self.name()),
            found,
        };
        let config = &found.manifest.config.media_type;
        if config != CONFIG {
            return Err(no_chart(format!("something of type {config}")));
        }
        let is_content = |layer: &&BlobDescriptor| CONTENT.contains(&layer.media_type.as_str());
        let layer = found.manifest.layers.iter().find(is_content);
        let layer = layer.ok_or_else(|| no_chart("a chart without content".to_owned()))?;
        let blob = registry.blob(layer).await?;
        let bytes = blob.read(ARCHIVE).await?;
        let note = CacheNote {
            digest: access.cache.put(&bytes),
            resolved: Some(found.digest.clone()),
            ..CacheNote::default()
        };
        access.cache.set_note(NOTES, key, &note);
        Ok(self.to_fetched(bytes, tag, &found.digest))
    }

    fn cached(&self, access: &SourceAccess<'_>, key: &str, tag: &str) -> Option<FetchedPackage> {
        let (note, bytes) = access.cache.lookup(NOTES, key)?;
        Some(self.to_fetched(bytes, tag, &note.resolved?))
    }

    fn to_fetched(&self, bytes: Vec<u8>, tag: &str, digest: &str) -> FetchedPackage {
        let version = tag.replace('_', "+");
        FetchedPackage {
            package: Package::from_file(format!("{}-{version}.tgz", self.chart()), bytes),
            location: format!("oci://{}:{tag}@{}", self.name(), short(digest)),
            resolved: Some(format!("{version}@{digest}")),
        }
    }

    /// Returns the tag of the newest version in the range. Tags that are not versions are ignored, as in
    /// Helm.
    fn newest(
        &self,
        tags: &[String],
        range: &str,
        constraint: &Constraint,
    ) -> Result<String, RegistryChartError> {
        let texts: Vec<String> = tags.iter().map(|tag| tag.replace('_', "+")).collect();
        // Tags such as `1` and `1.2` move.
        let has_three_numbers = |text: &str| {
            let core = text.split(['-', '+']).next().unwrap_or_default();
            core.split('.').count() == 3
        };
        // If a version has several builds, choose the one that is listed last.
        let versions = texts.iter().zip(tags).rev();
        let versions = versions.filter(|(text, _)| has_three_numbers(text));
        let newest = choose_newest(versions.map(|(text, tag)| (text.as_str(), tag)), constraint);
        newest
            .cloned()
            .map_err(|known| RegistryChartError::NoVersion {
                chart: self.name(),
                range: range.to_owned(),
                known,
            })
    }

    /// Returns the tag that the range resolved to at the last fetch.
    fn newest_cached(
        &self,
        access: &SourceAccess<'_>,
        range: &str,
    ) -> Result<String, RegistryAccessError> {
        let note = access.cache.note(NOTES, &self.range_key());
        let tag = note.and_then(|note| note.resolved);
        tag.ok_or_else(|| RegistryAccessError::Offline {
            location: format!("{} in {range:?}", self.name()),
        })
    }

    /// The version or the range; empty for the newest version.
    fn version(&self) -> &str {
        self.source.version.as_deref().unwrap_or_default().trim()
    }

    fn key(&self, tag: &str) -> String {
        let digest = self.source.digest.as_deref();
        let digest = digest.map_or_else(String::new, |digest| format!("@{digest}"));
        format!("{} {tag}{digest}{}", self.name(), self.seen)
    }

    fn range_key(&self) -> String {
        format!("{} in {}{}", self.name(), self.version(), self.seen)
    }

    /// `HOST/PATH/NAME`.
    fn name(&self) -> String {
        repository(&self.reference)
    }

    /// The last part of the repository, which Helm uses as the file name.
    fn chart(&self) -> &str {
        let repository = self.reference.repository.as_str();
        repository.rsplit('/').next().unwrap_or(repository)
    }
}
