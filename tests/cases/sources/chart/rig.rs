//! Fetching from a test, with a cache of its own.

use std::collections::BTreeMap;
use std::fs;

use addons_sources::cache::SourceCache;
use addons_sources::chart::{RepositoryChartError, fetch};
use addons_sources::credentials::Credentials;
use addons_sources::{FetchedPackage, Reach, SourceAccess};
use addons_tests::guard::Folder;
use addons_tests::servers::charts::Charts;
use addons_tests::servers::charts::shelf::Shelf;
use anyhow::{Result, bail};
use common::api::catalogue::HelmSource;
use common::api::names::ANNOTATION_ALLOWED_HOSTS;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

/// A cache, and how it is used.
pub(crate) struct Rig {
    folder: std::sync::Arc<Folder>,
    cache: SourceCache,
    offline: bool,
}

impl Rig {
    pub(crate) fn new() -> Result<Self> {
        // It fails only where one was installed before.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let folder = Folder::new("kubectl-addons-cache-")?;
        Ok(Self {
            cache: SourceCache::new(Some(folder.path().to_owned())),
            folder: folder.into(),
            offline: false,
        })
    }

    /// The same cache, and nothing else.
    pub(crate) fn offline(&self) -> Self {
        Self {
            folder: self.folder.clone(),
            cache: self.cache.clone(),
            offline: true,
        }
    }

    pub(crate) async fn fetch(
        &self,
        charts: &Charts,
        chart: &str,
        version: Option<&str>,
        credentials: Option<&Credentials>,
    ) -> Result<FetchedPackage, RepositoryChartError> {
        self.fetch_at(charts.url(), chart, version, credentials)
            .await
    }

    async fn fetch_at(
        &self,
        url: &str,
        chart: &str,
        version: Option<&str>,
        credentials: Option<&Credentials>,
    ) -> Result<FetchedPackage, RepositoryChartError> {
        let source = HelmSource {
            url: url.to_owned(),
            chart: chart.to_owned(),
            version: version.map(str::to_owned),
            ..HelmSource::default()
        };
        let access = SourceAccess {
            cache: &self.cache,
            offline: self.offline,
            hash: None,
            reach: &Reach::cluster(),
            credentials,
            kustomize: None,
        };
        fetch(&source, &access).await
    }

    pub(crate) async fn error(
        &self,
        charts: &Charts,
        chart: &str,
        version: Option<&str>,
        credentials: Option<&Credentials>,
    ) -> Result<String> {
        self.error_at(charts.url(), chart, version, credentials)
            .await
    }

    pub(crate) async fn error_at(
        &self,
        url: &str,
        chart: &str,
        version: Option<&str>,
        credentials: Option<&Credentials>,
    ) -> Result<String> {
        match self.fetch_at(url, chart, version, credentials).await {
            Ok(fetched) => bail!("{chart} {version:?} was fetched: {}", fetched.location),
            Err(error) => Ok(format!("{:#}", anyhow::Error::from(error))),
        }
    }

    /// Whether any file of the cache holds a text.
    pub(crate) fn cache_holds(&self, text: &str) -> Result<bool> {
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if String::from_utf8_lossy(&fs::read(&path)?).contains(text) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// A repository of two charts, of which one has four versions.
pub(crate) fn shelf() -> Result<Shelf> {
    let shelf = Shelf::new()?;
    for version in ["1.0.0", "1.9.0", "1.10.0", "2.0.0-rc.1"] {
        let text = format!("version: {version}\n");
        shelf.chart("web", version, &[("values.yaml", &text)])?;
    }
    shelf.chart("web-app", "0.1.0", &[])?;
    shelf.index(None)?;
    Ok(shelf)
}

/// A Secret as the cluster would hold it.
#[expect(
    clippy::expect_used,
    reason = "a test without what it is made of has failed"
)]
pub(crate) fn secret(
    kind: &str,
    hosts: &str,
    (user, password): (&str, &str),
    ca: Option<&str>,
) -> Credentials {
    let mut data = BTreeMap::new();
    let mut set = |key: &str, text: &str| {
        data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
    };
    set("username", user);
    set("password", password);
    set(".dockerconfigjson", "{}");
    if let Some(ca) = ca {
        set("ca.crt", ca);
    }
    let mut secret = Secret {
        type_: Some(kind.to_owned()),
        data: Some(data),
        ..Secret::default()
    };
    secret.metadata.name = Some("charts".to_owned());
    secret.metadata.namespace = Some("kubectl-addons".to_owned());
    secret.metadata.annotations =
        Some([(ANNOTATION_ALLOWED_HOSTS.to_owned(), hosts.to_owned())].into());
    Credentials::read(&secret).expect("a Secret with all keys")
}
