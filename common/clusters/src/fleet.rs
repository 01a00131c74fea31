//! The waves in which the clusters of a fleet are changed: how many at a time, and what must hold before the next wave.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

/// How many clusters of a fleet may be changed at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxUnavailable {
    /// A number of clusters.
    Clusters(NonZeroUsize),
    /// A share of the fleet, rounded down, but at least one cluster.
    Percent(u8),
}

/// How a change reaches the clusters of a fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RolloutSettings {
    /// The number of clusters in a first wave; 0 = no such wave.
    pub canaries: usize,
    /// The most clusters in each wave; `None` = no limit.
    pub max_unavailable: Option<MaxUnavailable>,
    /// How long the clusters of a first wave have to stay ready.
    pub soak: Duration,
}

/// A wave: clusters that are changed at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wave {
    /// Their positions in the fleet.
    pub clusters: Range<usize>,
    /// How long all of them have to stay ready before the next wave begins; zero for a single check, `None` for the last wave.
    pub gate: Option<Duration>,
}

/// The error of a text that is neither a number of clusters nor a share of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is a number of clusters from 1, or a share of them from 1% to 100%")]
pub struct MaxUnavailableError;

impl RolloutSettings {
    /// Returns the waves of a fleet with this many clusters, in order. Together they contain every cluster once.
    #[must_use]
    pub fn waves(&self, clusters: usize) -> Vec<Wave> {
        let most = self
            .max_unavailable
            .map_or(clusters, |it| it.count_of(clusters));
        let most = most.max(1);
        let mut waves: Vec<Wave> = Vec::new();
        let mut next = 0;
        while next < clusters {
            let is_canary = next == 0 && self.canaries > 0;
            let size = if is_canary {
                self.canaries.min(most)
            } else {
                most
            };
            let end = clusters.min(next.saturating_add(size));
            let soak = if is_canary { self.soak } else { Duration::ZERO };
            waves.push(Wave {
                clusters: next..end,
                gate: (end < clusters).then_some(soak),
            });
            next = end;
        }
        waves
    }
}

impl MaxUnavailable {
    fn count_of(self, clusters: usize) -> usize {
        match self {
            Self::Clusters(number) => number.get(),
            Self::Percent(share) => clusters.saturating_mul(share.into()) / 100,
        }
    }
}

impl FromStr for MaxUnavailable {
    type Err = MaxUnavailableError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(share) = text.strip_suffix('%') else {
            let number = text.parse().map(Self::Clusters);
            return number.map_err(|_| MaxUnavailableError);
        };
        match share.parse() {
            Ok(share @ 1..=100) => Ok(Self::Percent(share)),
            _ => Err(MaxUnavailableError),
        }
    }
}

impl fmt::Display for MaxUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clusters(number) => write!(f, "{number}"),
            Self::Percent(share) => write!(f, "{share}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOAK: Duration = Duration::from_secs(300);

    fn rollout(canaries: usize, max_unavailable: &str) -> RolloutSettings {
        RolloutSettings {
            canaries,
            max_unavailable: max_unavailable.parse().ok(),
            soak: SOAK,
        }
    }

    /// (canaries, max unavailable, clusters, the sizes of the waves).
    #[test]
    fn sizes() {
        let rows: [(usize, &str, usize, &[usize]); 11] = [
            (0, "", 0, &[]),
            (0, "", 5, &[5]),
            (1, "", 5, &[1, 4]),
            (1, "", 1, &[1]),
            (9, "", 5, &[5]),
            (0, "2", 5, &[2, 2, 1]),
            (1, "2", 6, &[1, 2, 2, 1]),
            // Canaries are unavailable as well.
            (3, "2", 6, &[2, 2, 2]),
            (1, "25%", 10, &[1, 2, 2, 2, 2, 1]),
            (0, "10%", 5, &[1, 1, 1, 1, 1]),
            (1, "100%", 5, &[1, 4]),
        ];
        for (canaries, most, clusters, expected) in rows {
            let waves = rollout(canaries, most).waves(clusters);
            let sizes: Vec<usize> = waves.iter().map(|wave| wave.clusters.len()).collect();
            assert_eq!(sizes, expected, "{canaries} {most} {clusters}");
        }
    }

    #[test]
    fn every_cluster_has_one_wave_and_every_wave_but_the_last_a_gate() {
        for canaries in 0..5 {
            for most in ["", "1", "3", "10%", "50%", "100%"] {
                for clusters in 0..40 {
                    let waves = rollout(canaries, most).waves(clusters);
                    let places: Vec<usize> =
                        waves.iter().flat_map(|it| it.clusters.clone()).collect();
                    assert_eq!(places, (0..clusters).collect::<Vec<_>>());
                    for (at, wave) in waves.iter().enumerate() {
                        let soak = if at == 0 && canaries > 0 {
                            SOAK
                        } else {
                            Duration::ZERO
                        };
                        let is_last = at + 1 == waves.len();
                        assert_eq!(wave.gate, (!is_last).then_some(soak));
                        assert!(!wave.clusters.is_empty());
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_and_shares() {
        for text in ["1", "200", "1%", "100%"] {
            let read: MaxUnavailable = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
        }
        for text in ["", "0", "-1", "0%", "101%", "1.5", "%", "10 %"] {
            assert_eq!(text.parse::<MaxUnavailable>(), Err(MaxUnavailableError));
        }
    }
}
