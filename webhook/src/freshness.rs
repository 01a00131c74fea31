//! The age of the facts: when each watch last heard from the API server.
//!
//! A watch whose connection is dead looks like one on which nothing happens. The API server sends a bookmark about every minute, so
//! longer silence means that the facts may be out of date. No review gets a verdict then.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A kind of watched objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchedKind {
    /// Catalogues of the system namespace.
    Catalogues,
    /// Installations of all namespaces.
    Installations,
    /// All namespaces.
    Namespaces,
    /// AddonPolicies.
    Policies,
}

impl WatchedKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::Catalogues,
        Self::Installations,
        Self::Namespaces,
        Self::Policies,
    ];

    /// Returns the resource in plural, as the API server calls it.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Catalogues => "addoncatalogues",
            Self::Installations => "addoninstallations",
            Self::Namespaces => "namespaces",
            Self::Policies => "addonpolicies",
        }
    }
}

/// When each watch last brought a list, an event or a bookmark that is part of the published facts.
#[derive(Debug)]
pub struct Freshness {
    begun: Instant,
    limit: Duration,
    /// Milliseconds after `begun`, in the order of [`WatchedKind::ALL`].
    heard: [AtomicU64; 4],
}

/// A watch that has been silent for longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleWatch {
    /// The watch.
    pub watched: WatchedKind,
    /// How long it has been silent.
    pub silent: Duration,
}

impl fmt::Display for StaleWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the webhook has heard nothing of {} from the API server for {} s",
            self.watched.resource(),
            self.silent.as_secs()
        )
    }
}

impl Freshness {
    /// Facts are stale after a silence of `limit`.
    pub fn new(limit: Duration) -> Self {
        Self {
            begun: Instant::now(),
            limit,
            heard: Default::default(),
        }
    }

    /// Returns how long a watch may be silent.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Records that the latest report about a kind is part of the published facts.
    pub fn record_report(&self, watched: WatchedKind, now: Instant) {
        let since = now.saturating_duration_since(self.begun).as_millis();
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        if let Some(heard) = self.heard.get(watched as usize) {
            heard.store(since, Ordering::Relaxed);
        }
    }

    /// Returns how long a kind has been silent; before the first report, since the start.
    pub fn silence(&self, watched: WatchedKind, now: Instant) -> Duration {
        let heard = self.heard.get(watched as usize);
        let heard = heard.map_or(0, |heard| heard.load(Ordering::Relaxed));
        let since = now.saturating_duration_since(self.begun);
        since.saturating_sub(Duration::from_millis(heard))
    }

    /// Returns the kind that has been silent for longest, if that is too long.
    pub fn find_stale(&self, now: Instant) -> Option<StaleWatch> {
        WatchedKind::ALL
            .into_iter()
            .map(|watched| StaleWatch {
                watched,
                silent: self.silence(watched, now),
            })
            .max_by_key(|stale| stale.silent)
            .filter(|stale| stale.silent > self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_silent_kind_is_enough() {
        let freshness = Freshness::new(Duration::from_secs(90));
        let at = |seconds| freshness.begun + Duration::from_secs(seconds);
        assert_eq!(freshness.find_stale(at(90)), None);
        for watched in WatchedKind::ALL {
            freshness.record_report(watched, at(60));
        }
        assert_eq!(freshness.find_stale(at(150)), None);
        freshness.record_report(WatchedKind::Catalogues, at(150));
        freshness.record_report(WatchedKind::Namespaces, at(150));
        freshness.record_report(WatchedKind::Policies, at(150));
        let stale = freshness.find_stale(at(151)).unwrap();
        assert_eq!(stale.watched, WatchedKind::Installations);
        assert_eq!(
            stale.to_string(),
            "the webhook has heard nothing of addoninstallations from the API server for 91 s"
        );
        freshness.record_report(WatchedKind::Installations, at(151));
        assert_eq!(freshness.find_stale(at(151)), None);
        assert_eq!(
            freshness.silence(WatchedKind::Catalogues, at(160)),
            Duration::from_secs(10)
        );
    }
}
