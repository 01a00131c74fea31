//! Somebody who reads URLs, with a cache of their own.

use std::collections::BTreeMap;

use addons_sources::cache::SourceCache;
use addons_sources::credentials::Credentials;
use addons_sources::url::{self, FetchedDocument};
use addons_sources::{Reach, SourceAccess};
use addons_tests::guard::Folder;
use anyhow::{Context as _, Result, ensure};
use common::api::names::ANNOTATION_ALLOWED_HOSTS;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A value that may be seen nowhere.
pub const PASSWORD: &str = "hunter2-is-secret";

/// Somebody.
pub struct Reader {
    folder: Folder,
    cache: SourceCache,
    /// Whether only the cache may be used.
    pub offline: bool,
    /// Whether what they read was named by themselves.
    pub ambient: bool,
    /// From a Secret.
    pub credentials: Option<Credentials>,
}

impl Reader {
    pub fn new() -> Result<Self> {
        // Fails only where one was installed before.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let folder = Folder::new("kubectl-addons-reader-")?;
        Ok(Self {
            cache: SourceCache::new(Some(folder.path().join("cache"))),
            folder,
            offline: false,
            ambient: false,
            credentials: None,
        })
    }

    pub fn with(secret: &Secret) -> Result<Self> {
        Ok(Self {
            credentials: Some(Credentials::read(secret)?),
            ..Self::new()?
        })
    }

    pub async fn read(&self, location: &str) -> Result<FetchedDocument> {
        let reach = match self.ambient {
            true => super::typed(location),
            false => Reach::cluster(),
        };
        let access = SourceAccess {
            cache: &self.cache,
            offline: self.offline,
            hash: None,
            reach: &reach,
            credentials: self.credentials.as_ref(),
            kustomize: None,
        };
        Ok(url::fetch(location, &access).await?)
    }

    pub async fn text(&self, location: &str) -> Result<String> {
        Ok(String::from_utf8(self.read(location).await?.bytes)?)
    }

    /// What the refusal says, to the last cause.
    pub async fn refusal(&self, location: &str) -> Result<String> {
        let error = self.read(location).await.err();
        let error = error.with_context(|| format!("{location} could be read"))?;
        let told = format!("{error:#}");
        ensure!(!told.contains(PASSWORD), "a secret is told: {told}");
        ensure!(
            !format!("{error:?}").contains(PASSWORD),
            "a secret is told: {error:?}"
        );
        Ok(told)
    }

    /// Nothing that the reader keeps holds the secret.
    pub fn keeps_no_secret(&self) -> Result<()> {
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
                ensure!(!text.contains(PASSWORD), "{}: {text}", path.display());
            }
        }
        Ok(())
    }
}

/// A Secret for these hosts.
pub fn secret(kind: &str, data: &[(&str, &str)], hosts: &str) -> Secret {
    let data = data.iter();
    let data = data.map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
    Secret {
        metadata: ObjectMeta {
            name: Some("token".to_owned()),
            namespace: Some("addons".to_owned()),
            annotations: Some(BTreeMap::from([(
                ANNOTATION_ALLOWED_HOSTS.to_owned(),
                hosts.to_owned(),
            )])),
            ..ObjectMeta::default()
        },
        type_: Some(kind.to_owned()),
        data: Some(data.collect()),
        ..Secret::default()
    }
}
