//! Turns: how many reviews use something at one time, shared by address.
//!
//! A turn is held only while a CPU works on a review, or while the API server is asked for it; a review that waits holds none. Addresses
//! are served one after the other, so whoever sends a thousand reviews delays the next address by one of them.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// The turns of one kind of work.
#[derive(Debug)]
pub struct Turns(Mutex<Line>);

/// Who waits.
#[derive(Debug)]
struct Line {
    /// Turns that no one has; while someone waits there are none.
    free: usize,
    /// The addresses in the order in which they are served, each with its reviews.
    waiting: VecDeque<(IpAddr, VecDeque<oneshot::Sender<Turn>>)>,
}

/// A turn, which passes to the next address when this is dropped.
#[derive(Debug)]
pub struct Turn(Arc<Turns>);

impl Turns {
    /// So many at one time.
    pub fn new(at_once: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Line {
            free: at_once,
            waiting: VecDeque::new(),
        })))
    }

    /// A turn for a review of this address; `None`: there was none in time.
    pub async fn take(self: &Arc<Self>, peer: IpAddr, within: Duration) -> Option<Turn> {
        let joined = self.lock().join(peer);
        let Some(given) = joined else {
            return Some(Turn(Arc::clone(self)));
        };
        timeout(within, given).await.ok()?.ok()
    }

    /// Turns that no one has.
    #[cfg(test)]
    pub fn free(&self) -> usize {
        self.lock().free
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Takes a free turn (`None`), or waits for one.
    fn join(&mut self, peer: IpAddr) -> Option<oneshot::Receiver<Turn>> {
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

    /// The review that is served next; where none waits, a turn is free again.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some((peer, mut reviews)) = self.waiting.pop_front() {
            // Not those that gave up.
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

impl Drop for Turn {
    fn drop(&mut self) {
        let next = self.0.lock().next();
        if let Some(next) = next {
            // A turn that is not taken comes back, and is dropped as this one was.
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
        let turns = Turns::new(1);
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
        let turns = Turns::new(1);
        let held = turns.take(ONE, LONG).await.unwrap();
        assert!(turns.take(ONE, Duration::from_millis(1)).await.is_none());
        drop(held);
        assert_eq!(turns.free(), 1);
        assert!(turns.take(MANY, LONG).await.is_some());
    }
}
