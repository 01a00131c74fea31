//! The shared crate of kubectl addons: objects, catalogues, manifests and values. `README.md` beside it is the map of all crates.
//!
//! The webhook and the plugin build on it; it knows nothing of plans, templates and engines.
//!
//! | module | what it holds |
//! |---|---|
//! | [`api`] | our objects, and every name that others can see |
//! | [`catalogue`] | kops indexes, merged catalogues, which entry fits and why the others do not |
//! | [`values`] | layers of values, forms, dotted paths |
//! | [`directory`] | the add-ons of a directory of the addon-manager, and what is gone from it |
//! | [`manifest`] | YAML as Kubernetes reads it, keys, digests, ownership marks |
//! | [`schema`] | whether an object fits the schema of its definition |
//! | [`target`], [`pin`] | which cluster a namespace stands for, and whether a record belongs to it |
//! | [`image`], [`registry`], [`oci`] | names of images, registries in place of others, manifests and layouts |
//! | [`entrance`] | JSON that others wrote, within bounds |
//! | [`address`], [`foreign`] | addresses and texts that others chose |
//! | [`right`] | permissions, as RBAC names them |
//! | [`hex`], [`nearest`], [`shorten`] | digits of bytes, misspelt names, texts without room |
//!
//! Invariants: there is no task, socket, file, clock, environment or randomness here; the time, the facts of a cluster and
//! what it serves are arguments. Clippy's `disallowed_methods` and a test enforce it.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod address;
pub mod api;
pub mod catalogue;
pub mod directory;
pub mod entrance;
pub mod foreign;
pub mod hex;
pub mod image;
pub mod manifest;
pub mod nearest;
pub mod oci;
pub mod pin;
pub mod registry;
pub mod right;
pub mod schema;
pub mod shorten;
pub mod target;
pub mod values;
