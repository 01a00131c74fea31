//! What goes wrong between a loop and the API server.

use std::time::Duration;

use addons_tests::chaos::seed::Chance;
use addons_tests::proxy::{Action, Fault};

/// What happens to some of the next requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ApiFault {
    ServerError,
    TooManyRequests,
    Cut,
    CutAfterwards,
    Slow,
}

impl ApiFault {
    pub(crate) const ALL: [Self; 5] = [
        Self::ServerError,
        Self::TooManyRequests,
        Self::Cut,
        Self::CutAfterwards,
        Self::Slow,
    ];

    /// It hits some requests in a row, soon.
    pub(crate) fn fault(self, chance: &mut Chance) -> Fault {
        let answer = |status, retry_after| Action::Answer {
            status,
            retry_after,
        };
        let action = match self {
            Self::ServerError => answer(500, None),
            Self::TooManyRequests => answer(429, Some(1)),
            Self::Cut => Action::Cut { delivered: false },
            Self::CutAfterwards => Action::Cut { delivered: true },
            Self::Slow => Action::Delay(Duration::from_secs(1)),
        };
        Fault::at(1 + chance.below(12), action).times(1 + chance.below(8))
    }
}
