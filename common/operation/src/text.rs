//! How long something took, for people.

use std::time::Duration;

/// `0.1s`, `12.3s`, `2m5s`: how long something took.
#[must_use]
pub fn seconds(elapsed: Duration) -> String {
    let total = elapsed.as_secs();
    if total < 60 {
        format!("{:.1}s", elapsed.as_secs_f64())
    } else {
        format!("{}m{}s", total / 60, total % 60)
    }
}
