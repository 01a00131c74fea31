//! Why an installation cannot be reconciled, as conditions say it: one word, and whether a person has to agree.

use addons_engine::standing::Standing;
use addons_operation::OperationError;
use common::api::conditions::bounded;

/// Returns how an installation stands that failed with this error.
pub(crate) fn standing(error: &OperationError, words: String) -> Standing {
    let (kind, message) = (error.kind(), bounded(words));
    let reason = kind.reason;
    if kind.can_be_accepted {
        Standing::NeedsConfirmation { reason, message }
    } else {
        Standing::Stalled { reason, message }
    }
}

#[cfg(test)]
mod tests {
    use common::api::conditions::LONGEST_MESSAGE;

    use super::*;

    #[test]
    fn a_message_has_an_end() {
        let standing = standing(&OperationError::NoCluster, "ä".repeat(2 * LONGEST_MESSAGE));
        let Standing::Stalled { message, .. } = standing else {
            panic!("{standing:?}");
        };
        assert_eq!(message.chars().count(), LONGEST_MESSAGE);
    }
}
