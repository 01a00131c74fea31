//! What the user says about fields that others changed, and about fields that never change.

use common::plan::{Plan, recreate};

use crate::cli::operation::Differences;
use crate::usage::Usage;

use super::candidate::Candidate;

/// Writes the policy for conflicts into the installations that a command is about.
pub fn say(candidates: &mut [Candidate], differences: &Differences) {
    let Some(conflicts) = differences.conflicts else {
        return;
    };
    for candidate in candidates {
        candidate.wanted.spec.conflicts = conflicts.into();
    }
}

/// Allows the objects that the user named to be made anew. Where nothing is due, there are no plans, and nothing was read
/// that a name could be looked up in.
///
/// # Errors
/// A name that is no wanted object, or one that is never made anew.
pub fn allow<'a>(
    plans: impl IntoIterator<Item = &'a mut Plan>,
    named: &[String],
) -> Result<(), Usage> {
    let mut plans = plans.into_iter().peekable();
    if named.is_empty() || plans.peek().is_none() {
        return Ok(());
    }
    recreate::allow(plans, named).map_err(|error| Usage(error.to_string()))
}
