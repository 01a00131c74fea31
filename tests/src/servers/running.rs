//! What servers inside this process share: a port, a thread, and an end.

use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;

use anyhow::Result;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// A server with a thread of its own, so that a test may block while a program talks to it; dropped, it is gone.
pub(super) struct Running {
    /// On 127.0.0.1.
    pub(super) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
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
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let serving = async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
                return;
            };
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(connection(stream));
                while connections.try_join_next().is_some() {}
            }
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = serving => {}
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there was printed there.
            let _ = thread.join();
        }
    }
}
