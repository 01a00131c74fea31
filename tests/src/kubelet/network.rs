//! Addresses of Pods, and the way to them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::{Context as _, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::egress::{self, Egress};

/// The network of the Pods: made before the API server, which has to know it.
pub struct Network {
    egress: Egress,
    listener: UnixListener,
}

impl Network {
    /// A network without Pods, in the runtime of the caller.
    ///
    /// # Errors
    /// Of the file system.
    pub fn new() -> Result<Self> {
        let (egress, listener) = Egress::open()?;
        Ok(Self { egress, listener })
    }

    /// The flag by which an API server finds it.
    #[must_use]
    pub fn flag(&self) -> String {
        self.egress.flag()
    }

    /// Connects until it is dropped.
    pub(super) async fn route(self) {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = self.listener.accept().await {
            connections.spawn(async move {
                // A connection that breaks is the API server's error, and seen there.
                let _ = connect(stream).await;
            });
            while connections.try_join_next().is_some() {}
        }
    }
}

async fn connect(mut stream: UnixStream) -> Result<()> {
    let endpoint = egress::endpoint(&mut stream).await?;
    let address: SocketAddr = endpoint.parse().with_context(|| endpoint.clone())?;
    let mut pod = TcpStream::connect(here(address)).await?;
    pod.set_nodelay(true)?;
    egress::established(&mut stream).await?;
    copy_bidirectional(&mut stream, &mut pod).await?;
    Ok(())
}

/// A loopback address that no other Pod of any test has: two numbers are of the process, one counts.
pub(super) fn address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    let last = NEXT.fetch_add(1, Ordering::Relaxed);
    Ipv4Addr::new(127, 64 | (high & 63), low, last)
}

/// The address by which the cluster knows it.
pub(super) fn there(address: Ipv4Addr) -> Ipv4Addr {
    let [_, second, third, fourth] = address.octets();
    Ipv4Addr::new(10, second, third, fourth)
}

fn here(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(address) => {
            let [_, second, third, fourth] = address.ip().octets();
            let ip = Ipv4Addr::new(127, second, third, fourth);
            SocketAddr::from((ip, address.port()))
        }
        other => other,
    }
}
