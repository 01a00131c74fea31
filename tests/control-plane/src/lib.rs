//! The programs of a control plane: found, or built once from the Go modules beside this crate.
//!
//! Its program `demo` is `cargo demo`. It has hardly any dependencies, so that it starts after a few seconds of compiling;
//! then it builds what the demo needs and hands over to the program `walkthrough` of the crate above.

pub mod flags;
pub mod guard;
pub mod programs;
