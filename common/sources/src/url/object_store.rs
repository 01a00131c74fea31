//! Fetches objects from the stores of S3, Google and Azure.

mod options;
mod profile;
mod service;

use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use object_store::azure::{AzureCredential, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use object_store::path::Path;
use object_store::{ClientOptions, GetOptions, ObjectStore, StaticCredentialProvider};
use url::Url;

use super::last_answer::LastAnswer;
use super::{FetchedDocument, UrlError, redact_url, size_limit};
use crate::SourceAccess;
use crate::http::bound::{self, ContentTooLarge};
use crate::http::{Http, HttpError, RefusedAddress, retry};
pub use options::StoreKind;
use options::StoreOptions;
use service::Connector;

/// Fetches an object, or returns the cached one if its `ETag` has not changed.
pub async fn get(
    kind: StoreKind,
    url: &Url,
    access: &SourceAccess<'_>,
) -> Result<FetchedDocument, UrlError> {
    let location = redact_url(url);
    let options = StoreOptions::load(kind, url, access)?;
    let known = LastAnswer::load(url.as_str(), &options.reader_key(), access);
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
    let fetch = read(&*store, &key, &known, size_limit(url.path()), &location);
    match tokio::time::timeout(bound::TIME, fetch).await {
        Ok(Ok(document)) => Ok(document),
        Ok(Err(StoreFailure::Store(object_store::Error::NotModified { .. }))) => {
            known.document(&location).ok_or(UrlError::Status {
                location,
                status: "304 Not Modified".to_owned(),
            })
        }
        Ok(Err(StoreFailure::Store(error))) => Err(store_error(error, location, &options)),
        Ok(Err(StoreFailure::Http(source))) => Err(UrlError::Http { location, source }),
        Ok(Err(StoreFailure::Short { size, read })) => Err(UrlError::Store {
            location,
            why: format!("the store announced {size} bytes and sent {read}"),
        }),
        Err(_) => Err(UrlError::Http {
            location,
            source: HttpError::Timeout,
        }),
    }
}

enum StoreFailure {
    Store(object_store::Error),
    Http(HttpError),
    Short { size: u64, read: usize },
}

impl From<object_store::Error> for StoreFailure {
    fn from(error: object_store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<ContentTooLarge> for StoreFailure {
    fn from(error: ContentTooLarge) -> Self {
        Self::Http(error.into())
    }
}

async fn read(
    store: &dyn ObjectStore,
    key: &Path,
    known: &LastAnswer<'_>,
    limit: u64,
    location: &str,
) -> Result<FetchedDocument, StoreFailure> {
    let options = GetOptions {
        if_none_match: known.etag().map(str::to_owned),
        ..GetOptions::default()
    };
    let found = store.get_opts(key, options).await?;
    let (etag, size) = (found.meta.e_tag.clone(), found.meta.size);
    let bytes: Result<_, StoreFailure> = bound::read(found.into_stream(), size, limit).await;
    let bytes = bytes?;
    if bytes.len() as u64 != size {
        let read = bytes.len();
        return Err(StoreFailure::Short { size, read });
    }
    let document = FetchedDocument {
        bytes,
        location: location.to_owned(),
    };
    known.store(&document, None, etag, None);
    Ok(document)
}

/// Applies the settings that are common to all stores. Their builders have no common trait.
macro_rules! configured {
    ($builder:expr, $options:expr, $connector:expr) => {{
        let mut builder = $builder;
        for (name, value) in &$options.values {
            builder = builder.with_config(name.to_ascii_lowercase().parse()?, value);
        }
        builder
            .with_client_options(ClientOptions::new().with_allow_http($options.allow_http))
            .with_http_connector($connector)
            .with_retry(retry::store_retry_config())
            .with_skip_signature(!$options.signed)
    }};
}

/// Creates the client of a store. Without credentials, requests are not signed; empty credentials then keep
/// the client from requesting those of this machine.
fn store(
    kind: StoreKind,
    url: &Url,
    access: &SourceAccess<'_>,
    options: &StoreOptions,
) -> Result<Box<dyn ObjectStore>, UrlError> {
    let http = Http::new(access.credentials, options.addresses, false);
    let http = http.map_err(|source| UrlError::Http {
        location: redact_url(url),
        source,
    })?;
    let built = build(kind, url.host_str().unwrap_or_default(), options, http);
    built.map_err(|error| store_error(error, redact_url(url), options))
}

fn build(
    kind: StoreKind,
    bucket: &str,
    options: &StoreOptions,
    http: Http,
) -> Result<Box<dyn ObjectStore>, object_store::Error> {
    let connector = Connector { http };
    Ok(match kind {
        StoreKind::S3 => {
            let builder = configured!(AmazonS3Builder::new(), options, connector);
            Box::new(builder.with_bucket_name(bucket).build()?)
        }
        StoreKind::Google => {
            let mut builder = configured!(GoogleCloudStorageBuilder::new(), options, connector);
            if !options.signed {
                let bearer = String::new();
                let none = StaticCredentialProvider::new(GcpCredential { bearer });
                builder = builder.with_credentials(Arc::new(none));
            }
            Box::new(builder.with_bucket_name(bucket).build()?)
        }
        StoreKind::Azure => {
            let mut builder = configured!(MicrosoftAzureBuilder::new(), options, connector);
            if !options.signed {
                let none = AzureCredential::BearerToken(String::new());
                builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(none)));
            }
            Box::new(builder.with_container_name(bucket).build()?)
        }
    })
}

/// Converts the error of a client. Known causes have their own error. Other errors only have the innermost
/// message, because the outer ones repeat the URL, which can contain a signature.
fn store_error(error: object_store::Error, location: String, options: &StoreOptions) -> UrlError {
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
    if let Some(refused) = innermost.downcast_ref::<RefusedAddress>() {
        let source = HttpError::Address(refused.clone());
        return UrlError::Http { location, source };
    }
    let why = options.without_secrets(&innermost.to_string());
    UrlError::Store { location, why }
}
