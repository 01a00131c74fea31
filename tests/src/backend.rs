//! Who answers behind Services: the Pods of a pretended node serve nothing.
//!
//! Whatever address the API server's [`egress`] is asked for, the connection ends here. TLS goes from end to end, so the certificate
//! has to be the Service's own.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::control_plane::pki::Authority;
use crate::egress::{self, Egress};
use crate::proxy;

/// More than the API server sends.
const BODY_LIMIT: usize = 16 << 20;

/// A webhook that allows everything, behind every Service of a cluster; dropped, it is gone.
pub struct Backend {
    authority: Authority,
    egress: Egress,
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
        let (egress, listener) = Egress::open()?;
        let reviews = Arc::default();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, acceptor, Arc::clone(&reviews)));
        Ok(Self {
            authority,
            egress,
            reviews,
            _serving: serving,
        })
    }

    /// The flag by which an API server finds it.
    #[must_use]
    pub fn flag(&self) -> String {
        self.egress.flag()
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
    let endpoint = Arc::new(egress::endpoint(&mut stream).await?);
    egress::established(&mut stream).await?;
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
