//! Lists and then watches objects, for ever. Bookmarks are passed on as well, because they distinguish a quiet watch from a dead one. If
//! none arrive, as behind a proxy that cuts connections, listing again has the same effect.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use addons_telemetry::metrics::WatchFailures;
use anyhow::{anyhow, bail, ensure};
use common::entrance;
use futures::StreamExt as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::client::Body;
use kube::core::{ObjectList, Request};
use kube::{Api, Client, ResourceExt as _};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

/// The objects on one page of a list.
const PAGE: u32 = 50;
/// The most bytes of one page: an object has up to two megabytes, and parsing a page takes several times its size.
const PAGE_BYTES: usize = 4 << 20;
/// The time limit for one page of a list.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause between two attempts. It doubles up to [`LONGEST_PAUSE`], so that an API server that recovers is not overloaded.
const FIRST_PAUSE: Duration = Duration::from_millis(800);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After this long without a pause, the next one is short again.
const CALM: Duration = Duration::from_secs(120);

/// Namespace and name.
pub type NamespacedKey = (String, String);

/// An event of one kind of object, with objects reduced to what is kept.
#[derive(Debug)]
pub enum FollowedEvent<T> {
    /// All objects.
    Listed(BTreeMap<NamespacedKey, T>),
    /// An object was created or changed; `None` if it was deleted, or nothing of it is kept.
    Changed(NamespacedKey, Option<T>),
    /// Nothing else has happened up to now.
    Bookmark,
}

/// Follows the objects of one kind.
pub struct Follower<K, T, R, C> {
    /// The resource in plural, as the API server calls it.
    pub resource: &'static str,
    /// The API of the objects.
    pub api: Api<K>,
    /// The name of the only object to watch; `None` for all.
    pub name: Option<&'static str>,
    /// Reduces an object to what is kept of it.
    pub reduce: R,
    /// The weight of a copy. Objects that only trusted users write have no weight and are always kept.
    pub weigh: fn(&T) -> usize,
    /// The most weight of all copies. Further objects are left out.
    pub max_weight: usize,
    /// Turns an event into the message that is sent.
    pub to_message: fn(FollowedEvent<T>) -> C,
    /// After this long without events, the objects are listed again.
    pub max_silence: Duration,
    /// Counts failures.
    pub failures: WatchFailures,
    /// Receives the messages.
    pub sender: Sender<C>,
}

/// The weights of the copies that are kept.
#[derive(Default)]
struct HeldWeights {
    weights: BTreeMap<NamespacedKey, usize>,
    all: usize,
    /// Whether an object was left out since the last list.
    is_full: bool,
}

impl HeldWeights {
    /// Returns whether there is room for a copy, in place of the one with the same key.
    fn reserve(&mut self, key: &NamespacedKey, weight: usize, most: usize) -> bool {
        let before = self.weights.remove(key).unwrap_or(0);
        self.all = self.all.saturating_sub(before);
        let all = self.all.saturating_add(weight);
        if weight > 0 && all <= most {
            self.weights.insert(key.clone(), weight);
            self.all = all;
        }
        weight == 0 || all <= most
    }
}

/// The reason why a watch ended.
enum WatchEnd {
    /// There were neither events nor bookmarks.
    Silent,
    /// Its position in the history no longer exists.
    Gone,
    /// The receiver was dropped.
    Closed,
}

