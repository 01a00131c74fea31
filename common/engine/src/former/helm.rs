//! Finds the records of Helm releases: a Secret or a ConfigMap for each revision.

use addons_plan::closing::HiddenRecords;
use common::api::installation::FormerTool;

use super::super::address::Collection;
use super::super::aside::{FormerContent, collection};
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::meta::LiveMetadata;
use super::super::request::{ApiCall, JSON};
use super::super::snapshot::read_selected;
use super::{FormerMembers, FormerRecords, HELM_OWNER, to_records};

/// How often to list the revisions again if helm deletes the newest one meanwhile.
const TRIES: usize = 5;

/// Finds the records of a release; `None` if helm finds none.
pub(super) async fn find(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<FormerRecords>, EngineError> {
    for kind in ["Secret", "ConfigMap"] {
        let collection = collection(kind, namespace);
        let Some((found, mut newest)) = read(cluster, &collection, name).await? else {
            continue;
        };
        let status = newest.metadata.labels.get("status").cloned();
        let bytes = newest.data.remove("release").unwrap_or_default();
        return Ok(Some(FormerRecords {
            hidden: HiddenRecords {
                selector: Some(selector(name)),
                ..to_records(FormerTool::Helm, namespace, name, kind, &found)
            },
            members: FormerMembers::Helm(bytes.into_bytes()),
            status,
        }));
    }
    Ok(None)
}

/// Reads the metadata of a release's revisions, and the content of the newest. Lists again if helm deletes the newest one meanwhile.
async fn read(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
) -> Result<Option<(Vec<LiveMetadata>, FormerContent)>, EngineError> {
    let mut tries = 1;
    loop {
        let found = revisions(cluster, collection, name).await?;
        let Some(newest) = found.last() else {
            return Ok(None);
        };
        let call = ApiCall::get(collection, &newest.name, JSON);
        match cluster.send::<FormerContent>(call).await {
            Ok(newest) => return Ok(Some((found, newest.object))),
            Err(error) if error.is_not_found() && tries < TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Returns the selector by which helm finds the revisions of a release.
fn selector(name: &str) -> String {
    format!("{HELM_OWNER}=helm,name={name}")
}

/// Lists the revisions that helm finds of a release, the newest last.
async fn revisions(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
) -> Result<Vec<LiveMetadata>, EngineError> {
    let selector = selector(name);
    let selectors = [("labelSelector", selector.as_str())];
    let found = read_selected(cluster, collection, &selectors).await?;
    let mut found = found.unwrap_or_default();
    found.sort_by_key(|one| {
        let version = one.labels.get("version");
        version.and_then(|version| version.parse::<u64>().ok())
    });
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::aside::tests::{listed, name, revision};
    use super::super::super::fake::{self, FakeReply};
    use super::*;

    #[tokio::test]
    async fn a_revision_that_goes_while_it_is_looked_for_is_looked_for_again() {
        let gone = json!({"kind": "Status", "code": 404, "reason": "NotFound",
            "details": {"name": name(2), "kind": "secrets"}, "message": "not found"});
        let replies = [
            (200, listed(&[1, 2])),
            (404, gone),
            (200, listed(&[1])),
            (200, revision(1)),
        ];
        let replies = replies.map(|(code, body)| -> FakeReply { Some((code, &[], body)) });
        let (cluster, asked) = fake::cluster(replies.into());
        let found = find(&cluster, "shop", "web").await.unwrap().unwrap();
        let names: Vec<&str> = found
            .hidden
            .record
            .objects
            .iter()
            .map(|object| object.name.as_str())
            .collect();
        assert_eq!(names, [name(1)]);
        assert_eq!(asked.lines().len(), 4, "{:?}", asked.lines());
    }
}
