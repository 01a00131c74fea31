//! LISTs: whole collections, page by page, or one page.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::address::{Collection, query_value};
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::{ListMetadata, or_default};
use super::request::{Call, JSON};

/// Objects of one page.
const PAGE: &str = "100";

/// The response of a LIST.
#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
pub(super) struct Page<T> {
    #[serde(default)]
    pub(super) metadata: ListMetadata,
    #[serde(default = "Vec::new", deserialize_with = "or_default")]
    pub(super) items: Vec<T>,
}

/// Every object of a collection, or those that a label selector matches.
pub(super) async fn all<T: DeserializeOwned>(
    cluster: &Cluster,
    collection: &Collection,
    selector: Option<&str>,
) -> Result<Vec<T>, EngineError> {
    let mut call = Call::list(collection, JSON);
    if let Some(selector) = selector {
        call = call.query("labelSelector", &query_value(selector));
    }
    pages(cluster, call).await
}

/// Every object of a LIST.
pub(super) async fn pages<T: DeserializeOwned>(
    cluster: &Cluster,
    list: Call,
) -> Result<Vec<T>, EngineError> {
    let list = list.query("limit", PAGE);
    let mut found = Vec::new();
    let mut next = String::new();
    loop {
        let mut call = list.clone();
        if !next.is_empty() {
            call = call.query("continue", &query_value(&next));
        }
        let page = match cluster.send::<Page<T>>(call).await {
            Ok(answer) => answer.object,
            // The continue token expired: the list begins again.
            Err(error) if error.code() == Some(410) && !next.is_empty() => {
                found.clear();
                next.clear();
                continue;
            }
            Err(error) => return Err(error),
        };
        found.extend(page.items);
        next = page.metadata.r#continue;
        if next.is_empty() {
            return Ok(found);
        }
    }
}
