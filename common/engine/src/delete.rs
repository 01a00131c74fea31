//! Deletes one object by its uid, and waits until it is gone.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::address::Collection;
use super::addressed;
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::Metadata;
use super::request::Call;
use super::watch::{Seen, follow};

/// Finalizers of Kubernetes itself: what they wait for needs none of the objects that are deleted later.
const FINALIZERS_OF_KUBERNETES: &[&str] = &[
    "foregroundDeletion",
    "orphan",
    "kubernetes.io/",
    "service.kubernetes.io/",
    "batch.kubernetes.io/",
];

/// What becomes of the objects that an object owns, as the API writes it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// How a deletion ended.
#[derive(Debug)]
pub(super) enum Deleted {
    /// It is gone, or will be without anything else.
    Gone,
    /// Finalizers of an add-on hold it.
    Held(Vec<String>),
    /// Another object has its name now.
    Foreign,
}

/// Deletes one object if it still has this uid.
pub(super) async fn delete(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
    uid: &str,
    propagation: Propagation,
) -> Result<Deleted, EngineError> {
    /// The object while something holds it, a Status when it is gone.
    #[derive(Deserialize)]
    struct Answered {
        #[serde(default)]
        kind: String,
        #[serde(default)]
        metadata: Metadata,
    }
    let options = options(json!({"uid": uid}), Some(propagation)).to_string();
    let call = |at: &Collection| Call::delete(at, name).body(options.clone().into_bytes());
    match addressed::send::<Answered>(cluster, &mut collection.clone(), name, call).await {
        Ok(answer) if answer.object.kind == "Status" => Ok(Deleted::Gone),
        Ok(answer) => {
            let finalizers = answer.object.metadata.finalizers.into_iter();
            let of_addons: Vec<String> = finalizers
                .filter(|finalizer| {
                    !FINALIZERS_OF_KUBERNETES
                        .iter()
                        .any(|known| finalizer.starts_with(known))
                })
                .collect();
            Ok(if of_addons.is_empty() {
                Deleted::Gone
            } else {
                Deleted::Held(of_addons)
            })
        }
        Err(error) if error.is_not_found() => Ok(Deleted::Gone),
        Err(error) if error.is_conflict() => Ok(Deleted::Foreign),
        Err(error) => Err(error),
    }
}

/// Asks the server whether it would delete an object, and deletes nothing. One that is gone, or another one of its name, is no
/// refusal.
pub(super) async fn dry_run(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
    uid: &str,
) -> Result<(), EngineError> {
    let mut options = options(json!({"uid": uid}), Some(Propagation::Background));
    // In the body: the API server ignores the query of a DELETE that has one, and would delete.
    options["dryRun"] = json!(["All"]);
    let options = options.to_string();
    let call = |at: &Collection| Call::delete(at, name).body(options.clone().into_bytes());
    match addressed::send::<IgnoredAny>(cluster, &mut collection.clone(), name, call).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}

/// The body of a deletion; without a propagation policy the one of the kind.
pub(super) fn options(preconditions: Value, propagation: Option<Propagation>) -> Value {
    let mut options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": preconditions,
    });
    if let Some(propagation) = propagation {
        options["propagationPolicy"] = json!(propagation);
    }
    options
}

/// Waits until the object of this uid is gone; if it is not in time, returns the finalizers that it was last seen with.
pub(super) async fn until_gone(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
    uid: &str,
    deadline: Instant,
) -> Result<Option<Vec<String>>, EngineError> {
    let mut held_by = Vec::new();
    let is_it = |object: &Value| {
        let found = object.pointer("/metadata/uid").and_then(Value::as_str);
        found.unwrap_or_default() == uid
    };
    let mut see = |seen| {
        let there = match seen {
            Seen::Listed(objects) => objects.into_iter().find(is_it),
            Seen::Changed(object) => Some(object).filter(is_it),
            Seen::Deleted(object) => return is_it(&object),
            Seen::Lost(_) => return false,
        };
        if let Some(object) = &there {
            held_by = finalizers(object);
        }
        there.is_none()
    };
    let mut collection = collection.clone();
    let gone = async {
        loop {
            let refused = match follow(cluster, &collection, Some(name), &mut see).await {
                Err(error) if error.is_unserved() => error,
                ended => return ended,
            };
            match addressed::again(cluster, &collection, refused).await? {
                Some(served) => collection = served,
                None => return Ok(()),
            }
        }
    };
    match timeout_at(deadline, gone).await {
        Ok(Ok(())) => Ok(None),
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(Some(held_by)),
    }
}

/// The finalizers of an object.
pub(super) fn finalizers(object: &Value) -> Vec<String> {
    let finalizers = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    let finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
    finalizers.map(str::to_owned).collect()
}
