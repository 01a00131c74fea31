use serde_json::{Value, json};

use super::super::fake;
use super::*;

fn pods() -> Collection {
    Collection::from_names("v1", "Pod", "pods", Some("shop"))
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says() {
    let busy = |code| Some((code, &[("retry-after", "0")][..], json!({"kind": "Status"})));
    let (cluster, asked) = fake::cluster(vec![
        busy(429),
        busy(503),
        Some((
            201,
            &[("warning", "299 - \"spec.x is \\\"old\\\"\"")],
            json!({"a": 1}),
        )),
    ]);
    let call = ApiCall::patch(&pods(), "web", APPLY_PATCH, METADATA)
        .query("fieldManager", "me")
        .body(b"{}".to_vec());
    let begun = Instant::now();
    let answer = cluster.send::<Value>(call).await.unwrap();
    assert!(begun.elapsed() >= FIRST_PAUSE * 3, "without a pause");
    assert!(answer.created);
    assert_eq!(answer.warnings, ["spec.x is \"old\""]);
    assert_eq!(
        asked.lines(),
        ["PATCH /api/v1/namespaces/shop/pods/web?fieldManager=me"; 3]
    );
    assert_eq!(asked.body(2), json!({}), "the body goes with every try");
}

#[tokio::test]
async fn a_long_wait_is_not_waited_for() {
    // An hour, and more seconds than any clock has.
    let waits: [&[(&str, &str)]; 2] = [
        &[("retry-after", "3600")],
        &[("retry-after", "18446744073709551615")],
    ];
    for headers in waits {
        let (cluster, asked) = fake::cluster(vec![Some((429, headers, json!({})))]);
        let error = cluster
            .send::<Value>(ApiCall::get(&pods(), "web", JSON))
            .await
            .unwrap_err();
        assert_eq!((error.code(), asked.lines().len()), (Some(429), 1));
    }
}

#[tokio::test]
async fn what_may_have_happened_is_not_repeated() {
    let (cluster, asked) = fake::cluster(vec![None]);
    let call = ApiCall::create(&pods(), "web", JSON).body(b"{}".to_vec());
    let error = cluster.send::<Value>(call).await.unwrap_err();
    assert!(error.is_uncertain(), "{error}");
    assert_eq!(asked.lines(), ["POST /api/v1/namespaces/shop/pods"]);
}

#[tokio::test]
async fn the_servers_clock_counts_where_ours_is_far_off() {
    let date = &[("date", "Sun, 06 Nov 1994 08:49:37 GMT")][..];
    let (cluster, _) = fake::cluster(vec![Some((200, date, json!({})))]);
    cluster
        .send::<Value>(ApiCall::get(&pods(), "web", JSON))
        .await
        .unwrap();
    let seconds = cluster.now().as_second() - 784_111_777;
    assert!((0..60).contains(&seconds), "{seconds}");
}

/// What a proxy, a cache or a hostile server may answer instead: nothing of it is taken for the Pod.
#[tokio::test]
async fn an_answer_about_something_else_is_refused() {
    let metadata = |name: &str, namespace: &str| json!({"name": name, "namespace": namespace});
    for (answer, said) in [
        (
            json!({"kind": "PodList", "metadata": {"continue": "more"}, "items": []}),
            r#"a "PodList" without a name"#,
        ),
        (
            json!({"kind": "Pod", "metadata": metadata("other", "shop")}),
            r#"the "Pod" "other" in "shop""#,
        ),
        (
            json!({"kind": "Pod", "metadata": metadata("web", "office")}),
            r#"the "Pod" "web" in "office""#,
        ),
        (
            json!({"kind": "Secret", "metadata": metadata("web", "shop")}),
            r#"the "Secret" "web" in "shop""#,
        ),
    ] {
        for call in [
            ApiCall::get(&pods(), "web", JSON),
            ApiCall::patch(&pods(), "web", MERGE_PATCH, METADATA).body(b"{}".to_vec()),
            ApiCall::replace(&pods(), "web", METADATA).subresource("status"),
        ] {
            let (cluster, _) = fake::cluster(vec![Some((200, &[], answer.clone()))]);
            let error = cluster.send::<Value>(call).await.unwrap_err().to_string();
            assert_eq!(
                error,
                format!("shop/Pod web: the server answers with {said}")
            );
        }
    }
}

#[tokio::test]
async fn an_answer_about_what_was_asked_for_is_taken() {
    let (cluster, _) = fake::cluster(
        ["Pod", "PartialObjectMetadata"]
            .map(|kind| {
                let metadata = json!({"name": "web", "namespace": "shop"});
                Some((200, &[][..], json!({"kind": kind, "metadata": metadata})))
            })
            .into(),
    );
    for _ in 0..2 {
        let call = ApiCall::get(&pods(), "web", METADATA);
        cluster.send::<Value>(call).await.unwrap();
    }
}
