//! The rules: one function a rule, one module an object kind.

pub mod catalogue;
pub mod cluster;
pub mod duplicates;
pub mod installation;
pub mod location;
pub mod namespace;
pub mod nesting;
pub mod reference;
pub mod registry;
pub mod size;
