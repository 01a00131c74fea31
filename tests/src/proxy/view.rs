//! What a client sees of the cluster, where that is old or has gaps: answers of a member that lags behind, and events that never come.

use std::collections::BTreeMap;

use anyhow::Result;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONNECTION, CONTENT_LENGTH, DATE, HeaderMap, TRANSFER_ENCODING};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::Value;

/// The answers to reads, by path, query and the form that was asked for.
#[derive(Default)]
pub(super) struct Answers {
    /// Whether the answers that come are kept.
    pub(super) is_kept: bool,
    all: BTreeMap<Asked, Answer>,
}

/// What identifies a read.
pub(super) type Asked = (String, String);

/// The answer to a read.
#[derive(Clone)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Events of watches that no client gets.
pub(super) struct Hidden {
    pub(super) path: String,
    pub(super) events: Vec<String>,
    pub(super) name: String,
}

/// The part of a watch that has come and is not a whole event yet. Each event is a line.
#[derive(Default)]
pub(super) struct Events(Vec<u8>);

/// What identifies a request for objects as they are now; `None` for changes and for watches.
pub(super) fn asked<B>(request: &Request<B>) -> Option<Asked> {
    let uri = request.uri().to_string();
    let is_read = request.method() == Method::GET && !is_watch(&uri);
    let accept = request.headers().get(ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    is_read.then(|| (uri, accept.unwrap_or_default().to_owned()))
}

/// Whether a path and query are those of a watch.
pub(super) fn is_watch(uri: &str) -> bool {
    uri.contains("watch=1") || uri.contains("watch=true")
}

impl Answers {
    /// Keeps an answer in the place of the one before.
    pub(super) fn keep(&mut self, asked: Asked, answer: Answer) {
        self.all.insert(asked, answer);
    }

    /// The answer that was kept last.
    pub(super) fn of(&self, asked: &Asked) -> Option<Answer> {
        self.all.get(asked).cloned()
    }
}

impl Answer {
    /// Reads all of an answer of the API server.
    pub(super) async fn read(upstream: reqwest::Response) -> Result<Self> {
        let status = upstream.status();
        let mut headers = upstream.headers().clone();
        // The server that passes it on writes its own; the clock of a member that lags behind is right.
        for name in [CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING] {
            headers.remove(name);
        }
        Ok(Self {
            status,
            headers,
            body: upstream.bytes().await?,
        })
    }

    /// Everything but the body.
    pub(super) fn head(&self) -> http::response::Builder {
        let mut head = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            head = head.header(name, value);
        }
        head
    }
}

impl Hidden {
    /// Whether an event of the watch with this path and query is one of them.
    pub(super) fn is(&self, uri: &str, event: &Value) -> bool {
        let is_of_type = |r#type: &String| event["type"] == *r#type;
        uri.contains(&self.path)
            && event["object"]["metadata"]["name"] == *self.name
            && self.events.iter().any(is_of_type)
    }
}

impl Events {
    /// The whole events that have come, but those that `is_hidden`.
    pub(super) fn pass(
        &mut self,
        chunk: &[u8],
        mut is_hidden: impl FnMut(&Value) -> bool,
    ) -> Bytes {
        self.0.extend_from_slice(chunk);
        let end = self.0.iter().rposition(|byte| *byte == b'\n');
        let rest = self.0.split_off(end.map_or(0, |end| end + 1));
        let whole = std::mem::replace(&mut self.0, rest);
        let lines = whole.split_inclusive(|byte| *byte == b'\n');
        let shown = lines.filter(|line| {
            let event = serde_json::from_slice::<Value>(line);
            !event.is_ok_and(|event| is_hidden(&event))
        });
        Bytes::from(shown.collect::<Vec<_>>().concat())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_hidden_wherever_it_is_cut() {
        let event = |r#type: &str, name: &str| {
            let object = json!({"metadata": {"name": name}});
            format!("{}\n", json!({"type": r#type, "object": object}))
        };
        let shown = [
            event("ADDED", "a"),
            event("DELETED", "b"),
            event("ADDED", "b"),
        ];
        let whole = format!(
            "{}{}{}{}",
            shown[0],
            event("DELETED", "a"),
            shown[1],
            shown[2]
        );
        let hidden = Hidden {
            path: "/configmaps".to_owned(),
            events: vec!["DELETED".to_owned()],
            name: "a".to_owned(),
        };
        for cut in 0..whole.len() {
            let mut events = Events::default();
            let (first, second) = whole.as_bytes().split_at(cut);
            let mut passed = Vec::new();
            for chunk in [first, second] {
                let is_hidden = |event: &Value| hidden.is("/configmaps?watch=1", event);
                passed.extend(events.pass(chunk, is_hidden));
            }
            assert_eq!(passed, shown.concat().into_bytes(), "{cut}");
        }
        assert!(!hidden.is("/secrets?watch=1", &json!({"type": "DELETED"})));
    }
}
