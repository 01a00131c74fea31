//! The memory for bodies, shared by all connections.
//!
//! Each address may hold as much as is left for others (dynamic thresholds, as in switches with shared buffers: Choudhury and Hahne,
//! 1998): half of the total if it is alone, a third if another address holds as much as it can. So something is always left for the API
//! server.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The bytes that all bodies together may take.
#[derive(Debug)]
pub struct BodyBudget {
    limit: usize,
    held: Mutex<BTreeMap<IpAddr, usize>>,
    released: Notify,
}

/// The bytes that one body holds. Dropping the share returns them.
#[derive(Debug)]
pub struct BudgetShare {
    budget: Arc<BodyBudget>,
    peer: IpAddr,
    bytes: usize,
}

impl BodyBudget {
    /// Creates a budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            held: Mutex::default(),
            released: Notify::new(),
        }
    }

    /// Waits until this many bytes are free, and returns a share of them.
    pub async fn share(self: &Arc<Self>, peer: IpAddr, bytes: usize) -> BudgetShare {
        let mut share = BudgetShare {
            budget: Arc::clone(self),
            peer,
            bytes: 0,
        };
        loop {
            let released = self.released.notified();
            if share.grow(bytes) {
                return share;
            }
            released.await;
        }
    }

    /// Returns the bytes that are held now.
    pub fn held_bytes(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BudgetShare {
    /// Adds bytes to the share; `false` if this address may not hold that many.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let mut held = self.budget.lock();
        let all: usize = held.values().sum();
        let left = self.budget.limit.saturating_sub(all + bytes);
        let of_peer = held.get(&self.peer).copied().unwrap_or(0) + bytes;
        if of_peer > left {
            return false;
        }
        held.insert(self.peer, of_peer);
        self.bytes += bytes;
        true
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        let mut held = self.budget.lock();
        if let Some(of_peer) = held.get_mut(&self.peer) {
            *of_peer = of_peer.saturating_sub(self.bytes);
            if *of_peer == 0 {
                held.remove(&self.peer);
            }
        }
        drop(held);
        self.budget.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    #[tokio::test]
    async fn one_address_never_takes_what_another_needs() {
        let budget = Arc::new(BodyBudget::new(1000));
        let mut greedy = budget.share(A, 400).await;
        assert!(greedy.grow(100));
        assert!(!greedy.grow(1), "more than half");
        let other = budget.share(B, 250).await;
        assert!(budget.share(B, 1).now_or_never().is_none());
        let waiting = budget.share(B, 200);
        let mut waiting = std::pin::pin!(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(other);
        let share = waiting.await;
        assert_eq!(budget.held_bytes(), 700);
        drop((greedy, share));
        assert_eq!(budget.held_bytes(), 0);
    }
}
