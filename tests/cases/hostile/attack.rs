//! What hostile clients do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, bail};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::attacker::{Attacker, drip, head, hold, status};

/// The largest body that a review may have.
const LARGE: usize = 7 << 20;

/// A way to keep a server from others.
#[derive(Clone, Copy, Debug)]
pub enum Attack {
    /// A head that never ends.
    SlowHead,
    /// A body that never ends.
    SlowBody,
    /// Connections without a handshake.
    HalfOpen,
    /// Handshakes that make the server sign, and end.
    HandshakeFlood,
    /// Connections that have been answered once.
    Idle,
    /// Connections to the port of the probes.
    HeldProbe,
    /// A review as large as possible.
    LargeBody,
    /// JSON that is nested deeper than any parser goes.
    DeepJson,
    /// A review with two requests and two uids.
    DuplicateKeys,
    /// A length beyond the limit.
    Oversize,
    /// Chunks of a byte without end.
    ChunkedBomb,
    /// A chunk as long as an integer can say.
    HugeChunk,
    /// Something that is not JSON.
    WrongContentType,
}

impl Attack {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::SlowHead,
        Self::SlowBody,
        Self::HalfOpen,
        Self::HandshakeFlood,
        Self::Idle,
        Self::HeldProbe,
        Self::LargeBody,
        Self::DeepJson,
        Self::DuplicateKeys,
        Self::Oversize,
        Self::ChunkedBomb,
        Self::HugeChunk,
        Self::WrongContentType,
    ];

    /// How many at once.
    pub fn clients(self) -> usize {
        match self {
            Self::HalfOpen => 1000,
            // More than the webhook keeps open.
            Self::Idle | Self::HeldProbe => 300,
            // Fewer, for they are to be answered; but more than the reviews that it judges at one time.
            Self::SlowHead | Self::SlowBody => 100,
            Self::LargeBody => 40,
            _ => 8,
        }
    }

    /// The answer that they get, some of them at least.
    pub fn answer(self) -> Option<u16> {
        match self {
            Self::SlowBody => Some(408),
            // A head may take longer than this test.
            Self::SlowHead | Self::HalfOpen | Self::HandshakeFlood | Self::HeldProbe => None,
            Self::Idle | Self::LargeBody => Some(200),
            Self::DeepJson | Self::DuplicateKeys => Some(400),
            Self::Oversize => Some(413),
            Self::ChunkedBomb => Some(408),
            Self::HugeChunk => Some(400),
            Self::WrongContentType => Some(415),
        }
    }

    /// One client, from its connection to its end; `begun` counts when it is in the way.
    pub async fn run(self, attacker: &Attacker, begun: &AtomicUsize) -> Result<u16> {
        let json = |length: String| head("application/json", &length);
        match self {
            Self::SlowHead => {
                let begin = "POST /validate HTTP/1.1\r\nX: ";
                drip(&mut attacker.tls().await?, begin, begun).await
            }
            Self::SlowBody => {
                let begin = json("Content-Length: 100000".to_owned());
                drip(&mut attacker.tls().await?, &begin, begun).await
            }
            Self::ChunkedBomb => {
                let mut begin = json("Transfer-Encoding: chunked".to_owned());
                begin.push_str(&"1\r\n{\r\n".repeat(10_000));
                begin.push_str("fffffff\r\n");
                drip(&mut attacker.tls().await?, &begin, begun).await
            }
            Self::HalfOpen | Self::HeldProbe => {
                let to = match self {
                    Self::HalfOpen => attacker.reviews,
                    _ => attacker.probes,
                };
                let mut stream = attacker.tcp(to).await?;
                if let Self::HeldProbe = self {
                    stream.write_all(b"GET /healthz HTTP/1.1\r\n").await?;
                }
                begun.fetch_add(1, Ordering::Relaxed);
                hold(&mut stream).await?;
                bail!("closed")
            }
            Self::HandshakeFlood => {
                let mut stream = attacker.tcp(attacker.reviews).await?;
                let name = ServerName::try_from("127.0.0.1")?;
                let mut session = ClientConnection::new(Arc::clone(&attacker.config), name)?;
                let mut hello = Vec::new();
                session.write_tls(&mut hello)?;
                stream.write_all(&hello).await?;
                // The first bytes of its answer, which is signed.
                stream.read_exact(&mut [0; 512]).await?;
                begun.fetch_add(1, Ordering::Relaxed);
                bail!("ended")
            }
            Self::Idle => {
                let mut stream = attacker.tls().await?;
                let status = attacker.review_on(&mut stream).await?;
                begun.fetch_add(1, Ordering::Relaxed);
                // It may be closed without a farewell.
                let _ = hold(&mut stream).await;
                Ok(status)
            }
            Self::LargeBody => {
                let mut body = br#"{"request": {"uid": "u", "operation": "CREATE", "kind": {"kind": "x"}, "resource": {"resource": "x"}, "object": ""#.to_vec();
                body.resize(LARGE - 3, b'x');
                body.extend_from_slice(b"\"}}");
                self.send(attacker, begun, "application/json", &body).await
            }
            Self::DeepJson => {
                let body = "[".repeat(3 << 20);
                self.send(attacker, begun, "application/json", body.as_bytes())
                    .await
            }
            Self::DuplicateKeys => {
                let body = br#"{"request": {"uid": "a", "uid": "b"}, "request": {"uid": "c"}}"#;
                self.send(attacker, begun, "application/json", body).await
            }
            Self::WrongContentType => self.send(attacker, begun, "text/html", b"<html>").await,
            Self::Oversize | Self::HugeChunk => {
                let head = match self {
                    Self::Oversize => json(format!("Content-Length: {}", LARGE + 1)),
                    _ => json("Transfer-Encoding: chunked".to_owned()) + "fffffffffffffffffff\r\n",
                };
                let mut stream = attacker.tls().await?;
                stream.write_all(head.as_bytes()).await?;
                stream.flush().await?;
                begun.fetch_add(1, Ordering::Relaxed);
                status(&mut stream).await
            }
        }
    }

    async fn send(
        self,
        attacker: &Attacker,
        begun: &AtomicUsize,
        content_type: &str,
        body: &[u8],
    ) -> Result<u16> {
        let mut stream = attacker.tls().await?;
        let head = head(content_type, &format!("Content-Length: {}", body.len()));
        stream.write_all(head.as_bytes()).await?;
        begun.fetch_add(1, Ordering::Relaxed);
        // The webhook may answer before it has read everything.
        let _ = stream.write_all(body).await;
        let _ = stream.flush().await;
        status(&mut stream).await
    }
}
