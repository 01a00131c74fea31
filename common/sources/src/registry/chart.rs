//! Charts in registries: `oci://HOST/PATH` and the name of a chart.

use addons_render::package::Package;
use addons_versions::RangeError;
use addons_versions::constraint::{self, Constraint};
use common::api::catalogue::HelmSource;
use common::image::{Image, without_user};

use crate::cache::Note;
use crate::chart::newest;
use crate::http::bound::{ARCHIVE, TIME};
use crate::{Access, Fetched};

use super::manifest::Descriptor;
use super::{Registry, RegistryError, repository, short};

/// The kind of the notes in the cache.
const NOTES: &str = "oci-chart";
/// The configuration of a chart.
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// The media types of the layer with the chart, since Helm 3.7 and before.
const CONTENT: [&str; 2] = [
    "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
    "application/tar+gzip",
];

/// Why a chart could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// Not a valid `oci://` URL.
    #[error(
        "{url} is not a valid oci:// URL; write oci://HOST/PATH, without chart, tag and user name"
    )]
    Url {
        /// As given.
        url: String,
    },
    /// An error of the registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Neither a version nor a range.
    #[error("chart {chart}: {version:?} is neither a version nor a range of versions")]
    Version {
        /// The chart.
        chart: String,
        /// As given.
        version: String,
        /// Why.
        #[source]
        source: RangeError,
    },
    /// No version in the range.
    #[error("chart {chart} has no version in {range:?}; it has {known}")]
    NoVersion {
        /// The chart.
        chart: String,
        /// As given.
        range: String,
        /// The newest ones.
        known: String,
    },
    /// Not a chart.
    #[error("{chart} is not a Helm chart but {found}; for an image use source.docker")]
    NoChart {
        /// `HOST/PATH:TAG`.
        chart: String,
        /// What it is.
        found: String,
    },
    /// It took longer than a chart may.
    #[error("chart {chart}: timed out after {} s", TIME.as_secs())]
    TimedOut {
        /// The chart.
        chart: String,
    },
}

/// Fetches a chart as the file `NAME-VERSION.tgz`. Without a version it is the newest; of a range the newest that fits, of
/// pre-releases only where the range names one. `resolved` is `VERSION@sha256:…`, the digest being that of the manifest, which
/// `helm pull` prints.
///
/// With a warm cache a version needs no request, and a range one for each page of tags.
///
/// # Errors
/// [`ChartError`].
pub async fn fetch(source: &HelmSource, access: &Access<'_>) -> Result<Fetched, ChartError> {
    let wanted = Wanted::new(source, access)?;
    match tokio::time::timeout(TIME, wanted.fetch(access)).await {
        Ok(fetched) => fetched,
        Err(_) => Err(ChartError::TimedOut {
            chart: wanted.name(),
        }),
    }
}

/// Forgets what the tag of a version stood for (for a range: that of its newest version), if the registry says that it stands for
/// something else now: a check is about what is there. Without an answer what is known stays, and the fetch says what is wrong.
pub async fn forget(source: &HelmSource, access: &Access<'_>) {
    if let (Ok(wanted), false) = (Wanted::new(source, access), access.offline) {
        let _ = tokio::time::timeout(TIME, wanted.forget(access)).await;
    }
}

struct Wanted<'a> {
    source: &'a HelmSource,
    /// Its tag is not used.
    reference: Image,
    /// See [`super::seen_by`].
    seen: String,
}

impl<'a> Wanted<'a> {
    fn new(source: &'a HelmSource, access: &Access<'_>) -> Result<Self, ChartError> {
        let wrong = || ChartError::Url {
            url: without_user(&source.url),
        };
        let path = source.url.strip_prefix("oci://").ok_or_else(wrong)?;
        let path = path.trim_end_matches('/');
        // In the host a colon precedes the port.
        let (_, below) = path.split_once('/').unwrap_or((path, ""));
        if path.contains('@') || below.contains(':') || source.chart.contains([':', '@']) {
            return Err(wrong());
        }
        let reference = super::reference(&format!("{path}/{}", source.chart))?;
        Ok(Self {
            source,
            seen: super::seen_by(&reference, source.plain_http, access),
            reference,
        })
    }

    async fn forget(&self, access: &Access<'_>) -> Result<(), ChartError> {
        let mut registry = Registry::open(&self.reference, self.source.plain_http, access)?;
        let tag = self.tag(&mut registry, access).await?;
        let key = self.key(&tag);
        let Some(known) = access.cache.note(NOTES, &key) else {
            return Ok(());
        };
        let now = registry.digest(&tag).await?;
        if known.resolved != Some(now) {
            access.cache.set_note(NOTES, &key, &Note::default());
        }
        Ok(())
    }

