//! Deletes one object in the state that was checked, and waits until it no longer exists.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use addons_plan::prune::PruneObstacle;

use super::address::Collection;
use super::addressed;
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::LiveMetadata;
use super::request::{ApiCall, FIRST_PAUSE};
use super::snapshot::read_one;
use super::watch::{Observation, observe};

/// Maximum number of times that an object is checked again because others change it.
const TRIES: u32 = 8;

/// Finalizers of Kubernetes itself; none of them waits for objects that are deleted later.
const FINALIZERS_OF_KUBERNETES: &[&str] = &[
    "foregroundDeletion",
    "orphan",
    "kubernetes.io/",
    "service.kubernetes.io/",
    "batch.kubernetes.io/",
];

/// What happens to the dependents of a deleted object; serialized as the API value.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// The result of a deletion.
#[derive(Debug)]
pub(super) enum Deleted {
    /// It is deleted, or will be without further action.
    Gone,
    /// Finalizers of an add-on hold it.
    Held(Vec<String>),
    /// It stays because of this obstacle.
    Left(PruneObstacle),
}

/// An object to delete.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeletionTarget<'a> {
    pub(super) collection: &'a Collection,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    /// The resourceVersion that was checked; empty = it was not.
    pub(super) judged: &'a str,
    pub(super) propagation: Propagation,
}

/// Deletes one object in the state that was checked. If it has changed since, `judge` decides again: the marks that make it ours or keep it
/// are part of the object and may change until the last moment (semantics 13.7).
pub(super) async fn delete(
    cluster: &Cluster,
    doomed: DeletionTarget<'_>,
    judge: impl Fn(&LiveMetadata) -> Option<PruneObstacle>,
) -> Result<Deleted, EngineError> {
    /// The object while finalizers hold it, a Status once it is deleted.
    #[derive(Deserialize)]
    struct DeleteResponse {
        #[serde(default)]
        kind: String,
        #[serde(default)]
        metadata: LiveMetadata,
    }
    let DeletionTarget {
        collection,
        name,
        uid,
        judged,
        propagation,
    } = doomed;
    let mut judged = judged.to_owned();
    let mut pause = FIRST_PAUSE;
    for tries in 1.. {
        if judged.is_empty() {
            let Some(live) = read_one(cluster, collection, name).await? else {
                return Ok(Deleted::Gone);
            };
            if live.uid != uid {
                return Ok(Deleted::Left(PruneObstacle::ANOTHER));
            }
            if live.deletion_timestamp.is_some() {
                return Ok(deletion_state(live.finalizers));
            }
            if let Some(obstacle) = judge(&live) {
                return Ok(Deleted::Left(obstacle));
            }
            judged = live.resource_version;
        }
        let seen = json!({"uid": uid, "resourceVersion": judged});
        let options = delete_options(seen, Some(propagation)).to_string();
        let call = |at: &Collection| ApiCall::delete(at, name).body(options.clone().into_bytes());
        match addressed::send::<DeleteResponse>(cluster, &mut collection.clone(), name, call).await
        {
            Ok(answer) if answer.object.kind == "Status" => break,
            Ok(answer) => return Ok(deletion_state(answer.object.metadata.finalizers)),
            Err(error) if error.is_not_found() => break,
            Err(error) if error.is_conflict() && tries < TRIES => judged.clear(),
            Err(error) => return Err(error),
        }
        if tries > 1 {
            sleep(pause).await;
            pause *= 2;
        }
    }
    Ok(Deleted::Gone)
}

/// Returns the result for an object that is being deleted and has these finalizers.
fn deletion_state(finalizers: Vec<String>) -> Deleted {
    let is_of_kubernetes = |finalizer: &String| {
        let mut known = FINALIZERS_OF_KUBERNETES.iter();
        known.any(|known| finalizer.starts_with(known))
    };
    let of_addons: Vec<String> = finalizers
        .into_iter()
        .filter(|finalizer| !is_of_kubernetes(finalizer))
        .collect();
    if of_addons.is_empty() {
        Deleted::Gone
    } else {
        Deleted::Held(of_addons)
    }
}

