//! Renders the package of a source to the text of manifests.
//!
//! The crate has no side effects: files, values and data are arguments. Charts are rendered by the real helm, a separate program, in the
//! crate `addons-helm`.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod chart;
pub mod facts;
pub mod hooks;
pub mod images;
pub mod kkp;
pub mod objects;
pub mod package;
pub mod random;
pub mod text;
