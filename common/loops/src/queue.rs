//! Decides when each installation is reconciled next: at once after a change, after a growing pause after a failure, and otherwise at an
//! interval (semantics 20.4).

use std::collections::BTreeMap;
use std::time::Duration;

use common::api::names::InstallationName;
use tokio::time::Instant;

use crate::cause::ReconcileCause;

/// The pause after the first failure. It doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// The pause before a lock that another client holds is tried again.
const BUSY: Duration = Duration::from_secs(5);

/// The installations of a loop, and when each is due.
#[derive(Debug)]
pub(crate) struct Queue {
    interval: Duration,
    entries: BTreeMap<InstallationName, QueueEntry>,
}

#[derive(Debug)]
struct QueueEntry {
    due: Instant,
    failures: u32,
    is_running: bool,
    /// Why it is due. The first of several causes counts, unless only a later one is urgent.
    cause: ReconcileCause,
    /// When it is due again because of something that happened while it was reconciled, and why.
    asked: Option<(Instant, ReconcileCause)>,
}

impl QueueEntry {
    /// Takes the cause for what is due next.
    fn take_cause(&mut self) -> ReconcileCause {
        std::mem::take(&mut self.cause)
    }
}

/// Returns the cause that counts of one that came first and one that came later.
fn leading_cause(first: ReconcileCause, later: ReconcileCause) -> ReconcileCause {
    let is_idle = matches!(
        first,
        ReconcileCause::Interval | ReconcileCause::Retry | ReconcileCause::Window
    );
    if is_idle || later.is_urgent() && !first.is_urgent() {
        later
    } else {
        first
    }
}

/// How reconciling an installation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReconcileEnd {
    Well,
    Badly,
    /// Another client is at work, or a newer state is wanted.
    Busy,
    /// What is due begins when a maintenance window opens, after this long.
    Waits(Duration),
    /// Another manager keeps setting its fields back: it is left alone for this long.
    Contested(Duration),
}

