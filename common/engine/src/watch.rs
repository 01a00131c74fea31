//! Lists and watches a collection, and starts again when the server ends the watch or the resourceVersion expires.

mod events;

use std::time::Duration;

use kube::core::WatchEvent;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use common::entrance;

use super::address::{Collection, query_value};
use super::cluster::Cluster;
use super::error::{EngineError, classify};
use super::listing::read_page;
use super::request::{ApiCall, JSON, METADATA, METADATA_LIST};
use events::WatchEvents;

/// The server ends a watch after this time, so that a dead connection is noticed soon after.
const WATCH_SECONDS: u32 = 60;
const SILENCE: Duration = Duration::from_secs(70);
/// Pause before a list or watch is retried; it grows up to [`LONGEST_PAUSE`], so that clients do not overload an API server that comes
/// back.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A watch that lasted this long counts as a success.
const LONG_WATCH: Duration = Duration::from_secs(5);

/// The objects of a collection that are watched.
#[derive(Clone, Copy)]
pub(super) enum ObservedSelector<'a> {
    /// All objects.
    All,
    /// Objects with this label, whatever its value.
    Label(&'a str),
    /// The object with this name.
    Name(&'a str),
}

/// An event of a watched collection.
pub(super) enum Observation {
    /// All objects that exist now.
    Listed(Vec<Value>),
    /// An object was created or changed.
    Changed(Value),
    /// An object was deleted; this is its last state.
    Deleted(Value),
    /// The collection cannot be watched at the moment, with the reason; the watch is retried.
    Lost(String),
}

/// Reports existing objects and changes to `see` until it returns `true`. Otherwise it never returns; the caller sets a deadline.
///
/// `name`: only the object with this name. Objects always have apiVersion and kind, which lists omit. Whenever the server ends a watch, the
/// objects are listed again, so that an event that was lost once is not missed for ever.
pub(super) async fn observe(
    cluster: &Cluster,
    collection: &Collection,
    name: Option<&str>,
    mut see: impl FnMut(Observation) -> bool,
) -> Result<(), EngineError> {
    let call = ApiCall::list(collection, JSON);
    let call = match name {
        Some(name) => call.query(
            "fieldSelector",
            &format!("metadata.name%3D{}", query_value(name)),
        ),
        None => call,
    };
    list_and_watch(cluster, collection, (&call, &call), true, &mut see).await
}

/// Reports to `see` that something in a large collection changed, by metadata alone; existing objects are not read. The first
/// [`Observation::Listed`] means that no later change can be missed; another one means that changes may have been missed.
pub(super) async fn observe_changes(
    cluster: &Cluster,
    collection: &Collection,
    selector: ObservedSelector<'_>,
    mut see: impl FnMut(Observation) -> bool,
) -> Result<(), EngineError> {
    let select = |call: ApiCall| match selector {
        ObservedSelector::All => call,
        ObservedSelector::Label(label) => call.query("labelSelector", &query_value(label)),
        ObservedSelector::Name(name) => call.query(
            "fieldSelector",
            &format!("metadata.name%3D{}", query_value(name)),
        ),
    };
    // A LIST of one object, only for its resourceVersion.
    let list = select(ApiCall::list(collection, METADATA_LIST)).query("limit", "1");
    let watch = select(ApiCall::list(collection, METADATA));
    list_and_watch(cluster, collection, (&list, &watch), false, &mut see).await
}

/// Reports existing objects and changes of those that match a label selector, by metadata alone.
pub(super) async fn observe_labelled(
    cluster: &Cluster,
    collection: &Collection,
    selector: &str,
    mut see: impl FnMut(Observation) -> bool,
) -> Result<(), EngineError> {
    let selector = query_value(selector);
    let list = ApiCall::list(collection, METADATA_LIST).query("labelSelector", &selector);
    let watch = ApiCall::list(collection, METADATA).query("labelSelector", &selector);
    list_and_watch(cluster, collection, (&list, &watch), false, &mut see).await
}

/// Lists and watches until `see` returns `true`. `relists`: whether a watch that the server ends is followed by a LIST instead of the next
/// watch.
async fn list_and_watch(
    cluster: &Cluster,
    collection: &Collection,
    (listed, watched): (&ApiCall, &ApiCall),
    relists: bool,
    see: &mut impl FnMut(Observation) -> bool,
) -> Result<(), EngineError> {
    let mut pause = RetryPause::default();
    loop {
        let list = match read_page(cluster, listed.clone(), &mut 0, entrance::read_object).await {
            Ok(page) => page,
            Err(error) if is_temporary(&error) => {
                if see(Observation::Lost(error.describe())) {
                    return Ok(());
                }
                pause.wait_longer().await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let items = list
            .items
            .into_iter()
            .map(|item| with_type(item, collection));
        if see(Observation::Listed(items.collect())) {
            return Ok(());
        }
        let mut version = list.metadata.resource_version;
        // Each watch continues where the last one stopped, until that resourceVersion expires.
        loop {
            let call = watched.clone().watch(&version, WATCH_SECONDS);
            let (opened, is_renewed) = (Instant::now(), cluster.is_renewed());
            let watched = watch(cluster, &call, collection, &mut version, see).await;
            if opened.elapsed() >= LONG_WATCH {
                pause = RetryPause::default();
            }
            match watched {
                Ok(true) => return Ok(()),
                // Servers end watches now and then; one that ends every watch at once must not be flooded with requests.
                Ok(false) => {
                    pause.wait_longer().await;
                    if relists && opened.elapsed() >= LONG_WATCH {
                        break;
                    }
                }
                Err(error) if error.code() == Some(410) => {
                    pause.wait_longer().await;
                    break;
                }
                Err(EngineError::Unauthorized { .. }) if !is_renewed && cluster.renew().await => {
                    break;
                }
                Err(error) if is_temporary(&error) => {
                    if see(Observation::Lost(error.describe())) {
                        return Ok(());
                    }
                    pause.wait_longer().await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns whether the same request may succeed later.
fn is_temporary(error: &EngineError) -> bool {
    error.is_uncertain() || error.code() == Some(429)
}

/// The pause between two tries, longer each time.
struct RetryPause(Duration);

impl Default for RetryPause {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl RetryPause {
    async fn wait_longer(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}

/// Runs one watch until it ends (`false`), or until `see` returns `true`.
async fn watch(
    cluster: &Cluster,
    call: &ApiCall,
    collection: &Collection,
    version: &mut String,
    see: &mut impl FnMut(Observation) -> bool,
) -> Result<bool, EngineError> {
    let opened = WatchEvents::open(cluster, call);
    let mut events = match timeout(cluster.options().request_timeout, opened).await {
        Ok(opened) => opened?,
        Err(_) => return Ok(false),
    };
    while let Ok(Some(event)) = timeout(SILENCE, events.next()).await {
        let seen = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                Observation::Changed(with_type(object, collection))
            }
            WatchEvent::Deleted(object) => Observation::Deleted(with_type(object, collection)),
            WatchEvent::Bookmark(bookmark) => {
                *version = bookmark.metadata.resource_version;
                continue;
            }
            WatchEvent::Error(status) => {
                let error = kube::Error::Api(status);
                return Err(classify::watch_error(call, &cluster.server, error));
            }
        };
        if let Observation::Changed(object) | Observation::Deleted(object) = &seen
            && let Some(seen_version) = object.pointer("/metadata/resourceVersion")
            && let Some(seen_version) = seen_version.as_str()
        {
            seen_version.clone_into(version);
        }
        if see(seen) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn with_type(mut object: Value, collection: &Collection) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields
            .entry("apiVersion")
            .or_insert_with(|| collection.gvk.api_version().into());
        fields
            .entry("kind")
            .or_insert_with(|| collection.gvk.kind.clone().into());
    }
    object
}
