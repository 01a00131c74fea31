//! The shared crate of kubectl addons: the pure core, which decides. `README.md` beside it is the map of all crates.
//!
//! Data flows one way: bytes → [`catalogue::Catalogue`] → [`catalogue::select::Selection`] → rendered
//! [`manifest::Manifest`]s → [`plan::desired::Desired`] (+ [`plan::snapshot::Snapshot`]) → [`plan::InstallationPlan`] → report.
//! A plan is a value and leaves the engine no choices; a verdict ([`admission`]) is a value, so that the webhook and
//! the plugin give the same messages.
//!
//! | module | what it decides |
//! |---|---|
//! | [`api`] | our objects, and every name that others can see |
//! | [`catalogue`] | kops indexes, merged catalogues, which entry fits and why the others do not |
//! | [`values`] | layers of values, forms, dotted paths |
//! | [`render`] | from packages, values and data to the text of manifests |
//! | [`directory`] | the add-ons of a directory of the addon-manager, and what is gone from it |
//! | [`manifest`] | YAML as Kubernetes reads it, keys, digests, ownership marks |
//! | [`plan`] | desired objects, order, conflicts, prune, what definitions break: the plan |
//! | [`readiness`] | whether an object is ready, in kstatus' terms |
//! | [`standing`] | how an installation stands, by its record and its live objects |
//! | [`admission`] | defaults and verdicts |
//! | [`core_set`] | which core add-ons a cluster has to have, and what becomes of its core records |
//! | [`target`] | which cluster a namespace stands for, and what a kubeconfig for it may hold |
//! | [`fleet`] | in which waves the clusters of a fleet are changed |
//! | [`doctor`] | what is wrong with a cluster, from facts |
//! | [`entrance`] | JSON that others wrote, within bounds |
//! | [`history`] | what is kept of each revision of an installation, and which one a rollback goes back to |
//! | [`preflight`] | what a future release of Kubernetes would do to an installation |
//! | [`set`] | the installations of a cluster in a file |
//! | [`airgap`] | what an archive for a site without internet holds, and the names of that at the site |
//! | [`hex`] | bytes as hex digits |
//! | [`nearest`] | the name that a misspelt one probably means |
//! | [`shorten`] | texts that have no room for all of their characters |
//!
//! Invariants: there is no task, socket, file, clock, environment or randomness here; the time, the facts of a cluster and
//! what it serves are arguments. Clippy's `disallowed_methods` and a test enforce it.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod address;
pub mod admission;
pub mod airgap;
pub mod api;
pub mod catalogue;
pub mod core_set;
pub mod directory;
pub mod doctor;
pub mod entrance;
pub mod fleet;
pub mod foreign;
pub mod hex;
pub mod history;
pub mod manifest;
pub mod nearest;
pub mod plan;
pub mod preflight;
pub mod readiness;
pub mod render;
pub mod set;
pub mod shorten;
pub mod standing;
pub mod target;
pub mod values;
