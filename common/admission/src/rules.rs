//! The rules: one function per rule, one module per kind of object.

pub mod catalogue;
pub mod cluster;
pub mod duplicates;
pub mod installation;
pub mod location;
pub mod namespace;
pub mod reference;
pub mod size;
