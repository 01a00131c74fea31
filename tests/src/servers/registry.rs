//! A real registry (distribution) on a loopback port, and what stands around it: a [`front`] that counts and breaks, and
//! [`tokens`].

pub mod front;
pub mod signing;
pub mod tokens;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail, ensure};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Certificate, Client};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::control_plane::binaries;
use crate::control_plane::pki::{Authority, base64};
use crate::guard::{self, Folder, Guarded};

use tokens::Tokens;

/// The user of a registry with a password.
pub const USER: &str = "user";
/// The password.
pub const PASSWORD: &str = "correct horse";
/// The same for the registry: `htpasswd -nbB -C 4`.
const HTPASSWD: &str = "user:$2a$04$7noj6n1XmUb5NuhtFHyAyuxzoK4q5oBfF/gkPn7OBBIPonVe7unwa\n";

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
    _process: Guarded,
    _folder: Folder,
    /// `127.0.0.1:PORT`.
    pub host: String,
    /// Its authority (PEM), where it speaks TLS.
    pub ca: Option<String>,
    client: Client,
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

impl Registry {
    /// Starts one.
    ///
    /// # Errors
    /// Where it cannot be built or started.
    pub async fn start(door: Door<'_>) -> Result<Self> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let program = tokio::task::spawn_blocking(binaries::registry).await??;
        let folder = Folder::new("addons-registry-")?;
        let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let mut config = json!({
            "version": 0.1,
            "log": {"level": "info", "accesslog": {"disabled": true}},
            "storage": {"filesystem": {"rootdirectory": file("storage")}},
            "http": {"addr": "127.0.0.1:0", "secret": "of uploads"},
            "health": {"storagedriver": {"enabled": false}},
        });
        let mut headers = HeaderMap::new();
        let basic = format!("Basic {}", base64(&format!("{USER}:{PASSWORD}")));
        let mut ca = None;
        match door {
            Door::Open => {}
            Door::Password | Door::Tls => {
                fs::write(file("htpasswd"), HTPASSWD)?;
                config["auth"] = json!({"htpasswd": {"realm": "tests", "path": file("htpasswd")}});
                headers.insert(AUTHORIZATION, HeaderValue::from_str(&basic)?);
            }
            Door::Tokens(tokens) => {
                fs::write(file("jwks.json"), tokens.keys())?;
                config["auth"] = json!({"token": {
                    "realm": tokens.realm(), "service": tokens::SERVICE, "issuer": tokens::ISSUER,
                    "jwks": file("jwks.json"),
                }});
                let token = format!("Bearer {}", tokens.issue("*", &["pull", "push"])?);
                headers.insert(AUTHORIZATION, HeaderValue::from_str(&token)?);
            }
        }
        if matches!(door, Door::Tls) {
            let authority = Authority::new("registry of the tests")?;
            let pair = authority.serving("registry", &["127.0.0.1"])?;
            pair.write(folder.path(), "tls")?;
            config["http"]["tls"] = json!({"certificate": file("tls.crt"), "key": file("tls.key")});
            ca = Some(authority.certificate);
        }
        // JSON is YAML.
        fs::write(file("config.yaml"), config.to_string())?;
        let mut command = guard::command(&program);
        command
            .args(["serve", &file("config.yaml")])
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut process = guard::spawn(&mut command, b"")?;
        let stderr = process.stderr().context("no stderr")?;
        let host = tokio::task::spawn_blocking(move || address(stderr)).await??;
        let mut client = Client::builder().default_headers(headers);
        if let Some(ca) = &ca {
            client = client.tls_certs_only(Certificate::from_pem_bundle(ca.as_bytes())?);
        }
        Ok(Self {
            _process: process,
            _folder: folder,
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
        let answer = self.client.post(url).send().await?;
        let status = answer.status();
        let location = answer.headers().get(LOCATION).cloned();
        let Some(location) = location.filter(|_| status.is_success()) else {
            bail!("{status}: {}", answer.text().await?);
        };
        let digest = digest(bytes);
        let mut url = reqwest::Url::parse(location.to_str()?)?;
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

/// Where it listens, from its log, which is then read to its end.
fn address(log: std::process::ChildStderr) -> Result<String> {
    let mut lines = BufReader::new(log).lines();
    let mut said = Vec::new();
    for line in lines.by_ref() {
        let line = line?;
        if let Some((_, rest)) = line.split_once("listening on ") {
            let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
            let address = rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
            let address = address.to_owned();
            std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
            return Ok(address);
        }
        said.push(line);
    }
    bail!("the registry ended:\n{}", said.join("\n"))
}
