//! What the tests, the demo and the benchmarks share.

pub mod backend;
pub mod bench;
pub mod binaries;
#[cfg(feature = "cases")]
pub mod chaos;
pub mod control_plane;
pub mod crds;
pub mod egress;
pub mod guard;
pub mod kubelet;
pub mod objects;
pub mod plugin;
pub mod proxy;
#[cfg(feature = "cases")]
pub mod raw;
pub mod running;
#[cfg(feature = "cases")]
pub mod scene;
#[cfg(feature = "cases")]
pub mod servers;
pub mod shared;
pub mod small;
pub mod stage;
pub mod tally;
pub mod until;
pub mod webhook;
