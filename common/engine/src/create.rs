//! Creates objects by POST. A retry could collide with the result of the first try, so the object is read in between.

use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{ApiCall, FIRST_PAUSE};
use super::snapshot::read_one;

/// Maximum number of tries for a creation without effect.
const TRIES: u32 = 5;

/// Creates an object; `None` if one with its name exists: another client was faster, or the response to our own try was lost.
pub(super) async fn create<T: DeserializeOwned>(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
    call: ApiCall,
) -> Result<Option<T>, EngineError> {
    let mut pause = FIRST_PAUSE;
    let mut tries = 1;
    loop {
        let error = match cluster.send(call.clone()).await {
            Ok(answer) => return Ok(Some(answer.object)),
            // A 409 can also be caused by a quota that several requests update at once.
            Err(error) if error.is_conflict() || error.is_uncertain() => error,
            Err(error) => return Err(error),
        };
        if read_one(cluster, collection, name).await?.is_some() {
            return Ok(None);
        }
        if tries == TRIES {
            return Err(error);
        }
        tries += 1;
        sleep(pause).await;
        pause *= 2;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fake::{self, FakeReply};
    use super::super::meta::PartialObject;
    use super::super::namespace::key;
    use super::super::request::METADATA;
    use super::super::snapshot::namespace_collection;
    use super::*;

    async fn created(replies: Vec<FakeReply>) -> (Option<bool>, Vec<String>) {
        let (cluster, asked) = fake::cluster(replies);
        let collection = namespace_collection();
        let call = ApiCall::create(&collection, &key("a").name, METADATA).body(b"{}".to_vec());
        let made = create::<PartialObject>(&cluster, &collection, "a", call).await;
        let lines = asked.lines();
        let verbs = lines.iter().filter_map(|line| line.split(' ').next());
        (
            made.ok().map(|made| made.is_some()),
            verbs.map(str::to_owned).collect(),
        )
    }

    fn object(code: u16) -> FakeReply {
        let body = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}});
        Some((code, &[], body))
    }

    fn missing() -> FakeReply {
        let status = json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
            "message": "namespaces \"a\" not found", "details": {"name": "a", "kind": "namespaces"}});
        Some((404, &[], status))
    }

    #[tokio::test]
    async fn a_lost_answer_is_looked_up() {
        let (made, asked) = created(vec![None, object(200)]).await;
        assert_eq!(
            (made, asked),
            (Some(false), vec!["POST".into(), "GET".into()])
        );
    }

    #[tokio::test]
    async fn what_was_not_delivered_is_sent_again() {
        let (made, asked) = created(vec![None, missing(), object(201)]).await;
        let wanted = ["POST", "GET", "POST"].map(str::to_owned).to_vec();
        assert_eq!((made, asked), (Some(true), wanted));
    }
}
