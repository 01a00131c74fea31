//! When which installation is reconciled next: at once where something changed, after a growing pause where it failed, and else at
//! an interval.

use std::collections::BTreeMap;
use std::time::Duration;

use common::api::names::InstallationName;
use tokio::time::Instant;

use crate::fights::TRUCE;

/// After the first failure; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// Until a lock is looked at again that another client holds.
const BUSY: Duration = Duration::from_secs(5);

/// The installations of a loop, and when each is due.
#[derive(Debug)]
pub(crate) struct Queue {
    interval: Duration,
    entries: BTreeMap<InstallationName, Entry>,
}

#[derive(Debug)]
struct Entry {
    due: Instant,
    failures: u32,
    is_running: bool,
    /// When it is due again because of something that happened while it was reconciled.
    asked: Option<Instant>,
}

/// Why an installation is to be reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Its record or its origin changed: what failed before may succeed now.
    Asked,
    /// Its objects changed, or its status: a pause after a failure stays.
    Drifted,
}

/// What became of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    Badly,
    /// Another client is at work.
    Busy,
    /// Another manager sets its fields back each time.
    Contested,
}

impl Queue {
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            interval,
            entries: BTreeMap::new(),
        }
    }

    /// An installation is due at this time at the latest.
    pub(crate) fn ask(&mut self, name: &InstallationName, at: Instant, why: Why) {
        let Some(entry) = self.entries.get_mut(name) else {
            let entry = Entry {
                due: at,
                failures: 0,
                is_running: false,
                asked: None,
            };
            self.entries.insert(name.clone(), entry);
            return;
        };
        if why == Why::Asked {
            entry.failures = 0;
        }
        if entry.is_running {
            entry.asked = Some(entry.asked.map_or(at, |asked| asked.min(at)));
        } else if entry.failures == 0 {
            entry.due = entry.due.min(at);
        }
    }

    /// The installation that has been due for longest, of those that may begin; it runs until [`Queue::end`].
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        may: impl Fn(&InstallationName) -> bool,
    ) -> Option<InstallationName> {
        let due = self.entries.iter_mut();
        let due = due.filter(|(name, entry)| !entry.is_running && entry.due <= now && may(name));
        let (name, entry) = due.min_by_key(|(_, entry)| entry.due)?;
        entry.is_running = true;
        Some(name.clone())
    }

    /// Those of a namespace that are due too, or will be by then without having failed: they run from now on.
    pub(crate) fn begin_together(
        &mut self,
        namespace: &str,
        now: Instant,
        by: Instant,
    ) -> Vec<InstallationName> {
        let of_namespace = self.entries.iter_mut();
        let of_namespace = of_namespace.filter(|(name, _)| name.namespace == namespace);
        let mut together = Vec::new();
        for (name, entry) in of_namespace {
            let is_due = entry.due <= now || entry.failures == 0 && entry.due <= by;
            if is_due && !entry.is_running {
                entry.is_running = true;
                together.push(name.clone());
            }
        }
        together
    }

    /// Tries at once what failed, because its cause may be gone.
    pub(crate) fn retry(&mut self, name: &InstallationName, at: Instant) {
        if self
            .entries
            .get(name)
            .is_some_and(|entry| entry.failures > 0)
        {
            self.ask(name, at, Why::Asked);
        }
    }

    /// It was reconciled. `spread` is between 0 and 1, and other each time: installations are not due at the same time.
    pub(crate) fn end(&mut self, name: &InstallationName, ended: Ended, now: Instant, spread: f64) {
        let interval = self.interval.mul_f64(0.9 + 0.2 * spread);
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        entry.is_running = false;
        entry.due = now
            + match ended {
                Ended::Well => {
                    entry.failures = 0;
                    interval
                }
                Ended::Busy => BUSY,
                Ended::Contested => {
                    entry.failures = 1;
                    TRUCE
                }
                Ended::Badly => {
                    entry.failures += 1;
                    pause(entry.failures).min(interval)
                }
            };
        if let Some(asked) = entry.asked.take()
            && matches!(ended, Ended::Well | Ended::Busy)
        {
            entry.due = entry.due.min(asked);
        }
    }

    /// Whether it is being reconciled.
    pub(crate) fn is_running(&self, name: &InstallationName) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.is_running)
    }

    /// It is gone.
    pub(crate) fn forget(&mut self, name: &InstallationName) {
        self.entries.remove(name);
    }

    /// When the next one is due, of those that may begin.
    pub(crate) fn next(&self, may: impl Fn(&InstallationName) -> bool) -> Option<Instant> {
        let entries = self.entries.iter();
        let waiting = entries.filter(|(name, entry)| !entry.is_running && may(name));
        waiting.map(|(_, entry)| entry.due).min()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// After so many failures in a row.
fn pause(failures: u32) -> Duration {
    let doubled = 2u32.saturating_pow(failures.saturating_sub(1));
    FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(1000);

    fn name(name: &str) -> InstallationName {
        InstallationName {
            namespace: "kubectl-addons".to_owned(),
            name: name.to_owned(),
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn failures_pause_for_longer_and_longer() {
        let (mut queue, mut now) = (Queue::new(INTERVAL), Instant::now());
        let web = name("web");
        queue.ask(&web, now, Why::Asked);
        for expected in [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600] {
            assert_eq!(queue.begin(now, |_| true).as_ref(), Some(&web));
            queue.end(&web, Ended::Badly, now, 0.5);
            // Its objects change all the time, which must not make it fail more often.
            queue.ask(&web, now, Why::Drifted);
            assert_eq!(queue.next(|_| true), Some(now + seconds(expected)));
            assert_eq!(queue.begin(now, |_| true), None);
            now += seconds(expected);
        }
        queue.ask(&web, now - seconds(1), Why::Asked);
        assert_eq!(
            queue.next(|_| true),
            Some(now - seconds(1)),
            "its record changed"
        );
        assert!(queue.begin(now, |_| true).is_some());
        queue.end(&web, Ended::Well, now, 0.5);
        assert_eq!(queue.next(|_| true), Some(now + INTERVAL));
        assert!(queue.begin(now + INTERVAL, |_| true).is_some());
        queue.end(&web, Ended::Badly, now, 0.5);
        assert_eq!(
            queue.next(|_| true),
            Some(now + seconds(2)),
            "it begins again"
        );
    }

    #[test]
    fn what_changes_meanwhile_is_looked_at_afterwards() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        let web = name("web");
        queue.ask(&web, now, Why::Asked);
        assert!(queue.begin(now, |_| true).is_some());
        queue.ask(&web, now, Why::Drifted);
        assert_eq!(queue.begin(now, |_| true), None, "one at a time");
        assert_eq!(queue.next(|_| true), None);
        queue.end(&web, Ended::Well, now + seconds(1), 0.5);
        assert_eq!(queue.begin(now + seconds(1), |_| true).as_ref(), Some(&web));
    }

    #[test]
    fn a_fight_ends_with_a_truce_until_the_record_changes() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        let web = name("web");
        queue.ask(&web, now, Why::Asked);
        assert!(queue.begin(now, |_| true).is_some());
        queue.ask(&web, now, Why::Drifted);
        queue.end(&web, Ended::Contested, now, 0.5);
        queue.ask(&web, now, Why::Drifted);
        assert_eq!(queue.next(|_| true), Some(now + TRUCE));
        queue.ask(&web, now, Why::Asked);
        assert_eq!(queue.next(|_| true), Some(now));
    }

    #[test]
    fn another_client_is_waited_for_without_a_failure() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        let web = name("web");
        queue.ask(&web, now, Why::Asked);
        for _ in 0..3 {
            assert!(queue.begin(now + BUSY, |_| true).is_some());
            queue.end(&web, Ended::Busy, now, 0.5);
            assert_eq!(queue.next(|_| true), Some(now + BUSY));
        }
    }

    #[test]
    fn the_one_that_waits_for_longest_is_first_and_intervals_spread() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        let (a, b) = (name("a"), name("b"));
        queue.ask(&a, now + seconds(1), Why::Asked);
        queue.ask(&b, now, Why::Asked);
        assert_eq!(queue.begin(now + seconds(2), |_| true).as_ref(), Some(&b));
        assert_eq!(queue.begin(now + seconds(2), |_| true).as_ref(), Some(&a));
        queue.end(&a, Ended::Well, now, 0.0);
        queue.end(&b, Ended::Well, now, 1.0);
        assert_eq!(queue.next(|_| true), Some(now + seconds(900)));
        queue.forget(&a);
        assert_eq!(queue.next(|_| true), Some(now + seconds(1100)));
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn those_of_a_namespace_begin_together_but_for_what_failed() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        let (a, b, c) = (name("a"), name("b"), name("c"));
        for (name, due) in [(&a, 0), (&b, 5), (&c, 0)] {
            queue.ask(name, now + seconds(due), Why::Asked);
        }
        assert_eq!(queue.begin(now, |name| *name == c), Some(c.clone()));
        queue.end(&c, Ended::Badly, now, 0.5);
        assert_eq!(queue.begin(now, |_| true), Some(a));
        let by = now + seconds(10);
        assert_eq!(queue.begin_together("kubectl-addons", now, by), [b]);
        assert_eq!(queue.begin_together("shop", now, by), []);
        queue.retry(&c, now);
        assert_eq!(queue.begin_together("kubectl-addons", now, by), [c]);
    }
}
