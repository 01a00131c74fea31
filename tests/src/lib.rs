//! What the tests, the demo and the benchmarks share.

pub mod backend;
pub mod binaries;
pub mod control_plane;
pub mod crds;
pub mod guard;
pub mod plugin;
pub mod proxy;
#[cfg(feature = "cases")]
pub mod servers;
pub mod shared;
pub mod tally;
pub mod until;
pub mod webhook;
