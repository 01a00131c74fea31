//! Evaluates the maintenance windows of AddonPolicies: when a change may begin (semantics 19.7).

use std::fmt;
use std::time::Duration;

use common::api::policy::{AddonPolicy, Maintenance, MaintenanceWindow, RepairTime};
use common::schedule::{RecurringWindow, Schedule, ScheduleError};
use common::text::list_first;
use jiff::{SignedDuration, Timestamp};

use super::{MAX_LISTED, policy_name};

/// How many times are tried to find one at which all policies are open: enough for a year of windows every day.
const MOST_TRIES: usize = 1000;
/// The shortest and the longest window.
const DURATIONS: [SignedDuration; 2] = [
    SignedDuration::from_mins(1),
    SignedDuration::from_hours(168),
];

/// What is done to an installation, as far as windows distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is installed, upgraded, rolled back or uninstalled.
    Change,
    /// Objects that were edited or deleted are restored.
    Repair,
}

/// Windows outside which a change would begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedWindow {
    /// The policies whose windows are closed, by name.
    pub policies: Vec<String>,
    /// When all windows are open next; `None` if they never are.
    pub next: Option<Timestamp>,
    /// Why they never are, if a window has a mistake.
    pub mistake: Option<String>,
}

impl ClosedWindow {
    /// Returns how long they stay closed; `None` if they never open.
    #[must_use]
    pub fn wait(&self, now: Timestamp) -> Option<Duration> {
        let wait = self.next?.duration_since(now);
        Some(Duration::try_from(wait).unwrap_or_default())
    }
}

/// A window that cannot be evaluated. The schema of the policy refuses it, so that only a policy that is older than its schema has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The schedule has a mistake, or no times.
    #[error("schedule: {0}")]
    Schedule(#[from] ScheduleError),
    /// The duration cannot be parsed, or is too short or too long.
    #[error("duration: {0:?} is not a duration from 1m to 168h")]
    Duration(String),
}

/// Returns the windows outside which a change would begin now; `None` if it may begin. All policies have to be open at the same time, each
/// of them with one of its windows. `policies`: those that select the namespace.
pub fn find_closed<'a>(
    policies: impl IntoIterator<Item = &'a AddonPolicy>,
    kind: ChangeKind,
    now: Timestamp,
) -> Option<ClosedWindow> {
    let counts = |maintenance: &&Maintenance| {
        kind == ChangeKind::Change || maintenance.repairs == RepairTime::InWindow
    };
    let (mut windows, mut closed, mut mistake) = (Vec::new(), Vec::new(), None);
    for policy in policies {
        let Some(maintenance) = policy.spec.maintenance.as_ref().filter(counts) else {
            continue;
        };
        let name = policy_name(policy);
        match parse(maintenance) {
            Ok(parsed) => {
                if next_open(&parsed, now) != Some(now) {
                    closed.push(name.to_owned());
                }
                windows.push(parsed);
            }
            Err((number, error)) => {
                closed.push(name.to_owned());
                mistake.get_or_insert(format!(
                    "AddonPolicy {name}: spec.maintenance.windows[{number}].{error}"
                ));
            }
        }
    }
    if closed.is_empty() {
        return None;
    }
    closed.sort();
    let next = match &mistake {
        Some(_) => None,
        None => next_open_together(&windows, now),
    };
    Some(ClosedWindow {
        policies: closed,
        next,
        mistake,
    })
}

/// Parses the windows of a policy. A mistake comes with the position of its window.
fn parse(maintenance: &Maintenance) -> Result<Vec<RecurringWindow>, (usize, WindowError)> {
    let windows = maintenance.windows.iter().enumerate();
    windows
        .map(|(number, window)| parse_window(window).map_err(|error| (number, error)))
        .collect()
}

fn parse_window(window: &MaintenanceWindow) -> Result<RecurringWindow, WindowError> {
    let schedule = Schedule::parse(&window.schedule, window.time_zone.as_deref())?;
    let duration = window.duration.parse::<SignedDuration>().ok();
    let [least, most] = DURATIONS;
    let duration = duration.filter(|duration| (least..=most).contains(duration));
    let duration = duration.ok_or_else(|| WindowError::Duration(window.duration.clone()))?;
    Ok(RecurringWindow::new(schedule, duration))
}

/// Returns the first time at or after `now` at which one of the windows is open.
fn next_open(windows: &[RecurringWindow], now: Timestamp) -> Option<Timestamp> {
    let windows = windows.iter();
    windows.filter_map(|window| window.next_open(now)).min()
}

/// Returns the first time at or after `now` at which each policy has an open window.
fn next_open_together(policies: &[Vec<RecurringWindow>], now: Timestamp) -> Option<Timestamp> {
    let mut at = now;
    for _ in 0..MOST_TRIES {
        // No policy is open before this time, so nothing is skipped.
        let mut latest = at;
        for windows in policies {
            latest = latest.max(next_open(windows, at)?);
        }
        if latest == at {
            return Some(at);
        }
        at = latest;
    }
    None
}

