//! Many clusters: what one cluster decides for others, and what it sends to them. An install does not need this crate.
//!
//! | module | contents |
//! |---|---|
//! | [`core_set`] | the core set of each cluster, and the records that it asks for (semantics 14) |
//! | [`push`], [`targets`] | the catalogues of this cluster, merged and pushed to others (semantics 1.5, 1.6) |
//! | [`compatible`] | the versions that fit each cluster, stored in its namespace (semantics 1.7) |
//! | [`sync`] | catalogues of this cluster, updated from their files before they are pushed (semantics 1.4) |
//! | [`fleet`] | the clusters that labelled namespaces stand for, and whether their installations are ready |
//!
//! The rules are in the pure crate `addons-clusters`; this crate reads what they need and writes what they say. Like the plugin and the
//! reconciler, it calls the operations on one cluster from outside, and resolves and plans with their [`Resolver`]. No crate of an
//! install knows this one.
//!
//! Functions that can only fail as an operation on one cluster fails return its [`OperationError`]. The others return a
//! [`DistributionError`].
//!
//! [`Resolver`]: addons_operation::Resolver
//! [`OperationError`]: addons_operation::OperationError

pub mod compatible;
pub mod core_set;
mod error;
pub mod fleet;
pub mod push;
pub mod sync;
pub mod targets;

pub use error::{DistributionError, RestoreError};
