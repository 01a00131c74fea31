//! What a loop may do without a person: which operations it does not continue, repeat or begin.
//!
//! | module | contents |
//! |---|---|
//! | [`elsewhere`] | records that need files of another machine |
//! | [`unfinished`] | operations that only the person who began them may end |
//! | [`rollout`] | rollouts that failed for good |

pub mod elsewhere;
pub mod rollout;
pub mod unfinished;
