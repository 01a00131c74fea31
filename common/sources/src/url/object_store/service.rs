//! Makes the clients of object stores use our HTTP client, which follows no redirects, and checks every
//! request before it is sent.

use std::future::Future;
use std::pin::Pin;

use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpService,
};
use url::Url;

use crate::http::Http;

/// Creates the service for each client.
#[derive(Clone, Debug)]
pub struct Connector {
    /// The client.
    pub http: Http,
}

/// A request would be sent without TLS.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0}:// has no TLS and is used only where the option AWS_ALLOW_HTTP, GOOGLE_ALLOW_HTTP or AZURE_ALLOW_HTTP is true"
)]
struct PlainHttp(String);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allow = options.get_config_value(&ClientConfigKey::AllowHttp);
        Ok(HttpClient::new(CheckedService {
            http: self.http.clone(),
            allow_http: allow.as_deref() == Some("true"),
        }))
    }
}

#[derive(Debug)]
struct CheckedService {
    http: Http,
    allow_http: bool,
}

impl CheckedService {
    /// Checks a request. Its errors are of a kind that the client does not retry.
    async fn check(&self, request: &HttpRequest) -> Result<(), HttpError> {
        let uri = request.uri();
        if uri.scheme_str() != Some("https") && !self.allow_http {
            let scheme = uri.scheme_str().unwrap_or_default().to_owned();
            return Err(HttpError::new(HttpErrorKind::Unknown, PlainHttp(scheme)));
        }
        match Url::parse(&uri.to_string()) {
            Ok(url) => {
                let checked = self.http.check(&url).await;
                checked.map_err(|refused| HttpError::new(HttpErrorKind::Unknown, refused))
            }
            Err(_) => Ok(()),
        }
    }
}

impl HttpService for CheckedService {
    fn call<'life, 'future>(
        &'life self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'future>>
    where
        'life: 'future,
        Self: 'future,
    {
        Box::pin(async move {
            self.check(&request).await?;
            self.http.client.call(request).await
        })
    }
}
