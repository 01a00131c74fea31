//! A git repository as a source, over http and ssh and from a folder.

mod bombs;
mod broken;
mod over_http;
mod over_ssh;
mod partial;
mod trees;
mod trust;

use std::collections::BTreeMap;

use addons_sources::cache::SourceCache;
use addons_sources::credentials::{Credentials, CredentialsError};
use addons_sources::git::{self, GitError};
use addons_sources::{FetchedPackage, Reach, SourceAccess};
use addons_tests::guard::Folder;
use anyhow::{Result, ensure};
use common::api::catalogue::{GitRef, GitSource};
use common::api::names::ANNOTATION_ALLOWED_HOSTS;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;

/// Who fetches, with a cache of their own.
struct Client {
    cache: SourceCache,
    credentials: Option<Credentials>,
    offline: bool,
    ambient: bool,
    _folder: Folder,
}

impl Client {
    fn new() -> Result<Self> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let folder = Folder::new("addons-cache-")?;
        Ok(Self {
            cache: SourceCache::new(Some(folder.path().join("cache"))),
            credentials: None,
            offline: false,
            ambient: false,
            _folder: folder,
        })
    }

    fn with(credentials: Result<Credentials, CredentialsError>) -> Result<Self> {
        Ok(Self {
            credentials: Some(credentials?),
            ..Self::new()?
        })
    }

    async fn fetch(
        &self,
        remote: &str,
        at: At<'_>,
        path: &str,
    ) -> Result<FetchedPackage, GitError> {
        let source = GitSource {
            remote: remote.to_owned(),
            r#ref: at.of(),
            path: (!path.is_empty()).then(|| path.to_owned()),
            auth: None,
        };
        let reach = match self.ambient {
            true => super::typed(remote),
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
        git::fetch(&source, &access).await
    }

    /// The error of a fetch with its causes, which must hold these words, and no password.
    async fn refused(
        &self,
        remote: &str,
        at: At<'_>,
        path: &str,
        words: &[&str],
    ) -> Result<GitError> {
        match self.fetch(remote, at, path).await {
            Ok(fetched) => anyhow::bail!("fetched {}", fetched.location),
            Err(error) => {
                let text = chain(&error);
                for word in words {
                    ensure!(text.contains(word), "{word:?} is not in: {text}");
                }
                let debug = format!("{error:?}");
                ensure!(
                    !text.contains("hunter2") && !debug.contains("hunter2"),
                    "{text} {debug}"
                );
                Ok(error)
            }
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// A ref of a source.
#[derive(Clone, Copy, Debug)]
enum At<'a> {
    Head,
    Branch(&'a str),
    Tag(&'a str),
    Commit(&'a str),
}

impl At<'_> {
    fn of(self) -> Option<GitRef> {
        let mut found = GitRef::default();
        match self {
            Self::Head => return None,
            Self::Branch(name) => found.branch = Some(name.to_owned()),
            Self::Tag(name) => found.tag = Some(name.to_owned()),
            Self::Commit(id) => found.commit = Some(id.to_owned()),
        }
        Some(found)
    }
}

/// The files of a package as text.
fn files(fetched: &FetchedPackage) -> Vec<(&str, String)> {
    let files = fetched.package.files().iter();
    files
        .map(|file| {
            (
                file.path.as_str(),
                String::from_utf8_lossy(&file.bytes).into_owned(),
            )
        })
        .collect()
}

fn secret(
    kind: &str,
    hosts: &str,
    data: &[(&str, &[u8])],
) -> Result<Credentials, CredentialsError> {
    let data = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), ByteString(value.to_vec())));
    let annotation = (ANNOTATION_ALLOWED_HOSTS.to_owned(), hosts.to_owned());
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some("git".to_owned()),
            namespace: Some("kubectl-addons".to_owned()),
            annotations: Some(BTreeMap::from([annotation])),
            ..ObjectMeta::default()
        },
        type_: Some(kind.to_owned()),
        data: Some(data.collect()),
        ..Secret::default()
    };
    Credentials::read(&secret)
}

fn basic(user: &str, password: &str) -> Result<Credentials, CredentialsError> {
    let data = [
        ("username", user.as_bytes()),
        ("password", password.as_bytes()),
    ];
    secret("kubernetes.io/basic-auth", "127.0.0.1", &data)
}
