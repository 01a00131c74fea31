//! A small HTTP server on loopback. It serves discovery, GET and LIST to clients that know its token.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use addons_sources::loopback::Loopback;
use common::api::names::CLIENT;
use common::manifest::key::Gvk;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::capabilities::{Capabilities, KubeVersion};
use super::discovery::Discovery;
use super::{Lookup, LookupQuery};
use crate::HelmError;
use crate::workspace::Workspace;

/// Time after which an idle connection is closed. Helm opens another one.
const SILENCE: Duration = Duration::from_secs(30);
const KUBECONFIG: &str = "kubeconfig";

/// The server for the renderings of one chart.
pub(crate) struct Endpoint<'a> {
    /// The token is the first segment of every path: Kubernetes clients send no bearer token without TLS.
    loopback: Loopback,
    version: &'a KubeVersion,
    discovery: Discovery,
    lookup: &'a Lookup<'a>,
    /// Whether the release exists. If not, helm asks at the end whether the objects that it rendered exist.
    is_upgrade: bool,
    state: Mutex<EndpointState>,
}

#[derive(Default)]
struct EndpointState {
    /// How often helm listed the groups. It lists them first for `.Capabilities`, and again to map the kinds of the rendered objects.
    listings: usize,
    /// Kinds that only the second listing contains, because this operation will define them.
    unserved: BTreeSet<Gvk>,
}

/// Status code and body.
type EndpointReply = (StatusCode, Value);

impl<'a> Endpoint<'a> {
    /// Opens the endpoint.
    ///
    /// # Errors
    /// There is no free port, or no source of randomness.
    pub(crate) async fn open(
        capabilities: &'a Capabilities,
        lookup: &'a Lookup<'a>,
        is_upgrade: bool,
    ) -> Result<Self, HelmError> {
        let wrong = |source| HelmError::Endpoint { source };
        Ok(Self {
            loopback: Loopback::open().await.map_err(wrong)?,
            version: &capabilities.kube_version,
            discovery: Discovery::new(capabilities, lookup.kinds),
            lookup,
            is_upgrade,
            state: Mutex::default(),
        })
    }

    /// Returns the token that clients need. It must not appear in any output.
    pub(crate) fn token(&self) -> &str {
        self.loopback.token()
    }

