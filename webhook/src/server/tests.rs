//! Real TLS on loopback: generated certificates, fixed facts, bytes on a socket.

mod core_sets;
mod encrypted;
pub mod rig;

use certs::reload::ReloadOutcome;
use serde_json::json;
use std::io::Write as _;

use self::rig::*;
use super::*;

#[tokio::test]
async fn reviews_are_answered_over_tls_on_one_connection() {
    let served = serve(Some(facts()));
    let (address, pem) = (served.reviews, served.authority_pem.clone());
    client(move || {
        let mut connection = connect(address, &pem);
        let deletion = post(&mut connection, "/validate", &core_deletion());
        assert_eq!(deletion.status, 200);
        let response = &deletion.body["response"];
        assert_eq!(response["uid"], "the-uid");
        assert_eq!(response["allowed"], false);
        assert_eq!(response["status"]["code"], 403);
        let duplicate = post(&mut connection, "/validate", &duplicate());
        let status = &duplicate.body["response"]["status"];
        assert_eq!(
            (&status["code"], &status["reason"]),
            (&json!(422), &json!("Invalid"))
        );
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with("spec.addons[0].versions[0]: "), "{message}");
        let unknown = json!({"metadata": {"name": "x"}, "spec": {"addonRef": {"name": "x", "index": "https://x"}, "kept": 1}});
        let body = review("AddonInstallation", "CREATE", unknown, json!(null));
        let mutated = post(&mut connection, "/mutate", &body);
        let response = &mutated.body["response"];
        assert_eq!(response["allowed"], true);
        assert_eq!(response["patchType"], "JSONPatch");
        let patch = base64::Engine::decode(
            &base64::engine::general_purpose::STANDARD,
            response["patch"].as_str().unwrap(),
        )
        .unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        let paths = patch.0.iter().map(|operation| operation.path().to_string());
        let paths: Vec<String> = paths.collect();
        assert_eq!(
            paths,
            [
                "/spec/coreAddon",
                "/spec/createNamespace",
                "/metadata/annotations"
            ],
            "{patch}"
        );
        assert!(!mutated.head.contains("connection: close"));
    })
    .await;
    let health = served.health;
    let metrics = client(move || get(health, "/metrics")).await;
    let text = metrics.body.as_str().unwrap().to_owned();
    for line in [
        "addons_webhook_denials_total{rule=\"core-deletion\"} 1",
        "addons_webhook_denials_total{rule=\"duplicate\"} 1",
        "addons_webhook_reviews_total{path=\"/mutate\",operation=\"CREATE\",allowed=\"true\"} 1",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[tokio::test]
async fn without_facts_nothing_is_allowed() {
    let served = serve(None);
    let (address, health, pem) = (served.reviews, served.health, served.authority_pem.clone());
    client(move || {
        let reply = post(&mut connect(address, &pem), "/validate", &core_deletion());
        assert_eq!(reply.status, 503);
        assert!(reply.head.contains("retry-after: 1"), "{}", reply.head);
        assert_eq!(get(health, "/readyz").status, 503);
        assert_eq!(get(health, "/healthz").status, 200);
    })
    .await;
    served.publish.send_replace(Some(Arc::new(facts())));
    let (address, health, pem) = (served.reviews, served.health, served.authority_pem.clone());
    client(move || {
        assert_eq!(get(health, "/readyz").status, 200);
        let reply = post(&mut connect(address, &pem), "/validate", &core_deletion());
        assert_eq!(reply.status, 200);
    })
    .await;
}

#[tokio::test]
async fn on_stale_facts_nothing_is_allowed() {
    let served = serve_as(Some(facts()), |options| options.fresh_for = Duration::ZERO);
    let (address, health, pem) = (served.reviews, served.health, served.authority_pem.clone());
    client(move || {
        let unready = get(health, "/readyz");
        let text = unready.body.as_str().unwrap();
        assert!(
            unready.status == 503 && text.contains("has heard nothing of"),
            "{unready:?}"
        );
        let reply = post(&mut connect(address, &pem), "/validate", &core_deletion());
        assert_eq!(reply.status, 200);
        let response = &reply.body["response"];
        assert_eq!(
            (&response["uid"], &response["allowed"]),
            (&json!("the-uid"), &json!(false))
        );
        assert_eq!(response["status"]["code"], 429);
        assert_eq!(response["status"]["details"]["retryAfterSeconds"], 1);
        assert_eq!(
            post(&mut connect(address, &pem), "/validate", b"junk").status,
            429
        );
        let metrics = get(health, "/metrics");
        let metrics = metrics.body.as_str().unwrap();
        for line in [
            "addons_webhook_refused_total{reason=\"stale\"} 2",
            "addons_webhook_facts_age_seconds{resource=\"addoncatalogues\"} ",
        ] {
            assert!(metrics.contains(line), "{line} in {metrics}");
        }
    })
    .await;
}

#[tokio::test]
async fn bad_bodies_get_an_answer_and_the_server_lives() {
    let served = serve(Some(facts()));
    let (address, pem) = (served.reviews, served.authority_pem.clone());
    client(move || {
        let long = vec![b' '; (7 << 20) + 1];
        let mut wide = br#"{"request": {"uid": "u", "x": ""#.to_vec();
        wide.resize(300 << 10, b'x');
        for (body, status, uid) in [
            (&b""[..], 400, None),
            (b"junk", 400, None),
            (b"\xff\x00", 400, None),
            (
                br#"{"request": {"uid": "u", "operation": 1}}"#,
                200,
                Some("u"),
            ),
            (&wide, 400, None),
            (&long, 413, None),
        ] {
            let reply = post(&mut connect(address, &pem), "/validate", body);
            assert_eq!(reply.status, status, "{:?}", reply.body);
            assert_eq!(reply.body["response"]["uid"].as_str(), uid);
            if uid.is_some() {
                assert_eq!(reply.body["response"]["allowed"], false);
            }
        }
        let mut connection = connect(address, &pem);
        assert_eq!(
            post(&mut connection, "/validate", &core_deletion()).status,
            200
        );
        connection
            .write_all(b"GET /validate HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        assert_eq!(reply(&mut connection).status, 404);
    })
    .await;
}

#[tokio::test]
async fn a_stalled_body_takes_no_place_and_ends() {
    let served = serve(Some(facts()));
    let (address, pem) = (served.reviews, served.authority_pem.clone());
    client(move || {
        let mut stalled = connect(address, &pem);
        stalled
            .write_all(b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\nhalf")
            .unwrap();
        stalled.flush().unwrap();
        let mut connection = connect(address, &pem);
        for _ in 0..10 {
            assert_eq!(
                post(&mut connection, "/validate", &core_deletion()).status,
                200
            );
        }
        assert_eq!(reply(&mut stalled).status, 408);
    })
    .await;
}

#[tokio::test]
async fn only_json_is_read() {
    let served = serve(Some(facts()));
    let (address, pem) = (served.reviews, served.authority_pem.clone());
    client(move || {
        for (head, status) in [
            (
                "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
                415,
            ),
            ("Content-Length: 2\r\n\r\n{}", 415),
            (
                "Content-Type: application/json; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}",
                400,
            ),
            (
                "Content-Type: application/json\r\nContent-Length: 99999999\r\n\r\n",
                413,
            ),
        ] {
            let mut connection = connect(address, &pem);
            let request = format!("POST /validate HTTP/1.1\r\nHost: x\r\n{head}");
            connection.write_all(request.as_bytes()).unwrap();
            assert_eq!(reply(&mut connection).status, status, "{head}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_waits_for_a_turn_delays_nothing_else_and_gets_a_retry_after() {
    let served = serve(Some(facts()));
    let (address, pem) = (served.reviews, served.authority_pem.clone());
    let here = std::net::IpAddr::from([127, 0, 0, 1]);
    let mut turns = Vec::new();
    for _ in 0..2 {
        let turn = served
            .state
            .thread_turns
            .take(here, Duration::from_secs(1))
            .await;
        turns.push(turn.unwrap());
    }
    let mut large = core_deletion();
    large.resize(100 << 10, b' ');
    let (again, pem_again) = (large.clone(), pem.clone());
    let waiting = client(move || {
        let mut waiting = connect(address, &pem);
        let mut connection = connect(address, &pem);
        let head = format!(
            "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            large.len()
        );
        waiting.write_all(head.as_bytes()).unwrap();
        waiting.write_all(&large).unwrap();
        waiting.flush().unwrap();
        // Reviews that need no turn are answered meanwhile, however many wait for one.
        for _ in 0..10 {
            assert_eq!(
                post(&mut connection, "/validate", &core_deletion()).status,
                200
            );
        }
        let busy = reply(&mut waiting);
        assert_eq!(busy.status, 429);
        assert!(busy.head.contains("retry-after: 1"), "{}", busy.head);
        assert_eq!(busy.body["kind"], "Status");
        waiting
    })
    .await;
    drop(turns);
    client(move || {
        let mut waiting = waiting;
        assert_eq!(post(&mut waiting, "/validate", &again).status, 200);
        // The body has few bytes, but takes much memory.
        let groups = "\"\",".repeat(600_000);
        let many = format!(r#"{{"request":{{"uid":"u","userInfo":{{"groups":[{groups}""]}}}}}}"#);
        let many = many.into_bytes();
        let mut connection = connect(address, &pem_again);
        assert_eq!(post(&mut connection, "/validate", &many).status, 413);
    })
    .await;
}

#[tokio::test]
async fn a_rotated_certificate_is_served_to_new_connections_while_old_ones_go_on() {
    let mut served = serve(Some(facts()));
    let (address, old_pem) = (served.reviews, served.authority_pem.clone());
    let mut connection = client(move || {
        let mut connection = connect(address, &old_pem);
        assert_eq!(
            post(&mut connection, "/validate", &core_deletion()).status,
            200
        );
        connection
    })
    .await;
    let new_pem = issue(served.dir.path(), 2);
    assert!(matches!(
        served.reloader.poll(now()),
        ReloadOutcome::Swapped
    ));
    client(move || {
        let mut fresh = connect(address, &new_pem);
        assert_eq!(post(&mut fresh, "/validate", &core_deletion()).status, 200);
        assert_eq!(
            post(&mut connection, "/validate", &core_deletion()).status,
            200
        );
    })
    .await;
}

#[tokio::test]
async fn draining_serves_on_not_ready_and_closing_until_it_stops() {
    let served = serve(Some(facts()));
    let (address, health, pem) = (served.reviews, served.health, served.authority_pem.clone());
    drain(&served.state, Duration::ZERO).await;
    client(move || {
        let reply = get(health, "/readyz");
        assert_eq!((reply.status, reply.body), (503, json!("draining")));
        let reply = post(&mut connect(address, &pem), "/validate", &core_deletion());
        assert_eq!(reply.status, 200);
        assert!(reply.head.contains("connection: close"), "{}", reply.head);
    })
    .await;
    served.stop.send(()).unwrap();
    served.done.await.unwrap().unwrap();
    let refused = client(move || std::net::TcpStream::connect(address)).await;
    assert!(refused.is_err());
}
