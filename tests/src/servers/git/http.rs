//! `git http-backend` behind a small server, which counts what it is asked, wants a password, and can break.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use futures::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

use crate::control_plane::pki::Authority;

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// What a server is like. What is asked below `/moved/` is redirected to the same path without it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// User name and password that it wants.
    pub account: Option<(&'static str, &'static str)>,
    /// It speaks TLS with a certificate of an authority of its own.
    pub tls: bool,
    /// It knows no protocol v2.
    pub old: bool,
    /// It can leave out files. Without protocol v2, it then refuses to send them by their ids.
    pub partial: bool,
}

/// How it breaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Not at all.
    #[default]
    None,
    /// Each answer to a POST ends after so many bytes, without its end.
    Truncate(usize),
    /// Every GET is redirected to this URL and its own path.
    Redirect(String),
    /// Answers to a POST never end.
    Endless,
    /// Requests are taken and never answered.
    Silent,
    /// Every answer has this status.
    Status(u16),
    /// Every answer is a page.
    Page,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `GET` or `POST`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The header Authorization.
    pub authorization: Option<String>,
}

/// The server: it ends when it is dropped.
pub struct GitHttp {
    /// `http://127.0.0.1:PORT` or `https://…`.
    pub url: String,
    /// The authority of its certificate, PEM.
    pub authority: String,
    state: Arc<State>,
    serving: tokio::task::JoinHandle<()>,
}

struct State {
    root: PathBuf,
    open: AtomicUsize,
    options: Options,
    seen: Mutex<Vec<Seen>>,
    fault: Mutex<Fault>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GitHttp {
    /// Serves the repositories in `root`.
    ///
    /// # Errors
    /// Where no port is free.
    pub async fn start(root: &Path, options: Options) -> Result<Self> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let scheme = if options.tls { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr()?);
        let authority = Authority::new("git")?;
        let acceptor = options.tls.then(|| acceptor(&authority)).transpose()?;
        let state = Arc::new(State {
            root: root.to_owned(),
            open: AtomicUsize::new(0),
            options,
            seen: Mutex::default(),
            fault: Mutex::default(),
        });
        let serving = tokio::spawn(serve(listener, acceptor, Arc::clone(&state)));
        Ok(Self {
            url,
            authority: authority.certificate,
            state,
            serving,
        })
    }

    /// The remote of the repository.
    #[must_use]
    pub fn remote(&self) -> String {
        format!("{}/repo.git", self.url)
    }

    /// From now on it breaks in this way.
    pub fn breaks(&self, fault: Fault) {
        *lock(&self.state.fault) = fault;
    }

    /// Connections that are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.state.open.load(Ordering::SeqCst)
    }

    /// What it was asked since the last call.
    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut lock(&self.state.seen))
    }
}

