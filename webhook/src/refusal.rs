//! The reasons why a request gets no verdict.

use std::fmt;

use actix_web::http::StatusCode;
use serde_json::{Value, json};

use crate::freshness::StaleWatch;

/// The reason why a request gets no verdict. None of them lets a request through: the review is denied, or the `failurePolicy` decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewRefusal {
    /// There was no turn in time, because other addresses, or other reviews of this one, have them.
    Busy,
    /// The watches have not listed everything yet.
    NotSynced,
    /// A watch is silent.
    Stale(StaleWatch),
    /// The verdict depends on something that may have been created just now.
    Unseen,
    /// Other reviews take all the memory for bodies.
    Memory,
    /// The body is not JSON.
    MediaType,
    /// The body is larger than a review can be.
    TooLarge,
    /// The body does not arrive in time.
    TooSlow,
    /// The connection ended inside the body.
    CutOff,
}

impl ReviewRefusal {
    /// Returns the label of the metric.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::NotSynced => "not-synced",
            Self::Stale(_) => "stale",
            Self::Unseen => "unseen",
            Self::Memory => "memory",
            Self::MediaType => "media-type",
            Self::TooLarge => "too-large",
            Self::TooSlow => "too-slow",
            Self::CutOff => "unreadable",
        }
    }

    /// Returns the status of the HTTP response.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Busy | Self::Memory | Self::Stale(_) | Self::Unseen => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotSynced => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::CutOff => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns whether the same request may get a verdict within about a second. The API server tries again by itself, within the timeout
    /// of the webhook, if the response is 429 or 503 and has a Retry-After.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Busy | Self::Memory | Self::NotSynced)
    }

    /// Returns the body: a Status, whose message the API server passes on.
    pub fn body(self) -> Value {
        let code = self.status();
        let reason = match self {
            Self::Busy | Self::Memory | Self::Stale(_) | Self::Unseen => "TooManyRequests",
            Self::MediaType => "UnsupportedMediaType",
            Self::NotSynced => "ServiceUnavailable",
            Self::TooLarge => "RequestEntityTooLarge",
            Self::TooSlow => "Timeout",
            Self::CutOff => "BadRequest",
        };
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": reason,
            "code": code.as_u16(),
            "message": self.to_string(),
        })
    }
}

impl fmt::Display for ReviewRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("too many large reviews at once; try again"),
            Self::NotSynced => f.write_str(
                "the webhook has not read catalogues, installations and namespaces yet; try again",
            ),
            Self::Stale(stale) => write!(
                f,
                "{stale}, so its verdict could be wrong; try again, and if it stays so, read the log of the webhook"
            ),
            Self::Unseen => f.write_str(
                "the verdict depends on something that the webhook does not know, and the API server did not say in time \
                 whether it was created just now; try again",
            ),
            Self::Memory => f.write_str("too many large bodies at once; try again"),
            Self::MediaType => f.write_str("a review is application/json"),
            Self::TooLarge => f.write_str(
                "a review has at most 7 MiB, and metadata of at most 500,000 scalars, lists and maps",
            ),
            Self::TooSlow => f.write_str("the body did not come within 2 s"),
            Self::CutOff => f.write_str("the body is cut off"),
        }
    }
}
