//! LISTs whole collections page by page, or a single page.

use serde::de::DeserializeOwned;

use common::entrance::{self, MAX_DEPTH, ObjectName, RawList};

use super::address::{Collection, query_value};
use super::cluster::Cluster;
use super::error::EngineError;
use super::limits::{LimitExceeded, MAX_ITEMS};
use super::meta::ListMetadata;
use super::request::{ApiCall, JSON};

/// Number of objects per page.
const PAGE: &str = "100";

/// A page of a LIST.
#[derive(Debug)]
pub(super) struct ListPage<T> {
    pub(super) metadata: ListMetadata,
    pub(super) items: Vec<T>,
}

/// Parses one object of a list.
pub(super) type ParseItem<T> = fn(&str) -> Result<T, serde_json::Error>;

impl<T> ListPage<T> {
    /// Parses a page with at most `most` objects, each object by itself.
    ///
    /// # Errors
    /// The first object that cannot be parsed, and why, without its content.
    fn read(bytes: &[u8], most: usize, read: ParseItem<T>) -> Result<Self, String> {
        let list = entrance::read_list(bytes);
        let RawList { metadata, items } =
            list.map_err(|error| entrance::describe_refusal(bytes, &error, usize::MAX))?;
        if items.len() > most {
            return Err(LimitExceeded::Items.to_string());
        }
        let items = items.into_iter().map(|text| {
            let why = |error| entrance::describe_refusal(text.get().as_bytes(), &error, MAX_DEPTH);
            read(text.get())
                .map_err(|error| format!("{}: {}", ObjectName::read(text.get()), why(error)))
        });
        Ok(Self {
            metadata,
            items: items.collect::<Result<_, _>>()?,
        })
    }
}

/// Returns all objects of a collection, or those that match a label selector.
pub(super) async fn list_all<T: DeserializeOwned>(
    cluster: &Cluster,
    collection: &Collection,
    selector: Option<&str>,
) -> Result<Vec<T>, EngineError> {
    list_all_as(cluster, collection, selector, JSON, |text| {
        entrance::from_str(text)
    })
    .await
}

/// Like [`list_all`] in a given form: whole objects, or their metadata.
pub(super) async fn list_all_as<T>(
    cluster: &Cluster,
    collection: &Collection,
    selector: Option<&str>,
    form: &'static str,
    read: ParseItem<T>,
) -> Result<Vec<T>, EngineError> {
    let mut call = ApiCall::list(collection, form);
    if let Some(selector) = selector {
        call = call.query("labelSelector", &query_value(selector));
    }
    list_pages(cluster, call, read).await
}

/// Returns all objects of a LIST.
pub(super) async fn list_pages<T>(
    cluster: &Cluster,
    list: ApiCall,
    read: ParseItem<T>,
) -> Result<Vec<T>, EngineError> {
    let list = list.query("limit", PAGE);
    let mut found = Vec::new();
    let (mut next, mut taken) = (String::new(), 0);
    loop {
        let mut call = list.clone();
        if !next.is_empty() {
            call = call.query("continue", &query_value(&next));
        }
        let page = match read_page(cluster, call, &mut taken, read).await {
            Ok(page) => page,
            // The continue token expired: the list starts again.
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

/// Reads one page of a LIST. `taken`: the memory of the previous pages. Without a limit, a server whose address came from a Secret
/// (semantics 6.4) could continue for ever.
pub(super) async fn read_page<T>(
    cluster: &Cluster,
    call: ApiCall,
    taken: &mut usize,
    read: ParseItem<T>,
) -> Result<ListPage<T>, EngineError> {
    let what = call.object.clone();
    let most = cluster.limits().map_or(usize::MAX, |_| MAX_ITEMS);
    let answer = cluster
        .exchange(call, |bytes| ListPage::read(bytes, most, read))
        .await?;
    if let Some(limits) = cluster.limits() {
        let added = limits.add_page(taken, answer.weight);
        added.map_err(|too_much| too_much.into_error(&what))?;
    }
    Ok(answer.object)
}

/// Reads a LIST that has a single page.
pub(super) async fn read_one_page<T: DeserializeOwned>(
    cluster: &Cluster,
    call: ApiCall,
) -> Result<ListPage<T>, EngineError> {
    read_page(cluster, call, &mut 0, |text| entrance::from_str(text)).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::super::fake;
    use super::super::limits::{LARGEST_LIST, SMALLEST_PAGE};
    use super::super::snapshot::read_all;
    use super::*;

    /// Whether its records are there, as where catalogues are pushed, or elsewhere.
    #[tokio::test]
    async fn a_list_of_another_cluster_ends() {
        let pods = Collection::from_names("v1", "Pod", "pods", None);
        let (home, _) = fake::cluster(Vec::new());
        let home = Arc::new(home);
        let pages = LARGEST_LIST / SMALLEST_PAGE + 1;
        for is_metadata in [false, true] {
            let more = || {
                Some((
                    200,
                    &[][..],
                    json!({"metadata": {"continue": "more"}, "items": []}),
                ))
            };
            let replies = std::iter::repeat_with(more).take(pages + 9).collect();
            let (cluster, asked) = fake::cluster(replies);
            let cluster = match is_metadata {
                true => cluster.with_limits().with_home(Arc::clone(&home)).await,
                false => cluster.with_limits(),
            };
            let error = match is_metadata {
                true => read_all(&cluster, &pods).await.unwrap_err(),
                false => list_all::<Value>(&cluster, &pods, None).await.unwrap_err(),
            };
            assert_eq!(error.to_string(), "pods: the list takes more than 256 MiB");
            assert_eq!(asked.lines().len(), pages);
        }
    }

    /// A few bytes of text are an object in memory.
    #[tokio::test]
    async fn a_page_of_another_cluster_has_no_more_objects_than_were_asked_for() {
        let pods = Collection::from_names("v1", "Pod", "pods", None);
        let page = || {
            Some((
                200,
                &[][..],
                json!({"items": vec![json!({}); MAX_ITEMS + 1]}),
            ))
        };
        let (cluster, _) = fake::cluster(vec![page(), page()]);
        let error = read_all(&cluster.with_limits(), &pods).await.unwrap_err();
        let said = "pods: the server's answer is not understood: it has more than 10000 objects in one page";
        assert_eq!(error.to_string(), said);
        let (home, _) = fake::cluster(vec![page()]);
        let found = read_all(&home, &pods).await.unwrap().unwrap();
        assert_eq!(found.len(), MAX_ITEMS + 1);
    }
}
