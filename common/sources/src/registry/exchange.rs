//! Sends requests to a registry with the credentials that it requires, and retries them.

use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RANGE};
use reqwest::{Method, Request, Response};
use url::Url;

use super::challenge::Challenge;
use super::{MAX_ANSWERS, RegistryAccessError, RegistryClient, answers, http_error, repository};
use crate::http::retry::RequestTries;
use crate::http::{HttpError, Redirects, bound};

impl RegistryClient<'_> {
    /// Sends a request for a path of this repository.
    pub(super) async fn send(
        &mut self,
        tries: &mut RequestTries,
        method: Method,
        path: &str,
        accept: &str,
        location: &str,
    ) -> Result<Response, RegistryAccessError> {
        let make = |registry: &Self| registry.request(method.clone(), path, accept);
        let redirects = Redirects::Anywhere;
        self.exchange(tries, redirects, location, make).await
    }

    /// Requests the rest of a transfer that broke off after `seen` bytes, with a new token if the old one has
    /// expired.
    pub(super) async fn resume(
        &mut self,
        tries: &mut RequestTries,
        path: &str,
        seen: u64,
        location: &str,
    ) -> Result<Response, RegistryAccessError> {
        let make = |registry: &Self| -> Result<Request, HttpError> {
            let mut request = registry.request(Method::GET, path, "*/*")?;
            let range = HeaderValue::try_from(format!("bytes={seen}-")).ok();
            let range = range.map(|range| (RANGE, range));
            request.headers_mut().extend(range);
            Ok(request)
        };
        let redirects = Redirects::Anywhere;
        self.exchange(tries, redirects, location, make).await
    }

    /// Sends a request for this repository and authenticates when the registry requires it.
    pub(super) async fn exchange(
        &mut self,
        tries: &mut RequestTries,
        redirects: Redirects,
        location: &str,
        make: impl Fn(&Self) -> Result<Request, HttpError>,
    ) -> Result<Response, RegistryAccessError> {
        if self.offline {
            let location = location.to_owned();
            return Err(RegistryAccessError::Offline { location });
        }
        self.recall().await?;
        let mut answered = 0;
        loop {
            let failed = |source| match self.login.is_pushing() {
                true => RegistryAccessError::Push {
                    location: location.to_owned(),
                    source,
                },
                false => http_error(location, source),
            };
            let request = make(self).map_err(failed)?;
            let sent = self.http.send(tries, &request, redirects, None).await;
            let response = sent.map_err(failed)?;
            let status = response.status();
            let is_refusal = matches!(status.as_u16(), 401 | 403) && self.is_ours(response.url());
            if is_refusal && answered < MAX_ANSWERS {
                answered += 1;
                let sent = self.authorization.take();
                let next = match Challenge::read(response.headers()) {
                    Some(challenge) => {
                        challenge.remember(self.cache, &self.origin);
                        let answer =
                            self.login
                                .answer_challenge(&self.http, &challenge, sent.as_ref());
                        answer.await?
                    }
                    None => None,
                };
                let has_new = next.is_some() && next != sent;
                // A registry that refuses an unexpected password states what it requires when the request has
                // none.
                let unasked = status.as_u16() == 403 && sent.is_some();
                if has_new || unasked {
                    self.authorization = next;
                    continue;
                }
            }
            if status.is_success() {
                return Ok(response);
            }
            return Err(self.refusal_error(response, location.to_owned()).await);
        }
    }

    /// Creates a request with the current credentials.
    pub(super) fn request(
        &self,
        method: Method,
        path: &str,
        accept: &str,
    ) -> Result<Request, HttpError> {
        let url = format!("{}/v2/{}/{path}", self.origin, self.reference.repository);
        let mut request = self.http.client.request(method, &url);
        request = request.header(ACCEPT, accept);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        Ok(request.build()?)
    }

    /// Reads a whole manifest or page of tags. If the response breaks off, the request is sent again.
    pub(super) async fn read(
        &mut self,
        path: &str,
        accept: &str,
        location: &str,
    ) -> Result<(HeaderMap, Vec<u8>), RegistryAccessError> {
        let mut tries = RequestTries::default();
        loop {
            let response = self
                .send(&mut tries, Method::GET, path, accept, location)
                .await?;
            let headers = response.headers().clone();
            match bound::body(response, bound::MANIFEST).await {
                Err(error) if error.is_transient() && tries.wait(Duration::ZERO).await => {}
                read => {
                    return Ok((
                        headers,
                        read.map_err(|source| http_error(location, source))?,
                    ));
                }
            }
        }
    }

    /// Requests a token in advance if the registry required one in the last run.
    async fn recall(&mut self) -> Result<(), RegistryAccessError> {
        if std::mem::replace(&mut self.recalled, true) {
            return Ok(());
        }
        let Some(challenge) = Challenge::recall(self.cache, &self.origin) else {
            return Ok(());
        };
        match self
            .login
            .answer_challenge(&self.http, &challenge, None)
            .await
        {
            Ok(token) => self.authorization = token,
            Err(error @ RegistryAccessError::Unauthorized { .. }) => return Err(error),
            // The token server may have moved; the registry then names the new one.
            Err(_) => {}
        }
        Ok(())
    }

    async fn refusal_error(&self, response: Response, location: String) -> RegistryAccessError {
        let status = response.status();
        let is_ours = self.is_ours(response.url());
        let bytes = bound::body(response, bound::SMALL).await;
        let detail = answers::detail(&bytes.unwrap_or_default());
        match status.as_u16() {
            401 | 403 if is_ours => {
                let (who, accept) = self.login.describe_refusal();
                RegistryAccessError::Unauthorized {
                    location,
                    who,
                    detail,
                    accept,
                }
            }
            404 => RegistryAccessError::NotFound {
                location,
                detail,
                repository: Some(repository(&self.reference)),
            },
            _ => RegistryAccessError::Status {
                location,
                status: status.to_string(),
                detail,
            },
        }
    }

    /// Whether a response comes from the registry itself and not from the target of a redirect.
    pub(super) fn is_ours(&self, url: &Url) -> bool {
        Url::parse(&self.origin).is_ok_and(|origin| origin.origin() == url.origin())
    }
}
