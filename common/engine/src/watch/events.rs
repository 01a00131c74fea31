//! Reads the events of a watch, one per line. kube's own stream has no limit for the length of a line, and a server whose address came from
//! a Secret (semantics 6.4) may send lines that never end.

use std::borrow::Cow;

use http::header::{ACCEPT_ENCODING, HeaderValue};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use kube::core::{Status, WatchEvent};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;
use serde_json::value::RawValue;

use common::entrance::{self, MAX_DEPTH};

use super::super::cluster::Cluster;
use super::super::error::{EngineError, classify};
use super::super::limits::{LARGEST_ANSWER, ServerLimits};
use super::super::request::ApiCall;

/// An open watch.
pub(super) struct WatchEvents<'a> {
    call: &'a ApiCall,
    server: &'a str,
    body: Body,
    /// The bytes of the body that are not processed yet.
    read: Vec<u8>,
    /// Where the next line begins.
    begin: usize,
    /// Up to here, no end of the line was found.
    searched: usize,
    /// Maximum length of a line in bytes.
    longest: usize,
    limits: Option<&'a ServerLimits>,
}

impl<'a> WatchEvents<'a> {
    /// Opens the watch.
    ///
    /// # Errors
    /// Those of the request.
    pub(super) async fn open(cluster: &'a Cluster, call: &'a ApiCall) -> Result<Self, EngineError> {
        let failed = |error| classify::watch_error(call, &cluster.server, error);
        let mut request = call.request(Body::empty())?;
        // Kubernetes 1.37 compresses each event separately, and the client decompresses only the first.
        let identity = HeaderValue::from_static("identity");
        request.headers_mut().insert(ACCEPT_ENCODING, identity);
        let response = cluster.client().send(request).await.map_err(failed)?;
        let limits = cluster.limits();
        let longest = limits.map_or(usize::MAX, |_| LARGEST_ANSWER);
        let (parts, body) = response.into_parts();
        if !parts.status.is_success() {
            let body = Limited::new(body, longest).collect().await;
            let body = body.map_err(|error| failed(kube::Error::Service(error)))?;
            let (code, body) = (parts.status.as_u16(), body.to_bytes());
            return Err(classify::from_response(call, &cluster.server, code, &body));
        }
        Ok(Self {
            limits,
            ..Self::new(call, &cluster.server, body, longest)
        })
    }

    fn new(call: &'a ApiCall, server: &'a str, body: Body, longest: usize) -> Self {
        Self {
            call,
            server,
            body,
            read: Vec::new(),
            begin: 0,
            searched: 0,
            longest,
            limits: None,
        }
    }

    /// Returns the next event; `None` when the stream ends for any reason: another watch continues from there.
    pub(super) async fn next(&mut self) -> Option<Result<WatchEvent<Value>, EngineError>> {
        loop {
            let unknown = self.read.get(self.searched..).unwrap_or_default();
            if let Some(at) = unknown.iter().position(|byte| *byte == b'\n') {
                let end = self.searched + at;
                let line = self.read.get(self.begin..end).unwrap_or_default();
                let event = self.parse_event(line);
                (self.begin, self.searched) = (end + 1, end + 1);
                match event {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            self.read.drain(..self.begin);
            (self.begin, self.searched) = (0, self.read.len());
            if self.read.len() > self.longest {
                return Some(Err(EngineError::Api {
                    what: self.call.object.clone(),
                    message: format!("an event has more than {} MiB", self.longest >> 20),
                    code: 0,
                }));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                Some(Err(_)) | None => {
                    self.body = Body::empty();
                    self.searched = 0;
                    let last = std::mem::take(&mut self.read);
                    return self.parse_event(&last);
                }
            }
        }
    }

    /// Parses a line; `None` for an incomplete or empty one.
    fn parse_event(&self, line: &[u8]) -> Option<Result<WatchEvent<Value>, EngineError>> {
        #[derive(Deserialize)]
        struct RawWatchEvent<'a> {
            #[serde(borrow)]
            r#type: Cow<'a, str>,
            #[serde(borrow)]
            object: &'a RawValue,
        }
        if let Some(Err(too_much)) = self.limits.map(|limits| limits.check(line)) {
            return Some(Err(too_much.into_error(&self.call.object)));
        }
        let read = entrance::read_outline::<RawWatchEvent<'_>>(line).and_then(|event| {
            let text = event.object.get();
            match event.r#type.as_ref() {
                "ADDED" => entrance::read_object(text).map(WatchEvent::Added),
                "MODIFIED" => entrance::read_object(text).map(WatchEvent::Modified),
                "DELETED" => entrance::read_object(text).map(WatchEvent::Deleted),
                "BOOKMARK" => entrance::from_str(text).map(WatchEvent::Bookmark),
                _ => entrance::from_str::<Status>(text).map(|it| WatchEvent::Error(it.boxed())),
            }
        });
        let error = match read {
            Ok(event) => return Some(Ok(event)),
            Err(error) if error.is_eof() => return None,
            Err(error) => error,
        };
        let error = match entrance::from_slice::<Status>(line) {
            Ok(status) => kube::Error::Api(status.boxed()),
            Err(_) => {
                let why = entrance::describe_refusal(line, &error, MAX_DEPTH);
                kube::Error::SerdeError(serde_json::Error::custom(why))
            }
        };
        Some(Err(classify::watch_error(self.call, self.server, error)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::request::JSON;
    use super::*;

    const LINE: &str = r#"{"type":"ADDED","object":{"a":1}}"#;

    #[tokio::test]
    async fn a_stream_is_read_line_by_line_and_no_line_is_endless() {
        let call = ApiCall::path("/x", JSON);
        let open =
            |text: String| WatchEvents::new(&call, "https://c", Body::from(text.into_bytes()), 100);
        for (text, expected) in [
            (format!("{LINE}\n\n{LINE}\n"), 2),
            (format!("{LINE}\n{LINE}"), 2),
            // The connection ended inside an event.
            (format!("{LINE}\n{{\"type\":"), 1),
            (String::new(), 0),
        ] {
            let (mut events, mut seen) = (open(text.clone()), 0);
            while let Some(event) = events.next().await {
                assert!(matches!(event, Ok(WatchEvent::Added(_))), "{event:?}");
                seen += 1;
            }
            assert_eq!(seen, expected, "{text}");
        }
        let mut events = open(format!("{LINE}\n{}", "x".repeat(101)));
        assert!(matches!(events.next().await, Some(Ok(_))));
        let error = events.next().await.unwrap().unwrap_err();
        assert!(
            error.to_string().contains("an event has more than"),
            "{error}"
        );
    }
}
