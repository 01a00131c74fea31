//! Loops over operations: what keeps the installations of a cluster as their records ask for.
//!
//! | module | what it does |
//! |---|---|
//! | [`installation`] | reconciles one installation |
//! | [`pass`] | reconciles each installation of the cluster once |
//! | `reason` | whether a failure needs a person, and the word for it in the condition |
//!
//! Nothing here decides what is due or writes objects: that is done by the operations of `addons-operation`. Nothing here prints:
//! the caller gives the words for errors ([`installation::Words`]) and receives an [`Outcome`] for each installation.

pub mod installation;
pub mod pass;
mod reason;

pub use installation::{How, Outcome};
pub use pass::pass;