impl Queue {
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            interval,
            entries: BTreeMap::new(),
        }
    }

    /// Makes an installation due at this time at the latest.
    pub(crate) fn schedule(&mut self, name: &InstallationName, at: Instant, cause: ReconcileCause) {
        let Some(entry) = self.entries.get_mut(name) else {
            let entry = QueueEntry {
                due: at,
                failures: 0,
                is_running: false,
                cause,
                asked: None,
            };
            self.entries.insert(name.clone(), entry);
            return;
        };
        if cause.ends_pause() {
            entry.failures = 0;
        }
        if entry.is_running {
            entry.asked = Some(match entry.asked.take() {
                Some((asked, first)) => (asked.min(at), leading_cause(first, cause)),
                None => (at, cause),
            });
        } else if entry.failures == 0 {
            entry.due = entry.due.min(at);
            entry.cause = leading_cause(entry.take_cause(), cause);
        }
    }

    /// Returns the installation to begin next, of those that are due and have room: urgent ones first, then those with the least under
    /// way beside them, then those that have been due for longest. `room` is called with a name and whether that is urgent, and returns
    /// how much is under way beside it, or `None` if it may not begin.
    pub(crate) fn next_due(
        &self,
        now: Instant,
        room: impl Fn(&InstallationName, bool) -> Option<usize>,
    ) -> Option<InstallationName> {
        let due = self.entries.iter();
        let due = due.filter(|(_, entry)| !entry.is_running && entry.due <= now);
        let due = due.filter_map(|(name, entry)| {
            let load = room(name, entry.cause.is_urgent())?;
            Some(((!entry.cause.is_urgent(), load, entry.due), name))
        });
        let (_, name) = due.min_by_key(|(rank, _)| *rank)?;
        Some(name.clone())
    }

    /// Marks an installation as running until [`Queue::end`]. Returns why it was due.
    pub(crate) fn begin(&mut self, name: &InstallationName) -> ReconcileCause {
        let entry = self.entries.get_mut(name);
        entry.map_or_else(ReconcileCause::default, |entry| {
            entry.is_running = true;
            entry.take_cause()
        })
    }

    /// Marks all installations of a namespace as running that are due, or that will be due at `by` and have not failed. Returns each with
    /// why it was due.
    pub(crate) fn begin_together(
        &mut self,
        namespace: &str,
        now: Instant,
        by: Instant,
    ) -> Vec<(InstallationName, ReconcileCause)> {
        let of_namespace = self.entries.iter_mut();
        let of_namespace = of_namespace.filter(|(name, _)| name.namespace == namespace);
        let mut together = Vec::new();
        for (name, entry) in of_namespace {
            let is_due = entry.due <= now || entry.failures == 0 && entry.due <= by;
            if is_due && !entry.is_running {
                entry.is_running = true;
                together.push((name.clone(), entry.take_cause()));
            }
        }
        together
    }

    /// Makes an installation due at once if it failed, because the cause may no longer exist.
    pub(crate) fn retry(&mut self, name: &InstallationName, at: Instant, cause: ReconcileCause) {
        if self
            .entries
            .get(name)
            .is_some_and(|entry| entry.failures > 0)
        {
            self.schedule(name, at, cause);
        }
    }

    /// Records that an installation was reconciled. `spread` is between 0 and 1 and different each time, so that installations do not
    /// become due at the same time.
    pub(crate) fn end(
        &mut self,
        name: &InstallationName,
        ended: ReconcileEnd,
        now: Instant,
        spread: f64,
    ) {
        let interval = self.interval.mul_f64(0.9 + 0.2 * spread);
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        entry.is_running = false;
        entry.due = now
            + match ended {
                ReconcileEnd::Well => {
                    entry.failures = 0;
                    interval
                }
                ReconcileEnd::Waits(opens) => {
                    entry.failures = 0;
                    entry.cause = ReconcileCause::Window;
                    opens.min(interval)
                }
                ReconcileEnd::Busy => {
                    entry.cause = ReconcileCause::Retry;
                    BUSY
                }
                ReconcileEnd::Contested(truce) => {
                    entry.cause = ReconcileCause::Retry;
                    entry.failures = 1;
                    truce
                }
                ReconcileEnd::Badly => {
                    entry.cause = ReconcileCause::Retry;
                    entry.failures += 1;
                    pause(entry.failures).min(interval)
                }
            };
        if let Some((asked, cause)) = entry.asked.take()
            && !matches!(ended, ReconcileEnd::Badly | ReconcileEnd::Contested(_))
        {
            entry.due = entry.due.min(asked);
            entry.cause = leading_cause(entry.take_cause(), cause);
        }
    }

    /// Returns whether it is being reconciled.
    pub(crate) fn is_running(&self, name: &InstallationName) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.is_running)
    }

    /// Removes an installation that was deleted.
    pub(crate) fn forget(&mut self, name: &InstallationName) {
        self.entries.remove(name);
    }

    /// Returns when the next installation with room is due.
    pub(crate) fn next_time(
        &self,
        room: impl Fn(&InstallationName, bool) -> Option<usize>,
    ) -> Option<Instant> {
        let entries = self.entries.iter();
        let waiting = entries.filter(|(name, entry)| {
            !entry.is_running && room(name, entry.cause.is_urgent()).is_some()
        });
        waiting.map(|(_, entry)| entry.due).min()
    }

    /// Returns the number of installations.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// Returns the pause after this many failures in a row.
