use serde_json::{Value, json};

use super::super::fake::{self, FakeReply};
use super::*;
use common::api::installation::FormerTool;

/// The name of the Secret that stores a revision of release `web`.
pub(in super::super) fn name(version: u64) -> String {
    format!("sh.helm.release.v1.web.v{version}")
}

/// That Secret, without its content.
pub(in super::super) fn revision(version: u64) -> Value {
    let labels = json!({"owner": "helm", "name": "web", "version": version.to_string()});
    json!({"metadata": {
        "name": name(version), "namespace": "shop", "uid": version.to_string(),
        "resourceVersion": "1", "labels": labels,
    }})
}

/// A list of such Secrets.
pub(in super::super) fn listed(versions: &[u64]) -> Value {
    let items: Vec<Value> = versions.iter().copied().map(revision).collect();
    json!({"metadata": {}, "items": items})
}

/// Semantics 12: a revision that helm wrote after the plan was made would stay, and helm would find the release.
#[tokio::test]
async fn a_release_that_was_changed_meanwhile_is_not_set_aside() {
    let installation = InstallationName {
        namespace: "shop".into(),
        name: "web".into(),
    };
    let objects = [8, 9].map(|version| HiddenObject {
        object: FormerObject {
            kind: "Secret".into(),
            name: name(version),
            uid: version.to_string(),
        },
        labels: BTreeMap::from([("owner".to_owned(), "helm".to_owned())]),
        data_key: None,
    });
    let hidden = HiddenRecords {
        record: FormerRecord {
            tool: FormerTool::Helm,
            namespace: "shop".into(),
            name: "web".into(),
            objects: objects.iter().map(|hidden| hidden.object.clone()).collect(),
            is_set_aside: false,
        },
        objects: objects.into(),
        selector: Some("owner=helm,name=web".to_owned()),
    };
    let answer = |body: Value| -> FakeReply { Some((200, &[], body)) };
    let (cluster, asked) = fake::cluster(vec![answer(listed(&[10, 8, 9]))]);
    let error = hide(&cluster, &installation, &hidden).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict { .. }), "{error}");
    assert!(error.to_string().contains("with helm meanwhile"), "{error}");
    assert_eq!(asked.lines().len(), 1, "{:?}", asked.lines());

    // The first one was set aside before an interruption.
    let replies = [
        listed(&[9]),
        json!({"metadata": {"name": name(8), "uid": "8", "resourceVersion": "2"}}),
        revision(9),
        json!({}),
    ];
    let (cluster, asked) = fake::cluster(replies.map(answer).into());
    hide(&cluster, &installation, &hidden).await.unwrap();
    let lines = asked.lines();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        lines[3].starts_with("PATCH ") && lines[3].contains(&name(9)),
        "{lines:?}"
    );
    let patch = asked.body(3);
    assert_eq!(patch["metadata"]["labels"]["owner"], Value::Null, "{patch}");
    assert_eq!(
        patch["metadata"]["annotations"][ANNOTATION_SET_ASIDE],
        json!({"owner": "helm"}).to_string()
    );
}
