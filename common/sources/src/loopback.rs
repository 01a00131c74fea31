//! A port of this machine that a child process talks to: helm asks it for objects of a cluster, git for refs and commits.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// A free port.
const ADDRESS: (&str, u16) = ("127.0.0.1", 0);
/// Connections at a time; a child has one or few.
const CONNECTIONS: usize = 64;
/// Before the next connection where the system had no room for one.
const PAUSE: Duration = Duration::from_millis(50);

/// The port, and a token that only the child knows: other users of the machine can connect, too.
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
    /// There is no free port, or no randomness.
    pub async fn open() -> io::Result<Self> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let listener = TcpListener::bind(ADDRESS).await?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            token: common::hex::of(&random),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a client has to send; it must appear neither in arguments nor in messages.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Whether a client sent the token. The time that this takes does not depend on where the texts differ.
    #[must_use]
    pub fn is_token(&self, text: &str) -> bool {
        let pairs = text.bytes().zip(self.token.bytes());
        text.len() == self.token.len() && pairs.fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }

    /// Serves connections until the work is done. Those that are open then are closed.
    pub async fn during<T, F: Future<Output = ()>>(
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
