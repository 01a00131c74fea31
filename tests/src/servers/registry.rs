//! A registry on a loopback port, and what stands around it: a [`front`] that counts and breaks, and [`tokens`].
//!
//! It is the small one in this process, or, with `FULL=1`, that of distribution: tests have to pass with both.

mod distribution;
pub mod front;
mod server;
pub mod signing;
pub mod tokens;

use anyhow::{Result, bail, ensure};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Certificate, Client};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::control_plane::pki::{Authority, base64};
use crate::tier;

use server::{Guard, Keys};
use tokens::Tokens;

/// The user of a registry with a password.
pub const USER: &str = "user";
/// The password.
pub const PASSWORD: &str = "correct horse";

/// Who may ask.
pub enum Door<'a> {
    /// Everybody.
    Open,
    /// [`USER`].
    Password,
    /// Who has a token.
    Tokens(&'a Tokens),
    /// [`USER`], with TLS of an own authority.
    Tls,
}

/// A registry, gone when it is dropped.
pub struct Registry {
    _server: Server,
    /// `127.0.0.1:PORT`.
    pub host: String,
    /// Its authority (PEM), where it speaks TLS.
    pub ca: Option<String>,
    client: Client,
}

/// What answers.
enum Server {
    Small { _server: server::Server },
    Distribution { _server: distribution::Server },
}

/// A layer to be pushed.
pub struct Layer {
    /// Its type.
    pub media_type: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its title, where it has one.
    pub title: Option<&'static str>,
}

impl Door<'_> {
    /// The header of whoever may do everything that the tests do.
    fn authorization(&self) -> Result<Option<String>> {
        Ok(match self {
            Self::Open => None,
            Self::Password | Self::Tls => {
                Some(format!("Basic {}", base64(&format!("{USER}:{PASSWORD}"))))
            }
            Self::Tokens(tokens) => {
                Some(format!("Bearer {}", tokens.issue("*", &["pull", "push"])?))
            }
        })
    }

    /// The same for the small registry.
    fn guard(&self, authorization: Option<&str>) -> Result<Guard> {
        Ok(match self {
            Self::Open => Guard::Open,
            Self::Password | Self::Tls => {
                Guard::Basic(authorization.unwrap_or_default().to_owned())
            }
            Self::Tokens(tokens) => Guard::Tokens(Keys::new(
                tokens.realm(),
                tokens::SERVICE,
                tokens::ISSUER,
                &tokens.keys(),
            )?),
        })
    }
}

impl Registry {
    /// Starts one. It does not have the referrers API, which that of distribution lacks.
    ///
    /// # Errors
    /// Where it cannot be built or started.
    pub async fn start(door: Door<'_>) -> Result<Self> {
        Self::with(door, tier::full(), false).await
    }

