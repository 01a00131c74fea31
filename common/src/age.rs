//! Ages as kubectl prints them.

use jiff::Timestamp;

/// Returns the time from `since` to `now`: `41d`, `26h`, `3m`, `12s`, as kubectl's `HumanDuration` does (k8s.io/apimachinery
/// duration.go). The future is `0s`.
#[must_use]
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(since.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let with = |large: i64, unit: char, rest: i64, part: char| {
        if rest == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit}{rest}{part}")
        }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => with(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => with(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_kubectl_prints_them() {
        let now = Timestamp::from_second(1_000_000_000).unwrap();
        for (seconds, text) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (600, "10m"),
            (10_800, "3h"),
            (12_000, "3h20m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
        ] {
            let since = Timestamp::from_second(1_000_000_000 - seconds).unwrap();
            assert_eq!(age(since, now), text, "{seconds} s");
        }
    }
}
