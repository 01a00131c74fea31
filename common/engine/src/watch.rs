//! One list and watch of a collection, begun again when the server ends it or its resourceVersion expires.

mod events;

use std::time::Duration;

use kube::core::WatchEvent;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use common::entrance;

use super::address::{Collection, query_value};
use super::cluster::Cluster;
use super::error::{EngineError, classify};
use super::listing::page;
use super::request::{Call, JSON, METADATA, METADATA_LIST};
use events::Events;

/// The server ends a watch after this, so that a dead connection is noticed soon after.
const WATCH_SECONDS: u32 = 60;
const SILENCE: Duration = Duration::from_secs(70);
/// Pause before a list or watch is tried again; it grows up to [`LONGEST_PAUSE`], so that clients do not overload an API
/// server that comes back.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A watch that lasted this long counts as a success.
const LONG: Duration = Duration::from_secs(5);

/// Which objects of a collection are observed.
#[derive(Clone, Copy)]
pub(super) enum Selector<'a> {
    /// All.
    All,
    /// Those that carry this label, whatever its value.
    Label(&'a str),
    /// The one of this name.
    Name(&'a str),
}

/// An observation of a collection.
pub(super) enum Seen {
    /// All objects that exist now.
    Listed(Vec<Value>),
    /// An object was created or changed.
    Changed(Value),
    /// An object was deleted; this is its last state.
    Deleted(Value),
    /// Nothing can be observed at the moment, and why; it is tried again.
    Lost(String),
}

/// Reports what exists and what changes to `see`, until it answers that it has seen enough. Otherwise it never ends; the caller
/// sets the bound.
///
/// `name` = only the object of that name. Objects always carry apiVersion and kind, which lists leave out. Whenever the server ends a
/// watch, the objects are listed again: whoever waits for one event must not miss it for ever because it was lost once.
pub(super) async fn follow(
    cluster: &Cluster,
    collection: &Collection,
    name: Option<&str>,
    mut see: impl FnMut(Seen) -> bool,
) -> Result<(), EngineError> {
    let call = Call::list(collection, JSON);
    let call = match name {
        Some(name) => call.query(
            "fieldSelector",
            &format!("metadata.name%3D{}", query_value(name)),
        ),
        None => call,
    };
    list_and_watch(cluster, collection, (&call, &call), true, &mut see).await
}

/// Reports to `see` that something of a large collection changed, by metadata alone; existing objects are not read. The first
/// [`Seen::Listed`] comes when no later change can be missed, and another one whenever changes may have been.
pub(super) async fn changes(
    cluster: &Cluster,
    collection: &Collection,
    selector: Selector<'_>,
    mut see: impl FnMut(Seen) -> bool,
) -> Result<(), EngineError> {
    let select = |call: Call| match selector {
        Selector::All => call,
        Selector::Label(label) => call.query("labelSelector", &query_value(label)),
        Selector::Name(name) => call.query(
            "fieldSelector",
            &format!("metadata.name%3D{}", query_value(name)),
        ),
    };
    // One object, for the resourceVersion of the list.
    let list = select(Call::list(collection, METADATA_LIST)).query("limit", "1");
    let watch = select(Call::list(collection, METADATA));
    list_and_watch(cluster, collection, (&list, &watch), false, &mut see).await
}

/// Reports what exists and what changes of the objects that a label selector matches, by metadata alone.
pub(super) async fn labelled(
    cluster: &Cluster,
    collection: &Collection,
    selector: &str,
    mut see: impl FnMut(Seen) -> bool,
) -> Result<(), EngineError> {
    let selector = query_value(selector);
    let list = Call::list(collection, METADATA_LIST).query("labelSelector", &selector);
    let watch = Call::list(collection, METADATA).query("labelSelector", &selector);
    list_and_watch(cluster, collection, (&list, &watch), false, &mut see).await
}

/// `relists`: a watch that the server ends is followed by a LIST, and not by the next watch.
async fn list_and_watch(
    cluster: &Cluster,
    collection: &Collection,
    (listed, watched): (&Call, &Call),
    relists: bool,
    see: &mut impl FnMut(Seen) -> bool,
) -> Result<(), EngineError> {
    let mut pause = Pause::default();
    loop {
        let list = match page(cluster, listed.clone(), &mut 0, entrance::object).await {
            Ok(page) => page,
            Err(error) if passes(&error) => {
                if see(Seen::Lost(error.words())) {
                    return Ok(());
                }
                pause.longer().await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let items = list.items.into_iter().map(|item| typed(item, collection));
        if see(Seen::Listed(items.collect())) {
            return Ok(());
        }
        let mut version = list.metadata.resource_version;
        // One watch after the other, each from where the last one stopped, until that resourceVersion expires.
        loop {
            let call = watched.clone().watch(&version, WATCH_SECONDS);
            let (opened, is_renewed) = (Instant::now(), cluster.is_renewed());
            let watched = watch(cluster, &call, collection, &mut version, see).await;
            if opened.elapsed() >= LONG {
                pause = Pause::default();
            }
            match watched {
                Ok(true) => return Ok(()),
                // Servers end watches now and then; one that ends every watch at once must not be flooded with requests.
                Ok(false) => {
                    pause.longer().await;
                    if relists && opened.elapsed() >= LONG {
                        break;
                    }
                }
                Err(error) if error.code() == Some(410) => {
                    pause.longer().await;
                    break;
                }
                Err(EngineError::Unauthorized { .. }) if !is_renewed && cluster.renew().await => {
                    break;
                }
                Err(error) if passes(&error) => {
                    if see(Seen::Lost(error.words())) {
                        return Ok(());
                    }
                    pause.longer().await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether the same request may succeed later.
fn passes(error: &EngineError) -> bool {
    error.is_uncertain() || error.code() == Some(429)
}

/// Between two tries: longer each time.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pause {
    async fn longer(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}

/// One watch until it ends (false), or until enough was seen (true).
async fn watch(
    cluster: &Cluster,
    call: &Call,
    collection: &Collection,
    version: &mut String,
    see: &mut impl FnMut(Seen) -> bool,
) -> Result<bool, EngineError> {
    let opened = Events::open(cluster, call);
    let mut events = match timeout(cluster.options().request_timeout, opened).await {
        Ok(opened) => opened?,
        Err(_) => return Ok(false),
    };
    while let Ok(Some(event)) = timeout(SILENCE, events.next()).await {
        let seen = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                Seen::Changed(typed(object, collection))
            }
            WatchEvent::Deleted(object) => Seen::Deleted(typed(object, collection)),
            WatchEvent::Bookmark(bookmark) => {
                *version = bookmark.metadata.resource_version;
                continue;
            }
            WatchEvent::Error(status) => {
                let error = kube::Error::Api(status);
                return Err(classify::watch_error(call, &cluster.server, error));
            }
        };
        if let Seen::Changed(object) | Seen::Deleted(object) = &seen
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

fn typed(mut object: Value, collection: &Collection) -> Value {
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
