use super::super::fake::{self, FakeReply, FakeRequests};
use super::*;

const KEY: &str = "addons.k8s.io/dns";
const PATH: &str = "/metadata/annotations/addons.k8s.io~1dns";

fn annotated(version: &str, annotations: &Value) -> FakeReply {
    let metadata = json!({"name": "shop", "uid": "u1", "resourceVersion": version,
        "annotations": annotations});
    Some((200, &[], json!({"metadata": metadata})))
}

fn refused(code: u16) -> FakeReply {
    let status = json!({"kind": "Status", "code": code, "message": "the test failed"});
    Some((code, &[], status))
}

async fn write(
    before: Option<&str>,
    replies: Vec<FakeReply>,
) -> (Result<(), EngineError>, FakeRequests) {
    let (cluster, asked) = fake::cluster(replies);
    let wanted = AnnotationChange {
        namespace: "shop".to_owned(),
        key: KEY.to_owned(),
        before: before.map(str::to_owned),
        after: Some("new".to_owned()),
        nodes: Vec::new(),
        node_mark: String::new(),
    };
    (super::write(&cluster, &wanted).await, asked)
}

/// Semantics 11: one key, with a test of the text that was read.
#[tokio::test]
async fn the_old_text_is_a_condition_of_the_patch() {
    let old = json!({KEY: "old", "other": "1"});
    let replies = vec![annotated("1", &old), annotated("2", &old)];
    let (done, asked) = write(Some("old"), replies).await;
    done.unwrap();
    let expected = json!([
        {"op": "test", "path": PATH, "value": "old"},
        {"op": "add", "path": PATH, "value": "new"},
    ]);
    assert_eq!(asked.body(1), expected);
}

/// A key that is not there cannot be tested: the resourceVersion is.
#[tokio::test]
async fn without_an_old_text_the_version_is_the_condition() {
    let guard = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "1"});
    for (found, added) in [
        (
            json!({"other": "1"}),
            json!({"op": "add", "path": PATH, "value": "new"}),
        ),
        (
            json!({}),
            json!({"op": "add", "path": "/metadata/annotations", "value": {KEY: "new"}}),
        ),
    ] {
        let replies = vec![annotated("1", &found), annotated("2", &found)];
        let (done, asked) = write(None, replies).await;
        done.unwrap();
        assert_eq!(asked.body(1), json!([guard, added]));
    }
}

/// Other keys may change meanwhile; where this one did, nothing is written.
#[tokio::test]
async fn only_a_change_of_the_same_key_is_a_conflict() {
    for (code, after, is_written) in [
        (422, "old", true),
        (409, "old", true),
        (422, "theirs", false),
    ] {
        let replies = vec![
            annotated("1", &json!({KEY: "old"})),
            refused(code),
            annotated("2", &json!({KEY: after, "other": "2"})),
            annotated("3", &json!({KEY: "new"})),
        ];
        let (done, asked) = write(Some("old"), replies).await;
        assert_eq!(done.is_ok(), is_written, "{code} {after}: {done:?}");
        let lines = asked.lines();
        let patches = lines.iter().filter(|line| line.starts_with("PATCH"));
        assert_eq!(patches.count(), 1 + usize::from(is_written), "{lines:?}");
        if let Err(error) = done {
            assert!(error.to_string().contains("another tool"), "{error}");
        }
    }
}
