//! Who answers behind Services: kwok's pods serve nothing.
//!
//! The API server finds the ready endpoint of a Service by itself, and without one it calls nobody. Only the way to that
//! endpoint leads through a proxy (its egress to the cluster), which is this one: whatever address it is asked for, the
//! connection ends here. TLS goes from end to end, so the certificate has to be the Service's own.

use std::convert::Infallible;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::control_plane::pki::Authority;
use crate::guard::Folder;
use crate::proxy;

/// More than the API server sends.
const BODY_LIMIT: usize = 16 << 20;
/// Longest beginning of a connection, before TLS.
const HEAD_LIMIT: usize = 4096;

/// A webhook that allows everything, behind every Service of a cluster; dropped, it is gone.
pub struct Backend {
    authority: Authority,
    folder: Folder,
    reviews: Arc<Mutex<Vec<Review>>>,
    _serving: JoinSet<()>,
}

/// One question of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// `ADDRESS:PORT` of the endpoint that the API server chose.
    pub endpoint: String,
    /// Path of the webhook.
    pub path: String,
    /// Kind and name of the object.
    pub object: String,
}

impl Backend {
    /// Answers for Services of these host names, `NAME.NAMESPACE.svc`, in the runtime of the caller.
    ///
    /// # Errors
    /// Of the file system, or of the cryptography.
    pub fn start(hosts: &[&str]) -> Result<Self> {
        let authority = Authority::new("kubectl-addons-backend")?;
        let acceptor = proxy::acceptor(&authority.serving("backend", hosts)?)?;
        let folder = Folder::new("kubectl-addons-backend-")?;
        // Over TCP the API server wants TLS on the way to the proxy, too.
        let socket = folder.path().join("egress.sock");
        let listener = UnixListener::bind(&socket).with_context(|| socket.display().to_string())?;
        let egress = json!({
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": {
                "proxyProtocol": "HTTPConnect",
                "transport": {"uds": {"udsName": socket}},
            }}],
        });
        fs::write(folder.path().join("egress.json"), egress.to_string())?;
        let reviews = Arc::default();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, acceptor, Arc::clone(&reviews)));
        Ok(Self {
            authority,
            folder,
            reviews,
            _serving: serving,
        })
    }

    /// The flag by which an API server finds it.
    #[must_use]
    pub fn flag(&self) -> String {
        let path = self.folder.path().join("egress.json");
        format!("--egress-selector-config-file={}", path.display())
    }

    /// The certificate of who signed its own: a `caBundle`, PEM.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority.certificate
    }

    /// What it was asked so far.
    #[must_use]
    pub fn reviews(&self) -> Vec<Review> {
        let reviews = self.reviews.lock();
        reviews.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(listener: UnixListener, acceptor: TlsAcceptor, reviews: Arc<Mutex<Vec<Review>>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, reviews) = (acceptor.clone(), Arc::clone(&reviews));
        connections.spawn(async move {
            // A connection that breaks is the API server's error, and seen there.
            let _ = connection(stream, acceptor, reviews).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(
    mut stream: UnixStream,
    acceptor: TlsAcceptor,
    reviews: Arc<Mutex<Vec<Review>>>,
) -> Result<()> {
    let endpoint = Arc::new(endpoint(&mut stream).await?);
    stream
        .write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n")
        .await?;
    let stream = TokioIo::new(acceptor.accept(stream).await?);
    let service = service_fn(|request| {
        let (endpoint, reviews) = (Arc::clone(&endpoint), Arc::clone(&reviews));
        async move { Ok::<_, Infallible>(answer(request, &endpoint, &reviews).await) }
    });
    http1::Builder::new()
        .serve_connection(stream, service)
        .await?;
    Ok(())
}

/// What the head of a connection asks for: `CONNECT 10.0.0.5:9443 HTTP/1.1`.
async fn endpoint(stream: &mut UnixStream) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // Byte by byte: what comes behind it belongs to TLS.
        head.push(stream.read_u8().await?);
        if head.len() > HEAD_LIMIT {
            bail!("a head of more than {HEAD_LIMIT} bytes");
        }
    }
    let head = String::from_utf8(head)?;
    let mut words = head.split(' ');
    match (words.next(), words.next()) {
        (Some("CONNECT"), Some(endpoint)) => Ok(endpoint.to_owned()),
        _ => bail!("no CONNECT: {head}"),
    }
}

/// Allows it, and writes it down.
async fn answer(
    request: Request<Incoming>,
    endpoint: &str,
    reviews: &Mutex<Vec<Review>>,
) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    let body = Limited::new(request.into_body(), BODY_LIMIT)
        .collect()
        .await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |pointer| {
        let text = review.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default()
    };
    let object = format!("{} {}", text("/request/kind/kind"), text("/request/name"));
    let mut reviewed = reviews.lock().unwrap_or_else(PoisonError::into_inner);
    reviewed.push(Review {
        endpoint: endpoint.to_owned(),
        path,
        object,
    });
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": text("/request/uid"), "allowed": true},
    });
    Response::new(Full::new(Bytes::from(answer.to_string())))
}
