//! Objects in the stores of S3, Google and Azure.

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

use super::known::Known;
use super::{Document, UrlError, limit, shown};
use crate::Access;
use crate::http::bound::{self, TooLarge};
use crate::http::{Http, HttpError, Refused, retry};
pub use options::Kind;
use options::Options;
use service::Connector;

/// Gets an object, if its `ETag` has changed since the last fetch.
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
    let fetch = read(&*store, &key, &known, limit(url.path()), &location);
    match tokio::time::timeout(bound::TIME, fetch).await {
        Ok(Ok(document)) => Ok(document),
        Ok(Err(Failure::Store(object_store::Error::NotModified { .. }))) => {
            known.document(&location).ok_or(UrlError::Status {
                location,
                status: "304 Not Modified".to_owned(),
            })
        }
        Ok(Err(Failure::Store(error))) => Err(store_error(error, location, &options)),
        Ok(Err(Failure::Http(source))) => Err(UrlError::Http { location, source }),
        Ok(Err(Failure::Short { size, read })) => Err(UrlError::Store {
            location,
            why: format!("the store announced {size} bytes and sent {read}"),
        }),
        Err(_) => Err(UrlError::Http {
            location,
            source: HttpError::Timeout,
        }),
    }
}

enum Failure {
    Store(object_store::Error),
    Http(HttpError),
    Short { size: u64, read: usize },
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<TooLarge> for Failure {
    fn from(error: TooLarge) -> Self {
        Self::Http(error.into())
    }
}

async fn read(
    store: &dyn ObjectStore,
    key: &Path,
    known: &Known<'_>,
    limit: u64,
    location: &str,
) -> Result<Document, Failure> {
    let options = GetOptions {
        if_none_match: known.etag().map(str::to_owned),
        ..GetOptions::default()
    };
    let found = store.get_opts(key, options).await?;
    let (etag, size) = (found.meta.e_tag.clone(), found.meta.size);
    let bytes: Result<_, Failure> = bound::read(found.into_stream(), size, limit).await;
    let bytes = bytes?;
    if bytes.len() as u64 != size {
        let read = bytes.len();
        return Err(Failure::Short { size, read });
    }
    let document = Document {
        bytes,
        location: location.to_owned(),
    };
    known.keep(&document, None, etag, None);
    Ok(document)
}

/// Sets what the builders of all stores have in common; they share no trait.
macro_rules! configured {
    ($builder:expr, $options:expr, $connector:expr) => {{
        let mut builder = $builder;
        for (name, value) in &$options.values {
            builder = builder.with_config(name.to_ascii_lowercase().parse()?, value);
        }
        builder
            .with_client_options(ClientOptions::new().with_allow_http($options.allow_http))
            .with_http_connector($connector)
            .with_retry(retry::for_stores())
            .with_skip_signature(!$options.signed)
    }};
}

/// The store of that bucket. Without a proof requests are not signed: credentials that are set keep a client from asking this
/// machine for its own.
fn store(
    kind: Kind,
    url: &Url,
    access: &Access<'_>,
    options: &Options,
) -> Result<Box<dyn ObjectStore>, UrlError> {
    let http = Http::new(access.credentials, options.addresses, false);
    let http = http.map_err(|source| UrlError::Http {
        location: shown(url),
        source,
    })?;
    let built = build(kind, url.host_str().unwrap_or_default(), options, http);
    built.map_err(|error| store_error(error, shown(url), options))
}

fn build(
    kind: Kind,
    bucket: &str,
    options: &Options,
    http: Http,
) -> Result<Box<dyn ObjectStore>, object_store::Error> {
    let connector = Connector { http };
    Ok(match kind {
        Kind::S3 => {
            let builder = configured!(AmazonS3Builder::new(), options, connector);
            Box::new(builder.with_bucket_name(bucket).build()?)
        }
        Kind::Google => {
            let mut builder = configured!(GoogleCloudStorageBuilder::new(), options, connector);
            if !options.signed {
                let bearer = String::new();
                let none = StaticCredentialProvider::new(GcpCredential { bearer });
                builder = builder.with_credentials(Arc::new(none));
            }
            Box::new(builder.with_bucket_name(bucket).build()?)
        }
        Kind::Azure => {
            let mut builder = configured!(MicrosoftAzureBuilder::new(), options, connector);
            if !options.signed {
                let none = AzureCredential::BearerToken(String::new());
                builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(none)));
            }
            Box::new(builder.with_container_name(bucket).build()?)
        }
    })
}

/// Our own error where there is one for the cause, else the innermost message of the client: the outer ones repeat the URL,
/// which may hold a signature.
fn store_error(error: object_store::Error, location: String, options: &Options) -> UrlError {
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
    if let Some(refused) = innermost.downcast_ref::<Refused>() {
        let source = HttpError::Address(refused.clone());
        return UrlError::Http { location, source };
    }
    let why = options.without_secrets(&innermost.to_string());
    UrlError::Store { location, why }
}
