//! An object gets another owner: its marks and the manager of its fields change, and nothing else of it. Nothing is applied again.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use common::api::names::{self, InstallationName, owner_hash};
use common::plan::inventory::Item;
use common::plan::snapshot::LiveObject;
use common::plan::transfer::{Follower, NotIts, standing};

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::request::{APPLY_PATCH, Call, METADATA};
use super::super::snapshot::{self, read_one};
use super::managed;
use super::{FIRST_PAUSE, ROUNDS, Written, body};

/// What became of an object.
#[derive(Debug)]
pub(in super::super) enum HandedOver {
    /// It is the new owner's, and recorded like this.
    Done(Item),
    /// It is not the former owner's any more.
    Left(NotIts),
}

/// From whom to whom.
#[derive(Debug)]
pub(in super::super) struct Handover<'a> {
    /// Value of the former owner's label.
    pub(in super::super) from: &'a str,
    /// The new owner.
    pub(in super::super) to: &'a InstallationName,
}

impl Handover<'_> {
    /// Hands over an object in two writes, each of which may be repeated: the marks are applied with the manager of the new owner, then
    /// the fields of the former one become fields of that manager.
    pub(in super::super) async fn object(
        &self,
        cluster: &Cluster,
        follower: &Follower,
    ) -> Result<HandedOver, EngineError> {
        let Follower { target, item, .. } = follower;
        let manager = names::field_manager(&self.to.namespace, &self.to.name);
        let owners = [
            self.from.to_owned(),
            owner_hash(&self.to.namespace, &self.to.name),
        ];
        let mut live = follower.live.clone();
        let mut pause: Duration = FIRST_PAUSE;
        for _ in 0..ROUNDS {
            let error = match self.once(cluster, follower, &live, &manager).await {
                Ok(now) => return Ok(HandedOver::Done(seen(item, &live, now))),
                Err(error) => error,
            };
            match managed::gone_version(&error) {
                Some(version) => managed::heal(cluster, target, &manager, version, error).await?,
                None if error.is_conflict() || error.is_not_found() => {}
                None => return Err(error),
            }
            let read = read_one(cluster, &Collection::of(target), &target.key.name).await?;
            let Some(read) = read else {
                return Ok(HandedOver::Done(item.clone()));
            };
            live = snapshot::live(read);
            match standing(item, &live, &owners) {
                Ok(true) => {}
                Ok(false) => return Ok(HandedOver::Done(item.clone())),
                Err(why) => return Ok(HandedOver::Left(why)),
            }
            sleep(pause).await;
            pause *= 2;
        }
        Err(EngineError::Conflict {
            key: Box::new(target.key.clone()),
            message: "other clients keep changing it; run the command again".to_owned(),
            recorded: None,
            remedy: None,
        })
    }

    /// The two writes; generation and resourceVersion after them.
    async fn once(
        &self,
        cluster: &Cluster,
        follower: &Follower,
        live: &LiveObject,
        manager: &str,
    ) -> Result<(Option<i64>, String), EngineError> {
        let mut seen = (live.generation, live.resource_version.clone());
        if live.owner.as_deref() == Some(self.from) {
            seen = self.mark(cluster, follower, live, manager).await?;
        }
        let inherited = managed::inherit(cluster, &follower.target, self.from, manager).await?;
        if let Some(written) = inherited {
            seen.1 = written.resource_version;
        }
        Ok(seen)
    }

    /// Applies the marks of the new owner; force takes these two fields from the former one. Refused (409) where the object is not the
    /// one that was read: its label proves whose it is only as long as the object does not change.
    async fn mark(
        &self,
        cluster: &Cluster,
        follower: &Follower,
        live: &LiveObject,
        manager: &str,
    ) -> Result<(Option<i64>, String), EngineError> {
        let target = &follower.target;
        let mut marks = json!({
            "apiVersion": target.gvk().api_version(),
            "kind": target.key.kind,
            "metadata": {
                "name": target.key.name,
                "uid": live.uid,
                "resourceVersion": live.resource_version,
                "labels": {names::LABEL_OWNER: owner_hash(&self.to.namespace, &self.to.name)},
                "annotations": {names::ANNOTATION_INSTALLATION: self.to.to_string()},
            },
        });
        if let Some(namespace) = &target.key.namespace {
            marks["metadata"]["namespace"] = json!(namespace);
        }
        let collection = Collection::of(target);
        let call = Call::patch(&collection, &target.key.name, APPLY_PATCH, METADATA)
            .query("fieldManager", manager)
            .query("force", "true")
            .body(body(target, &marks)?);
        let metadata = cluster.send::<Written>(call).await?.object.metadata;
        Ok((metadata.generation, metadata.resource_version))
    }
}

/// The record of an object of which only owner and manager were changed: an edit of someone else stays one. The generation of a
/// Deployment counts changes of its annotations, too.
fn seen(item: &Item, live: &LiveObject, now: (Option<i64>, String)) -> Item {
    let mut item = item.clone();
    let recorded = &mut item.object;
    if recorded.generation.is_some() && recorded.generation == live.generation {
        recorded.generation = now.0;
    }
    if recorded.resource_version.as_ref() == Some(&live.resource_version) {
        recorded.resource_version = Some(now.1);
    }
    item
}
