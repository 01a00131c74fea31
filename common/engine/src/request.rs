//! Sends requests: content, accepted form of the response, and retries.
//!
//! kube's own retry is off, because it can hang for minutes and does not handle connection errors. Here, a request is repeated on 429 and
//! 503 (with the server's Retry-After) and after connection errors: for a short time before the server has ever answered, and for longer in
//! the middle of an operation (an API server that restarts).

mod answered;
mod headers;

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use jiff::Timestamp;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use common::entrance::{self, MAX_DEPTH};

use super::address::{Collection, query_value};
use super::cluster::Cluster;
use super::error::{EngineError, classify};
use super::limits;
use answered::ExpectedObject;
use headers::{retry_after, warnings};

pub(super) use headers::server_time;

/// Plain JSON.
pub(super) const JSON: &str = "application/json";
/// Metadata of one object: the response to a write stays small, however large the object is.
pub(super) const METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
/// Metadata of a list.
pub(super) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// Server-side apply; JSON is YAML.
pub(super) const APPLY_PATCH: &str = "application/apply-patch+yaml";
/// JSON merge patch.
pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";

/// JSON patch.
pub(super) const JSON_PATCH: &str = "application/json-patch+json";

/// How long requests to a server that has never answered are repeated.
const PATIENCE_BEFORE: Duration = Duration::from_secs(2);
/// How long requests to a server that has answered before are repeated.
const PATIENCE_AFTER: Duration = Duration::from_secs(20);
/// Pause before the second try; the next ones are longer.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// One request.
#[derive(Clone, Debug)]
pub(super) struct ApiCall {
    method: Method,
    uri: String,
    body: Vec<u8>,
    has_body: bool,
    content_type: &'static str,
    accept: &'static str,
    /// Whether it must not be repeated if it is unknown what the server did.
    once: bool,
    /// Whether it is never repeated, even if the server might answer differently later.
    first: bool,
    /// Whether it does not count against the limit of requests in flight.
    urgent: bool,
    /// Whether it is sent with our own rights, even if the cluster acts as a ServiceAccount (semantics 16.6).
    own: bool,
    /// The object that the answer must contain; `None` if it may be another one, or none.
    expected: Option<ExpectedObject>,
    pub(super) verb: &'static str,
    pub(super) resource: String,
    pub(super) object: String,
}

impl ApiCall {
    /// GET of a path that is not an object: discovery, version.
    pub(super) fn path(path: impl Into<String>, accept: &'static str) -> Self {
        let uri = path.into();
        Self {
            method: Method::GET,
            resource: uri.clone(),
            object: uri.clone(),
            uri,
            body: Vec::new(),
            has_body: false,
            content_type: JSON,
            accept,
            once: false,
            first: false,
            urgent: false,
            own: false,
            expected: None,
            verb: "get",
        }
    }

    /// GET of one object.
    pub(super) fn get(collection: &Collection, name: &str, accept: &'static str) -> Self {
        Self::for_object(collection, name, Method::GET, "get", accept)
    }

    /// LIST of a collection.
    pub(super) fn list(collection: &Collection, accept: &'static str) -> Self {
        Self {
            uri: collection.path(),
            object: collection.to_string(),
            expected: None,
            ..Self::for_object(collection, "", Method::GET, "list", accept)
        }
    }

    /// POST into a collection. It is not repeated, because a second try would collide with the result of the first.
    pub(super) fn create(collection: &Collection, name: &str, accept: &'static str) -> Self {
        Self {
            uri: collection.path(),
            once: true,
            ..Self::for_object(collection, name, Method::POST, "create", accept)
        }
    }

    /// PUT of one object (a resourceVersion in it makes repetitions harmless).
    pub(super) fn replace(collection: &Collection, name: &str, accept: &'static str) -> Self {
        Self::for_object(collection, name, Method::PUT, "update", accept)
    }

    /// PATCH of one object.
    pub(super) fn patch(
        collection: &Collection,
        name: &str,
        content_type: &'static str,
        accept: &'static str,
    ) -> Self {
        Self {
            content_type,
            ..Self::for_object(collection, name, Method::PATCH, "patch", accept)
        }
    }

    /// DELETE of one object. The answer is the object, or a Status.
    pub(super) fn delete(collection: &Collection, name: &str) -> Self {
        Self {
            expected: None,
            ..Self::for_object(collection, name, Method::DELETE, "delete", METADATA)
        }
    }

    fn for_object(
        collection: &Collection,
        name: &str,
        method: Method,
        verb: &'static str,
        accept: &'static str,
    ) -> Self {
        Self {
            method,
            uri: collection.object_path(name),
            body: Vec::new(),
            has_body: false,
            content_type: JSON,
            accept,
            once: false,
            first: false,
            urgent: false,
            own: false,
            expected: Some(ExpectedObject::new(collection, name)),
            verb,
            resource: collection.to_string(),
            object: collection.describe_object(name),
        }
    }