impl fmt::Display for ClosedWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policies = list_first(&self.policies, MAX_LISTED);
        match (self.next, &self.mistake) {
            (Some(next), _) => write!(
                f,
                "until {next:.0}: outside the maintenance windows of AddonPolicy {policies}"
            ),
            (None, Some(mistake)) => write!(f, "until the policy is corrected: {mistake}"),
            (None, None) => write!(
                f,
                "for ever: the maintenance windows of AddonPolicies are never open together; closed: {policies}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(name: &str, maintenance: Value) -> AddonPolicy {
        let spec = json!({"action": "Enforce", "maintenance": maintenance});
        AddonPolicy::new(name, serde_json::from_value(spec).unwrap())
    }

    fn windows(name: &str, windows: &[(&str, &str)]) -> AddonPolicy {
        let windows = windows
            .iter()
            .map(|(schedule, duration)| json!({"schedule": schedule, "duration": duration}));
        policy(name, json!({"windows": windows.collect::<Vec<_>>()}))
    }

    fn said(policies: &[AddonPolicy], kind: ChangeKind, now: &str) -> String {
        let closed = find_closed(policies, kind, now.parse().unwrap());
        closed.map_or_else(|| "open".to_owned(), |closed| closed.to_string())
    }

    #[test]
    fn every_policy_has_to_be_open_with_one_of_its_windows() {
        let night = windows("night", &[("0 2 * * *", "2h"), ("0 22 * * *", "90m")]);
        let weekend = windows("weekend", &[("0 0 * * SAT", "48h")]);
        let noon = windows("noon", &[("0 12 * * *", "1h")]);
        let free = policy("free", json!(null));
        let both = [night.clone(), weekend.clone(), free.clone()];
        let until = |next: &str, policies: &str| {
            format!("until {next}: outside the maintenance windows of AddonPolicy {policies}")
        };
        for (policies, now, expected) in [
            (&[free][..], "2026-01-01T12:00:00Z", "open".to_owned()),
            (&both[..1], "2026-01-01T03:59:59Z", "open".to_owned()),
            (
                &both[..1],
                "2026-01-01T04:00:00Z",
                until("2026-01-01T22:00:00Z", "night"),
            ),
            (&both[..1], "2026-01-01T23:29:59Z", "open".to_owned()),
            // Saturday is the 3rd.
            (
                &both[..],
                "2026-01-02T03:00:00Z",
                until("2026-01-03T02:00:00Z", "weekend"),
            ),
            (
                &both[..],
                "2026-01-01T12:00:00Z",
                until("2026-01-03T02:00:00Z", "night, weekend"),
            ),
            (&both[..], "2026-01-04T22:30:00Z", "open".to_owned()),
            (
                &[night, noon][..],
                "2026-01-01T03:00:00Z",
                "for ever: the maintenance windows of AddonPolicies are never open together; closed: noon"
                    .to_owned(),
            ),
        ] {
            assert_eq!(said(policies, ChangeKind::Change, now), expected, "{now}");
        }
    }

    #[test]
    fn repairs_wait_where_a_policy_says_so() {
        let window = json!([{"schedule": "0 2 * * *", "duration": "1h"}]);
        let now = "2026-01-01T12:00:00Z";
        for (repairs, expected) in [
            (json!({"windows": window}), true),
            (json!({"windows": window, "repairs": "Always"}), true),
            (json!({"windows": window, "repairs": "InWindow"}), false),
        ] {
            let policies = [policy("p", repairs.clone())];
            let is_open = said(&policies, ChangeKind::Repair, now) == "open";
            assert_eq!(is_open, expected, "{repairs}");
            assert_ne!(said(&policies, ChangeKind::Change, now), "open");
        }
    }

    #[test]
    fn a_mistake_closes_and_is_named() {
        for (window, expected) in [
            (
                ("0 0 31 2 *", "1h"),
                "schedule: \"0 0 31 2 *\" never occurs: none of its months has such a day",
            ),
            (
                ("0 0 * * *", "1d"),
                "duration: \"1d\" is not a duration from 1m to 168h",
            ),
            (
                ("0 0 * * *", "200h"),
                "duration: \"200h\" is not a duration from 1m to 168h",
            ),
        ] {
            let policies = [windows("p", &[("0 0 * * *", "24h"), window])];
            assert_eq!(
                said(&policies, ChangeKind::Change, "2026-01-01T12:00:00Z"),
                format!(
                    "until the policy is corrected: AddonPolicy p: spec.maintenance.windows[1].{expected}"
                )
            );
        }
    }
}