fn pause(failures: u32) -> Duration {
    let doubled = 2u32.saturating_pow(failures.saturating_sub(1));
    FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fights::TRUCE;

    const INTERVAL: Duration = Duration::from_secs(1000);

    fn name(name: &str) -> InstallationName {
        InstallationName {
            namespace: "kubectl-addons".to_owned(),
            name: name.to_owned(),
        }
    }

    const CHANGED: ReconcileCause = ReconcileCause::Record { writer: None };
    const CHECKED: ReconcileCause = ReconcileCause::Catalogue { name: None };
    const DRIFTED: ReconcileCause = ReconcileCause::Status;
    const DAMAGED: ReconcileCause = ReconcileCause::Object {
        kind: String::new(),
        namespace: String::new(),
        name: String::new(),
        is_deleted: true,
    };

    const ANY: fn(&InstallationName, bool) -> Option<usize> = |_, _| Some(0);

    /// Begins the first one, and returns whether it is urgent.
    fn begun(
        queue: &mut Queue,
        now: Instant,
        room: impl Fn(&InstallationName, bool) -> Option<usize>,
    ) -> Option<(InstallationName, bool)> {
        let name = queue.next_due(now, room)?;
        let cause = queue.begin(&name);
        Some((name, cause.is_urgent()))
    }

    fn begin(queue: &mut Queue, now: Instant) -> Option<InstallationName> {
        begun(queue, now, ANY).map(|(name, _)| name)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn failures_pause_for_longer_and_longer() {
        let (mut queue, mut now) = (Queue::new(INTERVAL), Instant::now());
        let web = name("web");
        queue.schedule(&web, now, CHANGED);
        for expected in [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600] {
            assert_eq!(begin(&mut queue, now), Some(web.clone()));
            queue.end(&web, ReconcileEnd::Badly, now, 0.5);
            // Its objects change all the time, which must not make it fail more often.
            queue.schedule(&web, now, DRIFTED);
            assert_eq!(queue.next_time(ANY), Some(now + seconds(expected)));
            assert_eq!(begin(&mut queue, now), None);
            now += seconds(expected);
        }
        queue.schedule(&web, now - seconds(1), CHANGED);
        assert_eq!(
            queue.next_time(ANY),
            Some(now - seconds(1)),
            "its record changed"
        );
        assert!(begin(&mut queue, now).is_some());
        queue.end(&web, ReconcileEnd::Well, now, 0.5);
        assert_eq!(queue.next_time(ANY), Some(now + INTERVAL));
        assert!(begin(&mut queue, now + INTERVAL).is_some());
        queue.end(&web, ReconcileEnd::Badly, now, 0.5);
        assert_eq!(
            queue.next_time(ANY),
            Some(now + seconds(2)),
            "it begins again"
        );
    }

    #[test]
    fn what_changes_meanwhile_is_looked_at_afterwards() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        let web = name("web");
        queue.schedule(&web, now, CHANGED);
        assert!(begin(&mut queue, now).is_some());
        queue.schedule(&web, now, DRIFTED);
        assert_eq!(begin(&mut queue, now), None, "one at a time");
        assert_eq!(queue.next_time(ANY), None);
        queue.end(&web, ReconcileEnd::Well, now + seconds(1), 0.5);
        assert_eq!(begin(&mut queue, now + seconds(1)), Some(web));
    }

    #[test]
    fn a_fight_ends_with_a_truce_until_the_record_changes() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        let web = name("web");
        queue.schedule(&web, now, CHANGED);
        assert!(begin(&mut queue, now).is_some());
        queue.schedule(&web, now, DRIFTED);
        queue.end(&web, ReconcileEnd::Contested(TRUCE), now, 0.5);
        queue.schedule(&web, now, DRIFTED);
        assert_eq!(queue.next_time(ANY), Some(now + TRUCE));
        queue.schedule(&web, now, CHANGED);
        assert_eq!(queue.next_time(ANY), Some(now));
    }

    #[test]
    fn another_client_is_waited_for_without_a_failure() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        let web = name("web");
        queue.schedule(&web, now, CHANGED);
        for _ in 0..3 {
            assert!(begin(&mut queue, now + BUSY).is_some());
            queue.end(&web, ReconcileEnd::Busy, now, 0.5);
            assert_eq!(queue.next_time(ANY), Some(now + BUSY));
        }
    }

    #[test]
    fn the_one_that_waits_for_longest_is_first_and_intervals_spread() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        let (a, b) = (name("a"), name("b"));
        queue.schedule(&a, now + seconds(1), CHANGED);
        queue.schedule(&b, now, CHANGED);
        assert_eq!(begin(&mut queue, now + seconds(2)), Some(b.clone()));
        assert_eq!(begin(&mut queue, now + seconds(2)), Some(a.clone()));
        queue.end(&a, ReconcileEnd::Well, now, 0.0);
        queue.end(&b, ReconcileEnd::Well, now, 1.0);
        assert_eq!(queue.next_time(ANY), Some(now + seconds(900)));
        queue.forget(&a);
        assert_eq!(queue.next_time(ANY), Some(now + seconds(1100)));
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn those_of_a_namespace_begin_together_but_for_what_failed() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        let (a, b, c) = (name("a"), name("b"), name("c"));
        for (name, due) in [(&a, 0), (&b, 5), (&c, 0)] {
            queue.schedule(name, now + seconds(due), CHANGED);
        }
        assert_eq!(
            begun(&mut queue, now, |name, _| (*name == c).then_some(0)),
            Some((c.clone(), true))
        );
        queue.end(&c, ReconcileEnd::Badly, now, 0.5);
        assert_eq!(begin(&mut queue, now), Some(a));
        let by = now + seconds(10);
        assert_eq!(
            queue.begin_together("kubectl-addons", now, by),
            [(b, CHANGED)]
        );
        assert_eq!(queue.begin_together("shop", now, by), []);
        queue.retry(&c, now, CHECKED);
        assert_eq!(
            queue.begin_together("kubectl-addons", now, by),
            [(c, CHECKED)]
        );
    }

    #[test]
    fn what_changed_goes_before_what_is_looked_at_again() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        for (installation, due, why) in [
            ("looked", 0, CHECKED),
            ("drifted", 1, DRIFTED),
            ("damaged", 3, DAMAGED),
            ("new", 2, CHANGED),
        ] {
            queue.schedule(&name(installation), now + seconds(due), why);
        }
        let later = now + seconds(9);
        let order = std::iter::from_fn(|| begun(&mut queue, later, ANY));
        let order: Vec<_> = order.map(|(name, urgent)| (name.name, urgent)).collect();
        let order: Vec<_> = order
            .iter()
            .map(|(name, urgent)| (name.as_str(), *urgent))
            .collect();
        assert_eq!(
            order,
            [
                ("new", true),
                ("damaged", true),
                ("looked", false),
                ("drifted", false)
            ]
        );
        // What changes meanwhile goes first afterwards, and only then.
        let looked = name("looked");
        queue.schedule(&looked, later, CHANGED);
        queue.end(&looked, ReconcileEnd::Busy, later, 0.5);
        assert_eq!(begun(&mut queue, later, ANY), Some((looked.clone(), true)));
        queue.end(&looked, ReconcileEnd::Well, later, 0.5);
        let next = later + INTERVAL;
        assert_eq!(begun(&mut queue, next, ANY), Some((looked, false)));
    }

    #[test]
    fn the_cause_is_that_which_came_first_unless_a_later_one_is_urgent() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        let web = name("web");
        let mut cause_of = |causes: &[ReconcileCause], ended| {
            for cause in causes {
                queue.schedule(&web, now, cause.clone());
            }
            let due = now + INTERVAL + INTERVAL;
            assert_eq!(queue.next_due(due, ANY), Some(web.clone()));
            let cause = queue.begin(&web);
            queue.end(&web, ended, now, 0.5);
            cause
        };
        for (causes, ended, expected) in [
            (&[CHECKED, DRIFTED][..], ReconcileEnd::Well, CHECKED),
            (&[], ReconcileEnd::Well, ReconcileCause::Interval),
            (&[DRIFTED, CHANGED, DAMAGED], ReconcileEnd::Badly, CHANGED),
            (&[], ReconcileEnd::Busy, ReconcileCause::Retry),
            (&[CHANGED], ReconcileEnd::Well, CHANGED),
        ] {
            assert_eq!(cause_of(causes, ended), expected, "{causes:?}");
        }
    }

    #[test]
    fn the_namespace_with_the_least_under_way_is_first() {
        let (mut queue, now) = (Queue::new(INTERVAL), Instant::now());
        let (many, few) = (name("many"), name("few"));
        queue.schedule(&many, now, CHANGED);
        queue.schedule(&few, now + seconds(1), CHANGED);
        let room = |name: &InstallationName, _| Some(name.name.len());
        let later = now + seconds(2);
        assert_eq!(begun(&mut queue, later, room), Some((few, true)));
        assert_eq!(begun(&mut queue, later, |_, _| None), None);
        assert_eq!(begun(&mut queue, later, room), Some((many, true)));
    }
}
