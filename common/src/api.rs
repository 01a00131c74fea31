//! The objects of the group `kubectl-addons.dev/v1alpha1`, and every name that other programs can see.

pub mod catalogue;
pub mod conditions;
pub mod installation;
pub mod names;
pub mod policy;
pub mod rules;
mod stored;
pub mod verb;

#[cfg(any(test, feature = "test-util"))]
pub mod fixtures;