    /// Adds a subresource.
    pub(super) fn subresource(mut self, name: &str) -> Self {
        self.uri.push('/');
        self.uri.push_str(name);
        // Named as RBAC does: the right to write an object does not include its status.
        let resource = match self.resource.split_once(' ') {
            Some((resource, place)) => format!("{resource}/{name} {place}"),
            None => format!("{}/{name}", self.resource),
        };
        self.resource = resource;
        self
    }

    /// Adds a query parameter. The caller escapes `value` unless it is a constant.
    pub(super) fn query(mut self, name: &str, value: &str) -> Self {
        self.uri
            .push(if self.uri.contains('?') { '&' } else { '?' });
        self.uri.push_str(name);
        self.uri.push('=');
        self.uri.push_str(value);
        self
    }

    /// Sets the body.
    pub(super) fn body(mut self, body: Vec<u8>) -> Self {
        self.has_body = !body.is_empty();
        self.body = body;
        self
    }

    /// Forbids repetitions if it is unknown what the server did.
    pub(super) fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Forbids repetitions: the first answer counts.
    pub(super) fn first(mut self) -> Self {
        self.first = true;
        self
    }

    /// Lets the request begin at once: renewing a lock must not be delayed by the operation under it.
    pub(super) fn urgent(mut self) -> Self {
        self.urgent = true;
        self
    }

    /// Uses our own rights, whatever account the cluster acts as.
    pub(super) fn with_own_rights(mut self) -> Self {
        self.own = true;
        self
    }

    /// Path and query.
    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// Turns the LIST into a watch, which ends after `seconds`.
    pub(super) fn watch(self, resource_version: &str, seconds: u32) -> Self {
        let seconds = seconds.to_string();
        Self {
            verb: "watch",
            ..self
                .query("watch", "1")
                .query("allowWatchBookmarks", "true")
                .query("timeoutSeconds", &seconds)
                .query("resourceVersion", &query_value(resource_version))
        }
    }

    /// Builds the HTTP request with this body.
    pub(super) fn request<B>(&self, body: B) -> Result<Request<B>, EngineError> {
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(&self.uri)
            .header(ACCEPT, self.accept);
        if self.has_body {
            request = request.header(CONTENT_TYPE, self.content_type);
        }
        request.body(body).map_err(|error| EngineError::Api {
            what: self.object.clone(),
            message: error.to_string(),
            code: 0,
        })
    }
}

