//! What the user says about fields that others changed, and about fields that never change.

use common::plan::recreate;

use crate::cli::operation::Differences;
use crate::usage::Usage;

use super::candidate::Candidate;
use super::run::Item;

/// Writes the policy for conflicts into the installations that a command is about.
pub fn say(candidates: &mut [Candidate], differences: &Differences) {
    let Some(conflicts) = differences.conflicts else {
        return;
    };
    for candidate in candidates {
        candidate.wanted.spec.conflicts = conflicts.into();
    }
}

/// Allows the objects that the user named to be made anew.
///
/// # Errors
/// A name that is no wanted object, or one that is never made anew.
pub fn allow(items: &mut [Item], differences: &Differences) -> Result<(), Usage> {
    // Where nothing is due, nothing was read either.
    if differences.recreate.is_empty() || !items.iter().any(Item::is_due) {
        return Ok(());
    }
    let plans = items.iter_mut().filter_map(Item::plan_mut);
    recreate::allow(plans, &differences.recreate).map_err(|error| Usage(error.to_string()))
}
