//! Tests against a server that answers from a script, and leaves its last watch open.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use futures::stream::{self, BoxStream};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use kube::core::ApiResource;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, channel};

use super::*;
use crate::cache::{CacheChange, StoredObject, reduce};
use common::api::installation::AddonInstallation;

type Line = Result<Frame<Bytes>, Infallible>;

/// An answer of the server.
enum Reply {
    /// A list.
    List(Value),
    /// The lines of a watch, which then ends or stays open.
    Watch(Vec<Value>, bool),
    /// A Status.
    Status(u16),
}

/// The followed installations, and the requests.
fn follow(
    replies: Vec<Reply>,
    quiet: Duration,
) -> (Receiver<CacheChange>, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (seen, replies) = (Arc::clone(&asked), Mutex::new(VecDeque::from(replies)));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        seen.lock().unwrap().push(request.uri().to_string());
        let reply = replies.lock().unwrap().pop_front();
        async move {
            let (code, body) = match reply {
                Some(Reply::List(list)) => (200, lines(vec![list], true)),
                Some(Reply::Status(code)) => {
                    let status = json!({"kind": "Status", "apiVersion": "v1", "code": code});
                    (code, lines(vec![status], true))
                }
                Some(Reply::Watch(events, ends)) => (200, lines(events, ends)),
                None => (200, lines(Vec::new(), false)),
            };
            let response = http::Response::builder().status(code);
            Ok::<_, tower::BoxError>(response.body(body)?)
        }
    });
    let resource = ApiResource::erase::<AddonInstallation>(&());
    let (sender, receiver) = channel(16);
    let follower = Follower {
        resource: "addoninstallations",
        api: Api::<StoredObject>::all_with(Client::new(service, "default"), &resource),
        name: None,
        reduce: reduce::reduce_installation,
        weigh: |_| 1,
        max_weight: 3,
        to_message: CacheChange::Installation,
        max_silence: quiet,
        failures: WatchFailures::default(),
        sender,
    };
    tokio::spawn(follower.run());
    (receiver, asked)
}

/// A body of these lines, which then ends or stays open.
fn lines(lines: Vec<Value>, ends: bool) -> StreamBody<BoxStream<'static, Line>> {
    let lines = lines.into_iter().map(|line| {
        // The API server writes the type of an event before its object.
        let text = match line["type"].as_str() {
            Some(kind) => format!(r#"{{"type":"{kind}","object":{}}}"#, line["object"]),
            None => line.to_string(),
        };
        Ok(Frame::data(format!("{text}\n").into_bytes().into()))
    });
    let rest = if ends {
        stream::empty().boxed()
    } else {
        stream::pending().boxed()
    };
    StreamBody::new(stream::iter(lines).chain(rest).boxed())
}

fn object(name: &str, version: &str) -> Value {
    let spec = json!({"addonRef": {"name": name}});
    json!({"metadata": {"namespace": "n", "name": name, "resourceVersion": version}, "spec": spec})
}

fn list(version: &str, more: &str, names: &[&str]) -> Reply {
    let items: Vec<Value> = names.iter().map(|name| object(name, "1")).collect();
    let metadata = json!({"resourceVersion": version, "continue": more});
    Reply::List(json!({"metadata": metadata, "items": items}))
}

/// `listed a b`, `changed a`, `gone a`, `bookmark`.
async fn heard(changes: &mut Receiver<CacheChange>) -> String {
    let change = timeout(Duration::from_secs(30), changes.recv()).await;
    let Ok(Some(CacheChange::Installation(event))) = change else {
        panic!("nothing of the installations is heard");
    };
    match event {
        FollowedEvent::Listed(all) => {
            let names: Vec<&str> = all.keys().map(|(_, name)| name.as_str()).collect();
            format!("listed {}", names.join(" "))
        }
        FollowedEvent::Changed((_, name), Some(_)) => format!("changed {name}"),
        FollowedEvent::Changed((_, name), None) => format!("gone {name}"),
        FollowedEvent::Bookmark => "bookmark".to_owned(),
    }
}

