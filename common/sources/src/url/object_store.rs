//! Objects in the stores of S3, Google and Azure.

mod options;
mod profile;
mod service;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::azure::{AzureCredential, MicrosoftAzureBuilder};
use object_store::client::HttpConnector;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use object_store::path::Path;
use object_store::{ClientOptions, GetOptions, ObjectStore, RetryConfig, StaticCredentialProvider};
use url::Url;

use super::client::{Refused, client};
use super::known::Known;
use super::{Document, UrlError, limit, shown};
use crate::Access;
pub use options::Kind;
use options::Options;
use service::Connector;

/// All tries together.
const DEADLINE: Duration = Duration::from_secs(180);
const RETRIES: usize = 3;
/// No try begins later.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// Gets an object, where it has another `ETag` than the last time.
pub async fn get(kind: Kind, url: &Url, access: &Access<'_>) -> Result<Document, UrlError> {
    let location = shown(url);
    let options = Options::of(kind, url, access)?;
    let known = Known::of(url.as_str(), &options.seen_by(), access);
    if access.offline {
        return known.offline(&location);
    }
    let key = Path::from_url_path(url.path()).ok();
    let Some(key) = key.filter(|key| !key.as_ref().is_empty() && url.query().is_none()) else {
        return Err(UrlError::Setting {
            location,
            why: format!(
                "an object is named by its bucket and key: {}://BUCKET/KEY",
                url.scheme()
            ),
        });
    };
    let store = store(kind, url, access, &options)?;
    let fetch = read(&*store, &key, &known, limit(url), &location);
    match tokio::time::timeout(DEADLINE, fetch).await {
        Ok(Ok(document)) => Ok(document),
        Ok(Err(Failure::NotModified)) => known.document(&location).ok_or(UrlError::Status {
            location,
            status: "304 Not Modified".to_owned(),
        }),
        Ok(Err(Failure::Told(error))) => Err(error),
        Ok(Err(Failure::Store(error))) => Err(told(error, location, &options)),
        Err(_) => Err(UrlError::Timeout {
            location,
            seconds: DEADLINE.as_secs(),
        }),
    }
}

enum Failure {
    NotModified,
    Store(object_store::Error),
    Told(UrlError),
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotModified { .. } => Self::NotModified,
            error => Self::Store(error),
        }
    }
}

async fn read(
    store: &dyn ObjectStore,
    key: &Path,
    known: &Known<'_>,
    limit: u64,
    location: &str,
) -> Result<Document, Failure> {
    let too_large = || {
        Failure::Told(UrlError::TooLarge {
            location: location.to_owned(),
            limit,
        })
    };
    let options = GetOptions {
        if_none_match: known.etag().map(str::to_owned),
        ..GetOptions::default()
    };
    let found = store.get_opts(key, options).await?;
    if found.meta.size > limit {
        return Err(too_large());
    }
    let (etag, size) = (found.meta.e_tag.clone(), found.meta.size);
    let mut bytes = Vec::new();
    let mut stream = found.into_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk?;
        if (bytes.len() + chunk.len()) as u64 > limit {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    if bytes.len() as u64 != size {
        return Err(Failure::Told(UrlError::Store {
            location: location.to_owned(),
            why: format!("it has {size} bytes and {} came", bytes.len()),
        }));
    }
    let document = Document {
        bytes,
        location: location.to_owned(),
    };
    known.keep(&document, etag, None);
    Ok(document)
}

/// The store of that bucket. Without a proof requests are not signed: nobody asks the machine for its own identity.
fn store(
    kind: Kind,
    url: &Url,
    access: &Access<'_>,
    options: &Options,
) -> Result<Box<dyn ObjectStore>, UrlError> {
    let bucket = url.host_str().unwrap_or_default();
    let retry = RetryConfig {
        max_retries: RETRIES,
        retry_timeout: RETRY_TIMEOUT,
        ..RetryConfig::default()
    };
    let client_options = ClientOptions::new().with_allow_http(options.allow_http);
    let connector = Connector {
        client: client(access, false)?,
        guarded: !access.ambient,
    };
    let built = match kind {
        Kind::S3 => s3(bucket, options, connector, retry, client_options),
        Kind::Google => google(bucket, options, connector, retry, client_options),
        Kind::Azure => azure(bucket, options, connector, retry, client_options),
    };
    built.map_err(|error| told(error, shown(url), options))
}

type Built = Result<Box<dyn ObjectStore>, object_store::Error>;

fn s3(
    bucket: &str,
    options: &Options,
    connector: impl HttpConnector,
    retry: RetryConfig,
    client: ClientOptions,
) -> Built {
    let mut builder = AmazonS3Builder::new();
    for (name, value) in &options.values {
        builder = builder.with_config(name.to_ascii_lowercase().parse()?, value);
    }
    builder = builder
        .with_bucket_name(bucket)
        .with_client_options(client)
        .with_http_connector(connector)
        .with_retry(retry);
    if !options.signed {
        builder = builder.with_skip_signature(true);
    }
    Ok(Box::new(builder.build()?))
}

fn google(
    bucket: &str,
    options: &Options,
    connector: impl HttpConnector,
    retry: RetryConfig,
    client: ClientOptions,
) -> Built {
    let mut builder = GoogleCloudStorageBuilder::new();
    for (name, value) in &options.values {
        builder = builder.with_config(name.to_ascii_lowercase().parse()?, value);
    }
    builder = builder
        .with_bucket_name(bucket)
        .with_client_options(client)
        .with_http_connector(connector)
        .with_retry(retry);
    if !options.signed {
        // With credentials of its own it does not look for a file of the machine.
        let bearer = String::new();
        builder = builder
            .with_credentials(Arc::new(StaticCredentialProvider::new(GcpCredential {
                bearer,
            })))
            .with_skip_signature(true);
    }
    Ok(Box::new(builder.build()?))
}

fn azure(
    container: &str,
    options: &Options,
    connector: impl HttpConnector,
    retry: RetryConfig,
    client: ClientOptions,
) -> Built {
    let mut builder = MicrosoftAzureBuilder::new();
    for (name, value) in &options.values {
        builder = builder.with_config(name.to_ascii_lowercase().parse()?, value);
    }
    builder = builder
        .with_container_name(container)
        .with_client_options(client)
        .with_http_connector(connector)
        .with_retry(retry);
    if !options.signed {
        let none = AzureCredential::BearerToken(String::new());
        builder = builder
            .with_credentials(Arc::new(StaticCredentialProvider::new(none)))
            .with_skip_signature(true);
    }
    Ok(Box::new(builder.build()?))
}

/// The error in words of ours where there are some, else the innermost of its own: the outer ones repeat the URL, which may
/// be signed.
fn told(error: object_store::Error, location: String, options: &Options) -> UrlError {
    let status = match &error {
        object_store::Error::NotFound { .. } => {
            let status = "404 Not Found".to_owned();
            return UrlError::Status { location, status };
        }
        object_store::Error::PermissionDenied { .. } => Some("403 Forbidden"),
        object_store::Error::Unauthenticated { .. } => Some("401 Unauthorized"),
        _ => None,
    };
    if let Some(status) = status {
        return UrlError::Denied {
            location,
            status: status.to_owned(),
            identity: options.signed.then(|| options.identity.clone()),
            wanted: common::api::names::SECRET_TYPE_OBJECT_STORE,
        };
    }
    let mut innermost: &(dyn std::error::Error + 'static) = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if let Some(Refused(address)) = innermost.downcast_ref() {
        let address = *address;
        return UrlError::Address { location, address };
    }
    let why = options.without_secrets(&innermost.to_string());
    UrlError::Store { location, why }
}