impl Drop for GitHttp {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn acceptor(authority: &Authority) -> Result<TlsAcceptor> {
    let pair = authority.serving("git", &["127.0.0.1", "localhost"])?;
    let certificates = CertificateDer::pem_slice_iter(pair.certificate.as_bytes());
    let certificates = certificates.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve(
    listener: tokio::net::TcpListener,
    acceptor: Option<TlsAcceptor>,
    state: Arc<State>,
) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, state) = (acceptor.clone(), Arc::clone(&state));
        connections.spawn(async move {
            state.open.fetch_add(1, Ordering::SeqCst);
            let _open = Open(Arc::clone(&state));
            match acceptor {
                None => connection(stream, state).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        connection(stream, state).await;
                    }
                }
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// A connection, until it is dropped.
struct Open(Arc<State>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    state: Arc<State>,
) {
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { handle(&state, request).await }
    });
    // An error is a connection that was cut, here or by the client.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn handle(state: &State, request: Request<Incoming>) -> Result<Response<Body>> {
    let authorization = request.headers().get(AUTHORIZATION);
    let authorization = authorization
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let path = request
        .uri()
        .path_and_query()
        .map(|path| path.as_str().to_owned());
    let path = path.unwrap_or_default();
    lock(&state.seen).push(Seen {
        method: request.method().to_string(),
        path: path.clone(),
        authorization: authorization.clone(),
    });
    let fault = lock(&state.fault).clone();
    let answer = Response::builder();
    if let Some((user, password)) = state.options.account {
        let both = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        if authorization != Some(format!("Basic {both}")) {
            let answer = answer
                .status(401)
                .header(WWW_AUTHENTICATE, "Basic realm=\"git\"");
            return Ok(answer.body(whole("who are you?"))?);
        }
    }
    if let Some(rest) = path.strip_prefix("/moved/") {
        let answer = answer.status(301).header(LOCATION, format!("/{rest}"));
        return Ok(answer.body(whole(""))?);
    }
    let is_post = request.method() == "POST";
    match fault {
        Fault::Silent => std::future::pending().await,
        Fault::Redirect(to) if !is_post => {
            let answer = answer.status(301).header(LOCATION, format!("{to}{path}"));
            Ok(answer.body(whole(""))?)
        }
        Fault::Status(status) => Ok(answer.status(status).body(whole("no"))?),
        Fault::Page => Ok(answer
            .header(CONTENT_TYPE, "text/html")
            .body(whole("<html>"))?),
        Fault::Endless if is_post => {
            let answer = answer.header(CONTENT_TYPE, "application/x-git-upload-pack-result");
            Ok(answer.body(endless())?)
        }
        Fault::Truncate(length) if is_post => {
            let (parts, body) = backend(state, request).await?.into_parts();
            let bytes = body.collect().await?.to_bytes();
            let bytes = bytes.slice(..length.min(bytes.len()));
            let cut = futures::stream::iter([
                Ok(Frame::data(bytes)),
                Err(std::io::Error::other("cut here")),
            ]);
            Ok(Response::from_parts(
                parts,
                StreamBody::new(cut).boxed_unsync(),
            ))
        }
        _ => backend(state, request).await,
    }
}

fn whole(text: impl Into<Bytes>) -> Body {
    Full::new(text.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// The section of a pack: its header, and an object that never ends.
fn endless() -> Body {
    let mut line = b"000dpackfile\n".to_vec();
    line.extend(b"0011\x01PACK\0\0\0\x02\0\0\0\x01");
    // A blob of 32 MiB, whose deflate stream consists of stored blocks that hold nothing.
    line.extend(b"000b\x01\xbf\xff\xff\x0f\x78\x01");
    let empty = b"\0\0\0\xff\xff".repeat(13_000);
    let mut block = format!("{:04x}\u{1}", empty.len() + 5).into_bytes();
    block.extend(empty);
    let blocks = futures::stream::repeat(Bytes::from(block));
    let frames = futures::stream::iter([Bytes::from(line)]).chain(blocks);
    StreamBody::new(frames.map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync()
}

/// Runs `git http-backend`.
async fn backend(state: &State, request: Request<Incoming>) -> Result<Response<Body>> {
    let mut command = std::process::Command::new("git");
    super::repository::isolated(&mut command);
    let header = |name: &str| {
        let value = request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", &state.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", request.method().as_str())
        .env("PATH_INFO", request.uri().path())
        .env("QUERY_STRING", request.uri().query().unwrap_or_default())
        .env("CONTENT_TYPE", header("content-type"))
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("GIT_CONFIG_COUNT", "2")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("GIT_CONFIG_KEY_1", "uploadpack.allowFilter")
        .env("GIT_CONFIG_VALUE_1", state.options.partial.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if !state.options.old {
        command.env("GIT_PROTOCOL", header("git-protocol"));
    }
    let mut child = tokio::process::Command::from(command)
        .kill_on_drop(true)
        .spawn()?;
    let body = request.into_body().collect().await?.to_bytes();
    let mut stdin = child.stdin.take().context("no stdin")?;
    // It ends without reading everything where it refuses.
    let _ = stdin.write_all(&body).await;
    drop(stdin);
    let output = child.wait_with_output().await?;
    let end = output
        .stdout
        .windows(4)
        .position(|window| window == b"\r\n\r\n");
    let (head, body) = output.stdout.split_at(end.context("no header")?);
    let mut answer = Response::builder();
    for line in std::str::from_utf8(head)?.lines() {
        let (name, value) = line.split_once(": ").context("no header")?;
        answer = match (name, value.split_once(' ')) {
            ("Status", status) => answer.status(status.map_or(value, |(code, _)| code)),
            _ => answer.header(name, value),
        };
    }
    let body = Bytes::copy_from_slice(body.get(4..).unwrap_or_default());
    Ok(answer.body(whole(body))?)
}
