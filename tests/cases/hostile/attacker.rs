//! Connections from another address, and many clients at once.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::attack::Attack;

/// A small review of an object that is none of ours: allowed.
const REVIEW: &str = r#"{"request": {"uid": "u", "operation": "CREATE", "kind": {"kind": "x"}, "resource": {"resource": "x"}}}"#;

/// Who attacks.
#[derive(Clone)]
pub struct Attacker {
    /// Where reviews are sent.
    pub reviews: SocketAddr,
    /// Where probes are sent.
    pub probes: SocketAddr,
    /// How handshakes begin.
    pub config: Arc<ClientConfig>,
    from: [u8; 4],
}

/// An attack that goes on.
pub struct Attacked {
    clients: JoinSet<()>,
    statuses: Arc<Mutex<BTreeSet<u16>>>,
}

impl Attacker {
    /// Of this webhook, from 127.0.0.9.
    pub fn new(webhook: &Webhook) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        let authority = webhook.authority().certificate.as_bytes();
        roots.add(CertificateDer::from_pem_slice(authority)?)?;
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            reviews: super::address(&webhook.url())?,
            probes: super::address(&webhook.health_url())?,
            config: Arc::new(config),
            from: [127, 0, 0, 9],
        })
    }

    /// The same from another address.
    pub fn from(self, from: [u8; 4]) -> Self {
        Self { from, ..self }
    }

    /// Connects without a word.
    pub async fn tcp(&self, to: SocketAddr) -> Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((self.from, 0)))?;
        let stream = socket.connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Connects and shakes hands.
    pub async fn tls(&self) -> Result<TlsStream<TcpStream>> {
        let stream = self.tcp(self.reviews).await?;
        let name = ServerName::try_from("127.0.0.1")?;
        let connector = TlsConnector::from(Arc::clone(&self.config));
        Ok(connector.connect(name, stream).await?)
    }

    /// The status of a small review on a new connection.
    pub async fn review(&self) -> Result<u16> {
        self.review_on(&mut self.tls().await?).await
    }

    /// The status of a small review.
    pub async fn review_on(&self, stream: &mut TlsStream<TcpStream>) -> Result<u16> {
        let head = head(
            "application/json",
            &format!("Content-Length: {}", REVIEW.len()),
        );
        stream
            .write_all(format!("{head}{REVIEW}").as_bytes())
            .await?;
        stream.flush().await?;
        status(stream).await
    }

    /// Many clients that begin again whenever they are through; returns when all have begun.
    pub async fn begin(self: &Arc<Self>, attack: Attack) -> Result<Attacked> {
        let begun = Arc::new(AtomicUsize::new(0));
        let statuses = Arc::new(Mutex::new(BTreeSet::new()));
        let mut clients = JoinSet::new();
        for _ in 0..attack.clients() {
            let (attacker, begun) = (Arc::clone(self), Arc::clone(&begun));
            let statuses = Arc::clone(&statuses);
            clients.spawn(async move {
                loop {
                    // Whatever the webhook does to it, it comes again.
                    let answer = attack.run(&attacker, &begun).await;
                    if let (Ok(status), Ok(mut statuses)) = (answer, statuses.lock()) {
                        statuses.insert(status);
                    }
                    tokio::task::yield_now().await;
                }
            });
        }
        let expected = attack.clients();
        until(&format!("{attack:?} goes on"), async || {
            let begun = begun.load(Ordering::Relaxed);
            let is_so = begun >= expected;
            Ok(is_so.then_some(()).ok_or(format!("{begun} of {expected}")))
        })
        .await?;
        Ok(Attacked { clients, statuses })
    }
}

impl Attacked {
    /// Ends it, as soon as a client was answered where one is answered at all; returns the statuses of the answers.
    pub async fn end(mut self, attack: Attack) -> Result<BTreeSet<u16>> {
        if let Some(expected) = attack.answer() {
            until(&format!("{attack:?} is answered {expected}"), async || {
                let seen = self.seen();
                Ok(seen
                    .contains(&expected)
                    .then_some(())
                    .ok_or(format!("{seen:?}")))
            })
            .await?;
        }
        self.clients.shutdown().await;
        Ok(self.seen())
    }

    fn seen(&self) -> BTreeSet<u16> {
        self.statuses
            .lock()
            .map(|seen| seen.clone())
            .unwrap_or_default()
    }
}

/// The head of a review.
pub fn head(content_type: &str, length: &str) -> String {
    format!(
        "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\n{length}\r\n\r\n"
    )
}

/// The status of the answer.
pub async fn status(stream: &mut (impl AsyncRead + Unpin)) -> Result<u16> {
    let mut line = [0; 12];
    stream.read_exact(&mut line).await?;
    let text = std::str::from_utf8(&line)?;
    let status = text.strip_prefix("HTTP/1.1 ").context("no status")?;
    Ok(status.parse()?)
}

/// Waits until the server closes the connection.
pub async fn hold(stream: &mut (impl AsyncRead + Unpin)) -> Result<()> {
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

/// Sends `begin`, and then a byte now and then until there is an answer.
pub async fn drip(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    begin: &str,
    begun: &AtomicUsize,
) -> Result<u16> {
    stream.write_all(begin.as_bytes()).await?;
    stream.flush().await?;
    begun.fetch_add(1, Ordering::Relaxed);
    let (mut reader, mut writer) = tokio::io::split(stream);
    let answer = status(&mut reader);
    let mut answer = std::pin::pin!(answer);
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(100));
    loop {
        tokio::select! {
            status = &mut answer => return status,
            _ = tick.tick() => {
                // Closed perhaps, and there is an answer still to read.
                let _ = writer.write_all(b"a").await;
                let _ = writer.flush().await;
            }
        }
    }
}
