//! What is due by the clock, for the authority that all replicas share and for the certificate of one of them.
//!
//! An authority is exchanged with an overlap, so that the API server trusts every certificate that it is shown:
//!
//! 1. Two thirds of its life have passed: the next one is put beside it, and announced to the API server with it.
//! 2. The configurations carry both: the next one signs from now on. The old one stays announced.
//! 3. The last certificate of the old one has expired: it is forgotten.

use std::time::Duration;

use jiff::Timestamp;

use crate::authority::Life;
use crate::shared::Shared;

/// The API server reads changed configurations within a second; several of them, and slow ones, need longer.
const SETTLING: Duration = Duration::from_secs(60);

/// How long certificates are valid. Both are renewed when two thirds have passed.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// Of what is served.
    pub leaf: Duration,
    /// Of the authority.
    pub authority: Duration,
}

/// What is due for the authorities in the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// An authority that signs at once: there is none that can be used.
    First,
    /// The next authority, which does not sign yet.
    Prepare,
    /// The next authority signs from now on.
    Promote,
    /// A previous authority is forgotten, or one that was lost is recorded again.
    Tidy,
}

impl Lifetimes {
    /// How long configurations carry an authority before it signs.
    #[must_use]
    pub fn settling(&self) -> Duration {
        SETTLING.min(self.authority / 10)
    }

    /// How often to look: often enough for a certificate that is renewed in time, and every ten seconds at least.
    #[must_use]
    pub fn interval(&self) -> Duration {
        (self.leaf / 12).clamp(Duration::from_millis(100), Duration::from_secs(10))
    }
}

/// What is due for the content of the Secret at `now`. `is_next_settled`: the configurations carry the next authority long enough.
#[must_use]
pub fn due(shared: &Shared, is_next_settled: bool, now: Timestamp) -> Due {
    match (&shared.current, &shared.next) {
        (None, None) => Due::First,
        // Whether it is trusted or not: nothing else can sign.
        (None, Some(_)) => Due::Promote,
        (Some(_), Some(_)) if is_next_settled => Due::Promote,
        (Some(current), None) if current.life().is_worn(now) => Due::Prepare,
        _ if shared.is_incomplete => Due::Tidy,
        _ if shared.previous.iter().any(|previous| previous.until <= now) => Due::Tidy,
        _ => Due::Nothing,
    }
}

/// What a replica serves, and what is known of the authorities.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// From its issue until it expires.
    pub life: Life,
    /// The authority that signs now has signed it.
    pub is_current: bool,
    /// The configurations carry the authority that has signed it.
    pub is_trusted: bool,
}

/// Whether a replica has to sign a certificate for itself. `is_carried`: the configurations carry the authority that signs now;
/// `is_settled`: they do so long enough.
#[must_use]
pub fn is_leaf_due(leaf: Option<Leaf>, is_carried: bool, is_settled: bool, now: Timestamp) -> bool {
    let Some(leaf) = leaf else { return true };
    if leaf.life.is_over(now) {
        true
    } else if leaf.is_current {
        leaf.life.is_worn(now)
    } else {
        // Its authority is a previous one. What the API server still trusts is not given up for what it may not know yet.
        is_settled || (is_carried && !leaf.is_trusted)
    }
}

#[cfg(test)]
mod tests;
