//! What servers inside this process share: a port, and a thread that takes connections.

use std::net::{SocketAddr, TcpListener};

use anyhow::Result;
use tokio::net::TcpStream;

use crate::background::Background;

/// A server with a thread of its own, so that a test may block while a program talks to it; dropped, it is gone.
pub(super) struct Running {
    /// On 127.0.0.1.
    pub(super) address: SocketAddr,
    _thread: Background,
}

impl Running {
    /// Takes connections on a free port.
    pub(super) fn start<F: Future<Output = ()> + Send + 'static>(
        name: &str,
        connection: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let thread = Background::start(name, async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
                return;
            };
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(connection(stream));
                while connections.try_join_next().is_some() {}
            }
        })?;
        Ok(Self {
            address,
            _thread: thread,
        })
    }
}
