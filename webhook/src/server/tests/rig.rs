//! A pair of servers on loopback, and a client that writes bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use actix_web::rt;
use addons_admission::AdmissionFacts;
use certs::authority::Authority;
use certs::reload::{CertificateFiles, Reloader};
use common::api::catalogue::AddonCatalogue;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::access::RequesterAccess;
use crate::clients::Clients;
use crate::freshness::Freshness;
use crate::lookup::LiveLookup;
use crate::server::*;
use crate::tls::{MinimumTls, config};

pub const NAME: &str = "127.0.0.1";

/// A running pair of servers; dropping `stop` stops them.
pub struct Served {
    pub state: Arc<WebhookState>,
    pub reloader: Reloader,
    pub reviews: SocketAddr,
    pub health: SocketAddr,
    pub authority_pem: String,
    pub publish: watch::Sender<Option<Arc<AdmissionFacts>>>,
    pub stop: oneshot::Sender<()>,
    pub done: rt::task::JoinHandle<io::Result<()>>,
    pub dir: tempfile::TempDir,
}

/// Writes a certificate of a new authority and returns the authority.
pub fn issue(dir: &Path, days: u64) -> String {
    let now = jiff::Timestamp::now();
    let lifetime = Duration::from_secs(days * 86_400);
    let authority = Authority::new("test", now, lifetime).unwrap();
    let leaf = authority.issue(&[NAME], now, lifetime).unwrap();
    std::fs::write(dir.join("tls.crt"), &leaf.certificate_pem).unwrap();
    std::fs::write(dir.join("tls.key"), &leaf.key_pem).unwrap();
    authority.certificate_pem().to_owned()
}

/// A client of an API server that does not respond.
fn nowhere() -> kube::Client {
    let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    kube::Client::try_from(nowhere).unwrap()
}

pub fn serve(facts: Option<AdmissionFacts>) -> Served {
    serve_as(facts, |_| {})
}

/// Options in which a server differs from the others.
pub struct Options {
    /// The time after which the facts are stale, because no watch receives anything.
    pub fresh_for: Duration,
    pub minimum: MinimumTls,
    pub clients: Option<Arc<Clients>>,
}

pub fn serve_as(facts: Option<AdmissionFacts>, change: impl FnOnce(&mut Options)) -> Served {
    let mut options = Options {
        fresh_for: Duration::from_secs(90),
        minimum: MinimumTls::V13,
        clients: None,
    };
    change(&mut options);
    let dir = tempfile::tempdir().unwrap();
    let authority_pem = issue(dir.path(), 1);
    let files = CertificateFiles {
        certificate: dir.path().join("tls.crt"),
        key: dir.path().join("tls.key"),
        authority: None,
        names: vec![NAME.to_owned()],
    };
    let certificate = Arc::<certs::serving::ServedCertificate>::default();
    let reloader = Reloader::new(files, Arc::clone(&certificate), now()).unwrap();
    let (publish, facts) = watch::channel(facts.map(Arc::new));
    let freshness = Arc::new(Freshness::new(options.fresh_for));
    let state = Arc::new(WebhookState::new(
        facts,
        freshness,
        certificate,
        RequesterAccess::new(nowhere()),
        LiveLookup::new(nowhere()),
    ));
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
    let limits = ReviewLimits {
        workers: 1,
        connections: 1024,
    };
    let tls = config(state.certificate.clone(), options.minimum, options.clients).unwrap();
    let server = serve_reviews(reviews_at, &state, tls, limits, wait).unwrap();
    tokio::spawn(serve_probes(health_at, Arc::clone(&state)).unwrap());
    Served {
        done: tokio::spawn(server),
        state,
        reloader,
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
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

pub type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A connection that trusts only this authority.
pub fn connect(address: SocketAddr, authority_pem: &str) -> Tls {
    connect_as(address, authority_pem, None, &TLS13)
}

/// Connects as a client with this certificate.
pub fn connect_as(
    address: SocketAddr,
    authority_pem: &str,
    client: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
    version: &'static SupportedProtocolVersion,
) -> Tls {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority_pem.as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        Some((certificate, key)) => config
            .with_client_auth_cert(vec![certificate], key)
            .unwrap(),
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from(NAME).unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    StreamOwned::new(session, socket)
}

pub fn post(stream: &mut Tls, path: &str, body: &[u8]) -> Reply {
    let head = format!(
        "POST {path}?timeout=5s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The server may respond and close before it has read everything.
    let _ = stream.write_all(body).and_then(|()| stream.flush());
    reply(stream)
}

/// Reads one response.
pub fn reply(stream: impl io::Read) -> Reply {
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

pub fn get(address: SocketAddr, path: &str) -> Reply {
    let mut socket = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    reply(socket)
}

/// Runs blocking client code beside the servers.
pub async fn client<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

pub fn facts() -> AdmissionFacts {
    let catalogue: AddonCatalogue = serde_json::from_value(json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "platform", "namespace": "kubectl-addons"},
        "spec": {"addons": [{"name": "web", "versions": [
            {"version": "1.0.0", "source": {"url": {"manifest": "m.yaml"}}}]}]},
    }))
    .unwrap();
    AdmissionFacts {
        catalogues: vec![Arc::new(catalogue.into())],
        ..AdmissionFacts::default()
    }
}

pub fn review(kind: &str, operation: &str, new: Value, old: Value) -> Vec<u8> {
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

pub fn core_deletion() -> Vec<u8> {
    let old = json!({
        "metadata": {"name": "coredns", "namespace": "kubectl-addons"},
        "spec": {"addonRef": {"name": "coredns"}, "coreAddon": true},
    });
    review("AddonInstallation", "DELETE", json!(null), old)
}

pub fn duplicate() -> Vec<u8> {
    let new = json!({
        "metadata": {"name": "custom", "namespace": "kubectl-addons"},
        "spec": {"addons": [{"name": "web", "versions": [
            {"version": "v1", "source": {"url": {"manifest": "m.yaml"}}}]}]},
    });
    review("AddonCatalogue", "CREATE", new, json!(null))
}
