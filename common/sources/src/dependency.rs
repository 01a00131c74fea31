//! Fetches the charts that a chart depends on, from the locations in its lock file and with no more rights
//! than the chart itself.

use addons_render::chart::Chart;
use addons_render::chart::lock::PinnedDependency;
use addons_render::package::PackagedFile;
use common::api::catalogue::{HelmSource, Source, SourceKind};
use common::catalogue::channel::resolve_manifest;
use common::registry::Registry;
use url::Url;

use crate::archive::{self, ArchiveError};
use crate::credentials::{Credentials, Proof};
use crate::{SourceAccess, SourceError, host};

/// Why a dependency cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum DependencyError {
    /// The repository or registry cannot be read.
    #[error("dependency {name} {version} of the chart")]
    Source {
        /// The name of the dependency.
        name: String,
        /// The version of the dependency.
        version: String,
        /// Why.
        #[source]
        source: Box<SourceError>,
    },
    /// The file is not an archive.
    #[error("dependency {name} {version} of the chart")]
    Archive {
        /// The name of the dependency.
        name: String,
        /// The version of the dependency.
        version: String,
        /// Why.
        #[source]
        source: ArchiveError,
    },
    /// The archive has another chart.
    #[error("{location}: it is not the chart {wanted} that Chart.lock names, but {found}")]
    Other {
        /// Where the archive was fetched.
        location: String,
        /// `NAME VERSION`.
        wanted: String,
        /// `NAME VERSION` of the chart in the archive, or why there is none.
        found: String,
    },
}

/// The source of a chart. Its dependencies have no more rights than this source.
#[derive(Clone, Copy, Debug)]
pub struct ParentSource<'a> {
    /// The source.
    pub source: &'a Source,
    /// The base of relative locations.
    pub base: &'a str,
    /// The private registry that replaces all others.
    pub registry: Option<&'a Registry>,
    /// The access with which the source was read.
    pub access: SourceAccess<'a>,
}

impl ParentSource<'_> {
    /// Fetches a dependency as the file in `charts/` that helm expects.
    ///
    /// # Errors
    /// [`DependencyError`].
    pub async fn fetch(&self, wanted: &PinnedDependency) -> Result<PackagedFile, DependencyError> {
        let PinnedDependency { name, version, .. } = wanted;
        let failed = |source: SourceError| DependencyError::Source {
            name: name.clone(),
            version: version.clone(),
            source: Box::new(source),
        };
        let mut source = Source {
            helm: Some(HelmSource {
                url: wanted.repository.clone(),
                chart: name.clone(),
                version: Some(version.clone()),
                ..HelmSource::default()
            }),
            ..Source::default()
        };
        if let Some(registry) = self.registry {
            // This cannot fail, because only names of images are parsed.
            source = registry
                .rewrite_source(&source)
                .map_or(source, |it| it.source);
        }
        let mut is_own = false;
        if let Some(chart) = &mut source.helm {
            let own = self.own_host();
            is_own = own.is_some() && own == host_of(&chart.url);
            chart.plain_http = is_own && self.is_plain();
        }
        let is_oci = wanted.repository.starts_with("oci://");
        let credentials = self.access.credentials;
        let access = SourceAccess {
            credentials: credentials.filter(|secret| is_own && is_accepted(secret, is_oci)),
            ..self.access
        };
        let fetched = Box::pin(crate::package(&source, "", name, &access)).await;
        let fetched = fetched.map_err(failed)?;
        let files = fetched.package.into_files().into_iter();
        let bytes = files.map(|file| file.bytes).next().unwrap_or_default();
        check_chart(wanted, &bytes, &fetched.location)?;
        let path = wanted.path();
        Ok(PackagedFile { path, bytes })
    }

    /// The host for which the source has credentials.
    fn own_host(&self) -> Option<String> {
        match self.source.kind().ok()? {
            SourceKind::Git(git) => host_of(&git.remote),
            SourceKind::Docker(docker) => host_of(&format!("oci://{}", docker.image)),
            SourceKind::Helm(helm) => host_of(&helm.url),
            SourceKind::Url(url) => host_of(&resolve_manifest(self.base, &url.manifest).ok()?),
            SourceKind::Inline(_) | SourceKind::Catalogue(_) => None,
        }
    }

    /// Whether the source is in a registry that is accessed without TLS.
    fn is_plain(&self) -> bool {
        match self.source.kind() {
            Ok(SourceKind::Docker(docker)) => docker.plain_http,
            Ok(SourceKind::Helm(helm)) => helm.plain_http,
            _ => false,
        }
    }
}

/// `HOST:PORT` of a URL.
fn host_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = host::of(&url).to_ascii_lowercase();
    (!host.is_empty()).then_some(host)
}

/// Whether this type of Secret can be sent to a registry (`is_oci`) or a chart repository.
fn is_accepted(secret: &Credentials, is_oci: bool) -> bool {
    match secret.proof {
        Proof::Basic { .. } => true,
        Proof::Docker { .. } => is_oci,
        Proof::Ssh { .. } | Proof::ObjectStore { .. } => false,
    }
}

/// Checks that an archive has the expected chart. A repository could serve any other chart under that name.
fn check_chart(
    wanted: &PinnedDependency,
    bytes: &[u8],
    location: &str,
) -> Result<(), DependencyError> {
    let PinnedDependency { name, version, .. } = wanted;
    let unread = |source| DependencyError::Archive {
        name: name.clone(),
        version: version.clone(),
        source,
    };
    let files = archive::unpack(bytes).map_err(unread)?;
    let found = match Chart::read_any(&files) {
        Ok(chart) if (&chart.name, &chart.version) == (name, version) => return Ok(()),
        Ok(chart) => format!("{} {}", chart.name, chart.version),
        Err(error) => format!("something without a chart: {error}"),
    };
    Err(DependencyError::Other {
        location: location.to_owned(),
        wanted: format!("{name} {version}"),
        found,
    })
}

#[cfg(test)]
mod tests {
    use common::api::catalogue::{DockerSource, GitSource};

    use super::*;
    use crate::Reach;
    use crate::cache::SourceCache;

    #[test]
    fn the_host_of_a_source() {
        let cache = SourceCache::default();
        let access = SourceAccess {
            cache: &cache,
            offline: true,
            hash: None,
            reach: &Reach::cluster(),
            credentials: None,
            kustomize: None,
        };
        let git = |remote: &str| Source {
            git: Some(GitSource {
                remote: remote.to_owned(),
                ..GitSource::default()
            }),
            ..Source::default()
        };
        let image = Source {
            docker: Some(DockerSource {
                image: "r.example:5000/charts:1".to_owned(),
                ..DockerSource::default()
            }),
            ..Source::default()
        };
        for (source, expected) in [
            (git("https://G.example/x.git"), Some("g.example")),
            (git("git@g.example:x.git"), None),
            (image, Some("r.example:5000")),
        ] {
            let parent = ParentSource {
                source: &source,
                base: "",
                registry: None,
                access,
            };
            assert_eq!(parent.own_host().as_deref(), expected);
        }
        assert_eq!(
            host_of("oci://r.example:5000/x").as_deref(),
            Some("r.example:5000")
        );
    }
}
