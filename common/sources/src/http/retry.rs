//! Retries of requests when a server is broken or overloaded.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use object_store::{BackoffConfig, RetryConfig};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The maximum number of tries of a request.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause that a server may request.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Counts the tries of a request or of the transfer of a file.
#[derive(Debug)]
pub struct RequestTries {
    left: u32,
    pause: Duration,
}

impl Default for RequestTries {
    fn default() -> Self {
        Self {
            left: TRIES - 1,
            pause: FIRST_PAUSE,
        }
    }
}

impl RequestTries {
    /// Waits before the next try, at least `wanted`. Returns `false` if no try is left.
    pub async fn wait(&mut self, wanted: Duration) -> bool {
        match self.next_pause(wanted) {
            Some(pause) => {
                tokio::time::sleep(pause).await;
                true
            }
            None => false,
        }
    }

    fn next_pause(&mut self, wanted: Duration) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        let pause = wanted.max(self.pause);
        self.pause *= 2;
        Some(pause)
    }
}

/// The same policy for the clients of object stores, which retry by themselves. No try starts after a minute,
/// because signatures expire.
pub fn store_retry_config() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: FIRST_PAUSE,
            max_backoff: LONGEST_PAUSE,
            base: 2.0,
        },
        max_retries: TRIES as usize - 1,
        retry_timeout: Duration::from_secs(60),
    }
}

/// Whether a retry may get another status: 429 and 5xx.
pub fn is_transient(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// The pause that the server requests with `Retry-After`.
pub fn requested_pause(headers: &HeaderMap) -> Option<Duration> {
    retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?)
}

/// Parses seconds or a date. A date in the past means no pause.
fn retry_after(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = rfc2822::parse(text).ok()?.timestamp();
    let wait = until.duration_since(Timestamp::now());
    Some(Duration::try_from(wait).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after("7"), Some(Duration::from_secs(7)));
        assert_eq!(
            retry_after("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(Duration::ZERO)
        );
        let far = retry_after("Thu, 01 Jan 2099 00:00:00 GMT").unwrap();
        assert!(far > Duration::from_secs(365 * 86_400));
        assert_eq!(retry_after("soon"), None);
    }

    #[test]
    fn pauses_grow_and_end() {
        let mut tries = RequestTries::default();
        let mut next = |seconds| {
            let pause = tries.next_pause(Duration::from_secs(seconds));
            pause.map(|pause| pause.as_millis())
        };
        assert_eq!(
            [next(0), next(7), next(0)],
            [Some(250), Some(7000), Some(1000)]
        );
        assert_eq!(next(0), None);
    }
}
