//! The shared crate of kubectl addons: objects, catalogues, manifests and values. `README.md` beside `src/` is the map of all crates.
//!
//! The webhook and the plugin build on it. It depends on no planner, renderer or engine.
//!
//! | module | what it holds |
//! |---|---|
//! | [`api`] | our objects, and every name that other programs can see |
//! | [`catalogue`] | kops indexes, merged catalogues, the entry that fits and why the others do not |
//! | [`values`] | layers of values, forms, dotted paths |
//! | [`directory`] | the add-ons of a directory of the addon-manager, and the installations that are no longer in it |
//! | [`manifest`] | YAML as Kubernetes reads it, keys, digests, ownership marks |
//! | [`patch`] | patches of rendered objects, as in kustomize |
//! | [`schema`] | whether an object fits the schema of its definition |
//! | [`target`], [`pin`] | which cluster a namespace stands for, and whether a record belongs to it |
//! | [`image`], [`registry`], [`oci`] | image references, private registries, OCI manifests and layouts |
//! | [`entrance`] | reading of untrusted JSON, within bounds |
//! | [`expression`] | expressions in CEL, and the facts of a cluster that they read |
//! | [`address`], [`foreign`] | untrusted addresses and texts |
//! | [`right`] | permissions, as RBAC names them |
//! | [`schedule`] | recurring times and windows, in a time zone |
//! | [`causes`], [`nearest`], [`text`] | errors in one line, suggestions for misspelt names, hex digits, shortened texts and lists |
//!
//! Invariants: nothing here uses a task, a socket, a file, the clock, the environment or randomness. The time, the facts of a cluster
//! and the kinds that it serves are passed in as arguments. Clippy's `disallowed_methods` and a test enforce this.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod address;
pub mod age;
pub mod api;
pub mod catalogue;
pub mod causes;
pub mod directory;
pub mod entrance;
pub mod expression;
pub mod foreign;
pub mod image;
pub mod manifest;
pub mod nearest;
pub mod oci;
pub mod patch;
pub mod pin;
pub mod registry;
pub mod right;
pub mod schedule;
pub mod schema;
pub mod target;
pub mod text;
pub mod values;