    /// The tag of the version; of a range that of the newest version in it.
    async fn tag(
        &self,
        registry: &mut Registry<'_>,
        access: &Access<'_>,
    ) -> Result<String, ChartError> {
        let version = self.version();
        // As Helm, a version is used as it is written.
        if constraint::version(version).is_ok() {
            return Ok(version.replace('+', "_"));
        }
        let range = match version {
            "" => "*",
            range => range,
        };
        let wrong = |source| ChartError::Version {
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

    async fn fetch(&self, access: &Access<'_>) -> Result<Fetched, ChartError> {
        let mut registry = Registry::open(&self.reference, self.source.plain_http, access)?;
        let tag = self.tag(&mut registry, access).await?;
        let key = self.key(&tag);
        let fetched = match self.cached(access, &key, &tag) {
            Some(fetched) => fetched,
            None => self.pull(&mut registry, access, &key, &tag).await?,
        };
        // A note without content would be deleted by the sweep.
        let digest = access.cache.note(NOTES, &key).map(|note| note.digest);
        let note = Note {
            digest: digest.unwrap_or_default(),
            resolved: Some(tag),
            ..Note::default()
        };
        access.cache.set_note(NOTES, &self.range_key(), &note);
        Ok(fetched)
    }

    async fn pull(
        &self,
        registry: &mut Registry<'_>,
        access: &Access<'_>,
        key: &str,
        tag: &str,
    ) -> Result<Fetched, ChartError> {
        let found = registry.image(tag).await?;
        let no_chart = |found: String| ChartError::NoChart {
            chart: format!("{}:{tag}", self.name()),
            found,
        };
        let config = &found.manifest.config.media_type;
        if config != CONFIG {
            return Err(no_chart(format!("something of type {config}")));
        }
        let is_content = |layer: &&Descriptor| CONTENT.contains(&layer.media_type.as_str());
        let layer = found.manifest.layers.iter().find(is_content);
        let layer = layer.ok_or_else(|| no_chart("a chart without content".to_owned()))?;
        let blob = registry.blob(layer).await?;
        let bytes = blob.read(ARCHIVE).await?;
        let note = Note {
            digest: access.cache.put(&bytes),
            resolved: Some(found.digest.clone()),
            ..Note::default()
        };
        access.cache.set_note(NOTES, key, &note);
        Ok(self.fetched(bytes, tag, &found.digest))
    }

    fn cached(&self, access: &Access<'_>, key: &str, tag: &str) -> Option<Fetched> {
        let (note, bytes) = access.cache.noted(NOTES, key)?;
        Some(self.fetched(bytes, tag, &note.resolved?))
    }

    fn fetched(&self, bytes: Vec<u8>, tag: &str, digest: &str) -> Fetched {
        let version = tag.replace('_', "+");
        Fetched {
            package: Package::file(format!("{}-{version}.tgz", self.chart()), bytes),
            location: format!("oci://{}:{tag}@{}", self.name(), short(digest)),
            resolved: Some(format!("{version}@{digest}")),
        }
    }

    /// The newest version in the range. As Helm does, tags that are not versions are ignored.
    fn newest(
        &self,
        tags: &[String],
        range: &str,
        constraint: &Constraint,
    ) -> Result<String, ChartError> {
        let texts: Vec<String> = tags.iter().map(|tag| tag.replace('_', "+")).collect();
        // `1` and `1.2` are moving tags.
        let has_three_numbers = |text: &str| {
            let core = text.split(['-', '+']).next().unwrap_or_default();
            core.split('.').count() == 3
        };
        // Of two builds of one version the later one, as tags are listed.
        let versions = texts.iter().zip(tags).rev();
        let versions = versions.filter(|(text, _)| has_three_numbers(text));
        let newest = newest(versions.map(|(text, tag)| (text.as_str(), tag)), constraint);
        newest.cloned().map_err(|known| ChartError::NoVersion {
            chart: self.name(),
            range: range.to_owned(),
            known,
        })
    }

    /// The version that the range stood for at the last fetch.
    fn newest_cached(&self, access: &Access<'_>, range: &str) -> Result<String, RegistryError> {
        let note = access.cache.note(NOTES, &self.range_key());
        let tag = note.and_then(|note| note.resolved);
        tag.ok_or_else(|| RegistryError::Offline {
            location: format!("{} in {range:?}", self.name()),
        })
    }

    /// The version or the range; empty for the newest.
    fn version(&self) -> &str {
        self.source.version.as_deref().unwrap_or_default().trim()
    }

    fn key(&self, tag: &str) -> String {
        format!("{} {tag}{}", self.name(), self.seen)
    }

    fn range_key(&self) -> String {
        format!("{} in {}{}", self.name(), self.version(), self.seen)
    }

    /// `HOST/PATH/NAME`.
    fn name(&self) -> String {
        repository(&self.reference)
    }

    /// The last part, which is the name that Helm gives the file.
    fn chart(&self) -> &str {
        let repository = self.reference.repository.as_str();
        repository.rsplit('/').next().unwrap_or(repository)
    }
}