#[tokio::test]
async fn bookmarks_are_heard_and_the_watch_goes_on_from_them() {
    let bookmark = json!({"type": "BOOKMARK", "object": {
        "kind": "AddonInstallation", "apiVersion": "kubectl-addons.dev/v1alpha1",
        "metadata": {"resourceVersion": "20"}}});
    let script = vec![
        list("7", "more", &["a"]),
        list("7", "", &["b"]),
        Reply::Watch(
            vec![
                json!({"type": "MODIFIED", "object": object("a", "8")}),
                json!({"type": "DELETED", "object": object("b", "9")}),
                bookmark,
            ],
            true,
        ),
        Reply::Watch(
            vec![json!({"type": "ADDED", "object": object("c", "21")})],
            false,
        ),
    ];
    let (mut changes, asked) = follow(script, Duration::from_secs(600));
    for expected in ["listed a b", "changed a", "gone b", "bookmark", "changed c"] {
        assert_eq!(heard(&mut changes).await, expected);
    }
    let asked = asked.lock().unwrap().clone();
    assert!(asked[1].contains("continue=more"), "{asked:?}");
    for (request, version) in [(2, "7"), (3, "20")] {
        let uri = &asked[request];
        assert!(uri.contains("allowWatchBookmarks=true"), "{uri}");
        assert!(
            uri.ends_with(&format!("resourceVersion={version}")),
            "{uri}"
        );
    }
}

/// A dead connection, and a server that sends no bookmarks.
#[tokio::test]
async fn after_silence_everything_is_listed_again() {
    let script = vec![
        list("7", "", &["a"]),
        Reply::Watch(Vec::new(), false),
        list("9", "", &["b"]),
    ];
    let (mut changes, _) = follow(script, Duration::from_millis(50));
    assert_eq!(heard(&mut changes).await, "listed a");
    assert_eq!(heard(&mut changes).await, "listed b");
}

#[tokio::test]
async fn a_history_that_is_gone_is_listed_again() {
    let expired = json!({"type": "ERROR", "object": {"kind": "Status", "code": 410}});
    let script = vec![
        list("7", "", &["a"]),
        Reply::Watch(vec![expired], false),
        list("9", "", &["b"]),
        Reply::Status(410),
        Reply::Status(500),
        list("11", "", &["c"]),
    ];
    let (mut changes, _) = follow(script, Duration::from_secs(600));
    for expected in ["listed a", "listed b", "listed c"] {
        assert_eq!(heard(&mut changes).await, expected);
    }
}

/// At most so many records are kept, and a deletion makes room.
#[tokio::test]
async fn what_has_no_room_is_left_out() {
    let script = vec![
        list("7", "more", &["a", "b"]),
        list("7", "", &["c", "d"]),
        Reply::Watch(
            vec![
                json!({"type": "ADDED", "object": object("e", "8")}),
                json!({"type": "MODIFIED", "object": object("a", "9")}),
                json!({"type": "DELETED", "object": object("b", "10")}),
                json!({"type": "ADDED", "object": object("e", "11")}),
            ],
            false,
        ),
    ];
    let (mut changes, _) = follow(script, Duration::from_secs(600));
    for expected in ["listed a b c", "gone e", "changed a", "gone b", "changed e"] {
        assert_eq!(heard(&mut changes).await, expected);
    }
}

#[tokio::test]
async fn a_page_that_is_too_large_is_asked_for_in_parts() {
    let mut large = object("a", "1");
    large["spec"]["values"] = json!({"a": "x".repeat(5 << 20)});
    let large = json!({"metadata": {"resourceVersion": "7"}, "items": [large]});
    let script = vec![
        Reply::List(large),
        list("7", "more", &["a"]),
        list("7", "", &["b"]),
    ];
    let (mut changes, asked) = follow(script, Duration::from_secs(600));
    assert_eq!(heard(&mut changes).await, "listed a b");
    let asked = asked.lock().unwrap().clone();
    for (request, limit) in [(0, "limit=50"), (1, "limit=25"), (2, "limit=50")] {
        assert!(asked[request].contains(limit), "{asked:?}");
    }
}
