//! A local port through which a child process requests data from this program: helm requests objects of a
//! cluster, git requests refs and commits.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// The address to bind: any free port of the loopback interface.
const ADDRESS: (&str, u16) = ("127.0.0.1", 0);
/// The maximum number of concurrent connections. A child opens one or few.
const CONNECTIONS: usize = 64;
/// The pause after a failure to accept a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// A local port with a token that only the child knows, because other users of the machine can connect too.
#[derive(Debug)]
pub struct Loopback {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
}

impl Loopback {
    /// Opens a port.
    ///
    /// # Errors
    /// There is no free port, or no source of randomness.
    pub async fn open() -> io::Result<Self> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let listener = TcpListener::bind(ADDRESS).await?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            token: common::text::encode_hex(&random),
        })
    }

    /// The address of the port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token that a client must send. It must not appear in arguments or messages.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Whether `text` is the token, compared in constant time.
    #[must_use]
    pub fn is_token(&self, text: &str) -> bool {
        let pairs = text.bytes().zip(self.token.bytes());
        text.len() == self.token.len() && pairs.fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }

    /// Serves connections until `work` is done. Connections that are still open then are closed.
    pub async fn serve_while<T, F: Future<Output = ()>>(
        &self,
        work: impl Future<Output = T>,
        serve: impl Fn(TcpStream) -> F,
    ) -> T {
        tokio::select! {
            done = work => done,
            never = self.accept(serve) => match never {},
        }
    }

    async fn accept<F: Future<Output = ()>>(&self, serve: impl Fn(TcpStream) -> F) -> Infallible {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if open.len() < CONNECTIONS => match accepted {
                    Ok((stream, _)) => open.push(serve(stream)),
                    Err(_) => sleep(PAUSE).await,
                },
                Some(()) = open.next() => {}
            }
        }
    }
}
