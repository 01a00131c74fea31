//! Requests to a registry: with the credentials that it asks for, and tried again where that may help.

use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RANGE};
use reqwest::{Method, Request, Response};
use url::Url;

use super::challenge::Challenge;
use super::{MAX_ANSWERS, Registry, RegistryError, answers, repository, wrong};
use crate::http::retry::Tries;
use crate::http::{HttpError, Redirects, bound};

impl Registry<'_> {
    /// Asks for something of this repository.
    pub(super) async fn send(
        &mut self,
        tries: &mut Tries,
        method: Method,
        path: &str,
        accept: &str,
        location: &str,
    ) -> Result<Response, RegistryError> {
        let make = |registry: &Self| registry.request(method.clone(), path, accept);
        let redirects = Redirects::Anywhere;
        self.exchange(tries, redirects, location, make).await
    }

    /// Asks for the rest of what broke off after `seen` bytes: with a new token, where the first one has expired by now.
    pub(super) async fn resume(
        &mut self,
        tries: &mut Tries,
        path: &str,
        seen: u64,
        location: &str,
    ) -> Result<Response, RegistryError> {
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

    /// Sends a request for this repository, and authenticates when the registry asks for it.
    pub(super) async fn exchange(
        &mut self,
        tries: &mut Tries,
        redirects: Redirects,
        location: &str,
        make: impl Fn(&Self) -> Result<Request, HttpError>,
    ) -> Result<Response, RegistryError> {
        if self.offline {
            let location = location.to_owned();
            return Err(RegistryError::Offline { location });
        }
        self.recall().await?;
        let mut answered = 0;
        loop {
            let failed = |source| match self.login.is_pushing() {
                true => RegistryError::Push {
                    location: location.to_owned(),
                    source,
                },
                false => wrong(location, source),
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
                        let answer = self.login.answer(&self.http, &challenge, sent.as_ref());
                        answer.await?
                    }
                    None => None,
                };
                let has_new = next.is_some() && next != sent;
                // A registry that rejects an unexpected password says what it wants when it gets none.
                let unasked = status.as_u16() == 403 && sent.is_some();
                if has_new || unasked {
                    self.authorization = next;
                    continue;
                }
            }
            if status.is_success() {
                return Ok(response);
            }
            return Err(self.refusal(response, location.to_owned()).await);
        }
    }

    /// A request with the credentials so far.
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

    /// Gets the whole of a manifest or a page of tags; an answer that breaks off is asked for again.
    pub(super) async fn read(
        &mut self,
        path: &str,
        accept: &str,
        location: &str,
    ) -> Result<(HeaderMap, Vec<u8>), RegistryError> {
        let mut tries = Tries::default();
        loop {
            let response = self
                .send(&mut tries, Method::GET, path, accept, location)
                .await?;
            let headers = response.headers().clone();
            match bound::body(response, bound::MANIFEST).await {
                Err(error) if error.is_passing() && tries.again(Duration::ZERO).await => {}
                read => return Ok((headers, read.map_err(|source| wrong(location, source))?)),
            }
        }
    }

    /// Gets a token before the registry asks for one, if it did so in the last run.
    async fn recall(&mut self) -> Result<(), RegistryError> {
        if std::mem::replace(&mut self.recalled, true) {
            return Ok(());
        }
        let Some(challenge) = Challenge::recall(self.cache, &self.origin) else {
            return Ok(());
        };
        match self.login.answer(&self.http, &challenge, None).await {
            Ok(token) => self.authorization = token,
            Err(error @ RegistryError::Unauthorized { .. }) => return Err(error),
            // The token server may have moved: the registry will name the new one.
            Err(_) => {}
        }
        Ok(())
    }

    async fn refusal(&self, response: Response, location: String) -> RegistryError {
        let status = response.status();
        let is_ours = self.is_ours(response.url());
        let bytes = bound::body(response, bound::SMALL).await;
        let detail = answers::detail(&bytes.unwrap_or_default());
        match status.as_u16() {
            401 | 403 if is_ours => {
                let (who, accept) = self.login.refused();
                RegistryError::Unauthorized {
                    location,
                    who,
                    detail,
                    accept,
                }
            }
            404 => RegistryError::NotFound {
                location,
                detail,
                repository: Some(repository(&self.reference)),
            },
            _ => RegistryError::Status {
                location,
                status: status.to_string(),
                detail,
            },
        }
    }

    /// Whether an answer comes from the registry itself, not from the target of a redirect.
    pub(super) fn is_ours(&self, url: &Url) -> bool {
        Url::parse(&self.origin).is_ok_and(|origin| origin.origin() == url.origin())
    }
}
