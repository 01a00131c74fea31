//! The engine: the only writer of a cluster. It reads what the core needs to decide, and does what a plan says.

pub mod cluster;
pub mod diff;
pub mod error;
pub mod execute;
pub mod record;
pub mod snapshot;

pub use cluster::{Cluster, ClusterOptions};
pub use error::EngineError;
pub use execute::{Event, ExecuteOptions, Report, execute};
