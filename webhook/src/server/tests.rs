//! Real TLS on loopback: generated certificates, fixed facts, bytes on a socket.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use actix_web::rt;
use certs::authority::Authority;
use certs::reload::{Files, Reloader};
use common::admission::Facts;
use common::api::catalogue::AddonCatalogue;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::*;
use crate::access::Access;

const NAME: &str = "127.0.0.1";

/// A running pair of servers; dropping `stop` stops them.
struct Served {
    state: Arc<State>,
    reviews: SocketAddr,
    health: SocketAddr,
    authority_pem: String,
    publish: watch::Sender<Option<Arc<Facts>>>,
    stop: oneshot::Sender<()>,
    done: rt::task::JoinHandle<io::Result<()>>,
    dir: tempfile::TempDir,
}

/// Writes a certificate of a new authority and returns the authority.
fn issue(dir: &Path, days: u64) -> String {
    let now = jiff::Timestamp::now();
    let lifetime = Duration::from_secs(days * 86_400);
    let authority = Authority::new("test", now, lifetime).unwrap();
    let leaf = authority.issue(&[NAME], now, lifetime).unwrap();
    std::fs::write(dir.join("tls.crt"), &leaf.certificate_pem).unwrap();
    std::fs::write(dir.join("tls.key"), &leaf.key_pem).unwrap();
    authority.certificate_pem().to_owned()
}

/// Of an API server that does not answer.
fn access() -> Access {
    let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    Access::new(kube::Client::try_from(nowhere).unwrap())
}

fn serve(facts: Option<Facts>, max_concurrent: u16) -> Served {
    let dir = tempfile::tempdir().unwrap();
    let authority_pem = issue(dir.path(), 1);
    let files = Files {
        certificate: dir.path().join("tls.crt"),
        key: dir.path().join("tls.key"),
        authority: None,
        names: vec![NAME.to_owned()],
    };
    let certificate = Reloader::new(files, now()).unwrap();
    let (publish, facts) = watch::channel(facts.map(Arc::new));
    let state = Arc::new(State::new(facts, certificate, access(), max_concurrent));
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let (reviews_at, health_at) = (bind(any).unwrap(), bind(any).unwrap());
    let addresses = (
        reviews_at.local_addr().unwrap(),
        health_at.local_addr().unwrap(),
    );
    let (stop, stopped) = oneshot::channel::<()>();
    let wait = async move {
        let _ = stopped.await;
    };
    let server = reviews(reviews_at, &state, 1, wait).unwrap();
    rt::spawn(health(health_at, Arc::clone(&state)).unwrap());
    Served {
        done: rt::spawn(server),
        state,
        reviews: addresses.0,
        health: addresses.1,
        authority_pem,
        publish,
        stop,
        dir,
    }
}

/// The response.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: Value,
}

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A connection that trusts only this authority.
fn connect(address: SocketAddr, authority_pem: &str) -> Tls {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority_pem.as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(NAME).unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    StreamOwned::new(session, socket)
}

fn post(stream: &mut Tls, path: &str, body: &[u8]) -> Reply {
    let head = format!(
        "POST {path}?timeout=5s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The server may answer and close before it has read all.
    let _ = stream.write_all(body).and_then(|()| stream.flush());
    reply(stream)
}

/// Reads one answer.
fn reply(stream: impl io::Read) -> Reply {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(
            reader.read_line(&mut head).unwrap(),
            0,
            "closed after {head:?}"
        );
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let head = head.to_lowercase();
    let length: usize = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .unwrap()
        .parse()
        .unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let text = String::from_utf8(body).unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Reply { status, head, body }
}

fn get(address: SocketAddr, path: &str) -> Reply {
    let mut socket = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    reply(socket)
}

/// Runs blocking client code beside the servers.
async fn client<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

fn facts() -> Facts {
    let catalogue: AddonCatalogue = serde_json::from_value(json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "platform", "namespace": "kubectl-addons"},
        "spec": {"addons": [{"name": "web", "versions": [
            {"version": "1.0.0", "source": {"url": {"manifest": "m.yaml"}}}]}]},
    }))
    .unwrap();
    Facts {
        catalogues: vec![Arc::new(catalogue)],
        ..Facts::default()
    }
}

fn review(kind: &str, operation: &str, new: Value, old: Value) -> Vec<u8> {
    let group = "kubectl-addons.dev";
    serde_json::to_vec(&json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "the-uid", "operation": operation, "name": "", "namespace": "kubectl-addons",
            "kind": {"group": group, "version": "v1alpha1", "kind": kind},
            "resource": {"group": group, "version": "v1alpha1", "resource": "x"},
            "userInfo": {"username": "jane"}, "object": new, "oldObject": old,
        },
    }))
    .unwrap()
}

fn core_deletion() -> Vec<u8> {
    let old = json!({
        "metadata": {"name": "coredns", "namespace": "kubectl-addons"},
        "spec": {"addonRef": {"name": "coredns"}, "coreAddon": true},
    });
    review("AddonInstallation", "DELETE", json!(null), old)
}

fn duplicate() -> Vec<u8> {
    let new = json!({
        "metadata": {"name": "custom", "namespace": "kubectl-addons"},
        "spec": {"addons": [{"name": "web", "versions": [
            {"version": "v1", "source": {"url": {"manifest": "m.yaml"}}}]}]},
    });
    review("AddonCatalogue", "CREATE", new, json!(null))
}

#[actix_web::test]
async fn reviews_are_answered_over_tls_on_one_connection() {
    let served = serve(Some(facts()), 4);
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
        assert_eq!(patch.0.len(), 2);
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

#[actix_web::test]
async fn without_facts_nothing_is_allowed() {
    let served = serve(None, 4);
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

#[actix_web::test]
async fn bad_bodies_get_an_answer_and_the_server_lives() {
    let served = serve(Some(facts()), 4);
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

#[actix_web::test]
async fn more_than_the_limit_gets_a_retry_after_and_a_stalled_body_ends() {
    let served = serve(Some(facts()), 1);
    let (address, pem) = (served.reviews, served.authority_pem.clone());
    client(move || {
        let mut stalled = connect(address, &pem);
        stalled
            .write_all(b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
            .unwrap();
        stalled.flush().unwrap();
        // The stalled one takes the only place as soon as its head was read.
        let mut connection = connect(address, &pem);
        let busy = loop {
            let reply = post(&mut connection, "/validate", &core_deletion());
            if reply.status != 200 {
                break reply;
            }
        };
        assert_eq!(busy.status, 429);
        assert!(busy.head.contains("retry-after: 1"), "{}", busy.head);
        assert_eq!(reply(&mut stalled).status, 408);
        let mut again = connect(address, &pem);
        assert_eq!(post(&mut again, "/validate", &core_deletion()).status, 200);
    })
    .await;
}

#[actix_web::test]
async fn a_rotated_certificate_is_served_to_new_connections_while_old_ones_go_on() {
    let served = serve(Some(facts()), 4);
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
        served.state.certificate.poll(now()),
        Poll::Swapped
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

#[actix_web::test]
async fn draining_serves_on_not_ready_and_closing_until_it_stops() {
    let served = serve(Some(facts()), 4);
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
    let refused = client(move || TcpStream::connect(address)).await;
    assert!(refused.is_err());
}