/// Returns the object that was read; `None` if it does not exist.
pub(super) fn if_found<T>(
    answer: Result<ServerAnswer<T>, EngineError>,
) -> Result<Option<T>, EngineError> {
    match answer {
        Ok(answer) => Ok(Some(answer.object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A successful response.
#[derive(Debug)]
pub(super) struct ServerAnswer<T> {
    /// The object of the response.
    pub(super) object: T,
    /// Whether the status was 201.
    pub(super) created: bool,
    /// The server's warnings.
    pub(super) warnings: Vec<String>,
    /// Size in memory, for a server with limits; otherwise 0.
    pub(super) weight: usize,
}

/// The path of the list of served API groups.
const GROUPS: &str = "/apis";

/// The answer at [`GROUPS`].
#[derive(Deserialize)]
struct ApiGroupList {
    #[serde(default)]
    kind: String,
}

/// Parses a whole answer.
fn parse_whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    entrance::from_slice(bytes)
        .map_err(|error| entrance::describe_refusal(bytes, &error, MAX_DEPTH))
}

/// The result of one try.
enum Try<T> {
    Done(ServerAnswer<T>),
    Again {
        error: EngineError,
        after: Option<Duration>,
        /// Whether the server certainly did not execute it.
        refused: bool,
    },
}

impl Cluster {
    /// Sends a request, repeats it within the limits of this module, and parses the answer as `T`.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        call: ApiCall,
    ) -> Result<ServerAnswer<T>, EngineError> {
        self.exchange(call, parse_whole).await
    }

    /// Like [`Cluster::send`], but `read` parses the answer. Its error describes the problem without repeating the answer.
    pub(super) async fn exchange<T>(
        &self,
        mut call: ApiCall,
        read: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Result<ServerAnswer<T>, EngineError> {
        let patience = if self.answered.load(Ordering::Relaxed) {
            PATIENCE_AFTER
        } else {
            PATIENCE_BEFORE
        };
        let give_up = Instant::now() + patience;
        let mut pause = FIRST_PAUSE;
        // Moved, and shared by all tries, so that an object is serialised and held once.
        let shared = Body::from(std::mem::take(&mut call.body));
        loop {
            let body = shared.try_clone().unwrap_or_else(Body::empty);
            let is_renewed = self.is_renewed();
            let tried = match self.attempt(&call, body, &read).await {
                Err(EngineError::Unauthorized { .. }) if !is_renewed && self.renew().await => {
                    continue;
                }
                Err(EngineError::NotInitialised) => {
                    self.check_discovery(&call).await?;
                    return Err(EngineError::NotInitialised);
                }
                tried => tried?,
            };
            let (error, after, refused) = match tried {
                Try::Done(answer) => return Ok(answer),
                Try::Again {
                    error,
                    after,
                    refused,
                } => (error, after, refused),
            };
            // A server may send any Retry-After: it is never added to the clock, and never shortens the pause.
            let wait = after.map_or(pause, |after| after.max(pause));
            let is_last = call.first || call.once && !refused;
            if is_last || wait > give_up.saturating_duration_since(Instant::now()) {
                return Err(error);
            }
            sleep(wait).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Checks that our CRDs are really missing: the answer may come from a proxy, or from a load balancer without a backend. An API server
    /// lists its groups, or refuses to.
    async fn check_discovery(&self, refused: &ApiCall) -> Result<(), EngineError> {
        let mut call = ApiCall::path(GROUPS, JSON);
        (call.own, call.urgent) = (refused.own, refused.urgent);
        let error = match self
            .attempt(&call, Body::empty(), &parse_whole::<ApiGroupList>)
            .await
        {
            Ok(Try::Done(answer)) if answer.object.kind == "APIGroupList" => return Ok(()),
            Err(EngineError::Forbidden { .. } | EngineError::Denied { .. }) => return Ok(()),
            Ok(Try::Done(answer)) => format!("a {:?}", answer.object.kind),
            Ok(Try::Again { error, .. }) => return Err(error),
            Err(error) => error.describe(),
        };
        Err(EngineError::NotKubernetes {
            server: self.server.clone(),
            answer: format!("GET {GROUPS} says: {error}"),
        })
    }

    async fn attempt<T>(
        &self,
        call: &ApiCall,
        body: Body,
        read: &impl Fn(&[u8]) -> Result<T, String>,
    ) -> Result<Try<T>, EngineError> {
        let request = call.request(body)?;
        // The semaphore is never closed; without a permit, the request would merely not be counted.
        let _permit = match call.urgent {
            true => None,
            false => self.permits.acquire().await.ok(),
        };
        let limit = self.options().request_timeout;
        let client = if call.own {
            self.own_client()
        } else {
            self.client()
        };
        let exchange = async {
            let sent = Timestamp::now();
            let response = client.send(request).await?;
            let (parts, body) = response.into_parts();
            // Observed before the body, which may take long.
            self.clock.observe(&parts.headers, sent);
            let received = limits::receive(self.limits(), body).await?;
            Ok::<_, kube::Error>((parts.status, parts.headers, received))
        };
        let (status, headers, received) = match timeout(limit, exchange).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(kube::Error::Auth(error))) => {
                return Err(EngineError::Api {
                    what: format!("credentials for {}", self.server),
                    message: error.to_string(),
                    code: StatusCode::UNAUTHORIZED.as_u16(),
                });
            }
            Ok(Err(error)) => return Ok(self.unreachable(Box::new(error))),
            Err(_) => {
                let seconds = limit.as_secs_f32();
                return Ok(self.unreachable(format!("no answer within {seconds} s").into()));
            }
        };
        self.answered.store(true, Ordering::Relaxed);
        let bytes = received.bytes.as_slice();
        let weight = match self.limits().map(|limits| limits.check(bytes)) {
            Some(Ok(weight)) => weight,
            Some(Err(too_much)) => return Err(too_much.into_error(&call.object)),
            None => 0,
        };
        if !status.is_success() {
            let error = classify::from_response(call, &self.server, status.as_u16(), bytes);
            return match status {
                // The failure lasts until the CRD or its webhook changes.
                _ if error.is_conversion_failure() => Err(error),
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Ok(Try::Again {
                    error,
                    after: retry_after(&headers),
                    refused: status == StatusCode::TOO_MANY_REQUESTS,
                }),
                _ => Err(error),
            };
        }
        let wrong = |message| EngineError::Api {
            what: call.object.clone(),
            message,
            code: status.as_u16(),
        };
        let object = read(bytes)
            .map_err(|why| wrong(format!("the server's answer is not understood: {why}")))?;
        if let Some(expected) = &call.expected {
            expected.check(bytes).map_err(wrong)?;
        }
        Ok(Try::Done(ServerAnswer {
            object,
            created: status == StatusCode::CREATED,
            warnings: warnings(&headers),
            weight,
        }))
    }

    fn unreachable<T>(&self, source: Box<dyn std::error::Error + Send + Sync>) -> Try<T> {
        Try::Again {
            error: EngineError::Unreachable {
                server: self.server.clone(),
                source,
            },
            after: None,
            refused: false,
        }
    }
}

#[cfg(test)]
#[path = "request/tests.rs"]
mod tests;
