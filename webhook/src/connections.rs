//! Limits the open connections, and decides which one is closed for a new one.
//!
//! A server that stops accepting at its limit can be blocked by whoever opens connections first. So at the limit, a connection of the
//! address with the most connections is closed: one without a request in progress, and of these the one that was unused for longest. An
//! address with few connections, such as an API server or a kubelet, keeps them.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use prometheus_client::metrics::counter::Counter;

/// The open connections of one server.
#[derive(Debug)]
pub struct Connections {
    limit: usize,
    begun: Instant,
    next: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<OpenConnection>>>,
    evictions: Counter,
}

/// An open connection.
#[derive(Debug)]
struct OpenConnection {
    peer: IpAddr,
    /// A second handle, to close the connection while the server waits on the first.
    socket: TcpStream,
    /// The time of the last use, in milliseconds after `begun`.
    used: AtomicU64,
    requests: AtomicUsize,
}

/// The place of a connection. Dropping it makes room for another one.
#[derive(Debug)]
pub struct ConnectionPlace {
    number: u64,
    open: Arc<OpenConnection>,
    connections: Arc<Connections>,
}

/// Marks a request in progress. Its connection is closed only if all others of its address are in use as well.
pub struct RequestInProgress<'a>(&'a ConnectionPlace);

impl Connections {
    /// Creates the limit of open connections. `evictions` counts those that are closed for others.
    pub fn new(limit: usize, evictions: Counter) -> Arc<Self> {
        Arc::new(Self {
            limit,
            begun: Instant::now(),
            next: AtomicU64::new(0),
            open: Mutex::default(),
            evictions,
        })
    }

    /// Registers a new connection; at the limit, another one is closed for it.
    ///
    /// # Errors
    /// The socket has no peer any more, or the process has no file descriptor left.
    pub fn admit(self: &Arc<Self>, socket: &tokio::net::TcpStream) -> io::Result<ConnectionPlace> {
        let open = Arc::new(OpenConnection {
            peer: socket.peer_addr()?.ip().to_canonical(),
            socket: socket.as_fd().try_clone_to_owned()?.into(),
            used: AtomicU64::new(self.now()),
            requests: AtomicUsize::new(0),
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut all = self.lock();
        if all.len() >= self.limit
            && let Some(victim) = choose_victim(&all)
            && let Some(closed) = all.remove(&victim)
        {
            // The server sees the end of the connection and drops its place.
            let _ = closed.socket.shutdown(Shutdown::Both);
            self.evictions.inc();
        }
        all.insert(number, Arc::clone(&open));
        drop(all);
        Ok(ConnectionPlace {
            number,
            open,
            connections: Arc::clone(self),
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<OpenConnection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the connection to close for a new one.
fn choose_victim(all: &BTreeMap<u64, Arc<OpenConnection>>) -> Option<u64> {
    let mut held: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for open in all.values() {
        *held.entry(open.peer).or_default() += 1;
    }
    let spared = |open: &OpenConnection| {
        let is_idle = open.requests.load(Ordering::Relaxed) == 0;
        let used = open.used.load(Ordering::Relaxed);
        (held.get(&open.peer), is_idle, std::cmp::Reverse(used))
    };
    let best = all.iter().max_by_key(|(_, open)| spared(open));
    best.map(|(number, _)| *number)
}

impl ConnectionPlace {
    /// Returns the address of the client.
    pub fn peer(&self) -> IpAddr {
        self.open.peer
    }

    /// Marks that a request is in progress, until the result is dropped.
    pub fn mark_in_use(&self) -> RequestInProgress<'_> {
        self.open.requests.fetch_add(1, Ordering::Relaxed);
        RequestInProgress(self)
    }
}

impl Drop for RequestInProgress<'_> {
    fn drop(&mut self) {
        let ConnectionPlace {
            open, connections, ..
        } = self.0;
        open.used.store(connections.now(), Ordering::Relaxed);
        open.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.connections.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::SocketAddr;

    use super::*;

    /// A client at this address, and its place.
    async fn connect(all: &Arc<Connections>, from: [u8; 4]) -> (TcpStream, ConnectionPlace) {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
            .await
            .unwrap();
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((from, 0))).unwrap();
        let to = listener.local_addr().unwrap();
        let (client, accepted) = tokio::join!(socket.connect(to), listener.accept());
        let client = client.unwrap().into_std().unwrap();
        client.set_nonblocking(false).unwrap();
        let (server, _) = accepted.unwrap();
        (client, all.admit(&server).unwrap())
    }

    const FEW: [u8; 4] = [127, 0, 0, 2];
    const MANY: [u8; 4] = [127, 0, 0, 3];

    #[tokio::test]
    async fn who_holds_most_loses_the_one_unused_for_longest() {
        let evictions = Counter::default();
        let all = Connections::new(4, evictions.clone());
        let (_few, few) = connect(&all, FEW).await;
        let (_busy, busy) = connect(&all, MANY).await;
        let (mut idle, idle_place) = connect(&all, MANY).await;
        let (_fresh, fresh) = connect(&all, MANY).await;
        // The oldest of them is in use.
        let in_use = busy.mark_in_use();
        fresh.open.used.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(evictions.get(), 0);
        let (_new, new) = connect(&all, FEW).await;
        assert_eq!(evictions.get(), 1);
        assert_eq!(idle.read(&mut [0]).unwrap(), 0, "it was not closed");
        let open: Vec<u64> = all.lock().keys().copied().collect();
        assert_eq!(open, [few.number, busy.number, fresh.number, new.number]);
        drop(in_use);
        drop((idle_place, few, busy, fresh, new));
        assert!(all.lock().is_empty());
    }
}
