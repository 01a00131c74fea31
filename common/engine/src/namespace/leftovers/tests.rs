use serde_json::{Value, json};

use super::super::super::fake::{self, FakeReply};
use super::super::super::meta::OwnerReference;
use super::*;

fn leftover(uid: &str, owner: Option<&str>, going: bool) -> LeftoverObject {
    LeftoverObject {
        object: uid.to_owned(),
        metadata: LiveMetadata {
            uid: uid.to_owned(),
            owner_references: owner
                .map(|uid| OwnerReference {
                    uid: uid.to_owned(),
                    ..OwnerReference::default()
                })
                .into_iter()
                .collect(),
            deletion_timestamp: going.then(|| "2026-01-01T00:00:00Z".to_owned()),
            ..LiveMetadata::default()
        },
    }
}

#[test]
fn only_dependents_of_deleted_objects_may_be_left() {
    let deleted = || BTreeSet::from(["deployment".to_owned()]);
    let pod = leftover("pod", Some("set"), false);
    let set = leftover("set", Some("deployment"), false);
    let users = leftover("users", None, false);
    let more = leftover("more", None, false);
    for (left, stay) in [
        (vec![pod.clone(), set.clone()], &[][..]),
        (vec![leftover("old", None, true)], &[]),
        (vec![set, users, more, pod.clone()], &["more", "users"]),
        (vec![pod], &["pod"]),
    ] {
        assert_eq!(object_names(without_deleted(left, deleted())), stay);
    }
}

#[test]
fn what_is_in_it_is_listed() {
    let names: Vec<String> = (1..=7).map(|i| format!("shop/Secret s{i}")).collect();
    assert_eq!(describe_staying(&names[..1]), "shop/Secret s1 is in it");
    assert_eq!(
        describe_staying(&names),
        "shop/Secret s1, shop/Secret s2, shop/Secret s3, shop/Secret s4, shop/Secret s5 and 2 more are in it"
    );
}

fn ok(body: Value) -> FakeReply {
    Some((200, &[], body))
}

/// One look: discovery of Pods, and the Pods.
fn look(pods: Value) -> [FakeReply; 3] {
    let pod = json!({"resource": "pods", "scope": "Namespaced", "responseKind": {"kind": "Pod"},
        "verbs": ["list", "patch", "delete"]});
    let core = json!({"kind": "APIGroupDiscoveryList", "items": [
        {"metadata": {}, "versions": [{"version": "v1", "resources": [pod]}]}]});
    let groups = json!({"kind": "APIGroupDiscoveryList", "items": []});
    [ok(core), ok(groups), ok(json!({"items": pods}))]
}

/// Trust 21.
#[tokio::test]
async fn what_has_lost_its_owner_is_looked_for_again() {
    let pod = |owner: &str| json!([{"metadata": {"name": "web", "uid": "pod", "ownerReferences": [{"uid": owner}]}}]);
    let deleted = BTreeSet::from(["deployment".to_owned()]);
    let deadline = Instant::now() + Duration::from_secs(60);
    // Its ReplicaSet was deleted a moment ago.
    let replies = [look(pod("set")), look(json!([]))].concat();
    let (cluster, asked) = fake::cluster(replies);
    let stays = find_staying(&cluster, "shop", &deleted, deadline)
        .await
        .unwrap();
    assert_eq!((stays.len(), asked.lines().len()), (0, 6));
    // What has no owner is not waited for.
    let users = json!([{"metadata": {"name": "users", "uid": "users"}}]);
    let (cluster, _) = fake::cluster(look(users).to_vec());
    let stays = find_staying(&cluster, "shop", &deleted, deadline)
        .await
        .unwrap();
    assert_eq!(stays, ["shop/Pod users"]);
}
