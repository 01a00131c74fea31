//! Decides which step of the rotation is due: for the authority that all replicas share, and for the certificate of one replica.
//!
//! Authorities overlap when they are replaced, so that the API server always trusts the certificate that it is shown:
//!
//! 1. When two thirds of the current authority's life have passed, the next authority is added, and both are announced to the API server.
//! 2. When the webhook configurations carry both, the next authority starts to sign. The old one stays announced.
//! 3. When the last certificate of the old authority has expired, the old authority is removed.

use std::time::Duration;

use jiff::Timestamp;

use crate::authority::CertificateLife;
use crate::shared::SharedAuthorities;

/// Time for all API servers to read changed configurations. One usually needs less than a second; slow ones need longer.
const SETTLING: Duration = Duration::from_secs(60);

/// How long certificates are valid. They are renewed after two thirds of the time.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// Lifetime of serving certificates.
    pub leaf: Duration,
    /// Lifetime of the authority.
    pub authority: Duration,
}

/// The step that is due for the authorities in the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// Nothing.
    Nothing,
    /// Create an authority that signs at once, because there is no usable one.
    First,
    /// Add the next authority, which does not sign yet.
    Prepare,
    /// Let the next authority sign from now on.
    Promote,
    /// Remove a previous authority that has expired, or record a lost one again.
    Tidy,
}

impl Lifetimes {
    /// Returns how long the configurations must carry an authority before it signs.
    #[must_use]
    pub fn settling_time(&self) -> Duration {
        SETTLING.min(self.authority / 10)
    }

    /// Returns the polling interval: short enough to renew a certificate in time, and at most ten seconds.
    #[must_use]
    pub fn interval(&self) -> Duration {
        (self.leaf / 12).clamp(Duration::from_millis(100), Duration::from_secs(10))
    }
}

/// Returns the step that is due for the content of the Secret at `now`. `is_next_settled`: the configurations have carried the next
/// authority long enough.
#[must_use]
pub fn next_step(
    shared: &SharedAuthorities,
    is_next_settled: bool,
    now: Timestamp,
) -> RotationStep {
    match (&shared.current, &shared.next) {
        (None, None) => RotationStep::First,
        // Promote it even if it is not trusted yet, because no other authority can sign.
        (None, Some(_)) => RotationStep::Promote,
        (Some(_), Some(_)) if is_next_settled => RotationStep::Promote,
        (Some(current), None) if current.life().needs_renewal(now) => RotationStep::Prepare,
        _ if shared.is_incomplete => RotationStep::Tidy,
        _ if shared.previous.iter().any(|previous| previous.until <= now) => RotationStep::Tidy,
        _ => RotationStep::Nothing,
    }
}

/// The certificate that a replica serves, and what is known of its authority.
#[derive(Clone, Copy, Debug)]
pub struct LeafState {
    /// The time from issue until expiry.
    pub life: CertificateLife,
    /// Whether it was signed by the authority that signs now.
    pub is_current: bool,
    /// Whether the configurations carry the authority that signed it.
    pub is_trusted: bool,
}

/// Returns whether a replica has to issue itself a new certificate. `is_carried`: the configurations carry the authority that signs now;
/// `is_settled`: they have carried it long enough.
#[must_use]
pub fn needs_new_leaf(
    leaf: Option<LeafState>,
    is_carried: bool,
    is_settled: bool,
    now: Timestamp,
) -> bool {
    let Some(leaf) = leaf else { return true };
    if leaf.life.is_expired(now) {
        true
    } else if leaf.is_current {
        leaf.life.needs_renewal(now)
    } else {
        // Signed by a previous authority: keep a certificate that the API server still trusts until it surely knows the new authority.
        is_settled || (is_carried && !leaf.is_trusted)
    }
}

#[cfg(test)]
mod tests;
