use serde_json::json;

use super::*;
use crate::fake;

fn installation() -> InstallationName {
    InstallationName {
        namespace: "b".to_owned(),
        name: "dns".to_owned(),
    }
}

/// What is recorded afterwards, where the live namespace has this label.
async fn identified(before: &str, owner: Option<&str>) -> Option<String> {
    let live =
        json!({"metadata": {"name": "a", "uid": "u", "labels": {names::LABEL_OWNER: owner}}});
    let (cluster, asked) = fake::cluster(vec![Some((200, &[], live))]);
    let mut status = AddonInstallationStatus {
        created_namespace: Some(CreatedNamespace {
            name: "a".to_owned(),
            uid: before.to_owned(),
        }),
        ..AddonInstallationStatus::default()
    };
    complete_created_namespace(&cluster, &installation(), &mut status)
        .await
        .unwrap();
    assert_eq!(asked.lines().len(), usize::from(before.is_empty()));
    status.created_namespace.map(|created| created.uid)
}

#[tokio::test]
async fn a_namespace_that_was_created_right_before_the_end_is_identified_by_our_label() {
    let owner = names::owner_hash(&installation().namespace, &installation().name);
    let ours = identified("", Some(&owner)).await;
    assert_eq!(ours.as_deref(), Some("u"));
    assert_eq!(identified("", Some("other")).await, None);
    let known = identified("known", None).await;
    assert_eq!(known.as_deref(), Some("known"));
}