impl<K, T, R, C> Follower<K, T, R, C>
where
    K: Clone + Debug + DeserializeOwned + kube::Resource,
    R: Fn(K) -> Option<T>,
{
    /// Lists and watches until the receiver is dropped.
    pub async fn run(self) {
        let (resource, seconds) = (self.resource, self.max_silence.as_secs());
        let mut pause = FollowPause::default();
        loop {
            let mut held = HeldWeights::default();
            match self.list(&mut held).await {
                Ok((objects, version)) => {
                    if !self.send(FollowedEvent::Listed(objects)).await {
                        return;
                    }
                    match self.watch(version, &mut held).await {
                        WatchEnd::Closed => return,
                        WatchEnd::Silent => {
                            info!(resource, seconds, "neither event nor bookmark, listing");
                            continue;
                        }
                        WatchEnd::Gone => {
                            debug!(resource, "the API server ended the watch, listing")
                        }
                    }
                }
                Err(error) => {
                    self.failures.count(resource);
                    warn!(resource, error = %format_chain(&*error), "list failed, trying again");
                }
            }
            pause.wait_longer().await;
        }
    }

    /// Returns all objects, read page by page, and the version of the list.
    async fn list(
        &self,
        held: &mut HeldWeights,
    ) -> anyhow::Result<(BTreeMap<NamespacedKey, T>, String)> {
        let client = self.api.clone().into_client();
        let mut objects = BTreeMap::new();
        let mut limit = PAGE;
        let mut params = ListParams {
            field_selector: self.selector(),
            ..ListParams::default()
        };
        loop {
            params.limit = Some(limit);
            let request = Request::new(self.api.resource_url()).list(&params)?;
            let listed = timeout(LIST_TIMEOUT, page::<ObjectList<K>>(&client, request)).await??;
            let Some(listed) = listed else {
                limit /= 2;
                ensure!(limit > 0, "an object has more than {PAGE_BYTES} bytes");
                continue;
            };
            limit = limit.saturating_mul(2).min(PAGE);
            for object in listed.items {
                if let (key, Some(kept)) = self.reduce_object(object, held) {
                    objects.insert(key, kept);
                }
            }
            match listed.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => {
                    let version = listed.metadata.resource_version.unwrap_or_default();
                    return Ok((objects, version));
                }
            }
        }
    }

    /// Reduces an object, and leaves it out if there is no room for it.
    fn reduce_object(&self, object: K, held: &mut HeldWeights) -> (NamespacedKey, Option<T>) {
        let key = key(&object);
        let copy = (self.reduce)(object);
        let weight = copy.as_ref().map_or(0, self.weigh);
        if held.reserve(&key, weight, self.max_weight) {
            return (key, copy);
        }
        // Logged once, because there may be many more.
        if !held.is_full {
            let (resource, namespace, name) = (self.resource, &key.0, &key.1);
            warn!(
                resource,
                namespace, name, "there is no room for this object, nor perhaps for others"
            );
            held.is_full = true;
        }
        (key, None)
    }

    /// Watches from `version` on, one request after the other.
    async fn watch(&self, mut version: String, held: &mut HeldWeights) -> WatchEnd {
        let resource = self.resource;
        let mut pause = FollowPause::default();
        let params = WatchParams {
            field_selector: self.selector(),
            ..WatchParams::default()
        };
        let mut heard = Instant::now();
        loop {
            let left = self.max_silence.saturating_sub(heard.elapsed());
            let opened = timeout(left, self.api.watch(&params, &version));
            let mut events = match opened.await {
                Ok(Ok(events)) => events.boxed(),
                Ok(Err(error)) if is_expired(&error) => return WatchEnd::Gone,
                Ok(Err(error)) => {
                    self.failures.count(resource);
                    warn!(resource, error = %format_chain(&error), "watch failed, trying again");
                    pause.wait_longer().await;
                    continue;
                }
                Err(_) => return WatchEnd::Silent,
            };
            loop {
                let left = self.max_silence.saturating_sub(heard.elapsed());
                let event = match timeout(left, events.next()).await {
                    Ok(Some(Ok(event))) => event,
                    Ok(Some(Err(error))) => {
                        self.failures.count(resource);
                        warn!(resource, error = %format_chain(&error), "watch broke off, trying again");
                        pause.wait_longer().await;
                        break;
                    }
                    // The API server ends every watch after some minutes. If it ends one at once, a pause follows.
                    Ok(None) => {
                        pause.wait_longer().await;
                        break;
                    }
                    Err(_) => return WatchEnd::Silent,
                };
                let event = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        version = object.resource_version().unwrap_or_default();
                        let (key, copy) = self.reduce_object(object, held);
                        FollowedEvent::Changed(key, copy)
                    }
                    WatchEvent::Deleted(object) => {
                        version = object.resource_version().unwrap_or_default();
                        let key = key(&object);
                        held.reserve(&key, 0, self.max_weight);
                        FollowedEvent::Changed(key, None)
                    }
                    WatchEvent::Bookmark(bookmark) => {
                        version = bookmark.metadata.resource_version;
                        FollowedEvent::Bookmark
                    }
                    WatchEvent::Error(_) => return WatchEnd::Gone,
                };
                heard = Instant::now();
                pause = FollowPause::default();
                if !self.send(event).await {
                    return WatchEnd::Closed;
                }
            }
        }
    }

    /// Selects by name, so that RBAC only needs to allow this one object.
    fn selector(&self) -> Option<String> {
        self.name.map(|name| format!("metadata.name={name}"))
    }

    async fn send(&self, event: FollowedEvent<T>) -> bool {
        self.sender.send((self.to_message)(event)).await.is_ok()
    }
}

/// The pause between two attempts, which grows each time.
struct FollowPause {
    next: Duration,
    last: Instant,
}

impl Default for FollowPause {
    fn default() -> Self {
        Self {
            next: FIRST_PAUSE,
            last: Instant::now(),
        }
    }
}

impl FollowPause {
    async fn wait_longer(&mut self) {
        if self.last.elapsed() >= CALM {
            self.next = FIRST_PAUSE;
        }
        sleep(self.next).await;
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        self.last = Instant::now();
    }
}

/// Reads one page of a list; `None` if it has more than [`PAGE_BYTES`], in which case nothing of it is kept.
///
/// # Errors
/// The API server refuses, or does not answer; the answer is not a list.
pub async fn page<L: DeserializeOwned>(
    client: &Client,
    request: http::Request<Vec<u8>>,
) -> anyhow::Result<Option<L>> {
    #[derive(Deserialize)]
    struct ErrorStatus {
        message: String,
    }
    let response = client.send(request.map(Body::from)).await?;
    let (head, body) = response.into_parts();
    let body = match Limited::new(body, PAGE_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Ok(None),
        Err(error) => return Err(anyhow!(error)),
    };
    if !head.status.is_success() {
        let status = entrance::read_outline::<ErrorStatus>(&body);
        let message = status.map(|status| status.message).unwrap_or_default();
        bail!("the API server answered {}: {message}", head.status);
    }
    Ok(Some(entrance::read_outline(&body)?))
}

/// Returns namespace and name of an object.
pub fn key<K: kube::Resource>(object: &K) -> NamespacedKey {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Returns whether the history no longer reaches back to the position of the watch.
fn is_expired(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 410)
}

/// Formats an error with all its causes. Nothing is quoted from an answer that cannot be read, because it may contain values.
pub fn format_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<serde_json::Error>() {
            texts.push(entrance::describe_category(error).to_owned());
            break;
        }
        // The text of this error is the text of its cause.
        let is_of_reading = matches!(
            error.downcast_ref::<kube::Error>(),
            Some(kube::Error::SerdeError(_))
        );
        texts.push(match is_of_reading {
            true => "the answer cannot be read".to_owned(),
            false => error.to_string(),
        });
        next = error.source();
    }
    texts.join(": ")
}

#[cfg(test)]
mod tests;
