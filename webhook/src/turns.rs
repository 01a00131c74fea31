//! Limits how many reviews use something at the same time, fairly by address.
//!
//! A review holds a turn only while a CPU works on it, or while the API server is asked for it, and none while it waits. Addresses are
//! served one after the other, so a client that sends a thousand reviews delays the next address by one of them.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// The turns for one kind of work.
#[derive(Debug)]
pub struct ReviewTurns(Mutex<TurnQueue>);

/// The queue of waiting reviews.
#[derive(Debug)]
struct TurnQueue {
    /// Turns that no review holds. While a review waits, there are none.
    free: usize,
    /// The addresses in the order in which they are served, each with its reviews.
    waiting: VecDeque<(IpAddr, VecDeque<oneshot::Sender<ReviewTurn>>)>,
}

/// A turn. Dropping it passes it to the next address.
#[derive(Debug)]
pub struct ReviewTurn(Arc<ReviewTurns>);

impl ReviewTurns {
    /// Creates the given number of turns.
    pub fn new(at_once: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(TurnQueue {
            free: at_once,
            waiting: VecDeque::new(),
        })))
    }

    /// Waits for a turn for a review of this address; `None` if there is none in time.
    pub async fn take(self: &Arc<Self>, peer: IpAddr, within: Duration) -> Option<ReviewTurn> {
        let joined = self.lock().join(peer);
        let Some(given) = joined else {
            return Some(ReviewTurn(Arc::clone(self)));
        };
        timeout(within, given).await.ok()?.ok()
    }

    /// Returns the number of turns that no review holds.
    #[cfg(test)]
    pub fn free(&self) -> usize {
        self.lock().free
    }

    fn lock(&self) -> MutexGuard<'_, TurnQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnQueue {
    /// Takes a free turn (`None`), or queues for one.
    fn join(&mut self, peer: IpAddr) -> Option<oneshot::Receiver<ReviewTurn>> {
        if let Some(less) = self.free.checked_sub(1) {
            self.free = less;
            return None;
        }
        let (give, given) = oneshot::channel();
        match self.waiting.iter_mut().find(|(other, _)| *other == peer) {
            Some((_, reviews)) => reviews.push_back(give),
            None => self.waiting.push_back((peer, [give].into())),
        }
        Some(given)
    }

    /// Returns the review that is served next. If none waits, the turn becomes free.
    fn next(&mut self) -> Option<oneshot::Sender<ReviewTurn>> {
        while let Some((peer, mut reviews)) = self.waiting.pop_front() {
            // Skips reviews that gave up.
            let next = std::iter::from_fn(|| reviews.pop_front()).find(|next| !next.is_closed());
            if !reviews.is_empty() {
                self.waiting.push_back((peer, reviews));
            }
            if next.is_some() {
                return next;
            }
        }
        self.free += 1;
        None
    }
}

impl Drop for ReviewTurn {
    fn drop(&mut self) {
        let next = self.0.lock().next();
        if let Some(next) = next {
            // A turn that the receiver no longer takes comes back, and is dropped like this one.
            drop(next.send(Self(Arc::clone(&self.0))));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const MANY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn who_sends_a_thousand_delays_another_by_one() {
        let turns = ReviewTurns::new(1);
        let first = turns.take(MANY, LONG).await.unwrap();
        let mut many: Vec<_> = (0..1000)
            .map(|_| Box::pin(turns.take(MANY, LONG)))
            .collect();
        for waiting in &mut many {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        let mut one = Box::pin(turns.take(ONE, LONG));
        assert!(one.as_mut().now_or_never().is_none());
        drop(first);
        let second = many[0].as_mut().now_or_never().flatten().unwrap();
        assert!(one.as_mut().now_or_never().is_none());
        drop(second);
        let turn = one.as_mut().now_or_never().flatten().unwrap();
        drop(turn);
        // Those that give up are passed over, also when the turn is theirs already.
        drop(many);
        assert_eq!(turns.free(), 1);
    }

    #[tokio::test]
    async fn a_turn_that_does_not_come_in_time_is_none() {
        let turns = ReviewTurns::new(1);
        let held = turns.take(ONE, LONG).await.unwrap();
        assert!(turns.take(ONE, Duration::from_millis(1)).await.is_none());
        drop(held);
        assert_eq!(turns.free(), 1);
        assert!(turns.take(MANY, LONG).await.is_some());
    }
}