    /// Starts the small one, with the referrers API, for everybody.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub async fn with_referrers() -> Result<Self> {
        Self::with(Door::Open, false, true).await
    }

    async fn with(door: Door<'_>, is_distribution: bool, has_referrers: bool) -> Result<Self> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let authority = match door {
            Door::Tls => Some(Authority::new("registry of the tests")?),
            _ => None,
        };
        let pair = authority
            .as_ref()
            .map(|it| it.serving("registry", &["127.0.0.1"]));
        let pair = pair.transpose()?;
        let authorization = door.authorization()?;
        let (server, host) = if is_distribution {
            let server = distribution::Server::start(&door, pair.as_ref()).await?;
            let host = server.host();
            (Server::Distribution { _server: server }, host)
        } else {
            let guard = door.guard(authorization.as_deref())?;
            let server = server::Server::start(guard, has_referrers, pair.as_ref())?;
            let host = server.host();
            (Server::Small { _server: server }, host)
        };
        let mut headers = HeaderMap::new();
        if let Some(authorization) = authorization {
            headers.insert(AUTHORIZATION, HeaderValue::try_from(authorization)?);
        }
        let mut client = Client::builder().default_headers(headers);
        let ca = authority.map(|authority| authority.certificate);
        if let Some(ca) = &ca {
            client = client.tls_certs_only(Certificate::from_pem_bundle(ca.as_bytes())?);
        }
        Ok(Self {
            _server: server,
            host,
            ca,
            client: client.build()?,
        })
    }

    /// `http(s)://HOST`.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.ca.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.host)
    }

    /// Pushes an image or artifact; its digest.
    ///
    /// # Errors
    /// Of the registry.
    pub async fn push(
        &self,
        repository: &str,
        tag: &str,
        config_type: &str,
        layers: &[Layer],
    ) -> Result<String> {
        let config = b"{}";
        let mut described = Vec::new();
        for layer in layers {
            let digest = self.push_blob(repository, &layer.bytes).await?;
            let mut descriptor = json!({
                "mediaType": layer.media_type, "digest": digest, "size": layer.bytes.len(),
            });
            if let Some(title) = layer.title {
                descriptor["annotations"] = json!({"org.opencontainers.image.title": title});
            }
            described.push(descriptor);
        }
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {
                "mediaType": config_type,
                "digest": self.push_blob(repository, config).await?,
                "size": config.len(),
            },
            "layers": described,
        });
        self.push_manifest(repository, tag, &manifest).await
    }

    /// Pushes an index of `(os, architecture, digest)`; its digest.
    ///
    /// # Errors
    /// Of the registry.
    pub async fn push_index(
        &self,
        repository: &str,
        tag: &str,
        images: &[(&str, &str, &str)],
    ) -> Result<String> {
        let mut manifests = Vec::new();
        for (os, architecture, digest) in images {
            let url = format!("{}/v2/{repository}/manifests/{digest}", self.url());
            let accept = "application/vnd.oci.image.manifest.v1+json";
            let answer = self.client.get(url).header("Accept", accept).send().await?;
            manifests.push(json!({
                "mediaType": accept,
                "digest": digest,
                "size": answer.bytes().await?.len(),
                "platform": {"os": os, "architecture": architecture},
            }));
        }
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": manifests,
        });
        self.push_manifest(repository, tag, &index).await
    }

    /// The bytes of a manifest; `None` where there is none of that name.
    ///
    /// # Errors
    /// Of the registry.
    pub async fn manifest(&self, repository: &str, name: &str) -> Result<Option<Vec<u8>>> {
        let url = format!("{}/v2/{repository}/manifests/{name}", self.url());
        let accept =
            "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json";
        let answer = self.client.get(url).header("Accept", accept).send().await?;
        match answer.status().as_u16() {
            404 => Ok(None),
            _ => Ok(Some(answer.error_for_status()?.bytes().await?.to_vec())),
        }
    }

    /// Pushes a manifest under a tag or its digest; the digest.
    ///
    /// # Errors
    /// Of the registry.
    pub async fn push_manifest(
        &self,
        repository: &str,
        tag: &str,
        value: &Value,
    ) -> Result<String> {
        let bytes = value.to_string().into_bytes();
        let digest = digest(&bytes);
        let media_type = value["mediaType"].as_str().unwrap_or_default();
        let url = format!("{}/v2/{repository}/manifests/{tag}", self.url());
        let request = self.client.put(url).header(CONTENT_TYPE, media_type);
        let answer = request.body(bytes).send().await?;
        let status = answer.status();
        ensure!(status.is_success(), "{status}: {}", answer.text().await?);
        Ok(digest)
    }

    /// Pushes a blob; its digest.
    ///
    /// # Errors
    /// Of the registry.
    pub async fn push_blob(&self, repository: &str, bytes: &[u8]) -> Result<String> {
        let url = format!("{}/v2/{repository}/blobs/uploads/", self.url());
        let answer = self.client.post(&url).send().await?;
        let status = answer.status();
        let location = answer.headers().get(LOCATION).cloned();
        let Some(location) = location.filter(|_| status.is_success()) else {
            bail!("{status}: {}", answer.text().await?);
        };
        let digest = digest(bytes);
        let mut url = reqwest::Url::parse(&url)?.join(location.to_str()?)?;
        url.query_pairs_mut().append_pair("digest", &digest);
        let answer = self.client.put(url).body(bytes.to_vec()).send().await?;
        let status = answer.status();
        ensure!(status.is_success(), "{status}: {}", answer.text().await?);
        Ok(digest)
    }
}

/// The archive of a layer with these files.
///
/// # Errors
/// A name that is too long for an archive.
pub fn tar(files: &[(&str, impl AsRef<str>)]) -> Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let bytes = text.as_ref().as_bytes();
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, bytes)?;
    }
    Ok(builder.into_inner()?)
}

/// `sha256:…`
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