    /// Writes a kubeconfig for this endpoint.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn kubeconfig(&self, workspace: &Workspace) -> Result<PathBuf, HelmError> {
        let (address, token) = (self.loopback.address(), self.token());
        let cluster = json!({"server": format!("http://{address}/{token}")});
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CLIENT,
            "clusters": [{"name": CLIENT, "cluster": cluster}],
            "users": [{"name": CLIENT, "user": {}}],
            "contexts": [{"name": CLIENT, "context": {"cluster": CLIENT, "user": CLIENT}}],
        });
        workspace.write(KUBECONFIG.as_ref(), kubeconfig.to_string().as_bytes())
    }

    /// Begins a rendering in which these kinds are mapped as well. Returns whether some of them were not known before.
    pub(crate) fn begin_rendering(&self, unserved: BTreeSet<Gvk>) -> bool {
        let mut state = self.lock_state();
        let before = state.unserved.len();
        state.unserved.extend(unserved);
        state.listings = 0;
        state.unserved.len() > before
    }

    /// Answers requests until `work` is done.
    pub(crate) async fn serve_while<T>(&self, work: impl Future<Output = T>) -> T {
        let serve = |stream| self.serve_connection(stream);
        self.loopback.serve_while(work, serve).await
    }

    async fn serve_connection(&self, stream: TcpStream) {
        let service = service_fn(async |request: Request<Incoming>| {
            Ok::<_, Infallible>(response(self.handle(&request).await))
        });
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(SILENCE);
        // A client that disconnects gives no reason; helm's own message says what it missed.
        let _ = server.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn handle(&self, request: &Request<Incoming>) -> EndpointReply {
        let mut path = request.uri().path().split('/').skip(1);
        if !self.loopback.is_token(path.next().unwrap_or_default()) {
            return failure(StatusCode::UNAUTHORIZED, "Unauthorized", "no token");
        }
        let query = request.uri().query().unwrap_or_default();
        if request.method() != Method::GET || query.contains("watch") {
            let message = "only GET and LIST are served";
            return failure(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message);
        }
        let path: Vec<&str> = path.collect();
        match path.as_slice() {
            ["version"] => (StatusCode::OK, self.version_document()),
            // Helm's `lookup` requests a path like this one for a kind that none of our documents contains.
            ["api"] if !is_discovery(request) => not_found(),
            ["api"] => (StatusCode::OK, self.discovery.core_document()),
            ["apis"] => (StatusCode::OK, self.list_groups()),
            ["api", "v1"] => (StatusCode::OK, self.list_resources("", "v1")),
            ["apis", group, version] => (StatusCode::OK, self.list_resources(group, version)),
            ["api", version, rest @ ..] => self.find_objects("", version, rest).await,
            ["apis", group, version, rest @ ..] => self.find_objects(group, version, rest).await,
            _ => not_found(),
        }
    }

    fn version_document(&self) -> Value {
        let KubeVersion {
            version,
            major,
            minor,
        } = self.version;
        json!({"gitVersion": version, "major": major, "minor": minor})
    }

    fn list_groups(&self) -> Value {
        self.lock_state().listings += 1;
        self.document_for_helm(Discovery::groups_document)
    }

    fn list_resources(&self, group: &str, version: &str) -> Value {
        self.document_for_helm(|discovery| discovery.resources_document(group, version))
    }

    /// Returns a document. Once helm maps the rendered objects, it includes the kinds that this operation will define.
    fn document_for_helm(&self, document: impl Fn(&Discovery) -> Value) -> Value {
        let state = self.lock_state();
        if state.listings < 2 || state.unserved.is_empty() {
            return document(&self.discovery);
        }
        let mut discovery = self.discovery.clone();
        for gvk in &state.unserved {
            discovery.add_kind(gvk, self.lookup.kinds);
        }
        document(&discovery)
    }

    /// Answers `secret`, `secret/NAME`, `namespaces/NAMESPACE/secret` and `namespaces/NAMESPACE/secret/NAME`.
    async fn find_objects(&self, group: &str, version: &str, path: &[&str]) -> EndpointReply {
        let (namespace, kind, name) = match path {
            ["namespaces", namespace, kind] => (Some(*namespace), kind, None),
            ["namespaces", namespace, kind, name] => (Some(*namespace), kind, Some(*name)),
            [kind] => (None, kind, None),
            [kind, name] => (None, kind, Some(*name)),
            _ => return not_found(),
        };
        let gvk = self.discovery.find_kind(group, version, kind);
        // Once helm maps kinds, everything is rendered. Its remaining requests check for objects in the way of a new release, and find
        // none.
        let is_rendered = !self.is_upgrade && self.lock_state().listings > 1;
        let Some(gvk) = gvk.filter(|_| !is_rendered) else {
            return not_found();
        };
        let query = LookupQuery {
            gvk: gvk.clone(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        };
        match (self.lookup.find(query).await, name) {
            (Err(message), _) => failure(StatusCode::FORBIDDEN, "Forbidden", &message),
            (Ok(objects), None) => (StatusCode::OK, list_document(&gvk, objects)),
            (Ok(objects), Some(_)) => match objects.into_iter().next() {
                Some(object) => (StatusCode::OK, object),
                None => not_found(),
            },
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, EndpointState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a request is for aggregated discovery, according to its `Accept` header.
fn is_discovery(request: &Request<Incoming>) -> bool {
    let accepted = request.headers().get(ACCEPT);
    let accepted = accepted.and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("apidiscovery"))
}

fn list_document(gvk: &Gvk, objects: Vec<Value>) -> Value {
    json!({"apiVersion": gvk.api_version(), "kind": format!("{}List", gvk.kind), "metadata": {}, "items": objects})
}

fn not_found() -> EndpointReply {
    failure(StatusCode::NOT_FOUND, "NotFound", "not found")
}

fn failure(code: StatusCode, reason: &str, message: &str) -> EndpointReply {
    let status = json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "reason": reason, "message": message, "code": code.as_u16()});
    (code, status)
}

fn response((code, document): EndpointReply) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(document.to_string())));
    *response.status_mut() = code;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests;
