//! Rendering: from the package of a source to the text of manifests.
//!
//! Pure: files, values and data come in as arguments. Charts are rendered by the real helm, which is a program: that part
//! is the crate `addons-helm`.

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
