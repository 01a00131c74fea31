//! Pure rules for many clusters: which core add-ons each cluster must have, and in which waves the clusters of a fleet are changed.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod core_set;
pub mod fleet;
