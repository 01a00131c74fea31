//! Whole live objects: those of installations, for `list` and `status` (one LIST a kind and namespace, by the owner label), and one
//! by one those of steps, and of charts that look them up.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use common::api::names::LABEL_OWNER;
use common::manifest::key::Gvk;
use common::manifest::kinds::{KindInfo, KindTable};
use common::plan::Step;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::listing;
use super::request::{Call, JSON};

/// Which objects to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selection {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; `None` = all.
    pub namespace: Option<String>,
}

/// The whole live object of a step; `None` where it does not exist.
pub(super) async fn object(cluster: &Cluster, step: &Step) -> Result<Option<Value>, EngineError> {
    read(
        cluster,
        &Collection::of(&step.target),
        &step.target.key.name,
    )
    .await
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The objects; apiVersion and kind are filled in.
    pub objects: Vec<Value>,
    /// Of what nothing could be read, and why.
    pub unreadable: BTreeMap<Selection, String>,
}

/// The live objects that carry the owner label, with this value where one is given. A kind that is not served has none.
///
/// # Errors
/// The server cannot be reached.
pub async fn owned(
    cluster: &Cluster,
    kinds: &KindTable,
    selections: &BTreeSet<Selection>,
    owner: Option<&str>,
) -> Result<Live, EngineError> {
    let selector = owner.map_or_else(
        || LABEL_OWNER.to_owned(),
        |owner| format!("{LABEL_OWNER}={owner}"),
    );
    let lists = selections.iter().map(async |selection| {
        let Some((gvk, info)) = kinds.preferred(&selection.group, &selection.kind) else {
            let is_silent = kinds.is_silent(&selection.group);
            let why = is_silent.then(|| "the server of its API does not answer".to_owned());
            return Ok((selection, why.map_or_else(|| Ok(Vec::new()), Err)));
        };
        let collection = Collection::new(gvk.clone(), info, selection.namespace.as_deref());
        match listing::all::<Listed>(cluster, &collection, Some(&selector)).await {
            Ok(objects) => {
                let objects = objects.into_iter();
                let objects = objects.map(|Listed(object)| typed(object, &gvk));
                Ok((selection, Ok(objects.collect())))
            }
            Err(error) if error.is_not_found() => Ok((selection, Ok(Vec::new()))),
            Err(error) if error.is_of_reading() => Ok((selection, Err(error.words()))),
            Err(error) => Err(error),
        }
    });
    let mut live = Live::default();
    for (selection, listed) in try_join_all(lists).await? {
        match listed {
            Ok(objects) => live.objects.extend(objects),
            Err(why) => {
                live.unreadable.insert(selection.clone(), why);
            }
        }
    }
    Ok(live)
}

/// One object, in this version of its kind; `None` where there is none.
///
/// # Errors
/// Those of the request.
pub async fn get(
    cluster: &Cluster,
    gvk: &Gvk,
    info: &KindInfo,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<Value>, EngineError> {
    let collection = Collection::new(gvk.clone(), info, namespace);
    read(cluster, &collection, name).await
}

/// A whole object; `None` where there is none.
pub(super) async fn read(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
) -> Result<Option<Value>, EngineError> {
    match cluster.send(Call::get(collection, name, JSON)).await {
        Ok(answer) => Ok(Some(answer.object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Items of a list carry neither apiVersion nor kind.
fn typed(mut object: Value, gvk: &Gvk) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), gvk.api_version().into());
        fields.insert("kind".to_owned(), gvk.kind.clone().into());
    }
    object
}

/// An object of a list. Which fields belong to whom is asked of none of them, and is a third of what they take: it is left out
/// before the next object is read.
struct Listed(Value);

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Value::deserialize(deserializer)?;
        let entries = object.pointer_mut("/metadata/managedFields");
        let entries = entries.and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            if let Some(entry) = entry.as_object_mut() {
                entry.remove("fieldsV1");
            }
        }
        Ok(Self(object))
    }
}
