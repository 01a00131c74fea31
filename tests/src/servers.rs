//! Servers of sources on loopback ports: registries, git, chart repositories, object stores.

pub mod charts;
pub mod git;
pub mod http;
pub mod registry;
mod running;
pub mod s3;
