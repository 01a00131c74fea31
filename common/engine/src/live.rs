//! Whole live objects of installations, for `list` and `status`: one LIST a kind and namespace, by the owner label.

use std::collections::BTreeSet;

use futures::future::try_join_all;
use serde_json::Value;

use common::api::names::LABEL_OWNER;
use common::manifest::key::Gvk;
use common::manifest::kinds::KindTable;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::listing;

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

/// The live objects that carry the owner label, with this value where one is given; apiVersion and kind are filled in. A kind
/// that is not served, or a list that we may not read, has none.
///
/// # Errors
/// Those of the requests, but for 403 and 404.
pub async fn owned(
    cluster: &Cluster,
    kinds: &KindTable,
    selections: &BTreeSet<Selection>,
    owner: Option<&str>,
) -> Result<Vec<Value>, EngineError> {
    let selector = owner.map_or_else(
        || LABEL_OWNER.to_owned(),
        |owner| format!("{LABEL_OWNER}={owner}"),
    );
    let lists = selections.iter().filter_map(|selection| {
        let (gvk, info) = kinds.preferred(&selection.group, &selection.kind)?;
        let collection = Collection::new(gvk.clone(), info, selection.namespace.as_deref());
        let selector = selector.as_str();
        Some(async move {
            match listing::all::<Value>(cluster, &collection, Some(selector)).await {
                Ok(objects) => Ok(objects
                    .into_iter()
                    .map(|object| typed(object, &gvk))
                    .collect()),
                Err(EngineError::Forbidden { .. }) => Ok(Vec::new()),
                Err(error) if error.is_not_found() => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        })
    });
    let lists: Vec<Vec<Value>> = try_join_all(lists).await?;
    Ok(lists.into_iter().flatten().collect())
}

/// Items of a list carry neither apiVersion nor kind.
fn typed(mut object: Value, gvk: &Gvk) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), gvk.api_version().into());
        fields.insert("kind".to_owned(), gvk.kind.clone().into());
    }
    object
}
