//! A fake API server for tests: returns prepared responses in order, and records the requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::cluster::{Cluster, ClusterOptions};

/// A header of a prepared response that delays it by this many milliseconds.
pub(super) const LATE: &str = "late";

/// A prepared response; `None` = the connection breaks.
pub(super) type FakeReply = Option<(u16, &'static [(&'static str, &'static str)], Value)>;

/// The requests of a fake server.
#[derive(Clone, Default)]
pub(super) struct FakeRequests(Arc<Mutex<Vec<(String, Value)>>>);

impl FakeRequests {
    /// Returns `METHOD PATH?QUERY` of every request.
    pub(super) fn lines(&self) -> Vec<String> {
        let asked = self.0.lock().unwrap();
        asked.iter().map(|(line, _)| line.clone()).collect()
    }

    /// Returns the body of a request, counted from 0.
    pub(super) fn body(&self, index: usize) -> Value {
        self.0.lock().unwrap()[index].1.clone()
    }
}

/// Returns a cluster with a fake server. After the last reply, every connection breaks.
pub(super) fn cluster(replies: Vec<FakeReply>) -> (Cluster, FakeRequests) {
    let asked = FakeRequests::default();
    let seen = asked.clone();
    let replies = Arc::new(Mutex::new(VecDeque::from(replies)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (seen, replies) = (seen.clone(), Arc::clone(&replies));
        async move {
            let line = format!("{} {}", request.method(), request.uri());
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect_bytes().await?;
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            seen.0.lock().unwrap().push((line, body.clone()));
            let reply = replies.lock().unwrap().pop_front().flatten();
            let (code, headers, reply) = reply.ok_or("connection reset")?;
            let reply = with_name(reply, &body, &path);
            let mut response = Response::builder().status(code);
            for (name, value) in headers {
                if *name == LATE {
                    tokio::time::sleep(Duration::from_millis(value.parse()?)).await;
                }
                response = response.header(*name, *value);
            }
            Ok::<_, tower::BoxError>(response.body(Body::from(serde_json::to_vec(&reply)?))?)
        }
    });
    let options = ClusterOptions {
        cache_dir: None,
        request_timeout: Duration::from_secs(5),
        concurrency: 4,
    };
    let client = kube::Client::new(service, "default");
    (Cluster::from_client(client, "https://fake", options), asked)
}

/// Adds the name of the requested object to a reply without one, as an API server always does.
fn with_name(mut reply: Value, request: &Value, path: &str) -> Value {
    let path = path.strip_suffix("/status").unwrap_or(path);
    let in_path = path.rsplit('/').next().unwrap_or_default();
    let name = request["metadata"]["name"].as_str().unwrap_or(in_path);
    if let Some(fields) = reply.as_object_mut()
        && !fields.contains_key("items")
    {
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.entry("name").or_insert_with(|| json!(name));
        }
    }
    reply
}
