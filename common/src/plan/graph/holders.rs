//! What only one object can have is given up before another one asks for it.

use super::weak::Weak;
use super::{Held, Reason, Until};

/// Holders before their heirs.
pub(super) fn holders(weak: &mut Weak<'_, '_>, held: &[Held<'_>]) {
    for Held { holder, heir } in held {
        if let Some(heir) = weak.draft.find(heir) {
            let holder = weak.draft.find(holder);
            weak.into(holder, heir, Until::Applied, Reason::Holder);
        }
    }
}