/// Sends a dry run of a deletion. An object that no longer exists or was created again is not a refusal.
pub(super) async fn dry_run(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
    uid: &str,
) -> Result<(), EngineError> {
    let mut options = delete_options(json!({"uid": uid}), Some(Propagation::Background));
    set_dry_run(&mut options);
    let options = options.to_string();
    // Set in the query as well, for readers of the audit log.
    let call = |at: &Collection| {
        let call = ApiCall::delete(at, name).query("dryRun", "All");
        call.body(options.clone().into_bytes())
    };
    match addressed::send::<IgnoredAny>(cluster, &mut collection.clone(), name, call).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes the body of a deletion one of a dry run. The API server ignores the query of a DELETE with a body, and would delete.
pub(super) fn set_dry_run(options: &mut Value) {
    options["dryRun"] = json!(["All"]);
}

/// Returns the body of a deletion; without `propagation`, the default of the kind applies.
pub(super) fn delete_options(preconditions: Value, propagation: Option<Propagation>) -> Value {
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

/// Waits until the object with this uid no longer exists. If the deadline passes, returns the finalizers that it last had.
pub(super) async fn wait_until_deleted(
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
            Observation::Listed(objects) => objects.into_iter().find(is_it),
            Observation::Changed(object) => Some(object).filter(is_it),
            Observation::Deleted(object) => return is_it(&object),
            Observation::Lost(_) => return false,
        };
        if let Some(object) = &there {
            held_by = finalizers(object);
        }
        there.is_none()
    };
    let mut collection = collection.clone();
    let gone = async {
        loop {
            let refused = match observe(cluster, &collection, Some(name), &mut see).await {
                Err(error) if error.is_unserved() => error,
                ended => return ended,
            };
            match addressed::find_served_version(cluster, &collection, refused).await? {
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

/// Returns the finalizers of an object.
pub(super) fn finalizers(object: &Value) -> Vec<String> {
    let finalizers = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    let finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
    finalizers.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use common::api::names::LABEL_OWNER;

    use super::super::fake::{self, FakeReply};
    use super::*;

    const SECRETS: &str = "/api/v1/namespaces/shop/secrets";

    fn answer(code: u16, body: Value) -> FakeReply {
        Some((code, &[], body))
    }

    fn gone() -> FakeReply {
        answer(200, json!({"kind": "Status", "status": "Success"}))
    }

    fn refused(code: u16) -> FakeReply {
        let status =
            json!({"kind": "Status", "code": code, "message": "no", "details": {"name": "a"}});
        answer(code, status)
    }

    fn live(uid: &str, version: &str, owner: &str) -> Value {
        let labels = json!({LABEL_OWNER: owner});
        json!({"metadata": {"name": "a", "uid": uid, "resourceVersion": version, "labels": labels}})
    }

    async fn deleted(judged: &str, replies: Vec<FakeReply>) -> (String, Vec<String>, Vec<Value>) {
        let (cluster, asked) = fake::cluster(replies);
        let collection = Collection::from_names("v1", "Secret", "secrets", Some("shop"));
        let doomed = DeletionTarget {
            collection: &collection,
            name: "a",
            uid: "u",
            judged,
            propagation: Propagation::Background,
        };
        let judge = |found: &LiveMetadata| {
            let is_ours = found.labels.get(LABEL_OWNER).is_some_and(|it| it == "ours");
            (!is_ours).then_some(PruneObstacle::UNMARKED)
        };
        let ended = match delete(&cluster, doomed, judge).await {
            Ok(Deleted::Gone) => "gone".to_owned(),
            Ok(Deleted::Held(by)) => by.join(","),
            Ok(Deleted::Left(obstacle)) => obstacle.why().to_owned(),
            Err(error) => error.to_string(),
        };
        let lines = asked.lines();
        let verbs = lines.iter().filter_map(|line| line.split(' ').next());
        let sent = (0..lines.len()).map(|index| asked.body(index)["preconditions"].clone());
        assert!(
            lines
                .iter()
                .all(|line| line.ends_with(&format!("{SECRETS}/a"))),
            "{lines:?}"
        );
        (ended, verbs.map(str::to_owned).collect(), sent.collect())
    }

    /// (name, judged version, answers, end, methods)
    #[tokio::test]
    async fn what_changed_after_it_was_judged_is_judged_again() {
        let mut going = live("u", "8", "ours");
        going["metadata"]["deletionTimestamp"] = json!("2026-11-21T12:00:00Z");
        going["metadata"]["finalizers"] = json!(["foregroundDeletion", "shop.example/hold"]);
        for (name, judged, replies, end, methods) in [
            ("as judged", "7", vec![gone()], "gone", "DELETE"),
            (
                "its status changed",
                "7",
                vec![refused(409), answer(200, live("u", "8", "ours")), gone()],
                "gone",
                "DELETE GET DELETE",
            ),
            (
                "its label was removed",
                "7",
                vec![refused(409), answer(200, live("u", "8", ""))],
                "it no longer carries our label",
                "DELETE GET",
            ),
            (
                "it is another object",
                "7",
                vec![refused(409), answer(200, live("other", "8", "ours"))],
                "it is another object with the same name, created later",
                "DELETE GET",
            ),
            (
                "the answer was lost, and finalizers hold it",
                "7",
                vec![refused(409), answer(200, going)],
                "shop.example/hold",
                "DELETE GET",
            ),
            ("it is gone", "7", vec![refused(404)], "gone", "DELETE"),
            (
                "it is gone since",
                "7",
                vec![refused(409), refused(404)],
                "gone",
                "DELETE GET",
            ),
            (
                "never judged",
                "",
                vec![answer(200, live("u", "8", "ours")), gone()],
                "gone",
                "GET DELETE",
            ),
        ] {
            let (ended, verbs, sent) = deleted(judged, replies).await;
            assert_eq!(
                (ended.as_str(), verbs.join(" ").as_str()),
                (end, methods),
                "{name}"
            );
            let last = sent
                .last()
                .filter(|_| end == "gone" && methods.ends_with("GET DELETE"));
            if let Some(last) = last {
                assert_eq!(*last, json!({"uid": "u", "resourceVersion": "8"}), "{name}");
            }
        }
    }
}
