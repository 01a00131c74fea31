//! Limits how many installations of a cluster are reconciled at the same time (semantics 20.5).

use addons_operation::Interruption;
use tokio::sync::Semaphore;

/// The most installations of one cluster in one lane that are reconciled at the same time.
pub(crate) const WORKERS: usize = 4;
/// The most installations of one cluster that may wait at the same time without a slot, besides guards. Each renews its lock meanwhile.
pub(crate) const WAITING: usize = 64;

/// A lane: only others of the same lane keep an installation waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Core add-ons, and what `init` installs: nothing else keeps them out.
    Guards,
    /// New, changed or damaged installations.
    Changes,
    /// Installations that are only checked again.
    Looks,
}

impl Lane {
    /// Returns the lane of an installation.
    pub(crate) fn new(is_guard: bool, is_urgent: bool) -> Self {
        match (is_guard, is_urgent) {
            (true, _) => Self::Guards,
            (false, true) => Self::Changes,
            (false, false) => Self::Looks,
        }
    }
}

/// The slots of one cluster, or of one pass.
pub(crate) struct Slots {
    guards: Semaphore,
    changes: Semaphore,
    looks: Semaphore,
    waiting: Semaphore,
}

impl Default for Slots {
    fn default() -> Self {
        let slots = || Semaphore::new(WORKERS);
        Self {
            guards: slots(),
            changes: slots(),
            looks: slots(),
            waiting: Semaphore::new(WAITING),
        }
    }
}

impl Slots {
    /// Does the work when a slot of the lane is free. When the work only waits, `waits` is called, and the slot is given back unless too
    /// many others wait.
    pub(crate) async fn work<T>(
        &self,
        lane: Lane,
        part: &Interruption,
        waits: impl FnOnce(),
        work: impl Future<Output = T>,
    ) -> T {
        let slots = match lane {
            Lane::Guards => &self.guards,
            Lane::Changes => &self.changes,
            Lane::Looks => &self.looks,
        };
        // The semaphore is never closed.
        let slot = slots.acquire().await;
        let mut held = (slot.ok(), None);
        let free = || {
            let waiting = self.waiting.try_acquire().ok();
            if waiting.is_some() || lane == Lane::Guards {
                held = (None, waiting);
            }
            waits();
        };
        let done = work_and_notify(part, free, work).await;
        drop(held);
        done
    }
}

/// Does the work, and calls `waits` when it begins to wait.
pub(crate) async fn work_and_notify<T>(
    part: &Interruption,
    waits: impl FnOnce(),
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = part.wait_until_waiting() => waits(),
    }
    work.await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};

    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn a_lane_that_is_full_keeps_out_no_other() {
        let (slots, part) = (Slots::default(), Interruption::default());
        let under_way = |lane| slots.work(lane, &part, || {}, pending::<()>());
        let mut full: Vec<_> = (0..WORKERS)
            .map(|_| Box::pin(under_way(Lane::Changes)))
            .collect();
        for one in &mut full {
            assert!(poll!(one).is_pending());
        }
        let begun = Cell::new(0);
        let begin = |lane| {
            let work = async { begun.set(begun.get() + 1) };
            Box::pin(slots.work(lane, &part, || {}, work))
        };
        assert!(poll!(&mut begin(Lane::Changes)).is_pending());
        assert_eq!(begun.get(), 0);
        for lane in [Lane::Guards, Lane::Looks] {
            assert!(poll!(&mut begin(lane)).is_ready());
        }
        full.pop();
        assert!(poll!(&mut begin(Lane::Changes)).is_ready());
    }

    #[tokio::test]
    async fn work_that_ends_at_once_never_waits() {
        let is_told = Cell::new(false);
        let part = Interruption::default();
        let told = || is_told.set(true);
        assert_eq!(work_and_notify(&part, told, ready(1)).await, 1);
        assert!(!is_told.get());
    }
}
